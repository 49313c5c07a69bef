#include <algorithm>
#include <cmath>
#include <map>

#include "model/fit_parts.hpp"

namespace hostless {
namespace {

// Median seconds of one message of one rank by size.
std::map<double, double> medians(std::vector<MessageSample> const& samples) {
  std::map<double, std::vector<double>> by_size;
  for (MessageSample const& s : samples)
    if (s.pattern.messages == 1 && s.pattern.active_ranks == 1 && s.pattern.bytes > 0)
      by_size[s.pattern.bytes].push_back(s.seconds);
  std::map<double, double> found;
  for (auto const& [bytes, times] : by_size) found[bytes] = median_of(times);
  return found;
}

// How much more the time grows behind each size than in front of it and behind the next, as a logarithm.
void add_jumps(std::map<double, double> const& times, std::map<double, std::vector<double>>& jumps) {
  std::vector<std::pair<double, double>> const all(times.begin(), times.end());
  for (std::size_t k = 1; k + 2 < all.size(); ++k) {
    auto const growth = [&](std::size_t at) { return std::log(all[at + 1].second / all[at].second); };
    jumps[all[k].first].push_back(growth(k) - 0.5 * (growth(k - 1) + growth(k + 1)));
  }
}

}  // namespace

std::vector<MessageSample> samples_of(std::vector<MessageSample> const& all, MessageSpan span,
                                      MemoryKind memory) {
  std::vector<MessageSample> found;
  auto const belongs = [&](MessageSample const& s) {
    return s.pattern.span == span && s.pattern.memory == memory;
  };
  std::copy_if(all.begin(), all.end(), std::back_inserter(found), belongs);
  return found;
}

double rough_injection(std::vector<MessageSample> const& samples) {
  double largest = 0;
  int most = 1;
  for (MessageSample const& s : samples) {
    largest = std::max(largest, s.pattern.bytes);
    most = std::max(most, s.pattern.active_ranks);
  }
  std::vector<double> found;
  for (MessageSample const& s : samples)
    if (most > 1 && s.pattern.messages == 1 && s.pattern.bytes >= largest / 16 &&
        2 * s.pattern.active_ranks > most)
      found.push_back(s.seconds / (s.pattern.bytes * s.pattern.active_ranks));
  return median_of(found);
}

std::vector<FitPoint> lone_points(std::vector<MessageSample> const& samples, double s_per_byte) {
  std::map<std::pair<double, int>, std::vector<double>> groups;
  constexpr int few = 3;  // ranks that hardly touch each other
  for (MessageSample const& s : samples) {
    int const ranks = s.pattern.active_ranks;
    bool const crowded =
        ranks > 1 && (s_per_byte == 0 || ranks > few || 3 * ranks * s.pattern.bytes * s_per_byte > s.seconds);
    if (s.pattern.messages == 1 && !crowded) groups[{s.pattern.bytes, s.series}].push_back(s.seconds);
  }
  std::vector<FitPoint> points;
  for (auto const& [key, times] : groups) points.push_back({key.first, median_of(times), 1.0});
  return points;
}

Thresholds find_thresholds(std::vector<MessageSample> const& all, Thresholds const& given) {
  constexpr double least = 0.1;  // a tenth more than the sizes around it
  std::map<double, std::vector<double>> jumps;
  for (MessageSpan span : all_spans) add_jumps(medians(samples_of(all, span, MemoryKind::host)), jumps);
  constexpr double apart = 4;
  auto const largest = [&](auto const& may_be) -> std::optional<double> {
    std::optional<double> found;
    double best = least;
    for (auto const& [bytes, heights] : jumps)
      if (double const height = median_of(heights); may_be(bytes) && height > best)
        best = height, found = bytes;
    return found;
  };
  Thresholds found = given;
  if (given.short_up_to && !given.eager_up_to)
    found.eager_up_to = largest([&](double bytes) { return bytes > *given.short_up_to; });
  if (given.eager_up_to && !given.short_up_to)
    found.short_up_to = largest([&](double bytes) { return bytes < *given.eager_up_to / apart; });
  if (given.short_up_to || given.eager_up_to) return found;
  found.eager_up_to = largest([](double) { return true; });
  if (!found.eager_up_to) return found;
  double const one = *found.eager_up_to;
  auto const other = largest([&](double bytes) { return bytes < one / apart || bytes > one * apart; });
  if (!other) return found;
  found.short_up_to = std::min(one, *other);
  found.eager_up_to = std::max(one, *other);
  return found;
}

std::optional<double> find_socket_limit(std::vector<MessageSample> const& samples, NodeShape const& node) {
  double const socket = node.cores_per_socket;
  std::map<double, std::pair<std::vector<double>, std::vector<double>>>
      groups;  // a socket nearly full; two of them
  for (MessageSample const& s : samples) {
    int const ranks = s.pattern.active_ranks;
    if (s.pattern.messages != 1) continue;
    if (ranks > 0.75 * socket && ranks <= socket) groups[s.pattern.bytes].first.push_back(s.seconds);
    if (ranks > 1.5 * socket && ranks <= 2 * socket) groups[s.pattern.bytes].second.push_back(s.seconds);
  }
  std::optional<double> limit;
  bool socket_limit = false;
  double const smallest_rate = rough_injection(samples) / 4;
  for (auto const& [bytes, times] : groups) {
    if (times.first.empty() || times.second.empty()) continue;
    bool const bound =
        median_of(times.first) < 8 * socket * bytes * smallest_rate;  // by the card, more or less
    if (!bound) continue;
    constexpr double between = 1.4;  // one limit for the node doubles the time, one for each socket leaves it
    socket_limit = median_of(times.second) < between * median_of(times.first);
    if (!socket_limit) limit = bytes;
  }
  return socket_limit ? limit : std::nullopt;
}

}  // namespace hostless
