#pragma once
// Iterations by the moments at which a rank's clocks saw something begin and end, whatever run they are of.

#include <cstdint>
#include <vector>

#include "hostless/solve/iteration_times.hpp"

namespace hostless {

struct Span {
  double begin = 0, end = 0;
};

/// What one rank recorded, seconds of one clock. Spans may overlap and come in any order.
struct ClockTrace {
  IterationTimes::Clock clock = IterationTimes::Clock::none;
  Span looked_at;               ///< whole iterations
  std::int64_t iterations = 0;  ///< in there; 0: none was whole
  std::vector<Span> computing;
  std::vector<Span> communication;
};

/// The spans as they cover their clock: joined where they meet, rising, and cut to `inside`.
std::vector<Span> joined(std::vector<Span> spans, Span inside);
/// How long both are, each joined.
double length_of(std::vector<Span> const& spans);
double length_of_both(std::vector<Span> const& one, std::vector<Span> const& other);

/// Clock::none of a trace without a whole iteration.
IterationTimes times_of(ClockTrace const& trace);

}  // namespace hostless
