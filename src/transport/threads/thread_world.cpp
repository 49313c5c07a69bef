// Ranks are threads of this process. Messages are put into the receiver's landing zone, two epochs deep, and
// announced by a release store of the epoch; sums are gathered the same way. No locks on the critical path.
#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "hostless/base/wait.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless {
namespace {

constexpr int most_gather_width = 8;
constexpr double setup_wait_s = 600.0;  // set-up may factor, partition or read for minutes on one rank

struct Landing {
  std::vector<std::byte> data[2];
  std::atomic<std::uint32_t> epoch[2] = {0, 0};
  std::size_t bytes = 0;
};

struct alignas(128) GatherSlot {
  double value[2][most_gather_width];
  std::atomic<std::uint32_t> epoch[2] = {0, 0};
};

struct World {
  explicit World(int ranks)
      : size(ranks), share(static_cast<std::size_t>(ranks)), mail(static_cast<std::size_t>(ranks)) {}
  int size;
  std::atomic<bool> left{false};
  std::atomic<std::uint64_t> arrived{0};
  std::vector<std::span<std::byte const>> share;
  std::vector<std::vector<Bytes> const*> mail;
  WaitLimits limits = WaitLimits::from_environment();

  void barrier(std::uint64_t& turn) {
    ++turn;
    std::uint64_t const all = turn * static_cast<std::uint64_t>(size);
    arrived.fetch_add(1, std::memory_order_acq_rel);
    auto const waited = wait_for([&] { return arrived.load(std::memory_order_acquire) >= all; },
                                 [&] { return left.load(std::memory_order_acquire); },
                                 Deadline::after(setup_wait_s * limits.first_s / 60.0));
    if (waited == Waited::done) return;
    left.store(true, std::memory_order_release);
    throw Error(ErrorCode::peer_lost,
                waited == Waited::stopped
                    ? "another rank left during set-up (nothing can be solved without it). See its message."
                    : "a rank did not arrive in time during set-up (it hangs or is much slower). "
                      "Raise HOSTLESS_DEADLINE_SCALE if it is only slow.");
  }
};

class ThreadGroup final : public Group {
 public:
  ThreadGroup(World& world, int rank) : world_(world), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return world_.size; }
  void barrier() override { world_.barrier(turn_); }
  void all_gather_blocks(std::span<std::byte const> mine, std::span<std::byte> all) override {
    world_.share[static_cast<std::size_t>(rank_)] = mine;
    barrier();
    for (std::size_t r = 0; r < world_.share.size(); ++r) {
      if (!mine.empty()) std::memcpy(all.data() + r * mine.size(), world_.share[r].data(), mine.size());
    }
    barrier();
  }
  std::vector<Bytes> exchange(std::vector<Bytes> const& to) override {
    if (to.size() != static_cast<std::size_t>(size())) {
      throw Error(ErrorCode::usage,
                  "exchange needs one buffer a rank (got " + std::to_string(to.size()) + ").");
    }
    world_.mail[static_cast<std::size_t>(rank_)] = &to;
    barrier();
    std::vector<Bytes> from(to.size());
    for (std::size_t r = 0; r < from.size(); ++r)
      from[r] = (*world_.mail[r])[static_cast<std::size_t>(rank_)];
    barrier();
    return from;
  }
  World& world() { return world_; }

 private:
  World& world_;
  int rank_;
  std::uint64_t turn_ = 0;
};

// What the ranks of one bind share; kept alive by every endpoint.
struct Bound {
  explicit Bound(std::size_t ranks) : slots(ranks), landings(ranks) {}
  std::vector<GatherSlot> slots;
  std::vector<std::map<int, std::unique_ptr<Landing>>> landings;  // by target rank, then message id
  std::atomic<bool> left{false};
};

class ThreadEndpoint final : public Endpoint {
 public:
  ThreadEndpoint(World& world, std::shared_ptr<Bound> bound, int rank, Binding const& binding)
      : world_(world),
        bound_(std::move(bound)),
        rank_(rank),
        binding_(binding),
        received_(binding.in.size()) {
    for (Outgoing const& o : binding_.out) {
      auto& mine = bound_->landings[static_cast<std::size_t>(o.target)];
      auto const found = mine.find(o.id);
      if (found == mine.end() || found->second->bytes != o.bytes) {
        throw Error(ErrorCode::usage, "message " + std::to_string(o.id) + " from rank " +
                                          std::to_string(rank) + " to rank " + std::to_string(o.target) +
                                          " has no receiver of the same size (the plan is not consistent).");
      }
      targets_.push_back(found->second.get());
    }
    for (Incoming const& in : binding_.in) {
      landings_.push_back(bound_->landings[static_cast<std::size_t>(rank)].at(in.id).get());
    }
  }

  void send(int index, std::uint32_t epoch) override {
    Outgoing const& o = binding_.out[static_cast<std::size_t>(index)];
    Landing& target = *targets_[static_cast<std::size_t>(index)];
    if (o.bytes != 0) std::memcpy(target.data[epoch & 1u].data(), o.from, o.bytes);
    target.epoch[epoch & 1u].store(epoch, std::memory_order_release);
  }
  void receive(int index, std::uint32_t epoch) override {
    received_[static_cast<std::size_t>(index)] = {epoch, false};
  }
  bool sent(int) override { return true; }
  bool received(int index) override {
    auto& [epoch, done] = received_[static_cast<std::size_t>(index)];
    if (done) return true;
    Landing& from = *landings_[static_cast<std::size_t>(index)];
    if (from.epoch[epoch & 1u].load(std::memory_order_acquire) != epoch) return false;
    Incoming const& in = binding_.in[static_cast<std::size_t>(index)];
    if (in.bytes != 0) std::memcpy(in.to, from.data[epoch & 1u].data(), in.bytes);
    done = true;
    return true;
  }
  void gather(std::span<double const> mine) override {
    ++sum_epoch_;
    width_ = mine.size();
    GatherSlot& slot = bound_->slots[static_cast<std::size_t>(rank_)];
    std::copy(mine.begin(), mine.end(), slot.value[sum_epoch_ & 1u]);
    slot.epoch[sum_epoch_ & 1u].store(sum_epoch_, std::memory_order_release);
    next_ = 0;
  }
  bool gathered(std::span<double> all) override {
    for (; next_ < bound_->slots.size(); ++next_) {
      GatherSlot const& slot = bound_->slots[next_];
      if (slot.epoch[sum_epoch_ & 1u].load(std::memory_order_acquire) != sum_epoch_) return false;
      std::copy_n(slot.value[sum_epoch_ & 1u], width_, all.data() + next_ * width_);
    }
    return true;
  }
  void all_reduce(std::span<double const>) override {
    throw Error(ErrorCode::usage,
                "the threads transport has no library all-reduce (its gather is the fast way).");
  }
  bool all_reduced(std::span<double>) override { return false; }
  bool peer_left() override {
    return bound_->left.load(std::memory_order_acquire) || world_.left.load(std::memory_order_acquire);
  }
  void leave() noexcept override { bound_->left.store(true, std::memory_order_release); }

 private:
  World& world_;
  std::shared_ptr<Bound> bound_;
  int rank_;
  Binding binding_;
  std::vector<Landing*> targets_, landings_;
  std::vector<std::pair<std::uint32_t, bool>> received_;
  std::uint32_t sum_epoch_ = 0;
  std::size_t width_ = 0, next_ = 0;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(World& world, int rank) : world_(world), group_(world, rank) {}
  Capabilities capabilities() const override { return threads_capabilities(); }
  Group& group() override { return group_; }
  std::unique_ptr<Endpoint> bind(Binding const& binding) override {
    if (binding.gather_width > most_gather_width) {
      throw Error(ErrorCode::usage, "a sum of " + std::to_string(binding.gather_width) + " values (at most " +
                                        std::to_string(most_gather_width) + " travel together).");
    }
    // Rank 0 owns the shared part; its address travels through the group.
    auto const ranks = static_cast<std::size_t>(group_.size());
    std::shared_ptr<Bound> made;
    if (group_.rank() == 0) made = std::make_shared<Bound>(ranks);
    auto const address = group_.all_gather(reinterpret_cast<std::uintptr_t>(&made))[0];
    std::shared_ptr<Bound> const bound = *reinterpret_cast<std::shared_ptr<Bound>*>(address);
    auto& mine = bound->landings[static_cast<std::size_t>(group_.rank())];
    group_.together([&] {
      for (Incoming const& in : binding.in) {
        auto landing = std::make_unique<Landing>();
        landing->bytes = in.bytes;
        for (auto& d : landing->data) d.resize(in.bytes);
        mine.emplace(in.id, std::move(landing));
      }
    });
    std::unique_ptr<Endpoint> endpoint;
    group_.together(
        [&] { endpoint = std::make_unique<ThreadEndpoint>(world_, bound, group_.rank(), binding); });
    return endpoint;
  }
  static Capabilities threads_capabilities() {
    Capabilities c;
    c.transport = "threads";
    c.host = c.graph = c.kernel = c.gather = c.host_callback = Support::native;
    c.threads_as_ranks = c.bounded_waits = c.survives_peer_loss = true;
    c.note = "ranks are threads of one process; graph and persistent run on the host";
    return c;
  }

 private:
  World& world_;
  ThreadGroup group_;
};

// Starts one thread a rank; the first real error (not somebody's "a peer left") is the one to report.
template <class Body>
void on_threads(int ranks, Body const& body) {
  if (ranks < 1)
    throw Error(ErrorCode::usage, "ranks is " + std::to_string(ranks) + " (it must be at least 1).");
  World world(ranks);
  std::vector<std::exception_ptr> failed(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  auto one = [&](int rank) {
    try {
      body(world, rank);
    } catch (...) {
      failed[static_cast<std::size_t>(rank)] = std::current_exception();
      world.left.store(true, std::memory_order_release);
    }
  };
  for (int r = 1; r < ranks; ++r) threads.emplace_back(one, r);
  one(0);
  for (auto& t : threads) t.join();
  std::exception_ptr chosen;
  for (auto const& f : failed) {
    if (!f) continue;
    bool lost = false;
    try {
      std::rethrow_exception(f);
    } catch (Error const& e) {
      lost = e.code() == ErrorCode::peer_lost;
    } catch (...) {
    }
    if (!chosen || !lost) chosen = f;
    if (!lost) break;
  }
  if (chosen) std::rethrow_exception(chosen);
}

}  // namespace

char const* name(Support support) {
  switch (support) {
    case Support::native:
      return "native";
    case Support::adapted:
      return "adapted";
    case Support::unproven:
      return "unproven";
    case Support::absent:
      return "absent";
  }
  return "absent";
}

void run_on_threads(int ranks, std::function<void(Group&)> const& body) {
  on_threads(ranks, [&](World& world, int rank) {
    ThreadGroup group(world, rank);
    body(group);
  });
}

void run_with_threads_transport(int ranks, std::function<void(Transport&)> const& body) {
  on_threads(ranks, [&](World& world, int rank) {
    ThreadTransport transport(world, rank);
    body(transport);
  });
}

}  // namespace hostless
