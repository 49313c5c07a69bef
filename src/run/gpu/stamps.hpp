#pragma once
// When a queue's stream came to what: a kernel of one block between two others writes the time of the whole
// GPU down. Only a run that is traced launches them. Graphs record them like all other kernels, in the bodies
// of loops too, where events may not stand.

#include <vector>

#include "device/memory.hpp"
#include "device/queue.hpp"
#include "hostless/run/state.hpp"
#include "run/gpu/launch.hpp"

namespace hostless::gpu {

/// Where stamps go; device memory.
struct StampView {
  Stamp* stamp = nullptr;
  std::uint32_t* count = nullptr;  ///< that were asked for
  std::uint32_t capacity = 0;      ///< what is asked for beyond is left out
  State const* state = nullptr;
  int columns = 1;
};

class Stamps {
 public:
  /// `state`: of the solve that is traced, or the first of several right-hand sides'.
  Stamps(State const* state, int columns);
  /// Queued, as is what it stands between.
  void put(StreamQueue& queue, Mark mark, Gate gate) const;
  /// Queued: those of a new run begin, or with `record(false)` none.
  void restart(Stream const& stream) const;
  void record(bool wanted) { wanted_ = wanted; }
  /// Of the last run. Waits.
  std::vector<Stamp> read() const;
  bool guards_hold() const { return stamp_.guards_hold() && count_.guards_hold(); }

 private:
  Array<Stamp> stamp_;
  Array<std::uint32_t> count_;
  State const* state_;
  int columns_;
  bool wanted_ = true;
};

}  // namespace hostless::gpu
