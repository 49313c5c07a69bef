// The vendors' library of collectives, NCCL or RCCL, which have one interface: sends and receives of a halo
// are one group, the parts of a sum are gathered and added here, so that the bits are everybody's. It is
// loaded when it is asked for. Its functions are declared here: they have not changed since NCCL 2.14.
//
// To connect ranks takes about a second, so they stay connected when a solver goes, for the next one of the
// same ranks.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "device/loaded_library.hpp"
#include "device/on_device.hpp"
#include "hostless/base/deadline.hpp"
#include "transport/nccl/facts.hpp"
#include "transport/stream/limits.hpp"
#include "transport/stream/stragglers.hpp"
#include "transport/stream/stream_transports.hpp"

namespace hostless::gpu {
namespace {

using NcclStatus = int;
constexpr NcclStatus nccl_success = 0, nccl_in_progress = 7;
constexpr int nccl_char = 0, nccl_double = 8;
using NcclRanks = struct NcclCommunicator*;

/// The first version of ncclConfig_t: members that later ones added keep their defaults.
struct NcclSettings {
  std::size_t size = sizeof(NcclSettings);
  unsigned magic = 0xcafebeefu;
  unsigned version = 21400;
  int blocking = 0;  ///< calls return at once: every wait is ours and has a deadline
};

struct NcclFunctions {
  NcclStatus (*version)(int*);
  char const* (*text)(NcclStatus);
  NcclStatus (*make_name)(UniqueId*);
  NcclStatus (*connect)(NcclRanks*, int ranks, UniqueId, int rank, NcclSettings*);
  NcclStatus (*state)(NcclRanks, NcclStatus*);
  NcclStatus (*abort)(NcclRanks);
  NcclStatus (*begin_group)();
  NcclStatus (*end_group)();
  NcclStatus (*send)(void const*, std::size_t, int type, int to, NcclRanks, HOSTLESS_GPU(Stream_t));
  NcclStatus (*receive)(void*, std::size_t, int type, int from, NcclRanks, HOSTLESS_GPU(Stream_t));
  NcclStatus (*gather)(void const*, void*, std::size_t, int type, NcclRanks, HOSTLESS_GPU(Stream_t));
};

bool is_cuda() { return std::strcmp(HOSTLESS_GPU_NAME, "CUDA") == 0; }
char const* library_name() { return is_cuda() ? "NCCL" : "RCCL"; }
char const* library_file() { return is_cuda() ? "libnccl.so.2" : "librccl.so.1"; }

NcclFunctions load_functions() {
  LoadedLibrary const library(
      library_file(), LoadedLibrary::of_transport("nccl", library_name(), "peer or host", "2.14 or later"));
  using Of = NcclFunctions;
  Of functions{};
  library.need_all(functions, std::pair(&Of::version, "ncclGetVersion"),
                   std::pair(&Of::text, "ncclGetErrorString"), std::pair(&Of::make_name, "ncclGetUniqueId"),
                   std::pair(&Of::connect, "ncclCommInitRankConfig"),
                   std::pair(&Of::state, "ncclCommGetAsyncError"), std::pair(&Of::abort, "ncclCommAbort"),
                   std::pair(&Of::begin_group, "ncclGroupStart"), std::pair(&Of::end_group, "ncclGroupEnd"),
                   std::pair(&Of::send, "ncclSend"), std::pair(&Of::receive, "ncclRecv"),
                   std::pair(&Of::gather, "ncclAllGather"));
  return functions;
}

/// Loaded by the first that asks, for good.
NcclFunctions const& functions() {
  static NcclFunctions const loaded = load_functions();
  return loaded;
}

std::string describe_library() {
  int version = 0;
  (void)functions().version(&version);
  return std::string(library_name()) + " " + std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

/// Whose end of connected ranks: what was recorded in graphs costs launches outside them a little more.
struct End {
  int device = 0, rank = 0, ranks = 0;
  int purpose = 0;
  bool operator==(End const&) const = default;
};
/// And where they met, which is another place each time.
struct Connected {
  End end;
  UniqueId met;
  NcclRanks handle = nullptr;
};

/// Those that no solver of this process uses. They stay until the process ends.
class Idle {
 public:
  std::optional<Connected> take(End const& end) {
    std::lock_guard const lock(mutex_);
    for (std::size_t k = 0; k < all_.size(); ++k) {
      if (all_[k].end != end) continue;
      Connected const found = all_[k];
      all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(k));
      return found;
    }
    return {};
  }
  void give_back(Connected const& one) {
    std::lock_guard const lock(mutex_);
    all_.push_back(one);
  }

 private:
  std::mutex mutex_;
  std::vector<Connected> all_;  // the longest idle first: every rank takes them in the same order
};
Idle& idle() {
  static Idle* const all = new Idle;  // solvers may be statics that end later
  return *all;
}

class NcclStream final : public StreamEndpoint {
 public:
  explicit NcclStream(StreamSetup const& setup)
      : StreamEndpoint(setup),
        use_(functions()),
        end_{setup.device, setup.rank, setup.ranks, setup.purpose},
        rounds_(setup.rounds),
        everyone_(static_cast<std::size_t>(setup.ranks) * (widest_sum + 1)) {
    std::int64_t most_out = sizeof(double), most_in = 0;  // of one round; the first value tries a sum
    for (StreamRound const& round : rounds_) {
      most_out = std::max(most_out, round.out_bytes);
      most_in = std::max(most_in, round.in_place ? 0 : round.in_bytes);
    }
    outgoing_ = Array<std::byte>(static_cast<std::size_t>(most_out));
    outgoing_.clear();
    incoming_ = Array<std::byte>(static_cast<std::size_t>(most_in));
  }
  ~NcclStream() override {
    settle();
    if (offered_) idle().give_back(*offered_);
    if (ranks_ == nullptr) return;
    bool is_whole = false;
    try {
      OnDevice const on(end_.device);  // the caller's stays in use afterwards
      is_whole = state() == nccl_success;
    } catch (Error const&) {  // a GPU that has failed
    }
    if (is_whole) {
      idle().give_back({end_, met_, ranks_});
    } else {
      abort();
      settle();
    }
  }

  std::byte* outgoing(int) override { return outgoing_.data(); }
  std::byte const* incoming(int) override { return incoming_.data(); }
  bool lands(int round) const override { return rounds_[static_cast<std::size_t>(round)].in_place; }
  void send(StreamQueue& queue, int round, std::byte* field) override {
    queue.call([&](HOSTLESS_GPU(Stream_t) stream) {
      move_round(rounds_[static_cast<std::size_t>(round)], field, stream);
    });
  }
  double const* gather(StreamQueue& queue, double const* mine, int count) override {
    queue.call([&](HOSTLESS_GPU(Stream_t) stream) {
      require_ranks();
      accept(
          use_.gather(mine, everyone_.data(), static_cast<std::size_t>(count), nccl_double, ranks_, stream));
      await_call();
    });
    return everyone_.data();
  }
  bool is_recorded() const override { return true; }

  // At first where ranks that are idle have met, or nowhere. Asked again, because not all ranks have said the
  // same: a new place, of rank 0.
  UniqueId unique_id() override {
    if (!std::exchange(was_asked_, true)) {
      offered_ = idle().take(end_);
      return offered_ ? offered_->met : UniqueId{};
    }
    drop_offered();
    UniqueId point;
    if (end_.rank == 0 && use_.make_name(&point) != nccl_success)
      fail("a unique id was not made", "its log says why: set NCCL_DEBUG=WARN");
    return point;
  }
  void connect(UniqueId const& point, std::byte* field) override {
    was_asked_ = false;
    met_ = point;
    if (offered_ && offered_->met == point) {
      ranks_ = offered_->handle;
      offered_.reset();
    } else {
      NcclSettings settings;
      NcclStatus const status = use_.connect(&ranks_, ranks(), point, end_.rank, &settings);
      if (status != nccl_success && status != nccl_in_progress)
        fail("ranks were not connected", use_.text(status));
    }
    if (!become_ready(first_s())) give_up("ranks were not connected");
    patience_s_ = first_s();
    try {  // the first message between two ranks connects them, which no graph can record
      Stream const stream;
      DirectQueue queue(stream);
      exchange_buffers(queue, static_cast<int>(rounds_.size()), field);
      static_cast<void>(gather(queue, reinterpret_cast<double const*>(outgoing_.data()), 1));
      expect_late_ranks();
      if (!wait(stream)) give_up("the first messages did not arrive");
    } catch (RankLost const&) {
      give_up("the first messages were not sent");
    }
    failure_.clear();
    patience_s_ = deadline_s();
  }
  bool is_connected() const override { return ranks_ != nullptr; }
  // It does not return before recorded graphs are gone.
  void abort() noexcept override {
    if (ranks_ == nullptr) return;
    is_aborted_ = std::make_shared<std::atomic<bool>>(false);
    aborter_ = std::thread([abort = use_.abort, ranks = std::exchange(ranks_, nullptr), device = end_.device,
                            done = is_aborted_] {
      (void)HOSTLESS_GPU(SetDevice)(device);
      (void)abort(ranks);
      done->store(true);
    });
  }
  void settle() noexcept override {
    if (!aborter_.joinable()) return;
    Deadline const deadline = Deadline::after(deadline_s());
    while (!is_aborted_->load() && !deadline.passed()) std::this_thread::yield();
    if (is_aborted_->load()) {
      aborter_.join();  // bounded: it has ended
    } else {
      Stragglers::keep(std::move(aborter_), is_aborted_);
    }
  }

  std::string describe() const override {
    return "nccl (" + describe_library() + (failure_.empty() ? ")" : "; " + failure_ + ")");
  }
  std::int64_t bytes() const override {
    return static_cast<std::int64_t>(everyone_.bytes() + outgoing_.bytes() + incoming_.bytes());
  }
  bool guards_hold() const override {
    return everyone_.guards_hold() && outgoing_.guards_hold() && incoming_.guards_hold();
  }

 protected:
  bool waits_on_gpu() const override { return true; }
  bool failed() override {
    NcclStatus const status = state();
    return status != nccl_success && status != nccl_in_progress;
  }

 private:
  /// The same on both sides, which know the same bytes.
  struct Elements {
    std::size_t count;
    int type;
  };
  static Elements elements_of(StreamPart const& part) {
    auto const bytes = static_cast<std::size_t>(part.bytes);
    if (bytes % sizeof(double) == 0) return {bytes / sizeof(double), nccl_double};
    return {bytes, nccl_char};
  }

  void move_round(StreamRound const& round, std::byte* field, HOSTLESS_GPU(Stream_t) stream) {
    require_ranks();
    if (round.in.empty() && round.out.empty()) return;
    accept(use_.begin_group());
    NcclStatus worst = nccl_success;
    for (StreamPart const& part : round.in) {
      std::byte* const to = round.in_place ? field + part.lands : incoming_.data() + part.first;
      Elements const what = elements_of(part);
      worst = std::max(worst, use_.receive(to, what.count, what.type, part.rank, ranks_, stream));
    }
    for (StreamPart const& part : round.out) {
      Elements const what = elements_of(part);
      worst = std::max(
          worst, use_.send(outgoing_.data() + part.first, what.count, what.type, part.rank, ranks_, stream));
    }
    NcclStatus const end = use_.end_group();
    accept(worst == nccl_in_progress ? nccl_success : worst);
    accept(end);
    await_call();
  }

  // Another rank has lost them.
  void drop_offered() {
    if (!offered_) return;
    NcclRanks const kept = std::exchange(ranks_, offered_->handle);
    offered_.reset();
    abort();
    settle();
    ranks_ = kept;
  }

  NcclStatus state() {
    NcclStatus status = nccl_success;
    if (ranks_ == nullptr) return status;
    NcclStatus const asked = use_.state(ranks_, &status);
    if (asked != nccl_success) status = asked;
    if (status != nccl_success && status != nccl_in_progress)
      failure_ = std::string("it says: ") + use_.text(status);
    return status;
  }
  // What a call that returned early has begun is queued on the stream when this is true.
  bool become_ready(double seconds) {
    Deadline const deadline = Deadline::after(seconds);
    for (;;) {
      NcclStatus const status = state();
      if (status != nccl_in_progress) return status == nccl_success;
      if (deadline.passed()) {
        failure_ = "it was not ready within the deadline";
        return false;
      }
    }
  }
  void await_call() {
    if (!become_ready(patience_s_)) throw RankLost{};
  }
  void accept(NcclStatus status) {
    if (status == nccl_success || status == nccl_in_progress) return;
    failure_ = std::string("it says: ") + use_.text(status);
    throw RankLost{};
  }
  void require_ranks() const {
    if (ranks_ == nullptr)
      throw Error(
          ErrorCode::environment,
          "ranks of a library that has lost one (they are not connected any more). Make a new solver.");
  }
  [[noreturn]] static void fail(std::string const& what, std::string const& why) {
    throw Error(ErrorCode::environment, "GPU transport nccl: " + what + " by " + library_name() + " (" + why +
                                            "). Use --gpu-transport peer or host.");
  }
  [[noreturn]] void give_up(std::string const& what) {
    std::string const why = failure_.empty() ? "not within the deadline" : failure_;
    abort();
    settle();
    fail(what, why);
  }

  NcclFunctions const& use_;
  End end_;
  std::vector<StreamRound> rounds_;
  NcclRanks ranks_ = nullptr;
  UniqueId met_;                      // where they have
  std::optional<Connected> offered_;  // idle ones, until all ranks are known to have the same
  bool was_asked_ = false;
  double patience_s_ = 0;  // with a call that returned early: longer while ranks connect
  Array<double> everyone_;
  Array<std::byte> outgoing_, incoming_;
  std::string failure_;  // of the last loss, in the library's words
  std::thread aborter_;
  std::shared_ptr<std::atomic<bool>> is_aborted_;
};

TransportFacts nccl_library() {
  return library_facts("nccl", describe_library,
                       [] { return "loaded from " + LoadedLibrary::path_of(functions().version); });
}

}  // namespace

StreamTransport nccl_stream() { return {nccl_facts, &make_stream<NcclStream>, &nccl_library}; }

}  // namespace hostless::gpu
