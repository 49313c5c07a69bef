// Matrices that a GPU generates, on the host from the text of the kernels: every array of every layout is
// what make_device_rows lays out from the generator's rows, byte for byte.
#include <gtest/gtest.h>

#include <cstring>

#include "hostless/base/error.hpp"
#include "hostless/operate/local_matrix.hpp"
#include "hostless/problems/problems.hpp"
#include "operate/device_rows.hpp"
#include "operate/gpu/generate.impl.hpp"

namespace hostless {
namespace {

ProblemOptions problem(std::string kind, std::int64_t nx, std::int64_t ny, std::int64_t nz,
                       double contrast = 100, Boundary boundary = Boundary::standard,
                       std::uint64_t seed = 3) {
  ProblemOptions options;
  options.kind = std::move(kind);
  options.nx = nx;
  options.ny = ny;
  options.nz = nz;
  options.contrast = contrast;
  options.boundary = boundary;
  options.seed = seed;
  return options;
}

LocalRowArrays all_rows(RowSource const& source) {
  RowPanel panel;
  source.panel(0, source.global_rows(), panel);
  LocalPanel local;
  local.offset = panel.offset;
  local.column.assign(panel.column.begin(), panel.column.end());
  local.value = panel.value;
  return {0, std::move(local)};
}

/// Fills the arrays as the kernels do.
template <int B>
void generate(DeviceRows& rows) {
  rows.value.assign(static_cast<std::size_t>(rows.made_there.value), 0.0);
  rows.narrow.assign(static_cast<std::size_t>(rows.made_there.narrow), 0);
  rows.wide.assign(static_cast<std::size_t>(rows.made_there.wide), 0);
  gpu::LayoutArrays const to{rows.value.data(), rows.origin, rows.narrow.data(), rows.wide.data(), nullptr};
  RowsView const view = rows.view();
  for (std::int64_t block_row = 0; block_row < rows.tiling.block_rows; ++block_row)
    gpu::write_block_row<B>(to, view, *rows.recipe, block_row);
  rows.made_there = {};
}

template <class Array>
::testing::AssertionResult same_bytes(char const* what, Array const& a, Array const& b) {
  if (a.size() != b.size())
    return ::testing::AssertionFailure() << what << ": " << a.size() << " and " << b.size() << " values";
  for (std::size_t k = 0; k < a.size(); ++k)
    if (std::memcmp(&a[k], &b[k], sizeof a[k]) != 0)
      return ::testing::AssertionFailure() << what << " differs first at " << k;
  return ::testing::AssertionSuccess();
}

void expect_same(DeviceRows const& made, DeviceRows const& expected) {
  EXPECT_EQ(made.format, expected.format);
  EXPECT_EQ(made.farthest, expected.farthest);
  EXPECT_EQ(made.origin, expected.origin);
  EXPECT_TRUE(made.diagonals == expected.diagonals);
  EXPECT_TRUE(same_bytes("first groups", made.first_group, expected.first_group));
  EXPECT_TRUE(same_bytes("groups", made.group, expected.group));
  EXPECT_TRUE(same_bytes("masks", made.mask, expected.mask));
  EXPECT_TRUE(same_bytes("values", made.value, expected.value));
  EXPECT_TRUE(same_bytes("narrow columns", made.narrow, expected.narrow));
  EXPECT_TRUE(same_bytes("wide columns", made.wide, expected.wide));
  EXPECT_EQ(made.why, expected.why);
  EXPECT_EQ(made.rows_before(), expected.rows_before());
}

void check(ProblemOptions const& options, int slices) {
  auto const source = make_problem(options, 1, 0);
  ASSERT_NE(source->recipe(), nullptr);
  problems::Recipe const& recipe = *source->recipe();
  LocalRowArrays const rows = all_rows(*source);
  EXPECT_EQ(count_entries(recipe), rows.all().offset.back());
  Tiling tiling;
  tiling.block = recipe.block;
  tiling.block_rows = rows.owned() / recipe.block;
  tiling.slices = slices;
  std::vector<DeviceRequest> const requests = {{false, DeviceFormat::diagonals, true},
                                               {false, DeviceFormat::diagonals, false},
                                               {false, DeviceFormat::sell, true}};
  for (DeviceRequest const& request : requests) {
    SCOPED_TRACE(describe(options) + ", " + std::to_string(slices) + " slices, " + name(request.format) +
                 (request.halves ? "" : "-full"));
    DeviceRows const expected = make_device_rows(rows, tiling, request);
    DeviceRows made = make_device_rows(recipe, tiling, request);
    EXPECT_TRUE(made.value.empty() && made.narrow.empty() && made.wide.empty());
    EXPECT_EQ(made.bytes_per_sweep(), expected.bytes_per_sweep());
    if (recipe.block == 1) {
      generate<1>(made);
    } else {
      generate<3>(made);
    }
    expect_same(made, expected);
  }
  DeviceRequest const automatic;
  EXPECT_EQ(make_device_rows(recipe, tiling, automatic).format,
            make_device_rows(rows, tiling, automatic).format);
}

TEST(GeneratedRows, FiniteVolumes) {
  for (double contrast : {1.0, 100.0, 1e6}) {
    for (Boundary boundary : {Boundary::standard, Boundary::neumann}) {
      check(problem("poisson1d", 1000, 1, 1, contrast, boundary), 3);
      check(problem("poisson2d", 37, 29, 1, contrast, boundary), 5);
      check(problem("poisson7", 11, 7, 9, contrast, boundary), 4);
      check(problem("poisson27", 9, 6, 7, contrast, boundary), 2);
    }
  }
}

TEST(GeneratedRows, Elements) {
  for (double contrast : {1.0, 100.0}) {
    for (Boundary boundary : {Boundary::standard, Boundary::neumann}) {
      check(problem("elasticity-hex8", 5, 9, 6, contrast, boundary), 3);
      check(problem("elasticity-tet4", 6, 5, 4, contrast, boundary), 2);
    }
  }
}

// Where steps in different directions lead to the same diagonal, and where some lead nowhere.
TEST(GeneratedRows, ThinLattices) {
  for (std::int64_t thin : {1, 2, 3}) {
    check(problem("poisson2d", thin, 70, 1), 2);
    check(problem("poisson7", thin, 5, 40), 3);
    check(problem("poisson7", 40, thin, 5), 3);
    check(problem("poisson27", thin, thin, 50), 2);
    check(problem("poisson27", 50, thin, thin), 2);
  }
  check(problem("poisson1d", 1, 1, 1), 1);
  check(problem("elasticity-hex8", 2, 1, 30), 2);
  check(problem("elasticity-hex8", 2, 2, 2), 1);
}

TEST(GeneratedRows, SlicesThatAreNotWhole) {
  for (int slices : {1, 7, 264, 3000}) {
    check(problem("poisson7", 13, 12, 11), slices);
    check(problem("elasticity-hex8", 7, 5, 8), slices);
  }
}

// Groups whose columns lie further apart than 16 bits tell.
TEST(GeneratedRows, WideColumns) {
  ProblemOptions const options = problem("poisson7", 200, 190, 3);
  check(options, 264);
  auto const source = make_problem(options, 1, 0);
  DeviceRows const rows = make_device_rows(*source->recipe(), Tiling{source->global_rows(), 1, 264},
                                           {false, DeviceFormat::sell, true});
  EXPECT_GT(rows.made_there.wide, 0);
}

// Sizes whose entries fill no host: only what is counted about them. Written out: 464^3 rows of 7 points,
// 271^3 nodes of 27 neighbours in blocks of 9.
TEST(GeneratedRows, SizesOfOneGpuOverflowNothing) {
  auto const poisson = make_problem(problem("poisson7", 464, 464, 464), 1, 0);
  DeviceRows const diagonals = make_device_rows(*poisson->recipe(), Tiling{99'897'344, 1, 264}, {});
  EXPECT_EQ(diagonals.format, DeviceFormat::diagonals);
  EXPECT_EQ(count_entries(*poisson->recipe()), 7 * 99'897'344LL - 6 * 464 * 464);
  EXPECT_GE(diagonals.made_there.value, 4 * 99'897'344LL);
  EXPECT_LT(diagonals.made_there.value, 4 * (99'897'344LL + 2 * 464 * 464 + 4096));
  auto const body = make_problem(problem("elasticity-hex8", 271, 271, 271), 1, 0);
  DeviceRows const sell = make_device_rows(*body->recipe(), Tiling{19'902'511, 3, 264}, {});
  EXPECT_EQ(sell.format, DeviceFormat::sell);
  std::int64_t const blocks = 811LL * 811 * 811;  // (3 n - 2)^3 pairs of neighbours
  EXPECT_EQ(count_entries(*body->recipe()), 9 * blocks);
  // No holes but in the last group of a slice.
  EXPECT_GE(sell.made_there.value, 9 * blocks);
  EXPECT_LT(sell.made_there.value, 9 * (blocks + 27 * 264 * 32));
  EXPECT_EQ(sell.made_there.value, 9 * (sell.made_there.narrow + sell.made_there.wide));
  EXPECT_GT(sell.group.back().value, INT32_MAX);
}

TEST(GeneratedRows, OtherKindsHaveNoRecipe) {
  for (char const* kind : {"poisson2d-tri", "circuit"})
    EXPECT_EQ(make_problem(problem(kind, 9, 9, 1), 1, 0)->recipe(), nullptr) << kind;
  EXPECT_EQ(make_problem(problem("monodomain", 5, 5, 5), 1, 0)->recipe(), nullptr);
}

TEST(GeneratedRows, CsrIsRefused) {
  auto const source = make_problem(problem("poisson7", 5, 5, 5), 1, 0);
  EXPECT_THROW(make_device_rows(*source->recipe(), Tiling{125, 1, 2}, {false, DeviceFormat::csr, true}),
               Error);
}

}  // namespace
}  // namespace hostless
