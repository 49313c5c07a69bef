// What a product would read, without the matrix: as LocalMatrix has it, and the estimate for lattices.
#include "hostless/operate/storage_count.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "hostless/problems/problems.hpp"

namespace hostless {
namespace {

LocalRowArrays rows_of(std::string const& kind, std::int64_t nx, std::int64_t ny, std::int64_t nz) {
  ProblemOptions options;
  options.kind = kind;
  options.nx = nx;
  options.ny = ny;
  options.nz = nz;
  auto const source = make_problem(options, 1, 0);
  RowPanel panel;
  source->panel(0, source->global_rows(), panel);
  LocalPanel local;
  local.offset = panel.offset;
  local.column.assign(panel.column.begin(), panel.column.end());
  local.value = panel.value;
  return {0, std::move(local)};
}

TEST(StorageCount, IsThatOfTheMatrix) {
  struct {
    char const* kind;
    int block;
    FormatRequest request;
  } const cases[] = {{"poisson7", 1, {}},
                     {"circuit", 1, {}},
                     {"elasticity-hex8", 3, {}},
                     {"elasticity-hex8", 3, FormatRequest::from("csr")},
                     {"elasticity-hex8", 1, {}}};
  for (auto const& one : cases) {
    bool const flat = std::string(one.kind) == "circuit";
    LocalRowArrays const rows = rows_of(one.kind, 12, 11, flat ? 1 : 9);
    Tiling const tiling{rows.owned() / one.block, one.block, 7};
    for (std::int64_t const reach : {FormatRequest::automatic, std::int64_t{0}}) {
      FormatRequest request = one.request;
      request.half_reach = reach;
      StorageCount const found = count_storage(rows, tiling, request);
      LocalMatrix const matrix(rows, tiling, request);
      EXPECT_EQ(found.format, matrix.format()) << one.kind;
      EXPECT_EQ(found.bytes_per_sweep, matrix.bytes_per_sweep()) << one.kind;
      int const unit = matrix.format() == Format::bsr ? one.block * one.block : 1;
      EXPECT_EQ(found.left_out, matrix.left_out() * unit) << one.kind;
    }
  }
}

std::vector<Direction> neighbours(bool corners) {
  std::vector<Direction> all;
  for (int z = -1; z <= 1; ++z)
    for (int y = -1; y <= 1; ++y)
      for (int x = -1; x <= 1; ++x)
        if (int const axes = std::abs(z) + std::abs(y) + std::abs(x); axes == 1 || (corners && axes > 1))
          all.push_back({z, y, x});
  return all;
}

TEST(StorageCount, LatticesAreEstimated) {
  struct {
    char const* kind;
    std::int64_t nx, ny, nz;
    int slices;
    double within;  // of few groups of a slice one is not full, and finds fewer mirrors
  } const cases[] = {{"poisson7", 16, 16, 16, 16, 0.03},  {"poisson27", 16, 16, 16, 16, 0.03},
                     {"poisson7", 40, 40, 40, 264, 0.03}, {"poisson27", 40, 40, 40, 264, 0.03},
                     {"poisson7", 64, 32, 16, 1, 0.03},   {"poisson27", 64, 32, 16, 1, 0.03},
                     {"poisson7", 37, 23, 51, 16, 0.03},  {"poisson27", 37, 23, 51, 16, 0.03},
                     {"poisson7", 37, 23, 51, 264, 0.07}, {"poisson27", 37, 23, 51, 264, 0.07},
                     {"poisson2d", 100, 90, 1, 16, 0.03}, {"poisson1d", 20000, 1, 1, 264, 0.03}};
  for (auto const& one : cases) {
    LocalRowArrays const rows = rows_of(one.kind, one.nx, one.ny, one.nz);
    LocalMatrix const matrix(rows, Tiling{rows.owned(), 1, one.slices});
    double const estimate =
        lattice_sweep_bytes({one.nz, one.ny, one.nx}, neighbours(std::string(one.kind) == "poisson27"),
                            static_cast<double>(matrix.entries()), one.slices);
    EXPECT_NEAR(estimate / static_cast<double>(matrix.bytes_per_sweep()), 1, one.within)
        << one.kind << " " << one.nx << " x " << one.ny << " x " << one.nz << ": " << matrix.describe();
  }
}

// By hand: 8 bytes a value, 20 a diagonal and 24 a group of 32 rows. A diagonal is stored in all rows but 31 less than
// those that each of its gaps has.
TEST(StorageCount, WhatIsNotSharedIsStored) {
  std::vector<Direction> const along_y = {{0, 1, 0}, {0, -1, 0}};
  constexpr std::int64_t near = std::int64_t{1} << 18, far = 2 * near;
  auto const bytes = [&](std::int64_t x, double ghosts) {
    double const rows = 3.0 * static_cast<double>(x);
    return lattice_sweep_bytes({1, 3, x}, along_y, rows + 4.0 * static_cast<double>(x) + ghosts, 1);
  };
  auto const by_hand = [](double rows, double gap, double stored) {
    double const its = rows - (gap - 31);
    return 8 * (rows + stored * its) + (20 * (rows + 2 * its) + 24 * rows) / 32;
  };
  EXPECT_NEAR(bytes(near, 0), by_hand(3.0 * near, near, 1), 1e-3);
  EXPECT_NEAR(bytes(far, 0), by_hand(3.0 * far, far, 2), 1e-3);
  EXPECT_NEAR(bytes(near, 320) - bytes(near, 0), 8 * 320 + 20 * 10, 1e-3);
}

}  // namespace
}  // namespace hostless
