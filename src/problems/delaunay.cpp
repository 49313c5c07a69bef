// Delaunay triangulations, a point after the other (Bowyer 1981, Watson 1981): the triangles whose circle holds
// the new point go, and what bounded them is joined to it. Triangles with a corner at infinity stand outside
// the hull, so that points out there are nothing special.
#include <array>
#include <set>

#include "problems/adjacency.hpp"

namespace hostless::problems {
namespace {

constexpr std::int32_t infinity = -1;

/// Corners counterclockwise; only the last one may be at infinity. Then the outside is to the left of the way
/// from the first to the second.
using Triangle = std::array<std::int32_t, 3>;

/// Above 0: c is to the left of the way from a to b.
std::int64_t turn(PlanePoint const& a, PlanePoint const& b, PlanePoint const& c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

/// Whether p is inside the circle through a, b and c, which are counterclockwise.
bool is_in_circle(PlanePoint const& a, PlanePoint const& b, PlanePoint const& c, PlanePoint const& p) {
  auto const squared = [&](PlanePoint const& q) {
    return static_cast<__int128>((q.x - p.x) * (q.x - p.x) + (q.y - p.y) * (q.y - p.y));
  };
  return squared(a) * turn(p, b, c) + squared(b) * turn(p, c, a) + squared(c) * turn(p, a, b) > 0;
}

bool is_between(PlanePoint const& a, PlanePoint const& b, PlanePoint const& p) {
  return (p.x - a.x) * (p.x - b.x) + (p.y - a.y) * (p.y - b.y) < 0;
}

class Triangulation {
 public:
  explicit Triangulation(std::span<PlanePoint const> points) : points_(points) {
    bool const left = turn(points[0], points[1], points[2]) > 0;
    std::int32_t const second = left ? 1 : 2, third = left ? 2 : 1;
    triangles_ = {{0, second, third}, {second, 0, infinity}, {third, second, infinity}, {0, third, infinity}};
    for (std::int32_t p = 3; p < static_cast<std::int32_t>(points.size()); ++p) insert(p);
  }
  Adjacency edges() const {
    std::vector<std::pair<std::int32_t, std::int32_t>> all;
    for (Triangle const& t : triangles_)
      for (std::size_t k = 0; k < 3; ++k)
        if (t[k] != infinity && t[(k + 1) % 3] != infinity) all.emplace_back(t[k], t[(k + 1) % 3]);
    return adjacency_of(static_cast<std::int32_t>(points_.size()), all);
  }

 private:
  PlanePoint const& at(std::int32_t k) const { return points_[static_cast<std::size_t>(k)]; }

  bool is_broken_by(Triangle const& t, PlanePoint const& p) const {
    if (t[2] != infinity) return is_in_circle(at(t[0]), at(t[1]), at(t[2]), p);
    std::int64_t const side = turn(at(t[0]), at(t[1]), p);
    return side > 0 || (side == 0 && is_between(at(t[0]), at(t[1]), p));
  }

  void insert(std::int32_t p) {
    std::set<std::pair<std::int32_t, std::int32_t>> sides;
    std::vector<Triangle> kept;
    for (Triangle const& t : triangles_) {
      if (!is_broken_by(t, at(p))) {
        kept.push_back(t);
        continue;
      }
      for (std::size_t k = 0; k < 3; ++k)
        if (sides.erase({t[(k + 1) % 3], t[k]}) == 0) sides.insert({t[k], t[(k + 1) % 3]});
    }
    for (auto const& [from, to] : sides) {
      if (from == infinity) {
        kept.push_back({to, p, from});
      } else if (to == infinity) {
        kept.push_back({p, from, to});
      } else {
        kept.push_back({from, to, p});
      }
    }
    triangles_ = std::move(kept);
  }

  std::span<PlanePoint const> points_;
  std::vector<Triangle> triangles_;
};

}  // namespace

Adjacency delaunay(std::span<PlanePoint const> points) { return Triangulation(points).edges(); }

}  // namespace hostless::problems
