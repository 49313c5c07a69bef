#include <cmath>
#include <limits>
#include <map>

#include "model/fit_parts.hpp"
#include "model/price_parts.hpp"

namespace hostless {
namespace {

/// A sample as the injection's part of the model sees it.
struct Shared {
  double ranks = 0;     // seconds of one rank alone
  double bytes = 0;     // of one rank
  double together = 0;  // bytes that pass the limit
  double seconds = 0;
};

double cost_at(std::vector<Shared> const& samples, double s_per_byte, double sharpness) {
  double cost = 0;
  for (Shared const& s : samples) {
    double const own = std::min(s.ranks, s.bytes * s_per_byte);
    cost += huber_loss(join_injection(s.ranks, s.together * s_per_byte, own, sharpness) / s.seconds - 1);
  }
  return cost;
}

// The best seconds a byte, by a coarse grid of logarithms and thirds around its best point.
std::pair<double, double> best_rate(std::vector<Shared> const& samples, double sharpness) {
  constexpr double least = -32.0, most = -13.9;  // 1.3e-14 and 9.2e-7: from 80 TB/s to 1 MB/s
  constexpr int coarse = 181;
  double best = least, lowest = std::numeric_limits<double>::infinity();
  double step = (most - least) / coarse;
  for (int k = 0; k <= coarse; ++k) {
    double const cost = cost_at(samples, std::exp(least + k * step), sharpness);
    if (cost < lowest) lowest = cost, best = least + k * step;
  }
  for (; step > 1e-4; step /= 2)
    for (double at : {best - step / 2, best + step / 2})
      if (double const cost = cost_at(samples, std::exp(at), sharpness); cost < lowest)
        lowest = cost, best = at;
  return {std::exp(best), lowest};
}

std::vector<Shared> shared_samples(std::vector<MessageSample> const& samples, MessageCosts const& lone,
                                   NodeShape const& node, InjectionLimit const& limit, double from) {
  std::vector<Shared> shared;
  for (MessageSample const& s : samples) {
    double const bytes = s.pattern.bytes;
    if (s.pattern.messages != 1 || s.pattern.active_ranks < 2 || bytes <= from || bytes > limit.up_to)
      continue;
    double const together = bytes * ranks_at_limit(limit, node, s.pattern.memory, s.pattern.active_ranks);
    shared.push_back({lone.piece(bytes).line.at(bytes), bytes, together, s.seconds});
  }
  return shared;
}

// Robust slopes of the seconds over the messages of a rank, with what the queue takes off.
struct Slopes {
  std::vector<FitPoint> points;
  double cost = 0;
};

Slopes slopes_at(std::map<std::pair<double, int>, std::vector<FitPoint>> const& groups, double queue_search) {
  Slopes slopes;
  for (auto const& [key, group] : groups) {
    std::vector<FitPoint> points = group;
    for (FitPoint& point : points) {
      point.y -= queue_search * point.x * (point.x + 1) / 2;
      if (point.y <= 0) return {{}, std::numeric_limits<double>::infinity()};
    }
    FittedLine const fitted = robust_line(points);
    slopes.cost += fitted.cost;
    slopes.points.push_back(
        {key.first, std::max(fitted.line.beta, 1e-3 * fitted.line.alpha), 1.0});  // above noise
  }
  return slopes;
}

}  // namespace

InjectionCosts fit_injection(std::vector<MessageSample> const& samples, MessageCosts const& lone,
                             NodeShape const& node, std::optional<double> node_up_to) {
  InjectionCosts found{lone.memory, {}, 0.0, {}};
  double lowest = std::numeric_limits<double>::infinity();
  for (double sharpness : {1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0}) {
    std::vector<InjectionLimit> limits;
    if (node_up_to) limits.push_back({*node_up_to, false, 0.0});
    limits.push_back({std::numeric_limits<double>::infinity(), node_up_to.has_value(), 0.0});
    double cost = 0, from = -1;
    for (InjectionLimit& limit : limits) {
      auto const [rate, part] = best_rate(shared_samples(samples, lone, node, limit, from), sharpness);
      limit.seconds_per_byte = rate;
      cost += part;
      from = limit.up_to;
    }
    if (cost < lowest) lowest = cost, found.limits = limits, found.sharpness = sharpness;
  }
  return found;
}

FollowingFit fit_following(std::vector<MessageSample> const& samples, std::vector<double> const& cuts,
                           int least_sizes) {
  std::map<std::pair<double, int>, std::vector<FitPoint>> groups;
  for (MessageSample const& s : samples)
    if (s.pattern.active_ranks == 1)
      groups[{s.pattern.bytes, s.series}].push_back({s.pattern.messages - 1.0, s.seconds, 1.0});
  std::erase_if(groups,
                [](auto const& group) { return group.second.size() < 3 || group.second.back().x < 2; });
  FollowingFit found;
  if (groups.empty()) return found;
  Slopes best = slopes_at(groups, 0.0);
  double most = 0;
  for (auto const& [key, group] : groups) most = std::max(most, group.back().x);
  constexpr double step = 0.5e-9;
  constexpr int enough = 16;  // messages: a square of fewer is not told from a slope
  for (int k = 1; k <= 60 && most >= enough; ++k)
    if (Slopes const slopes = slopes_at(groups, k * step); slopes.cost < best.cost)
      best = slopes, found.queue_search = k * step;
  found.pieces = fit_pieces(best.points, cuts, least_sizes);
  return found;
}

}  // namespace hostless
