#include "model/robust_line.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hostless {
namespace {

constexpr double piece_worth = 0.004;  // four points 3 % off

struct Normal {  // equations of weighted least squares
  double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0;
  double determinant() const { return w * wxx - wx * wx; }
};

Normal normal_of(std::span<FitPoint const> points, std::vector<double> const& weights) {
  Normal n;
  for (std::size_t k = 0; k < points.size(); ++k) {
    double const w = weights[k] / (points[k].y * points[k].y), x = points[k].x, y = points[k].y;
    n.w += w, n.wx += w * x, n.wxx += w * x * x, n.wy += w * y, n.wxy += w * x * y;
  }
  return n;
}

Line solved(Normal const& n) {
  double const d = n.determinant();
  if (!(d > 1e-12 * n.w * n.wxx)) return {n.wy / n.w, 0.0};  // one size
  Line const line{(n.wxx * n.wy - n.wx * n.wxy) / d, (n.w * n.wxy - n.wx * n.wy) / d};
  if (line.beta < 0) return {n.wy / n.w, 0.0};
  if (line.alpha < 0) return {0.0, n.wxy / n.wxx};
  return line;
}

double relative(Line const& line, FitPoint const& point) { return line.at(point.x) / point.y - 1; }

double cost_of(Line const& line, std::span<FitPoint const> points) {
  double cost = 0;
  for (FitPoint const& point : points) cost += point.weight * huber_loss(relative(line, point));
  return cost;
}

Line half_width_of(Line const& line, std::span<FitPoint const> points, std::vector<double> const& weights) {
  if (points.size() < 3) return {};
  double squares = 0;
  for (std::size_t k = 0; k < points.size(); ++k)
    squares += weights[k] * std::pow(relative(line, points[k]), 2);
  Normal const n = normal_of(points, weights);
  if (!(n.determinant() > 1e-12 * n.w * n.wxx))
    return {1.96 * std::sqrt(squares / static_cast<double>(points.size() - 1) / n.w), 0.0};
  double const variance = squares / static_cast<double>(points.size() - 2);
  return {1.96 * std::sqrt(variance * n.wxx / n.determinant()),
          1.96 * std::sqrt(variance * n.w / n.determinant())};
}

std::vector<double> sizes_of(std::span<FitPoint const> points) {
  std::vector<double> sizes;
  for (FitPoint const& point : points)
    if (sizes.empty() || point.x > sizes.back()) sizes.push_back(point.x);
  return sizes;
}

std::span<FitPoint const> between(std::span<FitPoint const> sorted, double from, double up_to) {
  auto const below = [](FitPoint const& point, double x) { return point.x < x; };
  auto const above = [](double x, FitPoint const& point) { return x < point.x; };
  return {std::lower_bound(sorted.begin(), sorted.end(), from, below),
          std::upper_bound(sorted.begin(), sorted.end(), up_to, above)};
}

// The cheapest pieces of points that no cut parts.
void cut_range(std::span<FitPoint const> points, std::size_t least, std::vector<FittedPiece>& into) {
  std::vector<double> const sizes = sizes_of(points);
  std::size_t const n = sizes.size();
  least = std::max<std::size_t>(1, std::min(least, n));
  std::vector<double> best(n + 1, std::numeric_limits<double>::infinity());
  std::vector<std::size_t> begin(n + 1, 0);
  best[0] = 0;
  for (std::size_t end = least; end <= n; ++end)
    for (std::size_t start = 0; start + least <= end; ++start) {
      if (std::isinf(best[start])) continue;
      double const cost =
          best[start] + piece_worth + robust_line(between(points, sizes[start], sizes[end - 1])).cost;
      if (cost < best[end]) best[end] = cost, begin[end] = start;
    }
  std::vector<FittedPiece> pieces;
  for (std::size_t end = n; end > 0; end = begin[end]) {
    auto const part = between(points, sizes[begin[end]], sizes[end - 1]);
    pieces.push_back({sizes[begin[end]], sizes[end - 1], robust_line(part), {part.begin(), part.end()}});
  }
  into.insert(into.end(), pieces.rbegin(), pieces.rend());
}

}  // namespace

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::size_t const half = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 != 0 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

double huber_loss(double residual) {
  double const size = std::abs(residual);
  return size <= huber_limit ? size * size : huber_limit * (2 * size - huber_limit);
}

FittedLine robust_line(std::span<FitPoint const> points) {
  constexpr int rounds = 40;
  std::vector<double> weights;
  for (FitPoint const& point : points) weights.push_back(point.weight);
  Line line;
  for (int round = 0; round < rounds; ++round) {
    Line const before = line;
    line = solved(normal_of(points, weights));
    for (std::size_t k = 0; k < points.size(); ++k)
      weights[k] = points[k].weight *
                   std::min(1.0, huber_limit / std::max(1e-12, std::abs(relative(line, points[k]))));
    if (line.alpha == before.alpha && line.beta == before.beta) break;
  }
  return {line, half_width_of(line, points, weights), cost_of(line, points)};
}

std::vector<FittedPiece> fit_pieces(std::vector<FitPoint> points, std::vector<double> const& cuts,
                                    int least_sizes) {
  std::sort(points.begin(), points.end(), [](FitPoint const& a, FitPoint const& b) { return a.x < b.x; });
  auto const least = static_cast<std::size_t>(least_sizes);
  std::vector<FittedPiece> pieces;
  std::vector<double> ends;  // of ranges that hold enough sizes
  double from = -1;
  for (double cut : cuts) {
    auto const part = between(points, std::nextafter(from, cut), cut);
    auto const rest = between(points, std::nextafter(cut, std::numeric_limits<double>::max()),
                              std::numeric_limits<double>::max());
    if (sizes_of(part).size() < least || sizes_of(rest).size() < least) continue;
    ends.push_back(cut);
    from = cut;
  }
  ends.push_back(std::numeric_limits<double>::max());
  from = -1;
  for (double end : ends) {
    auto const part = between(points, std::nextafter(from, end), end);
    if (!part.empty()) cut_range(part, least, pieces);
    from = end;
  }
  return pieces;
}

}  // namespace hostless
