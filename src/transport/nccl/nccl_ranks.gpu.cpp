#include "transport/nccl/nccl_ranks.hpp"

#include <cstring>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "device/loaded_library.hpp"
#include "device/on_device.hpp"
#include "hostless/base/deadline.hpp"
#include "hostless/base/wait.hpp"
#include "transport/stream/stragglers.hpp"
#include "transport/stream/stream_endpoint.hpp"

namespace hostless::gpu {

/// The first version of ncclConfig_t: members that later ones added keep their defaults.
struct NcclSettings {
  std::size_t size = sizeof(NcclSettings);
  unsigned magic = 0xcafebeefu;
  unsigned version = 21400;
  int blocking = 0;  ///< calls return at once: every wait is ours and has a deadline
};

namespace {

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
                   std::pair(&Of::join, "ncclCommInitRank"), std::pair(&Of::end, "ncclCommDestroy"),
                   std::pair(&Of::begin_group, "ncclGroupStart"), std::pair(&Of::end_group, "ncclGroupEnd"),
                   std::pair(&Of::send, "ncclSend"), std::pair(&Of::receive, "ncclRecv"),
                   std::pair(&Of::gather, "ncclAllGather"));
  return functions;
}

bool is_fine(NcclStatus status) { return status == nccl_success || status == nccl_in_progress; }

}  // namespace

NcclFunctions const& nccl_functions() {
  static NcclFunctions const loaded = load_functions();
  return loaded;
}

std::string describe_nccl() {
  int version = 0;
  (void)nccl_functions().version(&version);
  return std::string(library_name()) + " " + std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

/// Those that nobody of this process uses. They stay until the process ends.
class NcclRanks::Idle {
 public:
  std::optional<Connected> take(NcclEnd const& end) {
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
NcclRanks::Idle& NcclRanks::idle() {
  static Idle* const all = new Idle;  // solvers may be statics that end later
  return *all;
}

NcclRanks::NcclRanks(NcclEnd const& end, double patience_s, std::string user, std::string instead)
    : use_(nccl_functions()),
      end_(end),
      patience_s_(patience_s),
      user_(std::move(user)),
      instead_(std::move(instead)) {}

NcclRanks::~NcclRanks() {
  settle();
  if (offered_) idle().give_back(*offered_);
  if (handle_ == nullptr) return;
  bool is_whole = false;
  try {
    OnDevice const on(end_.device);  // the caller's stays in use afterwards
    is_whole = state() == nccl_success;
  } catch (Error const&) {  // a GPU that has failed
  }
  if (is_whole) {
    idle().give_back({end_, met_, handle_});
  } else {
    abort();
    settle();
  }
}

UniqueId NcclRanks::unique_id() {
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

void NcclRanks::connect(UniqueId const& point, double limit_s) {
  was_asked_ = false;
  met_ = point;
  if (offered_ && offered_->met == point) {
    handle_ = offered_->handle;
    offered_.reset();
  } else {
    NcclSettings settings;
    NcclStatus const status = use_.connect(&handle_, end_.ranks, point, end_.rank, &settings);
    if (!is_fine(status)) fail("ranks were not connected", use_.text(status));
  }
  if (!become_ready(limit_s)) give_up("ranks were not connected");
}

NcclHandle NcclRanks::handle() const {
  if (handle_ == nullptr)
    throw Error(ErrorCode::environment,
                "ranks of a library that has lost one (they are not connected any more). Make a new solver.");
  return handle_;
}

bool NcclRanks::has_failed() { return !is_fine(state()); }

NcclStatus NcclRanks::state() {
  NcclStatus status = nccl_success;
  if (handle_ == nullptr) return status;
  NcclStatus const asked = use_.state(handle_, &status);
  if (asked != nccl_success) status = asked;
  if (!is_fine(status)) failure_ = std::string("it says: ") + use_.text(status);
  return status;
}

bool NcclRanks::become_ready(double seconds) {
  NcclStatus status = nccl_in_progress;
  auto const is_ready = [&] { return (status = state()) != nccl_in_progress; };
  if (wait_for(
          is_ready, [] { return false; }, Deadline::after(seconds)) == Waited::done)
    return status == nccl_success;
  failure_ = "it was not ready within the deadline";
  return false;
}

void NcclRanks::await_call(double limit_s) {
  if (!become_ready(limit_s)) throw RankLost{};
}

void NcclRanks::accept(NcclStatus status) {
  if (is_fine(status)) return;
  failure_ = std::string("it says: ") + use_.text(status);
  throw RankLost{};
}

void NcclRanks::abort() noexcept {
  if (handle_ == nullptr) return;
  NcclHandle const handle = std::exchange(handle_, nullptr);
  try {
    is_aborted_ = std::make_shared<std::atomic<bool>>(false);
    aborter_ = std::thread([abort = use_.abort, handle, device = end_.device, done = is_aborted_] {
      (void)HOSTLESS_GPU(SetDevice)(device);
      (void)abort(handle);
      done->store(true);
    });
  } catch (std::exception const&) {
    // No thread can be had, and the call may wait for ever: its kernels stay until the process ends.
  }
}

void NcclRanks::settle() noexcept {
  if (!aborter_.joinable()) return;
  Deadline const deadline = Deadline::after(patience_s_);
  while (!is_aborted_->load() && !deadline.passed()) Backoff::give_core_away();
  if (is_aborted_->load()) {
    aborter_.join();  // bounded: it has ended
  } else {
    Stragglers::keep(std::move(aborter_), is_aborted_);
  }
}

// Another rank has lost them.
void NcclRanks::drop_offered() {
  if (!offered_) return;
  NcclHandle const kept = std::exchange(handle_, offered_->handle);
  offered_.reset();
  abort();
  settle();
  handle_ = kept;
}

void NcclRanks::fail(std::string const& what, std::string const& why) const {
  throw Error(ErrorCode::environment,
              user_ + ": " + what + " by " + library_name() + " (" + why + "). " + instead_);
}

void NcclRanks::give_up(std::string const& what) {
  std::string const why = failure_.empty() ? "not within the deadline" : failure_;
  abort();
  settle();
  fail(what, why);
}

}  // namespace hostless::gpu
