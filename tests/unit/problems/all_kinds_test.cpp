// What every kind promises: symmetric bit for bit, positive definite, the same rows whatever the ranks and
// panels.
#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <set>

#include "assembled.hpp"
#include "hostless/base/error.hpp"

namespace hostless::test {
namespace {

bool same_bits(std::vector<double> const& a, std::vector<double> const& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) {
           return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
         });
}

std::vector<ProblemOptions> variants() {
  std::vector<ProblemOptions> all;
  for (auto const& small : small_problems())
    for (Boundary boundary : {Boundary::standard, Boundary::dirichlet, Boundary::neumann})
      for (double contrast : {1.0, 100.0, 1e8}) all.push_back(with(small, boundary, contrast));
  return all;
}

TEST(EveryKind, IsListedAmongTheSmallExamples) {
  std::set<std::string> shown;
  for (auto const& small : small_problems()) shown.insert(small.kind);
  auto const names = problem_names();
  EXPECT_EQ(shown, std::set<std::string>(names.begin(), names.end()));
}

TEST(EveryKind, HasRisingColumnsADiagonalAndNoNegativeZero) {
  for (auto const& options : variants()) {
    SCOPED_TRACE(describe(options));
    auto const a = assemble(options);
    ASSERT_EQ(a.size(), problem_rows(options));
    for (std::int64_t i = 0; i < a.size(); ++i) {
      ASSERT_GE(a.find(i, i), 0);
      ASSERT_GT(a.at(i, i), 0.0);
      for (std::int64_t k = a.rows.offset[i]; k < a.rows.offset[i + 1]; ++k) {
        ASSERT_TRUE(a.rows.column[k] >= 0 && a.rows.column[k] < a.size());
        if (k > a.rows.offset[i]) {
          ASSERT_LT(a.rows.column[k - 1], a.rows.column[k]);
        }
        ASSERT_TRUE(std::isfinite(a.rows.value[k]));
        ASSERT_FALSE(a.rows.value[k] == 0.0 && std::signbit(a.rows.value[k]));
      }
    }
  }
}

TEST(EveryKind, IsSymmetricBitForBit) {
  for (auto const& options : variants()) {
    SCOPED_TRACE(describe(options));
    auto const a = assemble(options);
    for (std::int64_t i = 0; i < a.size(); ++i)
      for (std::int64_t k = a.rows.offset[i]; k < a.rows.offset[i + 1]; ++k) {
        std::int64_t const mirrored = a.find(a.rows.column[k], i);
        ASSERT_GE(mirrored, 0) << i << " " << a.rows.column[k];
        ASSERT_EQ(std::bit_cast<std::uint64_t>(a.rows.value[k]),
                  std::bit_cast<std::uint64_t>(a.rows.value[mirrored]));
      }
  }
}

TEST(EveryKind, IsTheSameForAllRankCountsAndPanelSizes) {
  for (auto const& options : variants()) {
    SCOPED_TRACE(describe(options));
    auto const one = assemble(options);
    for (int ranks : {1, 2, 3, 5, 40})
      for (std::int64_t panel_rows : {1, 7, 64}) {
        auto const several = assemble(options, ranks, panel_rows);
        ASSERT_EQ(one.rows.offset, several.rows.offset);
        ASSERT_EQ(one.rows.column, several.rows.column);
        ASSERT_TRUE(same_bits(one.rows.value, several.rows.value));
      }
  }
}

TEST(EveryKind, IsTheSameOnLongLinesCutAnywhere) {
  for (auto options :
       {problem("poisson1d", 1700), problem("poisson2d", 1100, 2), problem("poisson2d-tri", 1100, 2),
        problem("elasticity-hex8", 600, 1, 2), problem("monodomain", 1030, 2, 2)}) {
    SCOPED_TRACE(describe(options));
    auto const whole = assemble(options, 1, 1 << 20), pieces = assemble(options, 3, 101);
    EXPECT_EQ(whole.rows.column, pieces.rows.column);
    EXPECT_TRUE(same_bits(whole.rows.value, pieces.rows.value));
  }
}

TEST(EveryKind, IsPositiveDefiniteUnlessNothingHoldsIt) {
  for (auto const& options : variants()) {
    if (options.contrast > 1e6) continue;  // definite too, but not for a Cholesky rounded to 53 bits
    SCOPED_TRACE(describe(options));
    double const pivot = smallest_pivot(assemble(options));
    bool const singular = options.boundary == Boundary::neumann && options.kind != "monodomain";
    if (singular) {
      EXPECT_LT(pivot, 1e-11);
    } else {
      EXPECT_GT(pivot, 1e-7);
    }
  }
}

TEST(EveryKind, DependsOnTheSeedAndOnNothingElse) {
  for (auto options : small_problems()) {
    SCOPED_TRACE(describe(options));
    auto const first = assemble(options), again = assemble(options);
    EXPECT_TRUE(same_bits(first.rows.value, again.rows.value));
    options.seed = 2;
    EXPECT_FALSE(same_bits(first.rows.value, assemble(options).rows.value));
    options.contrast = 1.0;
    auto const constant = assemble(options);
    options.seed = 3;
    if (options.kind != "circuit") {  // there the seed also says where the resistors are
      EXPECT_TRUE(same_bits(constant.rows.value, assemble(options).rows.value));
    }
  }
}

TEST(EveryKind, SumsToZeroOverRigidOrConstantFieldsUnderNeumann) {
  for (auto const& options : variants()) {
    if (options.boundary != Boundary::neumann || options.kind == "monodomain") continue;
    SCOPED_TRACE(describe(options));
    auto const a = assemble(options);
    auto const nodes = options.nx * options.ny * options.nz;
    auto const unknowns = static_cast<int>(problem_rows(options) / nodes);
    for (int component = 0; component < unknowns; ++component) {
      std::vector<double> constant(static_cast<std::size_t>(a.size()), 0.0);
      for (std::size_t i = component; i < constant.size(); i += unknowns) constant[i] = 1.0;
      auto const force = a.times(constant);
      for (std::int64_t i = 0; i < a.size(); ++i) ASSERT_NEAR(force[i], 0.0, 4e-15 * a.at(i, i));
    }
  }
}

/// Rows far apart in matrices of the papers' sizes: 64-bit columns, symmetric samples.
TEST(EveryPreset, IsSymmetricAtFullSize) {
  std::mt19937_64 random(7);
  for (auto const& name : preset_names()) {
    SCOPED_TRACE(name);
    auto const source = make_problem(preset(name), 1, 0);
    RowPanel row, mirrored;
    for (int sample = 0; sample < 40; ++sample) {
      auto const i = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(source->global_rows()));
      source->panel(i, 1, row);
      for (std::size_t k = 0; k < row.column.size(); ++k) {
        source->panel(row.column[k], 1, mirrored);
        auto const at = std::lower_bound(mirrored.column.begin(), mirrored.column.end(), i);
        ASSERT_TRUE(at != mirrored.column.end() && *at == i);
        ASSERT_EQ(mirrored.value[at - mirrored.column.begin()], row.value[k]);
      }
    }
  }
}

TEST(Panel, ReplacesWhateverWasThere) {
  for (auto const& options : small_problems()) {
    SCOPED_TRACE(describe(options));
    auto const source = make_problem(options, 1, 0);
    RowPanel fresh, used{{7, 8, 9}, std::vector<std::int64_t>(5000, -3), std::vector<double>(5000, 4.5)};
    source->panel(5, 11, fresh);
    source->panel(5, 11, used);
    EXPECT_EQ(fresh.offset, used.offset);
    EXPECT_EQ(fresh.column, used.column);
    EXPECT_TRUE(same_bits(fresh.value, used.value));
  }
}

TEST(Panel, OutsideTheShareIsRefused) {
  auto const source = make_problem(problem("poisson1d", 100), 2, 1);
  RowPanel panel;
  EXPECT_EQ(source->first_row(), 48);
  EXPECT_EQ(source->last_row(), 100);
  EXPECT_THROW(source->panel(47, 1, panel), Error);
  EXPECT_THROW(source->panel(99, 2, panel), Error);
  EXPECT_THROW(source->panel(50, -1, panel), Error);
  source->panel(100, 0, panel);
  EXPECT_EQ(panel.offset, std::vector<std::int64_t>{0});
}

}  // namespace
}  // namespace hostless::test
