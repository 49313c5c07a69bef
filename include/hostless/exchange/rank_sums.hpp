#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hostless/transport/transport.hpp"

namespace hostless {

/// How sums over ranks are formed.
enum class Reduction : std::uint8_t {
  ordered,  ///< per-rank partials are gathered and added in a fixed tree: the same bits on every transport
  fast      ///< the transport's own all-reduce, where it has one; on a GPU the order of all sums is free
};

/// Control bits that travel with every sum, so that all ranks see a request at the same iteration.
namespace control {
inline constexpr std::uint32_t stop = 1;  ///< somebody asked to stop
}

/// Sums of some numbers over all ranks, one under way at a time, with control bits beside them. Nothing is
/// allocated after construction and nothing blocks; `Exchange` waits.
class RankSums {
 public:
  static constexpr int widest = 4;  ///< values of one sum, where nobody asks for more
  static constexpr int most = 32;   ///< that can be asked for
  /// width: values of one sum, 1 to `most`.
  RankSums(int ranks, Reduction reduction, int width = widest);
  /// What an endpoint must be bound for: one more double carries the control bits.
  int gather_width() const { return static_cast<int>(contribution_.size()); }

  /// Errors  usage  more values than it was made for, or the last sum was not finished
  void begin(Endpoint& endpoint, std::span<double const> mine);
  /// Polls. True when `finish` may be called.
  bool poll(Endpoint& endpoint);
  bool under_way() const { return open_ && !ready_; }
  bool ready() const { return ready_; }
  /// Errors  usage  no sum was begun, or one of fewer values
  void require_begun(std::size_t totals) const;
  void finish(std::span<double> totals);
  std::span<double const> contributions() const {
    return {gathered_.data(), width_ * static_cast<std::size_t>(ranks_)};
  }
  void raise(std::uint32_t flags) { raised_ |= flags; }
  void lower() { raised_ = 0; }
  std::uint32_t flags() const { return seen_; }
  Reduction reduction() const { return reduction_; }

 private:
  int ranks_;
  Reduction reduction_;
  std::vector<double> gathered_, contribution_, tree_;
  std::size_t width_ = 0;
  bool open_ = false, ready_ = false;
  std::uint32_t raised_ = 0, seen_ = 0;
};

}  // namespace hostless
