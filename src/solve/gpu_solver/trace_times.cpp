#include "solve/gpu_solver/trace_times.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace hostless::gpu {
namespace {

constexpr std::int64_t first_iterations = 5;

/// The first iteration that counts, of those seen from `first` to `last`, which does not.
std::int64_t first_counted(std::int64_t first, std::int64_t last) {
  return first + (last - first > 2 * first_iterations ? first_iterations : 1);
}

/// The barriers of one persistent kernel, as far as all of its blocks went, with one clock for all.
class Barriers {
 public:
  explicit Barriers(Trace const& trace)
      : trace_(trace), size_(trace.entries.size() / static_cast<std::size_t>(trace.blocks)), count_(size_) {
    for (int b = 0; b < trace.blocks; ++b) count_ = std::min(count_, reached(b));
    for (int b = 0; b < trace.blocks && count_ > 0; ++b) origin_.push_back(at(b, 0).met);
    for (int b = 0; b < trace.blocks && count_ > 0; ++b) late_.push_back(lateness(b));
  }
  std::size_t count() const { return count_; }
  TraceEntry const& at(int block, std::size_t barrier) const {
    return trace_.entries[static_cast<std::size_t>(block) * size_ + barrier];
  }
  double seconds(int block, std::uint64_t cycles) const {
    return (since_origin(block, cycles) - late_[static_cast<std::size_t>(block)]) / trace_.hertz;
  }

 private:
  // What a launch before this one has left behind it is older.
  std::size_t reached(int block) const {
    std::size_t m = 0;
    std::uint64_t last = 0;
    while (m < size_ && at(block, m).end != 0 && at(block, m).begin >= last) last = at(block, m++).end;
    return m;
  }
  double since_origin(int block, std::uint64_t cycles) const {
    return static_cast<double>(static_cast<std::int64_t>(cycles - origin_[static_cast<std::size_t>(block)]));
  }
  double lateness(int block) const {
    std::vector<double> late;
    for (std::size_t m = 0; m < count_; ++m)
      late.push_back(since_origin(block, at(block, m).met) - since_origin(0, at(0, m).met));
    auto const middle = late.begin() + static_cast<std::ptrdiff_t>(late.size() / 2);
    std::nth_element(late.begin(), middle, late.end());
    return *middle;
  }

  Trace const& trace_;
  std::size_t size_, count_;
  std::vector<std::uint64_t> origin_;
  std::vector<double> late_;
};

ClockTrace of_kernel(Trace const& trace, int ranks) {
  ClockTrace clock;
  clock.clock = IterationTimes::Clock::kernel;
  Barriers const all(trace);
  if (all.count() == 0) return clock;
  std::int64_t const last = all.at(0, all.count() - 1).iteration;
  std::int64_t const first = first_counted(all.at(0, 0).iteration, last);
  auto const begin_of = [&](std::int64_t iteration) {
    std::size_t m = 0;
    while (all.at(0, m).iteration < iteration) ++m;
    return all.seconds(0, all.at(0, m).begin);
  };
  if (first >= last) return clock;
  clock.iterations = last - first;
  clock.looked_at = {begin_of(first), begin_of(last)};
  for (std::size_t m = 0; m < all.count(); ++m) {
    Span under_way{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
    for (int b = 0; b < trace.blocks; ++b) {
      TraceEntry const& entry = all.at(b, m);
      double const together = all.seconds(b, entry.together), met = all.seconds(b, entry.met);
      clock.computing.push_back({all.seconds(b, entry.begin), together});
      clock.computing.push_back({met, all.seconds(b, entry.end)});
      under_way = {std::min(under_way.begin, together), std::max(under_way.end, met)};
    }
    if (ranks > 1) clock.communication.push_back(under_way);
  }
  return clock;
}

ClockTrace of_stamps(Trace const& trace, int ranks) {
  ClockTrace clock;
  clock.clock = IterationTimes::Clock::stamps;
  std::uint64_t origin = std::numeric_limits<std::uint64_t>::max();
  std::int64_t earliest = std::numeric_limits<std::int64_t>::max(), last = -1;
  for (Stamp const& stamp : trace.stamps) {
    origin = std::min(origin, stamp.time_ns);
    if (stamp.mark != Mark::computes) continue;
    earliest = std::min(earliest, stamp.iteration);
    last = std::max(last, stamp.iteration);
  }
  if (last < 0 || first_counted(earliest, last) >= last) return clock;
  std::int64_t const first = first_counted(earliest, last);
  std::optional<double> looks_from, looks_to, computes, departs;
  for (Stamp const& stamp : trace.stamps) {
    double const now = 1e-9 * static_cast<double>(stamp.time_ns - origin);
    switch (stamp.mark) {
      case Mark::computes:
        if (!looks_from && stamp.iteration >= first) looks_from = now;
        if (!looks_to && stamp.iteration >= last) looks_to = now;
        computes.reset();
        if (stamp.open != 0) computes = now;
        break;
      case Mark::computed:
        if (computes) clock.computing.push_back({*computes, now});
        computes.reset();
        break;
      case Mark::departs:
        departs = now;
        break;
      case Mark::arrived:
        if (departs && ranks > 1) clock.communication.push_back({*departs, now});
        departs.reset();
        break;
    }
  }
  clock.iterations = last - first;
  clock.looked_at = {*looks_from, *looks_to};
  return clock;
}

}  // namespace

ClockTrace clock_trace(Trace const& trace, int ranks) {
  if (trace.blocks > 0) return of_kernel(trace, ranks);
  return of_stamps(trace, ranks);
}

}  // namespace hostless::gpu
