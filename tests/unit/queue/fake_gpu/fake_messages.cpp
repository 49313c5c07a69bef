// Messages of a GPU library whose GPUs are the processor: a stream is a thread, which does what kernels
// would, by the text of messages as host threads execute it. For the host's half of queues that streams do
// the work of.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "hostless/base/deadline.hpp"
#include "hostless/base/wait.hpp"
#include "played_groups.hpp"
#include "queue/gpu/kernel_parts.hpp"
#include "queue/gpu/message_library.hpp"
#include "queue/offer.hpp"
#include "queue/part.hpp"
#include "queue/reduce.hpp"
#include "transport/stream/gpu_files.hpp"

namespace hostless::gpu {
namespace {

// PLAYED_GPUS: how many; two unless it says so.
int played_gpus() {
  char const* const text = std::getenv("PLAYED_GPUS");
  return text == nullptr ? 2 : std::atoi(text);
}

class KnownMemory {
 public:
  void add(void const* first, std::size_t bytes, int gpu) {
    std::lock_guard const lock(mutex_);
    blocks_[static_cast<std::byte const*>(first)] = {bytes, gpu};
  }
  void remove(void const* first) {
    std::lock_guard const lock(mutex_);
    blocks_.erase(static_cast<std::byte const*>(first));
  }
  /// -1: the host's, pinned; -2: unknown
  int owner_of(void const* address) {
    std::lock_guard const lock(mutex_);
    auto after = blocks_.upper_bound(static_cast<std::byte const*>(address));
    if (after == blocks_.begin()) return -2;
    auto const& [first, block] = *--after;
    return static_cast<std::byte const*>(address) < first + block.first ? block.second : -2;
  }
  std::shared_ptr<std::byte> take(std::size_t bytes, int gpu) {
    auto* const block = new std::byte[bytes + 1]{};
    add(block, bytes + 1, gpu);
    return {block, [this](std::byte* b) {
              remove(b);
              delete[] b;
            }};
  }

 private:
  std::mutex mutex_;
  std::map<std::byte const*, std::pair<std::size_t, int>> blocks_;
};
KnownMemory& known_memory() {
  static auto* const one = new KnownMemory;
  return *one;
}

/// What vendors call a stream.
class PlayedStream {
 public:
  using Work = std::function<void()>;
  explicit PlayedStream(int gpu_) : gpu(gpu_), thread_([this] { run(); }) {}
  ~PlayedStream() {
    {
      std::lock_guard const lock(mutex_);
      ends_ = true;
    }
    added_.notify_all();
    thread_.join();
  }
  void add(Work work) {
    std::lock_guard const lock(mutex_);
    (is_recording_ ? recorded_ : work_).push_back(std::move(work));
    added_.notify_all();
  }
  void record(std::function<void()> const& queue) {
    set_recording(true);
    queue();
    set_recording(false);
  }
  void replay() {
    for (Work const& work : recorded_) add(work);
  }
  bool is_recording() {
    std::lock_guard const lock(mutex_);
    return is_recording_;
  }
  bool is_done() {
    std::lock_guard const lock(mutex_);
    return work_.empty();
  }
  int const gpu;

 private:
  void set_recording(bool on) {
    std::lock_guard const lock(mutex_);
    if (on) recorded_.clear();
    is_recording_ = on;
  }
  void run() {
    std::unique_lock lock(mutex_);
    while (!ends_ || !work_.empty()) {
      if (work_.empty()) {
        added_.wait_for(lock, std::chrono::seconds(1));
        continue;
      }
      Work const& work = work_.front();  // a deque keeps it in place
      lock.unlock();
      work();
      lock.lock();
      work_.pop_front();
    }
  }
  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<Work> work_, recorded_;
  bool is_recording_ = false, ends_ = false;
  std::thread thread_;
};

struct PlayedSide final : LentSide {
  explicit PlayedSide(int gpu_, std::size_t slot_bytes)
      : gpu(gpu_), words(std::make_shared<queue::SharedSide>()) {
    words->slots.resize(2 * slot_bytes);
  }
  int device() const override { return gpu; }
  bool lose_other() noexcept override {
    std::atomic_ref(words->other_gone).store(1, std::memory_order_release);
    return true;
  }
  bool leave() noexcept override {
    std::lock_guard const lock(mutex);
    has_left = true;
    return lose_other();
  }
  int gpu;
  std::mutex mutex;  ///< held by what stores into a buffer of the side
  bool has_left = false;
  std::shared_ptr<queue::SharedSide> words;
};

class SharedMemoryPoint final : public PointToPoint {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  bool shares_memory() const override { return true; }
  void tell(int, Bytes, std::shared_ptr<void>) override {}
  std::optional<Note> hear() override { return std::nullopt; }
  bool has_left(int) override { return false; }
  bool may_progress_by_thread() const override { return true; }
  void give_up() noexcept override {}
};

/// What works on: the stream's thread, or who leaves.
struct EndCore {
  std::mutex mutex;
  std::unique_ptr<queue::Part> part;
  bool has_left = false;
  ReachedCounts reached;

  void start() {
    std::lock_guard const lock(mutex);
    if (has_left) return;
    ++reached.starts;
    part->start();
  }
  queue::Progress poll() {
    std::lock_guard const lock(mutex);
    if (has_left) return queue::Progress::lost;
    queue::Progress const progress = part->poll();
    if (progress == queue::Progress::done) ++reached.waits;
    return progress;
  }
};

class PlayedEnd final : public MessageEnd {
 public:
  explicit PlayedEnd(MatchedMessage const& m) : core(std::make_shared<EndCore>()) {
    queue::Offer mine, other;
    mine.shared = static_cast<PlayedSide&>(*m.mine).words;
    other.shared = static_cast<PlayedSide&>(*m.other).words;
    mine.key.side = m.side;
    bool const sends = m.side == queue::Side::sender;
    other.key.side = sends ? queue::Side::receiver : queue::Side::sender;
    queue::Offer& send = sends ? mine : other;
    queue::Offer& receive = sends ? other : mine;
    send.from = m.from;
    receive.to = m.to;
    send.bytes = m.bytes;
    send.ready = m.mode == queue::Mode::ready;
    send.most_small = m.mode == queue::Mode::small ? m.bytes : 0;
    SharedMemoryPoint point;
    core->part = queue::open_part(point, mine, other);
  }
  ReachedCounts counts() const override {
    std::lock_guard const lock(core->mutex);
    return core->reached;
  }
  bool leave() noexcept override {
    std::lock_guard const lock(core->mutex);
    if (!std::exchange(core->has_left, true)) core->part->leave();
    return true;
  }
  std::shared_ptr<EndCore> core;
};

void reduce_in_order(Reduction const& r) {
  std::size_t const bytes = r.count * bytes_of(r.datatype);
  auto const part = [&](int rank) {
    return rank == r.rank ? r.own : r.all + static_cast<std::size_t>(rank) * bytes;
  };
  std::vector<std::byte> total(part(0), part(0) + bytes);
  for (int rank = 1; rank < r.ranks; ++rank)
    queue::reduce(total.data(), part(rank), r.count, r.datatype, r.operation);
  std::copy_n(total.data(), bytes, r.result);
}

// What the kernel executes, by a few threads one after the other: the last neighbour's first.
void pass_all(queue::HaloPass const& what) {
  constexpr std::uint32_t threads = 3;
  for (int n = what.head.neighbours - 1; n >= 0; --n)
    for (std::uint32_t k = 0; k < threads; ++k) queue::pass_halo_share(what.head, what.field, n, k, threads);
}

class PlayedQueue final : public MessageStream {
 public:
  explicit PlayedQueue(PlayedStream& stream) : stream_(stream), state_(std::make_shared<State>()) {}
  int device() const override { return stream_.gpu; }
  void start(std::span<MessageEnd* const> ends) override { start_and_wait(ends, {}); }
  void wait(std::span<MessageEnd* const> ends) override { start_and_wait({}, ends); }
  void start_and_wait(std::span<MessageEnd* const> starts, std::span<MessageEnd* const> waits) override {
    launch_kernels(starts, waits, [this](auto const& some_start, auto const& some_wait) {
      stream_.add([state = state_, first = cores(some_start), then = cores(some_wait)] {
        state->start(first);
        state->wait(then);
      });
    });
  }
  void reduce(StreamReduction const& what) override {
    stream_.add([state = state_, what] {
      auto& side = static_cast<PlayedSide&>(*what.side);
      std::lock_guard const lock(side.mutex);
      if (state->lost) return;
      if (!side.has_left) return reduce_in_order(what.what);
      state->ending = queue::Progress::lost, state->lost = true;
    });
  }
  void pass_halo(queue::HaloPass const& what) override {
    stream_.add([=] { pass_all(what); });
  }
  void move(GroupRanks& ranks, std::span<GroupMessage const> messages, GroupPeers peers) override {
    auto core = static_cast<PlayedRanks&>(ranks).core();
    stream_.add(
        [state = state_, core, peers, all = std::vector<GroupMessage>(messages.begin(), messages.end())] {
          if (!core->move(all, peers) && !state->lost)
            state->ending = queue::Progress::lost, state->lost = true;
        });
  }
  void call(void (*function)(void*), void* user) override {
    stream_.add([=] { function(user); });
  }
  bool is_recording() const override { return stream_.is_recording(); }
  bool is_done() const override { return stream_.is_done(); }
  void sleep() override { std::this_thread::sleep_for(std::chrono::microseconds(50)); }
  queue::Progress ending() const override { return state_->ending; }
  void give_up() noexcept override { state_->ended = true; }
  void set_limit(double seconds) override { state_->limit_s = seconds; }

 private:
  using Cores = std::vector<std::shared_ptr<EndCore>>;
  struct State {
    std::atomic<bool> lost{false}, ended{false};
    std::atomic<queue::Progress> ending{queue::Progress::pending};
    std::atomic<double> limit_s{600};

    void start(Cores const& all) const {
      for (auto const& one : all)
        if (!lost) one->start();
    }
    void wait(Cores const& all) {
      Deadline const deadline = Deadline::after(limit_s);
      for (auto const& one : all) {
        queue::Progress progress = queue::Progress::lost;
        while (!lost && (progress = one->poll()) == queue::Progress::pending) {
          if (deadline.passed() || ended) progress = queue::Progress::lost;
          if (progress == queue::Progress::lost) break;
          Backoff::give_core_away();
        }
        if (progress != queue::Progress::done && !lost) ending = progress, lost = true;
      }
    }
  };
  static Cores cores(std::span<MessageEnd* const> ends) {
    Cores all;
    for (MessageEnd* const end : ends) all.push_back(static_cast<PlayedEnd*>(end)->core);
    return all;
  }
  PlayedStream& stream_;
  std::shared_ptr<State> state_;
};

class PlayedBench final : public StreamBench {
 public:
  explicit PlayedBench(int gpu) : stream_(gpu) {}
  void* stream() override { return &stream_; }
  std::byte* memory(std::size_t bytes) override { return take(bytes, stream_.gpu); }
  std::byte* pinned(std::size_t bytes) override { return take(bytes, -1); }
  void add_to_bytes(std::byte* to, std::byte const* from, std::size_t bytes, std::uint8_t plus) override {
    stream_.add([=] {
      for (std::size_t k = 0; k < bytes; ++k)
        to[k] = static_cast<std::byte>(std::to_integer<unsigned>(from[k]) + plus);
    });
  }
  void pass_halo(queue::HaloPass const& what) override {
    stream_.add([=] { pass_all(what); });
  }
  void fill_life(std::byte* grid, queue::LifeGrid const& what) override {
    stream_.add([=] {
      each_cell(what, [&](std::int64_t row, std::int64_t column) {
        grid[what.at(row + 1, column + 1)] =
            std::byte{queue::glider_cell(what.first_row + row, what.first_column + column, 0)};
      });
    });
  }
  void step_life(std::byte* to, std::byte const* from, queue::LifeGrid const& what) override {
    stream_.add([=] {
      each_cell(what, [&](std::int64_t row, std::int64_t column) {
        int alive = 0;
        for (int i = 0; i < 3; ++i)
          for (int j = 0; j < 3; ++j) alive += std::to_integer<int>(from[what.at(row + i, column + j)]);
        std::int64_t const at = what.at(row + 1, column + 1);
        to[at] = std::byte{queue::next_cell(alive, std::to_integer<std::uint8_t>(from[at]))};
      });
    });
  }
  void count_life(std::byte const* grid, queue::LifeGrid const& what, std::int64_t shift,
                  std::uint64_t* counts) override {
    stream_.add([=] {
      each_cell(what, [&](std::int64_t row, std::int64_t column) {
        auto const cell = std::to_integer<std::uint8_t>(grid[what.at(row + 1, column + 1)]);
        counts[0] += cell;
        counts[1] += cell != queue::glider_cell(what.first_row + row, what.first_column + column, shift);
      });
    });
  }
  void wait() override {
    while (!stream_.is_done()) Backoff::give_core_away();  // bounded: as long as what is queued
  }
  void hold(double limit_s) override {
    stream_.add([this, number = ++holds_, limit_s] {
      Deadline const deadline = Deadline::after(limit_s);
      while (held_.load() != number && !deadline.passed()) Backoff::give_core_away();
      if (held_.load() != number) went_on_.store(true);
      work_for(seconds_of("PLAYED_SPIN_S"));
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds_of("PLAYED_SLEEP_S")));
    });
  }
  void release() override { held_.store(holds_); }
  bool went_on_unreleased() const override { return went_on_.load(); }
  void record(std::function<void()> const& queue) override { stream_.record(queue); }
  void replay() override { stream_.replay(); }

 private:
  // What comes behind a hold, for tests of clocks: so many seconds of a processor, and of sleep.
  static double seconds_of(char const* variable) {
    char const* const text = std::getenv(variable);
    return text == nullptr ? 0 : std::atof(text);
  }
  static double processor_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }
  static void work_for(double seconds) {
    double const end = processor_seconds() + seconds;
    while (processor_seconds() < end) {
    }
  }
  template <class Use>
  static void each_cell(queue::LifeGrid const& grid, Use const& use) {
    for (std::int64_t row = 0; row < grid.rows; ++row)
      for (std::int64_t column = 0; column < grid.columns; ++column) use(row, column);
  }
  std::byte* take(std::size_t bytes, int gpu) {
    memory_.push_back(known_memory().take(bytes, gpu));
    return memory_.back().get();
  }
  std::vector<std::shared_ptr<std::byte>> memory_;
  std::atomic<int> held_{0};
  std::atomic<bool> went_on_{false};
  int holds_ = 0;
  PlayedStream stream_;
};

class PlayedMessages final : public MessageLibrary {
 public:
  int devices() const override { return played_gpus(); }
  std::string vendor() const override { return "played"; }
  void prepare(int device) override {
    if (device < 0 || device >= played_gpus()) throw Error(ErrorCode::environment, "no such GPU.");
  }
  std::string why_unreached(void const* address, int device) const override {
    int const owner = known_memory().owner_of(address);
    if (owner == device || owner == -1) return {};
    return owner < 0 ? "memory of the host that is not pinned" : "memory of GPU " + std::to_string(owner);
  }
  std::shared_ptr<LentSide> lend_side(int device, std::size_t slot_bytes) override {
    return std::make_shared<PlayedSide>(device, slot_bytes);
  }
  std::shared_ptr<std::byte> memory(int device, std::size_t bytes) override {
    return known_memory().take(bytes, device);
  }
  std::shared_ptr<std::byte> pinned(int, std::size_t bytes) override {
    return known_memory().take(bytes, -1);
  }
  std::shared_ptr<void> own_stream(int device) override { return std::make_shared<PlayedStream>(device); }
  std::unique_ptr<MessageEnd> open(MatchedMessage const& message) override {
    return std::make_unique<PlayedEnd>(message);
  }
  std::shared_ptr<GroupRanks> group_ranks(int, int rank, int ranks, double) override {
    return std::make_shared<PlayedRanks>(rank, ranks);
  }
  std::unique_ptr<MessageStream> stream(void* stream) override {
    return std::make_unique<PlayedQueue>(*static_cast<PlayedStream*>(stream));
  }
  std::unique_ptr<StreamBench> bench(int device) override { return std::make_unique<PlayedBench>(device); }
};

}  // namespace
}  // namespace hostless::gpu

extern "C" __attribute__((visibility("default"))) hostless::gpu::MessageLibrary* hostless_gpu_messages() {
  static auto* const library = new hostless::gpu::PlayedMessages;  // streams of statics may end later
  return library;
}
extern "C" __attribute__((visibility("default"))) int hostless_gpu_interface_version() {
  return hostless::gpu::interface_version;
}

// For tests in other languages: memory and a stream of a played GPU, as pointers.
extern "C" __attribute__((visibility("default"))) void* played_memory(std::size_t bytes, int gpu) {
  auto held = std::make_unique<std::shared_ptr<std::byte>>(hostless::gpu::known_memory().take(bytes, gpu));
  return held.release()->get();  // to the end of the process
}
extern "C" __attribute__((visibility("default"))) void* played_stream(int gpu) {
  return new hostless::gpu::PlayedStream(gpu);
}
extern "C" __attribute__((visibility("default"))) void played_record(void* stream, void (*enqueue)()) {
  static_cast<hostless::gpu::PlayedStream*>(stream)->record(enqueue);
}
extern "C" __attribute__((visibility("default"))) void played_replay(void* stream) {
  static_cast<hostless::gpu::PlayedStream*>(stream)->replay();
}
