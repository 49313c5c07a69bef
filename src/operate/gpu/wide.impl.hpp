#pragma once
// Several right-hand sides where a row's products are made: the matrix is read once for all of them.

#include <cstdint>

#include "device/runtime.hpp"
#include "hostless/base/host_device.hpp"

namespace hostless::gpu {

/// Entries of W right-hand sides at the same row.
template <int W>
struct Wide {
  double of[W];
};
/// The gathered fields of W right-hand sides, where that of one is a `double const*`. Two of them may be the
/// same.
template <int W>
struct WideField {
  double const* of[W];
  HOSTLESS_HOST_DEVICE WideField operator+(std::int64_t rows) const {
    WideField there;
    HOSTLESS_UNROLL
    for (int c = 0; c < W; ++c) there.of[c] = of[c] + rows;
    return there;
  }
  HOSTLESS_HOST_DEVICE Wide<W> operator[](std::int64_t row) const {
    Wide<W> entry;
    HOSTLESS_UNROLL
    for (int c = 0; c < W; ++c) entry.of[c] = of[c][row];
    return entry;
  }
};
/// Two entries that are loaded and stored together.
struct alignas(16) EntryPair {
  double of[2];
};
/// The same of W right-hand sides whose entries of a row lie beside each other.
template <int W>
struct SideBySide {
  static_assert(W % 2 == 0);
  double const* values;
  HOSTLESS_HOST_DEVICE SideBySide operator+(std::int64_t rows) const { return {values + rows * W}; }
  HOSTLESS_HOST_DEVICE Wide<W> operator[](std::int64_t row) const {
    auto const* const from = reinterpret_cast<EntryPair const*>(values + row * W);
    Wide<W> entry;
    HOSTLESS_UNROLL
    for (int c = 0; c < W; c += 2) {
      EntryPair const pair = from[c / 2];
      entry.of[c] = pair.of[0];
      entry.of[c + 1] = pair.of[1];
    }
    return entry;
  }
};
/// One of them.
template <int W>
struct OneSide {
  double const* values;
  HOSTLESS_HOST_DEVICE double operator[](std::int64_t row) const { return values[row * W]; }
};
/// What a sum of products with a field's entries is.
template <class X>
struct SumOf {
  using type = double;
};
template <int W>
struct SumOf<WideField<W>> {
  using type = Wide<W>;
};
template <int W>
struct SumOf<SideBySide<W>> {
  using type = Wide<W>;
};
template <class X>
using Sum = typename SumOf<X>::type;

/// Right-hand side c of such a field, of so many, and of a sum.
HOSTLESS_HOST_DEVICE constexpr int width_of(double const*) { return 1; }
HOSTLESS_HOST_DEVICE double const* column_of(double const* x, int) { return x; }
HOSTLESS_HOST_DEVICE double& column_of(double& sum, int) { return sum; }
template <int W>
HOSTLESS_HOST_DEVICE constexpr int width_of(WideField<W> const&) {
  return W;
}
template <int W>
HOSTLESS_HOST_DEVICE double const* column_of(WideField<W> const& x, int c) {
  return x.of[c];
}
template <int W>
HOSTLESS_HOST_DEVICE constexpr int width_of(SideBySide<W> const&) {
  return W;
}
template <int W>
HOSTLESS_HOST_DEVICE OneSide<W> column_of(SideBySide<W> const& x, int c) {
  return {x.values + c};
}
template <int W>
HOSTLESS_HOST_DEVICE double& column_of(Wide<W>& sum, int c) {
  return sum.of[c];
}

HOSTLESS_HOST_DEVICE void set_zero(double& sum) { sum = 0.0; }
template <int W>
HOSTLESS_HOST_DEVICE void set_zero(Wide<W>& sum) {
  HOSTLESS_UNROLL
  for (int c = 0; c < W; ++c) sum.of[c] = 0.0;
}
/// sum = entry x + sum, rounded once.
HOSTLESS_HOST_DEVICE double add_product(double entry, double x, double sum) {
  return __builtin_fma(entry, x, sum);
}
template <int W>
HOSTLESS_HOST_DEVICE Wide<W> add_product(double entry, Wide<W> const& x, Wide<W> sum) {
  HOSTLESS_UNROLL
  for (int c = 0; c < W; ++c) sum.of[c] = __builtin_fma(entry, x.of[c], sum.of[c]);
  return sum;
}

}  // namespace hostless::gpu
