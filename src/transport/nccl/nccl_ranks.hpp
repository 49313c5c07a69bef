#pragma once
// Ranks that the vendors' library of collectives has connected: NCCL or RCCL, which have one interface. It is
// loaded when it is asked for. Its functions are declared here: they have not changed since NCCL 2.14.
//
// To connect ranks takes about a second, so they stay connected when whoever used them goes, for the next one
// of the same ranks.

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "device/runtime.hpp"
#include "transport/stream/stream_setup.hpp"

namespace hostless::gpu {

using NcclStatus = int;
constexpr NcclStatus nccl_success = 0, nccl_in_progress = 7;
constexpr int nccl_char = 0, nccl_double = 8;
using NcclHandle = struct NcclCommunicator*;
struct NcclSettings;

struct NcclFunctions {
  NcclStatus (*version)(int*);
  char const* (*text)(NcclStatus);
  NcclStatus (*make_name)(UniqueId*);
  NcclStatus (*connect)(NcclHandle*, int ranks, UniqueId, int rank, NcclSettings*);
  NcclStatus (*state)(NcclHandle, NcclStatus*);
  NcclStatus (*abort)(NcclHandle);
  NcclStatus (*join)(NcclHandle*, int ranks, UniqueId, int rank);  ///< as `connect`, and waits
  NcclStatus (*end)(NcclHandle);
  NcclStatus (*begin_group)();
  NcclStatus (*end_group)();
  NcclStatus (*send)(void const*, std::size_t, int type, int to, NcclHandle, HOSTLESS_GPU(Stream_t));
  NcclStatus (*receive)(void*, std::size_t, int type, int from, NcclHandle, HOSTLESS_GPU(Stream_t));
  NcclStatus (*gather)(void const*, void*, std::size_t, int type, NcclHandle, HOSTLESS_GPU(Stream_t));
};
/// Loaded by the first that asks, for good.
/// Errors  environment  it cannot be
NcclFunctions const& nccl_functions();
/// Its name and version.
std::string describe_nccl();

/// Whose end of connected ranks. Ends of another purpose are not exchanged for each other: what was recorded in
/// graphs costs launches outside them a little more.
struct NcclEnd {
  int device = 0, rank = 0, ranks = 0;
  int purpose = 0;
  bool operator==(NcclEnd const&) const = default;
};
/// Of queues' groups; solvers and exchanges count theirs from 0.
constexpr int nccl_purpose_of_groups = 1000;

/// One rank of connected ones. Calls come from one thread at a time.
class NcclRanks {
 public:
  /// user: who says so where it fails, and what to use instead.
  /// patience_s  how long `settle` waits for the library
  NcclRanks(NcclEnd const& end, double patience_s, std::string user, std::string instead);
  NcclRanks(NcclRanks const&) = delete;
  NcclRanks& operator=(NcclRanks const&) = delete;
  /// Whole ones stay connected for the next end that is equal; those that are not are given up.
  ~NcclRanks();

  /// At first where ranks that are idle have met, or nowhere. Asked again, because not all ranks have said the
  /// same: a new place, of rank 0.
  UniqueId unique_id();
  /// Collective. Whoever is connected has to send the first messages outside any recording: they connect pairs
  /// of ranks, which no graph can record.
  /// Errors  environment  not within the limit, or with the library's words
  void connect(UniqueId const& point, double limit_s);
  bool is_connected() const { return handle_ != nullptr; }
  /// Errors  environment  they have lost one
  NcclHandle handle() const;
  /// Whether the library says that it goes on no more.
  bool has_failed();
  /// What a call that returned early has begun is queued on its stream afterwards.
  /// Errors  RankLost  a call was refused, or not in time
  void await_call(double limit_s);
  void accept(NcclStatus status);
  /// Takes kernels that wait for a lost rank off the GPU, by a thread of its own: the library does not return
  /// before recorded graphs are gone.
  void abort() noexcept;
  /// Until it has, or for as long as the patience.
  void settle() noexcept;
  [[noreturn]] void give_up(std::string const& what);
  /// Of the last loss, in the library's words.
  std::string const& failure() const { return failure_; }
  void forget_failure() { failure_.clear(); }

 private:
  /// And where they have met, which is another place each time.
  struct Connected {
    NcclEnd end;
    UniqueId met;
    NcclHandle handle = nullptr;
  };
  class Idle;
  static Idle& idle();
  NcclStatus state();
  bool become_ready(double seconds);
  void drop_offered();
  [[noreturn]] void fail(std::string const& what, std::string const& why) const;

  NcclFunctions const& use_;
  NcclEnd end_;
  double patience_s_;
  std::string user_, instead_;
  NcclHandle handle_ = nullptr;
  UniqueId met_;
  std::optional<Connected> offered_;  // idle ones, until all ranks are known to have the same
  bool was_asked_ = false;
  std::string failure_;
  std::thread aborter_;
  std::shared_ptr<std::atomic<bool>> is_aborted_;
};

}  // namespace hostless::gpu
