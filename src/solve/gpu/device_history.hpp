#pragma once
// What is kept of the iterations of every right-hand side, where kernels write it.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "device/memory.hpp"
#include "hostless/run/state.hpp"

namespace hostless::gpu {

class DeviceHistory {
 public:
  DeviceHistory() = default;
  DeviceHistory(std::int64_t size, int columns)
      : size_(static_cast<std::size_t>(size)), steps_(size_ * static_cast<std::size_t>(columns)) {}

  void put(int column, StepRecord const* steps, std::int64_t count) {
    steps_.put(steps, static_cast<std::size_t>(count), first(column));
  }
  void get(int column, StepRecord* steps, std::int64_t count) const {
    steps_.get(steps, static_cast<std::size_t>(count), first(column));
  }
  /// The states, one a column, write here from now on; what they had.
  std::vector<StepRecord*> lend(std::span<State> states) const {
    std::vector<StepRecord*> before;
    for (State& one : states)
      before.push_back(std::exchange(one.history, steps_.data() + first(static_cast<int>(before.size()))));
    return before;
  }
  static void take_back(std::span<State> states, std::vector<StepRecord*> const& before) {
    for (std::size_t c = 0; c < states.size(); ++c) states[c].history = before[c];
  }
  std::size_t bytes() const { return steps_.bytes(); }
  bool guards_hold() const { return steps_.guards_hold(); }

 private:
  std::size_t first(int column) const { return size_ * static_cast<std::size_t>(column); }
  std::size_t size_ = 0;
  Array<StepRecord> steps_;
};

}  // namespace hostless::gpu
