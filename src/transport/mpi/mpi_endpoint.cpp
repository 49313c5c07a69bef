// Persistent requests, made once when binding and started by `send` and `receive`. Between two ranks messages
// of one tag are matched in the order of their starts, so one request a message serves all epochs. A message
// waits in the library for its receive: credits are not sent.
#include <algorithm>
#include <array>
#include <climits>
#include <string>

#include "hostless/base/wait.hpp"
#include "transport/binding.hpp"
#include "transport/mpi/mpi_world.hpp"

namespace hostless::mpi {
namespace {

// Up to so many ranks the all-gather is persistent messages from everybody to everybody, else MPI_Iallgather,
// which sets itself up on each call. Of 2 doubles between 2 ranks, fastest of 9 rounds: 0.5 us (Open MPI 4.1)
// and 0.3 us (MPICH 4.0) by messages, 1.4 us and 1.3 us by MPI_Iallgather.
constexpr int most_ranks_by_messages = 16;

class Channel {
 public:
  MPI_Request request = MPI_REQUEST_NULL;
  bool active = false;
};

class MpiEndpoint final : public Endpoint {
 public:
  MpiEndpoint(std::shared_ptr<World> world, std::size_t slot, Binding const& binding)
      : world_(std::move(world)),
        slot_(slot),
        communicator_(world_->slots[slot].communicator),
        binding_(binding),
        out_(binding.out.size()),
        in_(binding.in.size()) {
    auto const out_tags = numbers_by_peer(binding_.out, tag_first_message);
    for (std::size_t k = 0; k < out_.size(); ++k) {
      Outgoing const& o = binding_.out[k];
      world_->check(MPI_Send_init(o.from, static_cast<int>(o.bytes), MPI_BYTE, o.target, out_tags[k],
                                  communicator_, &out_[k].request),
                    "MPI_Send_init");
    }
    auto const in_tags = numbers_by_peer(binding_.in, tag_first_message);
    for (std::size_t k = 0; k < in_.size(); ++k) {
      Incoming const& i = binding_.in[k];
      world_->check(MPI_Recv_init(i.to, static_cast<int>(i.bytes), MPI_BYTE, i.source, in_tags[k],
                                  communicator_, &in_[k].request),
                    "MPI_Recv_init");
    }
    auto const width = static_cast<std::size_t>(binding_.gather_width);
    sums_->gathered.resize(width * static_cast<std::size_t>(world_->size));
    if (world_->size <= most_ranks_by_messages) bind_gather();
    world_->slots[slot_].used = true;
  }

  ~MpiEndpoint() override {
    Slot& slot = world_->slots[slot_];
    slot.used = false;
    // A rank that was only late may still take part in a sum that this one gave up.
    slot.soiled = slot.soiled || lost_ || told_ || sum_active_ || !world_->usable();
    std::vector<MPI_Request> rest, sums{sum_};
    for (Channel& c : out_) slot.soiled = release(c, false, rest) || slot.soiled;
    for (Channel& c : in_) slot.soiled = release(c, true, rest) || slot.soiled;
    for (std::size_t k = 0; k < gather_requests_.size(); ++k) {  // receives, then sends
      Channel one{gather_requests_[k], sum_active_};
      release(one, 2 * k < gather_requests_.size(), sums);
    }
    if (!rest.empty()) Abandoned::keep(std::move(rest), binding_.memory);
    if (sums.size() > 1 || sum_ != MPI_REQUEST_NULL) Abandoned::keep(std::move(sums), sums_);
  }

  void send(int index, std::uint32_t) override {
    if (!binding_.out[static_cast<std::size_t>(index)].credit && begin(out_, index, "sent"))
      ++world_->slots[slot_].pending;
  }
  void receive(int index, std::uint32_t) override {
    if (!binding_.in[static_cast<std::size_t>(index)].credit) begin(in_, index, "received");
  }
  bool sent(int index) override { return finish(out_[static_cast<std::size_t>(index)]); }
  bool received(int index) override {
    Channel& channel = in_[static_cast<std::size_t>(index)];
    if (!channel.active) return !lost_;
    if (!finish(channel)) return false;
    --world_->slots[slot_].pending;
    return true;
  }

  void gather(std::span<double const> mine) override {
    begin_sum(mine);
    if (lost()) return;
    if (!gather_requests_.empty()) {
      note(MPI_Startall(static_cast<int>(gather_requests_.size()), gather_requests_.data()));
    } else if (world_->size > 1) {
      auto const width = static_cast<int>(width_);
      note(MPI_Iallgather(sums_->mine.data(), width, MPI_DOUBLE, sums_->gathered.data(), width, MPI_DOUBLE,
                          communicator_, &sum_));
    }
  }
  bool gathered(std::span<double> all) override {
    if (!test_sum()) return false;
    // By messages, blocks lie gather_width apart; by MPI_Iallgather, as wide as they are.
    bool const by_messages = world_->size <= most_ranks_by_messages;
    auto const stride = by_messages ? static_cast<std::size_t>(binding_.gather_width) : width_;
    for (std::size_t r = 0; r < static_cast<std::size_t>(world_->size); ++r) {
      bool const own = by_messages && r == static_cast<std::size_t>(world_->rank);
      double const* from = own ? sums_->mine.data() : sums_->gathered.data() + r * stride;
      std::copy_n(from, width_, all.data() + r * width_);
    }
    return true;
  }
  void all_reduce(std::span<double const> mine) override {
    begin_sum(mine);
    if (lost()) return;
    note(MPI_Iallreduce(sums_->mine.data(), sums_->gathered.data(), static_cast<int>(width_), MPI_DOUBLE,
                        MPI_SUM, communicator_, &sum_));
  }
  bool all_reduced(std::span<double> sums) override {
    if (!test_sum()) return false;
    std::copy_n(sums_->gathered.data(), width_, sums.data());
    return true;
  }

  // Being told ends nothing: what a rank sent before it left is taken behind its word.
  bool peer_left() override {
    told_ = told_ || lost() || world_->poisoned(communicator_) || world_->poisoned(world_->main);
    return told_;
  }
  void leave() noexcept override {
    world_->poison(communicator_);
    world_->slots[slot_].soiled = true;
  }

 private:
  bool lost() const { return lost_ || world_->broken; }
  void note(int code) {
    if (code != MPI_SUCCESS) lost_ = true;
  }

  // A poll through an MPI library can take microseconds: some hundred of them, as a waiting thread makes
  // before it gives its core away, are too many when the rank it waits for needs that core.
  bool in_vain() const {
    if (world_->crowded) Backoff::give_core_away();
    return false;
  }

  void bind_gather() {
    int const width = binding_.gather_width;
    for (int r = 0; r < world_->size; ++r) {
      if (r == world_->rank) continue;
      gather_requests_.emplace_back();
      world_->check(MPI_Recv_init(sums_->gathered.data() + r * width, width, MPI_DOUBLE, r, tag_gather,
                                  communicator_, &gather_requests_.back()),
                    "MPI_Recv_init");
    }
    for (int r = 0; r < world_->size; ++r) {
      if (r == world_->rank) continue;
      gather_requests_.emplace_back();
      world_->check(MPI_Send_init(sums_->mine.data(), width, MPI_DOUBLE, r, tag_gather, communicator_,
                                  &gather_requests_.back()),
                    "MPI_Send_init");
    }
  }

  bool begin(std::vector<Channel>& channels, int index, char const* what) {
    Channel& channel = channels[static_cast<std::size_t>(index)];
    if (lost()) return false;
    if (channel.active) refuse_restart(index, what);
    note(MPI_Start(&channel.request));
    channel.active = !lost_;
    return channel.active;
  }
  bool finish(Channel& channel) {
    if (lost()) return false;
    if (!channel.active) return true;
    int flag = 0;
    note(MPI_Test(&channel.request, &flag, MPI_STATUS_IGNORE));
    if (lost_ || flag == 0) return in_vain();
    channel.active = false;
    return true;
  }

  void begin_sum(std::span<double const> mine) {
    check_sum(sum_active_, mine.size(), binding_.gather_width);
    width_ = mine.size();
    std::copy(mine.begin(), mine.end(), sums_->mine.begin());
    sum_active_ = true;
  }
  bool test_sum() {
    if (lost()) return false;
    if (!sum_active_) return true;
    int flag = 1;
    if (sum_ != MPI_REQUEST_NULL) {
      note(MPI_Test(&sum_, &flag, MPI_STATUS_IGNORE));
    } else {
      note(MPI_Testall(static_cast<int>(gather_requests_.size()), gather_requests_.data(), &flag,
                       MPI_STATUSES_IGNORE));
    }
    if (lost_ || flag == 0) return in_vain();
    sum_active_ = false;
    return true;
  }

  // True when something was still under way. Receives are cancelled, which a message that has begun to arrive
  // does not heed; what is still active then, or with an MPI that is not called any more, is left to `rest`.
  bool release(Channel& channel, bool receives, std::vector<MPI_Request>& rest) const {
    bool const usable = world_->usable();
    int done = usable && !channel.active ? 1 : 0;
    if (usable && channel.active) {
      MPI_Test(&channel.request, &done, MPI_STATUS_IGNORE);
      if (done == 0 && receives) {
        MPI_Cancel(&channel.request);
        constexpr int polls = 1000;
        for (int k = 0; k < polls && done == 0; ++k) MPI_Test(&channel.request, &done, MPI_STATUS_IGNORE);
      }
    }
    if (done == 0) {
      rest.push_back(channel.request);
    } else {
      MPI_Request_free(&channel.request);
    }
    return channel.active;
  }

  std::shared_ptr<World> world_;
  std::size_t slot_;
  MPI_Comm communicator_;
  Binding binding_;
  std::vector<Channel> out_, in_;
  struct Sums {
    std::array<double, most_gather_width> mine{};
    std::vector<double> gathered;
  };
  std::shared_ptr<Sums> sums_ = std::make_shared<Sums>();
  std::vector<MPI_Request> gather_requests_;
  MPI_Request sum_ = MPI_REQUEST_NULL;
  std::size_t width_ = 0;
  bool sum_active_ = false, lost_ = false;
  bool told_ = false;  ///< that a rank leaves
};

// The first slot that no rank uses and in which nothing is under way; all ranks choose the same.
std::size_t choose_slot(World& world, Group& group) {
  std::vector<std::int64_t> mine(world.slots.size());
  for (std::size_t s = 0; s < mine.size(); ++s) {
    Slot const& slot = world.slots[s];
    mine[s] = slot.used || slot.soiled ? INT_MIN : slot.pending;
  }
  std::vector<std::int64_t> all(mine.size() * static_cast<std::size_t>(world.size));
  group.all_gather_blocks(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  for (std::size_t s = 0; s < mine.size(); ++s) {
    bool free = true;
    std::int64_t pending = 0;
    for (std::size_t r = 0; r < static_cast<std::size_t>(world.size); ++r) {
      std::int64_t const value = all[r * mine.size() + s];
      free = free && value != INT_MIN;
      pending += value;
    }
    if (free && pending == 0) return s;
  }
  world.slots.emplace_back();
  world.slots.back().communicator = world.duplicate(world.main);
  return world.slots.size() - 1;
}

void check_sizes(World const& world, Binding const& binding) {
  auto const check = [](std::size_t bytes, int id) {
    if (bytes > INT_MAX) {
      throw Error(ErrorCode::usage, "message " + std::to_string(id) + " has " + std::to_string(bytes) +
                                        " bytes (an MPI message ends at 2147483647). Use more ranks.");
    }
  };
  for (Outgoing const& o : binding.out) check(o.bytes, o.id);
  for (Incoming const& i : binding.in) check(i.bytes, i.id);
  int* top = nullptr;
  int found = 0;
  MPI_Comm_get_attr(world.main, MPI_TAG_UB, &top, &found);
  int const most = found != 0 ? *top : 32767;  // what the standard guarantees
  auto const messages = std::max(binding.out.size(), binding.in.size());
  if (messages > static_cast<std::size_t>(most - tag_first_message)) {
    throw Error(ErrorCode::usage, std::to_string(messages) + " messages on one rank (this MPI has " +
                                      std::to_string(most) + " tags). Use a route with fewer messages.");
  }
}

}  // namespace

std::unique_ptr<Endpoint> make_endpoint(std::shared_ptr<World> world, Group& group, Binding const& binding) {
  group.together([&] { check_sizes(*world, binding); });
  Abandoned::collect();
  std::size_t const slot = choose_slot(*world, group);
  std::unique_ptr<Endpoint> endpoint;
  group.together([&] { endpoint = std::make_unique<MpiEndpoint>(world, slot, binding); });
  return endpoint;
}

}  // namespace hostless::mpi
