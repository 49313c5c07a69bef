#include "bench/life.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "base/counted.hpp"
#include "bench/life_part.hpp"
#include "bench/patient_wait.hpp"
#include "queue/life_text.hpp"

namespace hostless::bench {
namespace {

using Cell = std::uint8_t;

// A rank's box with a halo of one cell.
class Box : public LifePart {
 public:
  Box(Life const& life, int rank) : LifePart(life, rank) {
    width_ = static_cast<std::size_t>(size[1] + 2);
    cells_.resize(static_cast<std::size_t>(size[0] + 2) * width_);
    next_ = cells_;
    fill();
  }
  // The cells that the neighbour in that direction needs, and where those that come from it lie.
  void pack(int direction, Cell* to) const {
    each(direction, true, [&](std::size_t at) { *to++ = cells_[at]; });
  }
  void unpack(int direction, Cell const* from) {
    each(direction, false, [&](std::size_t at) { cells_[at] = *from++; });
  }
  void step() {
    for (std::int64_t i = 1; i <= size[0]; ++i) {
      Cell const* const row = cells_.data() + static_cast<std::size_t>(i) * width_;
      Cell const *const above = row - width_, *const below = row + width_;
      Cell* const to = next_.data() + static_cast<std::size_t>(i) * width_;
      for (std::size_t j = 1; j + 1 < width_; ++j) {
        int const alive = above[j - 1] + above[j] + above[j + 1] + row[j - 1] + row[j + 1] + below[j - 1] +
                          below[j] + below[j + 1];
        to[j] = static_cast<Cell>(alive == 3 || (alive == 2 && row[j] != 0));
      }
    }
    cells_.swap(next_);
  }
  /// The one that holds the cells now, and the other.
  std::array<void*, 2> arrays() { return {cells_.data(), next_.data()}; }
  std::int64_t alive() const {
    std::int64_t all = 0;
    inside([&](std::int64_t, std::int64_t, Cell cell) { all += cell; });
    return all;
  }
  // All gliders have gone `shift` cells down and to the right.
  bool is_shifted(std::int64_t shift) const {
    bool right = true;
    inside([&](std::int64_t i, std::int64_t j, Cell cell) {
      right = right && cell == queue::glider_cell(i, j, shift);
    });
    return right;
  }

 private:
  void fill() {
    for (std::int64_t i = 0; i < size[0]; ++i)
      for (std::int64_t j = 0; j < size[1]; ++j)
        cells_[static_cast<std::size_t>(i + 1) * width_ + static_cast<std::size_t>(j + 1)] =
            queue::glider_cell(low[0] + i, low[1] + j, 0);
  }
  template <class Use>
  void inside(Use const& use) const {
    for (std::int64_t i = 0; i < size[0]; ++i)
      for (std::int64_t j = 0; j < size[1]; ++j)
        use(low[0] + i, low[1] + j,
            cells_[static_cast<std::size_t>(i + 1) * width_ + static_cast<std::size_t>(j + 1)]);
  }
  // Along an axis: the cells at the border (own) or beyond it.
  template <class Use>
  void each(int direction, bool own, Use const& use) const {
    Cells const of = cells(direction, own);
    for (std::int64_t i = of.first[0]; i < of.first[0] + of.count[0]; ++i)
      for (std::int64_t j = of.first[1]; j < of.first[1] + of.count[1]; ++j)
        use(static_cast<std::size_t>(i) * width_ + static_cast<std::size_t>(j));
  }
  std::size_t width_;
  std::vector<Cell> cells_, next_;
};

// A set of messages, one each way for each direction. Messages to a rank itself are messages too.
struct Halos {
  explicit Halos(Box const& box) {
    for (std::size_t d = 0; d < directions; ++d) {
      out[d].resize(box.length(static_cast<int>(d)));
      in[d].resize(out[d].size());
    }
  }
  void pack(Box const& box) {
    for (int d = 0; d < directions; ++d) box.pack(d, out[static_cast<std::size_t>(d)].data());
  }
  void unpack(Box& box) const {
    for (int d = 0; d < directions; ++d) box.unpack(d, in[static_cast<std::size_t>(d)].data());
  }
  std::array<std::vector<Cell>, directions> out, in;
};

class Stepper {
 public:
  virtual ~Stepper() = default;
  /// Is over when all of them are done.
  virtual void steps(int count) = 0;
};

class QueueStepper final : public Stepper {
 public:
  QueueStepper(Transport& transport, Box& box, Life const& what, bool ready)
      : box_(box),
        type_(what.type),
        arrays_(box.arrays()),
        communicator_(transport),
        queue_(what.type),
        halo_(communicator_, box.grid(what), {{.cells = arrays_[0], .item_bytes = sizeof(Cell)}},
              {.ready = ready}) {}
  void steps(int count) override {
    for (int k = 0; k < count; ++k) {
      halo_.enqueue_gather(queue_, {.arrays = {&arrays_[step_++ % 2], 1}});
      queue_.enqueue_function([this] { box_.step(); });
      wait_for_room(queue_, type_, k + 1, starts_of_step);
    }
    queue_.wait();
  }

 private:
  // Ready sends begin with a barrier, and leave a step's receives started.
  static constexpr int starts_of_step = 3 * directions;
  Box& box_;
  QueueType type_;
  std::array<void*, 2> arrays_;  // they take turns
  Communicator communicator_;
  Queue queue_;
  QueueHalo halo_;
  unsigned step_ = 0;
};

// The host starts and waits, through an Endpoint; what goes to the rank itself is copied.
class HostStepper final : public Stepper {
 public:
  HostStepper(Transport& transport, Box& box, Protocol const& protocol) : box_(box), halos_(box) {
    Binding binding;
    int const rank = transport.group().rank();
    for (int d = 0; d < directions; ++d) {
      auto const k = static_cast<std::size_t>(d);
      int const peer = box.neighbour[k];
      if (peer == rank) {
        own_.push_back(d);
        continue;
      }
      auto const id = [&](int source, int direction) { return source * directions + direction; };
      binding.out.push_back(
          {id(rank, d), peer, reinterpret_cast<std::byte*>(halos_.out[k].data()), halos_.out[k].size()});
      binding.in.push_back({id(peer, opposite(d)), peer, reinterpret_cast<std::byte*>(halos_.in[k].data()),
                            halos_.in[k].size()});
    }
    messages_ = static_cast<int>(binding.out.size());
    endpoint_ = transport.bind(binding);
    await_.emplace(*endpoint_, protocol.limits, "in a step of Life");
  }
  void steps(int count) override {
    for (int k = 0; k < count; ++k) step();
  }

 private:
  void step() {
    epoch_ = epoch_ == 0x7ffffffe ? 1 : epoch_ + 1;
    for (int m = 0; m < messages_; ++m) endpoint_->receive(m, epoch_);
    halos_.pack(box_);
    for (int m = 0; m < messages_; ++m) endpoint_->send(m, epoch_);
    for (int const d : own_)
      halos_.in[static_cast<std::size_t>(opposite(d))] = halos_.out[static_cast<std::size_t>(d)];
    int sent = 0, received = 0;
    (*await_)([&] {
      while (sent < messages_ && endpoint_->sent(sent)) ++sent;
      while (received < messages_ && endpoint_->received(received)) ++received;
      return sent == messages_ && received == messages_;
    });
    halos_.unpack(box_);
    box_.step();
  }
  Box& box_;
  Halos halos_;
  std::vector<int> own_;  // directions whose neighbour is this rank
  int messages_ = 0;
  std::unique_ptr<Endpoint> endpoint_;
  std::optional<PatientWait> await_;
  std::uint32_t epoch_ = 0;
};

}  // namespace

void check_life(Life const& what, int ranks) {
  std::int64_t const extent[2] = {what.rows, what.columns};
  if (what.ranks_along[0] * what.ranks_along[1] != ranks)
    throw Error(ErrorCode::usage,
                fmt::format("{} x {} ranks along the axes of {} (each has a box). Their product is the "
                            "number of ranks.",
                            what.ranks_along[0], what.ranks_along[1], ranks));
  for (int a = 0; a < 2; ++a)
    if (extent[a] < 1 || extent[a] % queue::glider_block != 0 || extent[a] < what.ranks_along[a])
      throw Error(ErrorCode::usage,
                  fmt::format("{} along an axis for {} (a glider has a block of {}, a rank at "
                              "least one cell). Use a multiple of {}.",
                              counted(extent[a], "cell"), counted(what.ranks_along[a], "rank"),
                              queue::glider_block, queue::glider_block));
}

void square_of(int ranks, int along[2]) {
  along[0] = 1;
  for (int rows = 1; rows * rows <= ranks; ++rows)
    if (ranks % rows == 0) along[0] = rows;
  along[1] = ranks / along[0];
}

LifeTiming life(Transport& transport, Life const& what, Driver driver, Protocol const& protocol) {
  Group& group = transport.group();
  check_life(what, group.size());
  if (driver != Driver::host) check_queue(transport, what.type);
  Box box(what, group.rank());
  LifeTiming timing;
  std::int64_t messages = 0, bytes = 0;
  box.count(group.rank(), messages, bytes);
  timing.messages = group.max(messages);
  timing.bytes = group.max(bytes);
  {
    std::unique_ptr<Stepper> stepper;
    if (driver == Driver::host) {
      stepper = std::make_unique<HostStepper>(transport, box, protocol);
    } else {
      stepper = std::make_unique<QueueStepper>(transport, box, what, driver == Driver::ready);
    }
    std::int64_t done = 0;
    auto const run = [&](int steps) {
      stepper->steps(steps);
      done += steps;
    };
    timing.step = time_runs(
        group, protocol, [] {}, run);
    if (done % 4 != 0) run(static_cast<int>(4 - done % 4));
    timing.is_right = !group.any(!box.is_shifted(done / 4));
    timing.alive = group.sum(box.alive());
    group.barrier();  // nobody leaves while others wait
  }
  return timing;
}

}  // namespace hostless::bench
