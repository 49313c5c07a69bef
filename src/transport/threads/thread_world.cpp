// Ranks are threads of this process. Set-up collectives go through memory of the world, endpoints through a
// zone.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>

#include "base/thread_team.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/transport/point_to_point.hpp"
#include "hostless/transport/transport.hpp"
#include "transport/host_transport.hpp"
#include "transport/setup_wait.hpp"
#include "transport/zone/zone.hpp"

namespace hostless {
namespace {

struct Inbox {
  struct Told {
    unsigned opening;  // which of the sender's
    Note note;
  };
  std::mutex mutex;
  std::deque<Told> notes;
};

/// What a rank calls together with others, or the half of it that ends with a barrier.
enum class Together : std::uint8_t { barrier, gather, gathered, exchange, exchanged };
char const* word_of(Together what) {
  if (what == Together::barrier) return "waits";
  return what == Together::gather || what == Together::gathered ? "gathers" : "exchanges";
}

// Everything that one rank shows to others lies here, not on a rank's stack: a rank that leaves by an
// exception must not take away what another is reading.
struct World {
  explicit World(int ranks)
      : size(ranks),
        share(static_cast<std::size_t>(ranks)),
        called{std::vector<Together>(share.size()), std::vector<Together>(share.size())},
        mail(static_cast<std::size_t>(ranks)),
        inbox(static_cast<std::size_t>(ranks)),
        gone(static_cast<std::size_t>(ranks)) {}
  int size;
  std::atomic<bool> left{false};   ///< a rank failed: nobody waits any longer
  std::atomic<bool> ended{false};  ///< a rank is through: nobody can wait for it in a collective
  std::atomic<std::uint64_t> arrived{0};
  std::vector<Bytes> share;  ///< by rank
  /// By rank, of every other barrier: a rank that is one further on writes beside what others still read.
  std::array<std::vector<Together>, 2> called;
  std::vector<std::vector<Bytes>> mail;  ///< by source, then target
  std::shared_ptr<std::byte> memory;     ///< handed from rank 0 to all
  std::vector<Inbox> inbox;              ///< by target
  std::vector<std::atomic<bool>> gone;   ///< by rank: it is through, or failed
  WaitLimits limits = WaitLimits::from_environment();

  /// Errors  usage  ranks call different things, on all of them
  void barrier(std::uint64_t& turn, int rank, Together what) {
    if (left.load(std::memory_order_acquire)) throw Error(ErrorCode::peer_lost, left_in_setup);
    std::vector<Together>& now = called[++turn % 2];
    now[static_cast<std::size_t>(rank)] = what;
    std::uint64_t const all = turn * static_cast<std::uint64_t>(size);
    arrived.fetch_add(1, std::memory_order_acq_rel);
    auto const waited = wait_for(
        [&] { return arrived.load(std::memory_order_acquire) >= all; },
        [&] { return left.load(std::memory_order_acquire) || ended.load(std::memory_order_acquire); },
        setup_deadline(limits));
    if (waited == Waited::done) return check_alike(now);
    left.store(true, std::memory_order_release);
    throw Error(ErrorCode::peer_lost, waited == Waited::stopped ? left_in_setup : late_in_setup);
  }
  static void check_alike(std::vector<Together> const& all) {
    auto const other = std::find_if(all.begin(), all.end(), [&](Together one) { return one != all.front(); });
    if (other == all.end()) return;
    throw Error(ErrorCode::usage,
                "ranks call different things together (rank 0 " + std::string(word_of(all.front())) +
                    ", rank " + std::to_string(other - all.begin()) + ' ' + word_of(*other) +
                    "). Call the same on all ranks, in one order and with the same options.");
  }
};

class ThreadGroup final : public Group {
 public:
  ThreadGroup(World& world, int rank) : world_(world), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return world_.size; }
  void barrier() override { wait_for_all(Together::barrier); }

  void all_gather_blocks(std::span<std::byte const> mine, std::span<std::byte> all) override {
    check_room(mine.size(), all.size());
    world_.share[static_cast<std::size_t>(rank_)].assign(mine.begin(), mine.end());
    wait_for_all(Together::gather);
    for (std::size_t r = 0; r < world_.share.size(); ++r) {
      Bytes const& block = world_.share[r];
      if (block.size() != mine.size()) {
        throw Error(ErrorCode::usage, "all_gather_blocks got " + std::to_string(mine.size()) +
                                          " bytes on rank " + std::to_string(rank_) + " and " +
                                          std::to_string(block.size()) + " on rank " + std::to_string(r) +
                                          " (blocks are of one size). Use all_gather_bytes.");
      }
      if (!mine.empty()) std::memcpy(all.data() + r * mine.size(), block.data(), mine.size());
    }
    wait_for_all(Together::gathered);
  }

  std::vector<Bytes> exchange(std::vector<Bytes> to) override {
    check_buffers(to.size());
    std::vector<Bytes> from(to.size());
    world_.mail[static_cast<std::size_t>(rank_)] = std::move(to);
    wait_for_all(Together::exchange);
    for (std::size_t r = 0; r < from.size(); ++r) {
      from[r] = std::move(world_.mail[r][static_cast<std::size_t>(rank_)]);
    }
    wait_for_all(Together::exchanged);
    return from;
  }

 private:
  void wait_for_all(Together what) { world_.barrier(turn_, rank_, what); }

  World& world_;
  int rank_;
  std::uint64_t turn_ = 0;
};

class ThreadPointToPoint final : public PointToPoint {
 public:
  ThreadPointToPoint(World& world, int rank, unsigned opening)
      : world_(world), rank_(rank), opening_(opening) {}
  int rank() const override { return rank_; }
  int size() const override { return world_.size; }
  bool shares_memory() const override { return true; }
  void tell(int peer, Bytes text, std::shared_ptr<void> attached) override {
    Inbox& to = world_.inbox[static_cast<std::size_t>(peer)];
    std::lock_guard const lock(to.mutex);
    to.notes.push_back({opening_, {rank_, std::move(text), std::move(attached)}});
  }
  std::optional<Note> hear() override {
    Inbox& mine = world_.inbox[static_cast<std::size_t>(rank_)];
    std::lock_guard const lock(mine.mutex);
    std::erase_if(mine.notes, [&](Inbox::Told const& told) { return told.opening < opening_; });
    auto const next = std::find_if(mine.notes.begin(), mine.notes.end(),
                                   [&](Inbox::Told const& told) { return told.opening == opening_; });
    if (next == mine.notes.end()) return std::nullopt;
    Note note = std::move(next->note);
    mine.notes.erase(next);
    return note;
  }
  bool has_left(int peer) override {
    if (peer >= 0) return world_.gone[static_cast<std::size_t>(peer)].load(std::memory_order_acquire);
    for (int other = 0; other < world_.size; ++other)
      if (other != rank_ && has_left(other)) return true;
    return false;
  }
  bool may_progress_by_thread() const override { return true; }
  void give_up() noexcept override {}

 private:
  World& world_;
  int rank_;
  unsigned opening_;
};

class ThreadZone final : public ZoneWorld {
 public:
  ThreadZone(World& world, Group& group) : world_(world), group_(group) {}
  std::shared_ptr<std::byte> allocate(std::size_t bytes) override {
    constexpr auto alignment = std::align_val_t{alignof(RankArea)};
    group_.together([&] {
      if (group_.rank() != 0) return;
      world_.memory = {static_cast<std::byte*>(::operator new(bytes, alignment)),
                       [](std::byte* p) { ::operator delete (p, std::align_val_t{alignof(RankArea)}); }};
    });
    std::shared_ptr<std::byte> memory = world_.memory;
    group_.barrier();
    if (group_.rank() == 0) world_.memory.reset();  // from here on it lives as long as the endpoints
    return memory;
  }
  bool rank_lost(RankArea const*) override { return world_.left.load(std::memory_order_acquire); }

 private:
  World& world_;
  Group& group_;
};

Capabilities threads_capabilities() {
  Capabilities c;
  c.transport = "threads";
  c.host = c.graph = c.kernel = c.gather = c.host_callback = Support::native;
  c.threads_as_ranks = c.bounded_waits = c.survives_peer_loss = true;
  c.note = "ranks are threads of one process; graph and persistent run on the host";
  return c;
}

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(World& world, int rank) : world_(world), group_(world, rank), zone_(world, group_) {}
  Capabilities capabilities() const override { return threads_capabilities(); }
  Group& group() override { return group_; }
  std::unique_ptr<Endpoint> bind(Binding const& binding) override {
    return bind_zone(group_, zone_, binding);
  }
  std::unique_ptr<PointToPoint> point_to_point() override {
    return std::make_unique<ThreadPointToPoint>(world_, group_.rank(), ++opened_);
  }

 private:
  World& world_;
  unsigned opened_ = 0;
  ThreadGroup group_;
  ThreadZone zone_;
};

// What to report: the first error that is no loss, else the first loss that tells more than that another rank
// left, else that.
std::exception_ptr cause(std::vector<std::exception_ptr> const& failed) {
  std::exception_ptr loss, left;
  for (auto const& f : failed) {
    if (!f) continue;
    try {
      std::rethrow_exception(f);
    } catch (Error const& e) {
      if (e.code() != ErrorCode::peer_lost) return f;
      std::exception_ptr& first = std::string_view(e.what()) == left_in_setup ? left : loss;
      if (!first) first = f;
    } catch (...) {
      return f;
    }
  }
  return loss ? loss : left;
}

template <class Body>
void on_threads(int ranks, Body const& body) {
  if (ranks < 1) {
    throw Error(ErrorCode::usage,
                "ranks is " + std::to_string(ranks) + " (there is nobody to do the work). Use at least 1.");
  }
  World world(ranks);
  std::vector<std::exception_ptr> failed(static_cast<std::size_t>(ranks));
  auto const one = [&](int rank) {
    bool fine = true;
    try {
      body(world, rank);
      world.ended.store(true, std::memory_order_release);
    } catch (...) {
      failed[static_cast<std::size_t>(rank)] = std::current_exception();
      world.left.store(true, std::memory_order_release);
      fine = false;
    }
    world.gone[static_cast<std::size_t>(rank)].store(true, std::memory_order_release);
    return fine;
  };
  int const started = run_thread_team(ranks, one, [&] { world.left.store(true, std::memory_order_release); });
  if (started < ranks) {  // the caller's thread was there before
    throw Error(ErrorCode::environment, "only " + std::to_string(started - 1) + " of " +
                                            std::to_string(ranks) +
                                            " threads can be started (each rank is one). Use fewer ranks.");
  }
  if (auto const chosen = cause(failed)) std::rethrow_exception(chosen);
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

namespace {

class SingleTransport final : public Transport {
 public:
  Capabilities capabilities() const override { return transport_.capabilities(); }
  Group& group() override { return transport_.group(); }
  std::unique_ptr<Endpoint> bind(Binding const& binding) override { return transport_.bind(binding); }
  std::unique_ptr<PointToPoint> point_to_point() override { return transport_.point_to_point(); }

 private:
  World world_{1};
  ThreadTransport transport_{world_, 0};
};

}  // namespace

std::unique_ptr<Transport> single_transport() { return std::make_unique<SingleTransport>(); }

HostTransport threads_transport() {
  HostTransport of;
  of.name = "threads";
  of.capabilities = threads_capabilities();
  of.run = run_with_threads_transport;
  return of;
}

}  // namespace hostless
