#include "solve/setup/preconditioner_setup.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace hostless {
namespace {

constexpr int widest = 6;

// In place: the inverse of a symmetric positive definite block through its Cholesky factor. False: not
// positive; it is as it was.
bool invert_positive(double* a, int b) {
  std::array<double, widest * widest> l{}, y{};
  auto at = [b](int i, int j) { return static_cast<std::size_t>(i * b + j); };
  for (int j = 0; j < b; ++j) {
    double d = a[at(j, j)];
    for (int k = 0; k < j; ++k) d = std::fma(-l[at(j, k)], l[at(j, k)], d);
    if (!(d > 0) || !std::isfinite(d)) return false;
    l[at(j, j)] = std::sqrt(d);
    for (int i = j + 1; i < b; ++i) {
      double s = a[at(i, j)];
      for (int k = 0; k < j; ++k) s = std::fma(-l[at(i, k)], l[at(j, k)], s);
      l[at(i, j)] = s / l[at(j, j)];
    }
  }
  for (int c = 0; c < b; ++c) {  // y = inverse of l
    for (int i = c; i < b; ++i) {
      double s = i == c ? 1.0 : 0.0;
      for (int k = c; k < i; ++k) s = std::fma(-l[at(i, k)], y[at(k, c)], s);
      y[at(i, c)] = s / l[at(i, i)];
    }
  }
  for (int i = 0; i < b; ++i) {
    for (int j = 0; j <= i; ++j) {
      double s = 0;
      for (int k = i; k < b; ++k) s = std::fma(y[at(k, i)], y[at(k, j)], s);
      a[at(i, j)] = a[at(j, i)] = s;
    }
  }
  return true;
}

bool is_symmetric(double const* a, int b) {
  for (int i = 0; i < b; ++i)
    for (int j = 0; j < i; ++j)
      if (a[i * b + j] != a[j * b + i]) return false;
  return true;
}

// In place: the inverse of any block, by Gauss and Jordan with the largest pivot of a column. False:
// singular.
bool invert_regular(double* a, int b) {
  std::array<int, widest> swapped{};
  auto at = [b](int i, int j) { return static_cast<std::size_t>(i * b + j); };
  for (int k = 0; k < b; ++k) {
    int pivot = k;
    for (int i = k + 1; i < b; ++i)
      if (std::abs(a[at(i, k)]) > std::abs(a[at(pivot, k)])) pivot = i;
    swapped[static_cast<std::size_t>(k)] = pivot;
    for (int j = 0; j < b && pivot != k; ++j) std::swap(a[at(k, j)], a[at(pivot, j)]);
    double const scale = 1.0 / a[at(k, k)];
    if (!std::isfinite(scale)) return false;
    a[at(k, k)] = 1.0;
    for (int j = 0; j < b; ++j) a[at(k, j)] *= scale;
    for (int i = 0; i < b; ++i) {
      if (i == k) continue;
      double const factor = std::exchange(a[at(i, k)], 0.0);
      for (int j = 0; j < b; ++j) a[at(i, j)] = std::fma(-factor, a[at(k, j)], a[at(i, j)]);
    }
  }
  for (int k = b - 1; k >= 0; --k) {
    int const other = swapped[static_cast<std::size_t>(k)];
    for (int i = 0; i < b && other != k; ++i) std::swap(a[at(i, k)], a[at(i, other)]);
  }
  return true;
}

double positive_of(double d) { return d == 0 ? 1.0 : std::abs(d); }

bool invert(double* a, int b, DiagonalSigns signs) {
  if (b == 1 && signs == DiagonalSigns::absolute) a[0] = positive_of(a[0]);
  if (signs != DiagonalSigns::any) return invert_positive(a, b);
  return (is_symmetric(a, b) && invert_positive(a, b)) || invert_regular(a, b);
}

}  // namespace

std::optional<BadDiagonal> invert_diagonal(LocalMatrix const& matrix, bool block,
                                           std::vector<double>& preconditioner_data, DiagonalSigns signs) {
  std::vector<double> blocks;
  matrix.diagonal_blocks(blocks);
  return invert_diagonal(std::move(blocks), matrix.tiling().block, block, preconditioner_data, signs);
}

std::optional<BadDiagonal> invert_diagonal(std::vector<double> blocks, int b, bool block,
                                           std::vector<double>& preconditioner_data, DiagonalSigns signs) {
  auto const n = static_cast<std::size_t>(b), block_rows = blocks.size() / (n * n);
  std::optional<BadDiagonal> bad;  // the first; regular: and all behind it
  auto const note = [&](std::size_t row, bool finite, bool regular) {
    if (!bad) bad = BadDiagonal{static_cast<std::int64_t>(row), finite, true};
    bad->regular = bad->regular && regular;
  };
  if (block) {
    for (std::size_t block_row = 0; block_row < block_rows; ++block_row) {
      double* const a = blocks.data() + block_row * n * n;
      bool const finite = std::all_of(a, a + n * n, [](double v) { return std::isfinite(v); });
      if (!finite || !invert(a, b, signs)) note(block_row * n, finite, finite && invert_regular(a, b));
    }
    if (!bad) preconditioner_data = std::move(blocks);
    return bad;
  }
  preconditioner_data.resize(block_rows * n);
  for (std::size_t block_row = 0; block_row < block_rows; ++block_row) {
    for (std::size_t j = 0; j < n; ++j) {
      double const there = blocks[(block_row * n + j) * n + j];
      double const d = signs == DiagonalSigns::absolute ? positive_of(there) : there;
      bool const can = signs == DiagonalSigns::positive ? d > 0 : std::isfinite(1.0 / d);
      if (!can || !std::isfinite(d)) note(block_row * n + j, std::isfinite(d), std::isfinite(1.0 / d));
      preconditioner_data[block_row * n + j] = 1.0 / d;
    }
  }
  return bad;
}

}  // namespace hostless
