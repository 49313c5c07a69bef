#include "bench/stream_life.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "bench/life_part.hpp"
#include "bench/patient_wait.hpp"
#include "queue/gpu/message_library.hpp"

namespace hostless::bench {
namespace {

using queue::LifeGrid;
constexpr int steps_at_once = 20;  // even: two grids and two sets of buffers take turns
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

// A rank's box on its GPU.
class GpuBox : public LifePart {
 public:
  GpuBox(Life const& life, int rank, int gpus)
      : LifePart(life, rank),
        bench_(gpu::message_library().bench(rank % gpus)),
        grid_{size[0], size[1], low[0], low[1]} {
    for (std::byte*& one : cells_) one = bench_->memory(grid_.bytes());
    constexpr std::size_t counts_bytes = 2 * sizeof(std::uint64_t);
    counts_ = bench_->memory(counts_bytes);
    shown_ = bench_->pinned(counts_bytes);
    bench_->fill_life(cells_[0], grid_);
    bench_->wait();
  }
  gpu::StreamBench& bench() { return *bench_; }
  /// As halos have it.
  std::byte* first_cell() const { return cells_[now_] + grid_.at(0, 0); }
  std::int64_t line() const { return grid_.line(); }
  void step() {
    bench_->step_life(cells_[1 - now_], cells_[now_], grid_);
    now_ = 1 - now_;
  }
  /// Once: alive, and wrong when all gliders should have gone `shift` cells.
  std::array<std::uint64_t, 2> count_cells(std::int64_t shift) {
    std::array<std::uint64_t, 2> counts{};
    bench_->count_life(cells_[now_], grid_, shift, reinterpret_cast<std::uint64_t*>(counts_));
    bench_->add_to_bytes(shown_, counts_, sizeof counts, 0);
    bench_->wait();
    std::memcpy(counts.data(), shown_, sizeof counts);
    return counts;
  }

 private:
  std::unique_ptr<gpu::StreamBench> bench_;
  LifeGrid grid_;
  std::byte *cells_[2] = {nullptr, nullptr}, *counts_ = nullptr, *shown_ = nullptr;
  int now_ = 0;
};

class StreamStepper {
 public:
  virtual ~StreamStepper() = default;
  /// A multiple of steps_at_once; is over when they are done.
  virtual void steps(int count) = 0;
};

class QueueStepper final : public StreamStepper {
 public:
  QueueStepper(Transport& transport, GpuBox& box, int gpus, Life const& what, StreamLifeWay const& way)
      : box_(box),
        by_graph_(way.by_graph),
        communicator_(transport, transport.group().rank() % gpus, what.type),
        queue_(what.type, box.bench().stream()),
        halo_(communicator_, box.grid(what),
              {{.cells = box.first_cell(), .item_bytes = 1, .strides = {box.line(), 1}}},
              {.ready = way.driver == Driver::ready}) {
    if (by_graph_) box_.bench().record([this] { enqueue(steps_at_once); });
    transport.group().barrier();  // a graph is made before anybody waits
  }
  void steps(int count) override {
    if (!by_graph_) enqueue(count);
    for (int k = 0; by_graph_ && k < count; k += steps_at_once) box_.bench().replay();
    queue_.wait();
  }

 private:
  void enqueue(int count) {
    for (int k = 0; k < count; ++k) {
      void* const cells = box_.first_cell();
      halo_.enqueue_gather(queue_, {.arrays = {&cells, 1}, .ends_run = k + 1 == count});
      box_.step();
    }
  }
  GpuBox& box_;
  bool by_graph_;
  Communicator communicator_;
  Queue queue_;
  QueueHalo halo_;
};

class HostDrivenStepper final : public StreamStepper {
 public:
  HostDrivenStepper(Transport& transport, GpuBox& box, bool in_gpus, Protocol const& protocol)
      : box_(box), rank_(transport.group().rank()) {
    lay_out(in_gpus);
    Binding binding;
    int const rank = rank_;
    auto const id = [](int source, int direction) { return source * directions + direction; };
    for (int d = 0; d < directions; ++d) {
      int const peer = box.neighbour[static_cast<std::size_t>(d)];
      if (peer == rank) continue;
      binding.out.push_back({id(rank, d), peer, buffer(out_, d), box.length(d)});
      binding.in.push_back({id(peer, opposite(d)), peer, buffer(in_, d), box.length(d)});
    }
    messages_ = static_cast<int>(binding.out.size());
    endpoint_ = transport.bind(binding);
    await_.emplace(*endpoint_, protocol.limits, "in a step of Life");
  }
  void steps(int count) override {
    for (int k = 0; k < count; ++k) step();
    box_.bench().wait();
  }

 private:
  // Messages of all directions one behind the other, those that come behind those that go.
  void lay_out(bool in_gpus) {
    std::size_t bytes = 0;
    for (int d = 0; d < directions; ++d) {
      first_[static_cast<std::size_t>(d)] = bytes;
      bytes += aligned(box_.length(d));
    }
    first_[directions] = bytes;
    out_ = in_gpus ? box_.bench().memory(2 * bytes) : box_.bench().pinned(2 * bytes);
    in_ = out_ + bytes;
  }
  std::byte* buffer(std::byte* first, int direction) const {
    return first + first_[static_cast<std::size_t>(direction)];
  }
  /// What this rank is its own neighbour for goes to where it is unpacked from.
  void pass(queue::HaloWork work) {
    queue::HaloPass what;
    queue::HaloHead& head = what.head;
    head.messages = work == queue::HaloWork::pack ? out_ : in_;
    head.work = work;
    head.neighbours = directions;
    head.fields = 1;
    for (std::size_t a = 0; a < 2; ++a) head.size[a + 1] = box_.size[a], head.width[a + 1] = 1;
    for (int d = 0; d < directions; ++d) {
      auto const k = static_cast<std::size_t>(d);
      bool const goes_in = work == queue::HaloWork::pack && box_.neighbour[k] == rank_;
      std::size_t const first =
          goes_in ? first_[directions] + first_[static_cast<std::size_t>(opposite(d))] : first_[k];
      auto const [down, right] = towards[k];
      head.direction[k] = static_cast<std::uint8_t>(queue::halo_direction(0, down, right));
      head.line[k] = static_cast<std::uint32_t>(first / queue::halo_line);
    }
    what.field[0] = {box_.first_cell(), {0, box_.line(), 1}, 1};
    box_.bench().pass_halo(what);
  }
  void step() {
    epoch_ = epoch_ == 0x7ffffffe ? 1 : epoch_ + 1;
    pass(queue::HaloWork::pack);
    box_.bench().wait();  // what unpacks is done then, too: its buffers may be stored to
    for (int m = 0; m < messages_; ++m) endpoint_->receive(m, epoch_);
    for (int m = 0; m < messages_; ++m) endpoint_->send(m, epoch_);
    int sent = 0, received = 0;
    (*await_)([&] {
      while (sent < messages_ && endpoint_->sent(sent)) ++sent;
      while (received < messages_ && endpoint_->received(received)) ++received;
      return sent == messages_ && received == messages_;
    });
    pass(queue::HaloWork::unpack);
    box_.step();
  }
  GpuBox& box_;
  int rank_;
  std::array<std::size_t, directions + 1> first_{};
  std::byte *out_ = nullptr, *in_ = nullptr;
  int messages_ = 0;
  std::unique_ptr<Endpoint> endpoint_;
  std::optional<PatientWait> await_;
  std::uint32_t epoch_ = 0;
};

std::unique_ptr<StreamStepper> stepper_of(Transport& transport, GpuBox& box, int gpus, Life const& what,
                                          StreamLifeWay const& way, Protocol const& protocol) {
  if (way.driver == Driver::host)
    return std::make_unique<HostDrivenStepper>(transport, box, way.in_gpus, protocol);
  return std::make_unique<QueueStepper>(transport, box, gpus, what, way);
}

int rounded(int steps) { return (steps + steps_at_once - 1) / steps_at_once * steps_at_once; }

}  // namespace

LifeTiming stream_life(Transport& transport, Life const& what, int gpus, StreamLifeWay const& way,
                       Protocol const& protocol) {
  Group& group = transport.group();
  check_life(what, group.size());
  std::unique_ptr<GpuBox> box;
  group.together([&] { box = std::make_unique<GpuBox>(what, group.rank(), gpus); });
  LifeTiming timing;
  std::int64_t messages = 0, bytes = 0, done = 0;
  box->count(group.rank(), messages, bytes);
  timing.messages = group.max(messages);
  timing.bytes = group.max(bytes);
  Protocol whole = protocol;
  whole.steps = rounded(protocol.steps);
  whole.warm_up = rounded(protocol.warm_up);
  {
    auto const stepper = stepper_of(transport, *box, gpus, what, way, protocol);
    timing.step = time_runs(
        group, whole, [] {},
        [&](int steps) {
          stepper->steps(steps);
          done += steps;
        });
    auto const [alive, wrong] = box->count_cells(done / 4);
    timing.alive = group.sum(static_cast<std::int64_t>(alive));
    timing.is_right = !group.any(wrong != 0);
    group.barrier();  // nobody leaves while others wait
  }
  return timing;
}

}  // namespace hostless::bench
