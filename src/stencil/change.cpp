#include "stencil/change.hpp"

#include <cmath>
#include <limits>

#include "hostless/base/isa.hpp"
#include "hostless/stencil/pack.hpp"

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

/// Rows of one plane, `stride` values apart.
struct Rows {
  std::byte const* first;
  std::int64_t rows, stride, values;
};
using RowsFunction = bool (*)(Rows const&);

/// Whether no value is NaN or infinite. Four sums of zeros side by side: one alone waits for each of its additions,
/// and then a look at all cells is as long as some steps of them.
template <class T, int bytes>
bool are_finite(Rows const& of) {
  using V = Pack<T, bytes>;
  V const zero(0.0);
  V sums[4]{zero, zero, zero, zero};
  T rest = 0;
  auto const* row = reinterpret_cast<T const*>(of.first);
  for (std::int64_t r = 0; r < of.rows; ++r, row += of.stride) {
    std::int64_t k = 0;
    for (; k + 4 * V::width <= of.values; k += 4 * V::width)
      for (int s = 0; s < 4; ++s) sums[s] = sums[s] + V::load(row + k + s * V::width) * zero;
    for (; k + V::width <= of.values; k += V::width) sums[0] = sums[0] + V::load(row + k) * zero;
    for (; k < of.values; ++k) rest += row[k] * T(0);
  }
  T all[V::width];
  ((sums[0] + sums[1]) + (sums[2] + sums[3])).store(all);
  for (T const one : all) rest += one;
  return rest == T(0);
}
template <class T>
HOSTLESS_TARGET_BASELINE bool are_finite_baseline(Rows const& of) {
  return are_finite<T, 16>(of);
}
template <class T>
HOSTLESS_TARGET_V3 bool are_finite_v3(Rows const& of) {
  return are_finite<T, 32>(of);
}
template <class T>
HOSTLESS_TARGET_V4 bool are_finite_v4(Rows const& of) {
  return are_finite<T, 64>(of);
}
template <class T>
RowsFunction finite_by_isa() {
  switch (active_isa()) {
    case Isa::v4:
      return are_finite_v4<T>;
    case Isa::v3:
      return are_finite_v3<T>;
    case Isa::baseline:
      break;
  }
  return are_finite_baseline<T>;
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
  bool const is_single = array.value_bytes() == sizeof(float);
  RowsFunction const look = is_single ? finite_by_isa<float>() : finite_by_isa<double>();
  for (std::int64_t a = box.low[0]; a < box.high[0]; ++a)
    if (!look({array.at(a, box.low[1], box.low[2]), box.extent(1), array.stride(1), box.extent(2)}))
      return false;
  return true;
}

}  // namespace hostless::change
