#include "cover.hpp"

#include <compare>
#include <set>

namespace hostless::contract {
namespace {

struct Pair {
  std::size_t a, b;
  int i, j;
  auto operator<=>(Pair const&) const = default;
};

// Pairs that axis `k` with value `v` closes with the axes of `point` that have one (others are -1).
int closes(std::set<Pair> const& open, Point const& point, std::size_t k, int v) {
  int count = 0;
  for (std::size_t other = 0; other < point.size(); ++other) {
    if (other == k || point[other] < 0) continue;
    bool const before = other < k;
    count += static_cast<int>(
        open.count(before ? Pair{other, k, point[other], v} : Pair{k, other, v, point[other]}));
  }
  return count;
}

// The value of axis `k` that closes most pairs; ties go to another one for every `turn`.
int best_value(std::set<Pair> const& open, Point const& point, std::size_t k, int size, std::size_t turn) {
  int best = -1, value = 0;
  for (int step = 0; step < size; ++step) {
    int const v = (step + static_cast<int>(turn)) % size;
    int const count = closes(open, point, k, v);
    if (count > best) {
      best = count;
      value = v;
    }
  }
  return value;
}

}  // namespace

std::vector<Point> cover_pairs(Point const& sizes) {
  std::size_t const axes = sizes.size();
  std::set<Pair> open;
  for (std::size_t a = 0; a < axes; ++a)
    for (std::size_t b = a + 1; b < axes; ++b)
      for (int i = 0; i < sizes[a]; ++i)
        for (int j = 0; j < sizes[b]; ++j) open.insert({a, b, i, j});
  std::vector<Point> points;
  while (!open.empty()) {
    Point point(axes, -1);
    Pair const seed = *open.begin();
    point[seed.a] = seed.i;
    point[seed.b] = seed.j;
    for (std::size_t k = 0; k < axes; ++k)
      if (point[k] < 0) point[k] = best_value(open, point, k, sizes[k], points.size());
    for (std::size_t a = 0; a < axes; ++a)
      for (std::size_t b = a + 1; b < axes; ++b) open.erase({a, b, point[a], point[b]});
    points.push_back(point);
  }
  return points;
}

std::vector<Point> all_points(Point const& sizes, std::vector<std::size_t> const& order) {
  std::vector<Point> points;
  Point point(sizes.size(), 0);
  for (bool more = true; more;) {
    points.push_back(point);
    std::size_t k = order.size();
    for (more = false; k-- > 0 && !more;) {
      more = ++point[order[k]] < sizes[order[k]];
      if (!more) point[order[k]] = 0;
    }
  }
  return points;
}

}  // namespace hostless::contract
