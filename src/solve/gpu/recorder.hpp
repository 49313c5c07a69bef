#pragma once
// What a bound solve records of its runs: the barriers of a persistent kernel, and stamps between the kernels
// of the others.

#include <optional>

#include "run/gpu/stamps.hpp"
#include "solve/gpu/instance.hpp"

namespace hostless::gpu {

class Recorder {
 public:
  Recorder() = default;
  Recorder(Recorder const&) = delete;
  Recorder& operator=(Recorder const&) = delete;
  /// Takes memory, and tells the arguments, which need a layout and a state; nothing where the problem wants
  /// no trace. `hertz`: of the multiprocessors' cycles.
  void prepare(Problem const& problem, Arguments& arguments, double hertz) {
    barriers_ = arguments.control.trace_barriers = problem.trace_barriers;
    if (barriers_ == 0) return;
    hertz_ = hertz;
    blocks_ = arguments.layout.blocks;
    entries_ = Array<TraceEntry>(static_cast<std::size_t>(barriers_) * static_cast<std::size_t>(blocks_));
    entries_.clear();
    arguments.control.trace = entries_.data();
    arguments.stamps = &stamps_.emplace(arguments.state, arguments.columns);
  }
  void record(Arguments& arguments, bool wanted) {
    arguments.control.trace_barriers = wanted ? barriers_ : 0;
    if (stamps_) stamps_->record(wanted);
  }
  /// Of the last run, which was of that kind.
  Trace trace(RunKind kind) const {
    Trace trace;
    if (!stamps_) return trace;
    if (kind != RunKind::persistent) {
      trace.stamps = stamps_->read();
      return trace;
    }
    trace.entries.resize(entries_.size());
    entries_.get(trace.entries.data(), trace.entries.size());
    trace.blocks = blocks_;
    trace.hertz = hertz_;
    return trace;
  }
  bool guards_hold() const { return entries_.guards_hold() && (!stamps_ || stamps_->guards_hold()); }

 private:
  std::int32_t barriers_ = 0;
  int blocks_ = 0;
  double hertz_ = 0;
  Array<TraceEntry> entries_;
  std::optional<Stamps> stamps_;
};

}  // namespace hostless::gpu
