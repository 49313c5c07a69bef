// Names, presets, sizes, and what is refused with which words.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "assembled.hpp"
#include "hostless/base/error.hpp"

namespace hostless::test {
namespace {

std::int64_t count_entries(ProblemOptions const& options) {
  auto const source = make_problem(options, 1, 0);
  RowPanel panel;
  std::int64_t entries = 0;
  for (std::int64_t row = 0; row < source->global_rows(); row += 12000) {
    source->panel(row, std::min<std::int64_t>(12000, source->global_rows() - row), panel);
    entries += panel.offset.back();
  }
  return entries;
}

/// Lattice neighbours that differ by at most 1 in each direction, in full blocks.
std::int64_t box_entries(std::int64_t unknowns, std::int64_t a, std::int64_t b, std::int64_t c) {
  return unknowns * unknowns * (3 * a - 2) * (3 * b - 2) * (3 * c - 2);
}

/// Kuhn's subdivision: the node, and both ways along seven edge directions.
std::int64_t kuhn_entries(std::int64_t unknowns, std::int64_t a, std::int64_t b, std::int64_t c) {
  std::int64_t edges = 0;
  for (int d = 1; d < 8; ++d) edges += (a - (d & 1)) * (b - (d >> 1 & 1)) * (c - (d >> 2));
  return unknowns * unknowns * (a * b * c + 2 * edges);
}

std::int64_t triangle_entries(std::int64_t unknowns, std::int64_t a, std::int64_t b) {
  return unknowns * unknowns * (a * b + 2 * ((a - 1) * b + a * (b - 1) + (a - 1) * (b - 1)));
}

TEST(Preset, HasTheRowsOfThePapers) {
  EXPECT_EQ(problem_rows(preset("flan")), 1564920);
  EXPECT_EQ(problem_rows(preset("queen")), 4147110);
  EXPECT_EQ(problem_rows(preset("bump")), 2910897);
  EXPECT_EQ(problem_rows(preset("serena")), 1369599);
  EXPECT_EQ(problem_rows(preset("audikw")), 943296);
  EXPECT_EQ(problem_rows(preset("g3_circuit")), 1585080);
  EXPECT_EQ(problem_rows(preset("ecology2")), 999999);
  EXPECT_EQ(problem_rows(preset("thermomech")), 204304);
  EXPECT_EQ(problem_rows(preset("heart")), 10077696);
  EXPECT_EQ(problem_rows(preset("heart15")), 873722816);
}

TEST(Preset, FlanHasAllItsEntriesAtFullSize) {
  EXPECT_EQ(box_entries(3, 10, 108, 483), 117415368);
  EXPECT_EQ(count_entries(preset("flan")), 117415368);
}

TEST(Preset, TwoDimensionalOnesHaveTheEntriesOfTheirFormulas) {
  EXPECT_EQ(count_entries(preset("ecology2")), 4995995);
  std::int64_t const n = 452;
  EXPECT_EQ(count_entries(preset("thermomech")), n * n + 2 * (2 * n * (n - 1) + (n - 1) * (n - 1)));
  EXPECT_NEAR(double(count_entries(preset("g3_circuit"))) / 1585080.0, 4.83, 0.005);
}

struct StandIn {
  char const* preset;
  double rows, a_row;    ///< of the matrix that it stands for, as the papers' tables say
  std::int64_t entries;  ///< by the formula of its pattern; 0: counted
};

std::vector<StandIn> stand_ins() {
  return {{"cube_coup", 2164760, 57.5, kuhn_entries(4, 81, 81, 82)},
          {"geo", 1437960, 43.92, kuhn_entries(3, 78, 78, 79)},
          {"hook", 1498023, 40.67, kuhn_entries(3, 20, 60, 416)},
          {"bone010", 986703, 48.5, kuhn_entries(3, 69, 69, 69)},
          {"bmwcra", 148770, 71.55, box_entries(3, 18, 19, 145)},
          {"consph", 83334, 72.13, box_entries(3, 19, 34, 43)},
          {"ldoor", 952203, 48.86, triangle_entries(7, 357, 381)},
          {"hood", 220542, 48.83, triangle_entries(7, 177, 178)},
          {"stocf", 1465137, 14.34, kuhn_entries(1, 112, 114, 115)},
          {"crankseg_1", 52804, 201.01, 0},
          {"crankseg_2", 63838, 221.64, 0},
          {"tmt_sym", 726713, 6.99, triangle_entries(1, 852, 853)},
          {"thermal2", 1228045, 6.99, triangle_entries(1, 1108, 1108)},
          {"poisson1d_large", 1073741824, 3.0, 3 * (std::int64_t{1} << 30) - 2}};
}

TEST(Preset, StandInsHaveTheRowsAndEntriesOfTheirMatricesWithinTenPercent) {
  for (StandIn const& s : stand_ins()) {
    SCOPED_TRACE(s.preset);
    double const rows = double(problem_rows(preset(s.preset)));
    std::int64_t const entries = s.entries > 0 ? s.entries : count_entries(preset(s.preset));
    EXPECT_NEAR(rows / s.rows, 1.0, 0.01);
    EXPECT_NEAR(double(entries) / rows / s.a_row, 1.0, 0.1);
  }
}

TEST(Preset, StandInsHaveTheEntriesOfTheirFormulas) {
  for (StandIn const& s : stand_ins()) {
    if (s.rows > 250000 || s.entries == 0) continue;
    EXPECT_EQ(count_entries(preset(s.preset)), s.entries) << s.preset;
  }
}

/// Lengths of the rows of one block row in the middle of a plane, of its hub, and of a corner.
TEST(Preset, CranksegHasRowsOfVeryUnevenLength) {
  auto const source = make_problem(preset("crankseg_2"), 1, 0);
  auto const length = [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    RowPanel row;
    source->panel(3 * (x + 27 * (y + 27 * z)), 1, row);
    return row.offset.back();
  };
  std::int64_t const inside = 3 * 81, of_plane = 27 * 27 - 21;  // a node and 20 of its plane are near
  EXPECT_EQ(length(10, 10, 10), inside);
  EXPECT_EQ(length(5, 5, 12), inside + 3);
  EXPECT_EQ(length(13, 13, 12), inside + 3 * of_plane);
  EXPECT_EQ(length(0, 0, 0), 3 * 20);
}

// Any rows of it without the rest: a rank's share is never made as a whole.
TEST(Preset, PoissonOfABillionRowsIsMadeAnywhere) {
  std::int64_t const rows = std::int64_t{1} << 30;
  auto const last = make_problem(preset("poisson1d_large"), 1024, 1023);
  RowPanel end;
  last->panel(rows - 2, 2, end);
  EXPECT_EQ(end.column, (std::vector<std::int64_t>{rows - 3, rows - 2, rows - 1, rows - 2, rows - 1}));
  EXPECT_EQ(end.value, (std::vector<double>{-1, 2, -1, -1, 2}));
  EXPECT_NEAR(double(last->last_row() - last->first_row()), double(rows) / 1024, 24);
}

TEST(Pattern, HasTheEntriesOfItsFormulaOnUnequalSides) {
  std::int64_t const a = 7, b = 5, c = 9;
  EXPECT_EQ(count_entries(problem("poisson1d", a)), 3 * a - 2);
  EXPECT_EQ(count_entries(problem("poisson2d", a, b)), 5 * a * b - 2 * (a + b));
  EXPECT_EQ(count_entries(problem("poisson7", a, b, c)), 7 * a * b * c - 2 * (a * b + b * c + a * c));
  EXPECT_EQ(count_entries(problem("poisson27", a, b, c)), box_entries(1, a, b, c));
  EXPECT_EQ(count_entries(problem("elasticity-hex8", a, b, c)), box_entries(3, a, b, c));
  EXPECT_EQ(count_entries(problem("elasticity-tet4", a, b, c)), kuhn_entries(3, a, b, c));
  EXPECT_EQ(count_entries(problem("monodomain", a, b, c)), kuhn_entries(1, a, b, c));
  EXPECT_EQ(count_entries(problem("springs2d-tri", a, b)), triangle_entries(7, a, b));
  EXPECT_EQ(count_entries(problem("springs3d-tet4", a, b, c)), kuhn_entries(4, a, b, c));
}

TEST(Preset, ShrinksInProportionButNeverVanishes) {
  for (auto const& name : preset_names()) {
    SCOPED_TRACE(name);
    double const full = double(problem_rows(preset(name)));
    EXPECT_NEAR(double(problem_rows(preset(name, 0.125))) / full, 0.125, 0.02);
    EXPECT_GE(problem_rows(preset(name, 1e-9)), 2);
    EXPECT_EQ(assemble(preset(name, 1e-5)).size(), problem_rows(preset(name, 1e-5)));
  }
  EXPECT_EQ(preset("flan", 1.0).nz, 483);
  EXPECT_EQ(preset("serena").contrast, 1e4);
}

std::string refusal(std::function<void()> const& call) {
  try {
    call();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  return "accepted";
}

std::string refusal(ProblemOptions const& options) {
  return refusal([&] { make_problem(options, 1, 0); });
}

TEST(Refused, UnknownNames) {
  EXPECT_NE(refusal(problem("poisson9", 3)).find("'poisson9'"), std::string::npos);
  EXPECT_NE(refusal(problem("poisson9", 3)).find("elasticity-hex8"), std::string::npos);
  EXPECT_NE(refusal([] { preset("flam"); }).find("'flam'"), std::string::npos);
  EXPECT_NE(refusal([] { boundary_from_name("robin"); }).find("'robin'"), std::string::npos);
}

TEST(Refused, SidesThatAreNone) {
  EXPECT_NE(refusal(problem("poisson1d", 0)).find("nx = 0"), std::string::npos);
  EXPECT_NE(refusal(problem("poisson7", 3, -4, 3)).find("ny = -4"), std::string::npos);
  EXPECT_NE(refusal(problem("poisson2d", 3, 3, 2)).find("nz = 2"), std::string::npos);
  EXPECT_NE(refusal(problem("circuit", 3, 3, 2)).find("nz = 2"), std::string::npos);
  EXPECT_NE(refusal(problem("poisson1d", 3, 2)).find("ny = 2"), std::string::npos);
}

TEST(Refused, MoreThan64BitsCount) {
  std::int64_t const huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_NE(refusal(problem("poisson1d", huge)).find("2^40"), std::string::npos);
  EXPECT_NE(refusal(problem("poisson7", 1 << 21, 1 << 21, 1 << 21)).find("overflow"), std::string::npos);
  EXPECT_EQ(refusal(problem("poisson7", 1 << 20, 1 << 20, 1 << 19)), "accepted");
  EXPECT_NE(refusal(problem("elasticity-hex8", 1 << 20, 1 << 20, 1 << 19)).find("overflow"),
            std::string::npos);
}

TEST(Refused, LatticesThatHoldNoElement) {
  EXPECT_NE(refusal(problem("elasticity-hex8", 1, 3, 3)).find("nx = 1"), std::string::npos);
  EXPECT_EQ(refusal(problem("elasticity-hex8", 2, 1, 2)), "accepted");
  EXPECT_NE(refusal(with(problem("elasticity-hex8", 2, 1, 2), Boundary::neumann, 1.0)).find("ny = 1"),
            std::string::npos);
  EXPECT_NE(refusal(problem("monodomain", 2, 2, 1)).find("nz = 1"), std::string::npos);
  EXPECT_EQ(refusal(with(problem("monodomain", 1, 1, 1), Boundary::dirichlet, 1.0)), "accepted");
  EXPECT_NE(refusal(with(problem("poisson2d-tri", 5, 1), Boundary::neumann, 1.0)).find("ny = 1"),
            std::string::npos);
}

TEST(Refused, NumbersOutOfRangeOrOfAnotherKind) {
  for (double contrast : {0.5, -1.0, 1e13, std::nan("")})
    EXPECT_NE(refusal(with(problem("poisson1d", 3), Boundary::standard, contrast)).find("contrast"),
              std::string::npos);
  auto options = problem("poisson1d", 3);
  options.long_edges = 0.1;
  EXPECT_NE(refusal(options).find("long_edges"), std::string::npos);
  options = problem("circuit", 3, 3);
  options.long_edges = 0.6;
  EXPECT_NE(refusal(options).find("0.6"), std::string::npos);
  options.long_edges.reset();
  options.time_step = 1.0;
  EXPECT_NE(refusal(options).find("time_step"), std::string::npos);
  options = problem("monodomain", 3, 3, 3);
  options.time_step = 0.0;
  EXPECT_NE(refusal(options).find("time_step = 0"), std::string::npos);
  for (double scale : {0.0, -1.0, 1.5, std::nan("")})
    EXPECT_NE(refusal([&] { preset("flan", scale); }).find("scale"), std::string::npos);
}

TEST(Refused, RanksThatAreNone) {
  auto const options = problem("poisson1d", 30);
  for (auto const& [size, rank] : std::vector<std::pair<int, int>>{{0, 0}, {2, 2}, {2, -1}})
    EXPECT_NE(refusal([&, s = size, r = rank] { make_problem(options, s, r); }).find("rank"),
              std::string::npos);
}

TEST(Describe, SaysWhatThereIs) {
  EXPECT_EQ(
      describe(preset("flan")),
      "elasticity-hex8 10 x 108 x 483 nodes: linear elasticity on trilinear hexahedra, contrast 100, clamped "
      "below y = 0, seed 1, 1564920 rows");
  EXPECT_EQ(describe(with(problem("circuit", 4, 5), Boundary::neumann, 1.0)),
            "circuit 4 x 5 nodes: resistor grid with long edges, contrast 1, long edges 0.02, not grounded: "
            "singular, "
            "seed 1, 20 rows");
  EXPECT_EQ(
      describe(problem("monodomain", 4, 5, 6)),
      "monodomain 4 x 5 x 6 nodes: monodomain step M + dt K on Kuhn's P1 tetrahedra, contrast 100, time step "
      "0.125, no flux, seed 1, 120 rows");
}

TEST(BoundaryName, GoesThereAndBack) {
  for (Boundary boundary : {Boundary::standard, Boundary::dirichlet, Boundary::neumann})
    EXPECT_EQ(boundary_from_name(name(boundary)), boundary);
}

TEST(Catalogue, SidesAsPeopleGiveThem) {
  auto const sides = [](ProblemOptions const& p) { return std::vector<std::int64_t>{p.nx, p.ny, p.nz}; };
  using Sides = std::vector<std::int64_t>;
  EXPECT_EQ(sides(problem_of("poisson7", {5, 4, 3})), (Sides{5, 4, 3}));
  EXPECT_EQ(sides(problem_of("poisson7", {5})), (Sides{5, 5, 5}));
  EXPECT_EQ(sides(problem_of("poisson2d", {5})), (Sides{5, 5, 1}));
  EXPECT_EQ(sides(problem_of("poisson1d", {})), (Sides{100000, 1, 1}));
  EXPECT_EQ(sides(problem_of("circuit", {})), (Sides{300, 300, 1}));
  EXPECT_EQ(sides(problem_of("elasticity-tet4", {})), (Sides{32, 32, 32}));
  for (Sides const& wrong : {Sides{5, 4}, Sides{5, 4, 3, 2}})
    EXPECT_THROW(problem_of("poisson7", wrong), Error);
  EXPECT_THROW(problem_of("poisson1d", {5, 5}), Error);
  EXPECT_THROW(problem_of("poisson2d", {5, 5, 5}), Error);
  EXPECT_THROW(problem_of("cube", {5}), Error);
}

TEST(Catalogue, EntriesAreCountedFromBelow) {
  for (std::string const& kind : problem_names()) {
    ProblemOptions const p = problem_of(kind, {kind == "poisson1d"                                 ? 4000
                                               : kind.find("2d") != kind.npos || kind == "circuit" ? 60
                                                                                                   : 16});
    auto const rows = make_problem(p, 1, 0);
    RowPanel all;
    rows->panel(0, rows->global_rows(), all);
    EXPECT_LE(least_entries(p), all.offset.back()) << kind;
    EXPECT_GE(static_cast<double>(least_entries(p)), 0.5 * static_cast<double>(all.offset.back())) << kind;
  }
  EXPECT_EQ(least_entries(problem_of("poisson2d", {1'000'000})), 5 * std::int64_t{999'998} * 999'998);
  EXPECT_THROW(least_entries(problem_of("poisson7", {std::int64_t{1} << 40})), Error);
}

}  // namespace
}  // namespace hostless::test
