#include "stencil/change.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace hostless {
namespace {

struct Pair {
  Box box{{0, 0, 0}, {1, 1, 4}};
  GridArray before{box, {0, 0, 1}, 8}, after{box, {0, 0, 1}, 8};
  Pair(std::array<double, 4> const& old, std::array<double, 4> const& now) {
    for (int c = 0; c < 4; ++c) {
      *reinterpret_cast<double*>(before.at(0, 0, c)) = old[static_cast<std::size_t>(c)];
      *reinterpret_cast<double*>(after.at(0, 0, c)) = now[static_cast<std::size_t>(c)];
    }
  }
  double norm() const {
    double const top = change::largest(before, after, box);
    std::array<double, change::digits> sum{};
    change::squares(before, after, box, top, sum);
    return change::norm(top, sum);
  }
};

TEST(Change, IsTheEuclideanNorm) {
  EXPECT_EQ(Pair({0, 0, 0, 0}, {3, 0, -4, 0}).norm(), 5.0);
  EXPECT_EQ(Pair({1, 2, 3, 4}, {1, 2, 3, 4}).norm(), 0.0);
  // far beyond where squares overflow or vanish
  EXPECT_DOUBLE_EQ(Pair({0, 0, 0, 0}, {3e200, 0, -4e200, 0}).norm(), 5e200);
  EXPECT_DOUBLE_EQ(Pair({0, 0, 0, 0}, {3e-200, 0, -4e-200, 0}).norm(), 5e-200);
  EXPECT_EQ(change::largest(Pair({0, 5, 0, 0}, {3, 0, -4, 0}).before, Pair({0, 5, 0, 0}, {3, 0, -4, 0}).after,
                            Pair({}, {}).box),
            5.0);
}

TEST(Change, KnowsWhatIsNotFinite) {
  double const nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (double const wrong : {nan, inf, -inf}) {
    Pair const now({0, 0, 0, 0}, {1, wrong, 2, 3});
    EXPECT_FALSE(std::isfinite(now.norm()));
    EXPECT_FALSE(change::is_finite(now.after, now.box));
    EXPECT_TRUE(change::is_finite(now.before, now.box));
  }
  EXPECT_TRUE(std::isnan(Pair({0, inf, 0, 0}, {1, inf, 2, 3}).norm()));  // an old one, that has not changed
}

// Of every length, and wherever in a row it stands.
template <class T>
void expect_found_everywhere() {
  for (std::int64_t const cells : {1, 3, 15, 16, 17, 63, 64, 65, 130}) {
    Box const box{{0, 0, 0}, {2, 3, cells}};
    GridArray const array(box, {1, 1, 1}, sizeof(T));
    auto* const beside = reinterpret_cast<T*>(array.at(0, 0, -1));
    *beside = std::numeric_limits<T>::quiet_NaN();  // no cell of the box
    for (std::int64_t c = 0; c < cells; ++c)
      for (T const wrong : {std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN()}) {
        auto& cell = *reinterpret_cast<T*>(array.at(1, c % 3, c));
        cell = wrong;
        EXPECT_FALSE(change::is_finite(array, box)) << cells << ": " << c;
        cell = std::numeric_limits<T>::max();
        EXPECT_TRUE(change::is_finite(array, box)) << cells << ": " << c;
      }
  }
}
TEST(Change, FindsWhatIsNotFiniteInAnyRow) {
  expect_found_everywhere<float>();
  expect_found_everywhere<double>();
}

}  // namespace
}  // namespace hostless
