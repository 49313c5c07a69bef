#include "solve/setup/preconditioner_setup.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace hostless {
namespace {

constexpr int widest = 6;

// In place: the inverse of a symmetric positive definite block through its Cholesky factor. False: not
// positive.
bool invert(double* a, int b) {
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

}  // namespace

std::optional<BadDiagonal> invert_diagonal(LocalMatrix const& matrix, bool block,
                                           std::vector<double>& preconditioner_data) {
  std::vector<double> blocks;
  matrix.diagonal_blocks(blocks);
  return invert_diagonal(std::move(blocks), matrix.tiling().block, block, preconditioner_data);
}

std::optional<BadDiagonal> invert_diagonal(std::vector<double> blocks, int b, bool block,
                                           std::vector<double>& preconditioner_data) {
  auto const n = static_cast<std::size_t>(b), block_rows = blocks.size() / (n * n);
  if (block) {
    for (std::size_t block_row = 0; block_row < block_rows; ++block_row) {
      double* const a = blocks.data() + block_row * n * n;
      bool const finite = std::all_of(a, a + n * n, [](double v) { return std::isfinite(v); });
      if (!finite || !invert(a, b)) return BadDiagonal{static_cast<std::int64_t>(block_row) * b, finite};
    }
    preconditioner_data = std::move(blocks);
    return {};
  }
  preconditioner_data.resize(block_rows * n);
  for (std::size_t block_row = 0; block_row < block_rows; ++block_row) {
    for (std::size_t j = 0; j < n; ++j) {
      double const d = blocks[(block_row * n + j) * n + j];
      if (!(d > 0) || !std::isfinite(d))
        return BadDiagonal{static_cast<std::int64_t>(block_row * n + j), std::isfinite(d)};
      preconditioner_data[block_row * n + j] = 1.0 / d;
    }
  }
  return {};
}

}  // namespace hostless
