#include "solve/clock_trace.hpp"

#include <algorithm>

#include "hostless/transport/group.hpp"

namespace hostless {

char const* name(IterationTimes::Clock clock) {
  char const* const names[] = {"none", "phases", "kernel", "stamps"};
  return names[static_cast<int>(clock)];
}

double overlapped(double exposed_s, double communication_s) {
  return communication_s > 0 ? std::clamp(1 - exposed_s / communication_s, 0.0, 1.0) : 0.0;
}

double overlapped_by_runs(double computing_s, double communication_s, double whole_s) {
  return overlapped(whole_s - computing_s, communication_s);
}

std::vector<Span> joined(std::vector<Span> spans, Span inside) {
  for (Span& span : spans) span = {std::max(span.begin, inside.begin), std::min(span.end, inside.end)};
  std::erase_if(spans, [](Span const& span) { return span.begin >= span.end; });
  std::sort(spans.begin(), spans.end(), [](Span const& a, Span const& b) { return a.begin < b.begin; });
  std::vector<Span> all;
  for (Span const& span : spans) {
    if (all.empty() || all.back().end < span.begin) {
      all.push_back(span);
    } else {
      all.back().end = std::max(all.back().end, span.end);
    }
  }
  return all;
}

double length_of(std::vector<Span> const& spans) {
  double length = 0;
  for (Span const& span : spans) length += span.end - span.begin;
  return length;
}

double length_of_both(std::vector<Span> const& one, std::vector<Span> const& other) {
  double length = 0;
  for (std::size_t k = 0, m = 0; k < one.size() && m < other.size();) {
    double const begin = std::max(one[k].begin, other[m].begin), end = std::min(one[k].end, other[m].end);
    length += std::max(0.0, end - begin);
    if (one[k].end < other[m].end) {
      ++k;
    } else {
      ++m;
    }
  }
  return length;
}

IterationTimes times_of(ClockTrace const& trace) {
  IterationTimes times;
  if (trace.iterations <= 0 || !(trace.looked_at.begin < trace.looked_at.end)) return times;
  auto const computing = joined(trace.computing, trace.looked_at);
  auto const communication = joined(trace.communication, trace.looked_at);
  double const both = length_of_both(computing, communication);
  double const one = 1.0 / static_cast<double>(trace.iterations);
  times.clock = trace.clock;
  times.iterations = trace.iterations;
  times.iteration_s = one * (trace.looked_at.end - trace.looked_at.begin);
  times.computing_s = one * length_of(computing);
  times.communication_s = one * length_of(communication);
  times.exposed_s = times.communication_s - one * both;
  times.idle_s = std::max(0.0, times.iteration_s - times.computing_s - times.exposed_s);
  return times;
}

IterationTimes of_all_ranks(Group& group, IterationTimes const& mine) {
  IterationTimes least;
  auto const share = [](IterationTimes const& t) { return t.exposed_s / t.iteration_s; };
  for (IterationTimes const& one : group.all_gather(mine)) {
    if (one.clock == IterationTimes::Clock::none) continue;
    if (least.clock == IterationTimes::Clock::none || share(one) < share(least)) least = one;
  }
  return least;
}

}  // namespace hostless
