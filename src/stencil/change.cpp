#include "stencil/change.hpp"

#include <cmath>
#include <limits>

namespace hostless::change {

namespace {

constexpr int bits = 60;

/// Calls visit(old, new) for every cell.
template <class T, class Visit>
void each_cell(GridArray const& before, GridArray const& after, Box const& box, Visit&& visit) {
  std::int64_t const cells = box.extent(2);
  each_row(before, box, [&](std::byte const* row, std::int64_t a, std::int64_t b) {
    auto const* old = reinterpret_cast<T const*>(row);
    auto const* now = reinterpret_cast<T const*>(after.at(a, b, box.low[2]));
    for (std::int64_t c = 0; c < cells; ++c) visit(static_cast<double>(old[c]), static_cast<double>(now[c]));
  });
}

template <class Visit>
void each_pair(GridArray const& before, GridArray const& after, Box const& box, Visit&& visit) {
  if (before.value_bytes() == sizeof(float)) {
    each_cell<float>(before, after, box, visit);
  } else {
    each_cell<double>(before, after, box, visit);
  }
}

int exponent_above(double top) {
  int exponent = 0;
  (void)std::frexp(top, &exponent);
  return exponent;
}

}  // namespace

double largest(GridArray const& before, GridArray const& after, Box const& box) {
  double top = 0, sum_of_nothing = 0;
  each_pair(before, after, box, [&](double old, double now) {
    double const changed = std::abs(now - old);
    top = changed > top ? changed : top;
    sum_of_nothing += changed * 0.0;  // NaN as soon as one is not finite
  });
  return sum_of_nothing == 0.0 ? top : std::numeric_limits<double>::quiet_NaN();
}

void squares(GridArray const& before, GridArray const& after, Box const& box, double top,
             std::span<double, digits> sum) {
  for (double& digit : sum) digit = 0;
  if (!(top > 0) || !std::isfinite(top)) return;
  int const exponent = exponent_above(top);
  unsigned __int128 total = 0;
  each_pair(before, after, box, [&](double old, double now) {
    double const scaled = std::ldexp(now - old, -exponent);
    total += static_cast<std::uint64_t>(std::ldexp(scaled * scaled, bits));
  });
  for (double& digit : sum) {
    digit = static_cast<double>(static_cast<std::uint32_t>(total));
    total >>= 32;
  }
}

double norm(double top, std::span<double const, digits> sum) {
  if (!(top > 0) || !std::isfinite(top)) return top;
  unsigned __int128 total = 0;
  for (std::size_t k = digits; k-- > 0;) total = (total << 32) + static_cast<std::uint64_t>(sum[k]);
  int shift = 0;  // what a double holds, truncated: the same on every machine
  for (; (total >> 53) != 0; total >>= 1) ++shift;
  double const squares = std::ldexp(static_cast<double>(static_cast<std::uint64_t>(total)), shift);
  return std::ldexp(std::sqrt(std::ldexp(squares, -bits)), exponent_above(top));
}

bool is_finite(GridArray const& array, Box const& box) {
  double sum_of_nothing = 0;
  each_pair(array, array, box, [&](double, double now) { sum_of_nothing += now * 0.0; });
  return sum_of_nothing == 0.0;
}

}  // namespace hostless::change
