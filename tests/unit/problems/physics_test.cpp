// The matrices are the ones of the physics they name: stencils by hand, energies of fields whose energy is
// known.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <queue>

#include "assembled.hpp"
#include "problems/random.hpp"

namespace hostless::test {
namespace {

std::vector<double> row(Assembled const& a, std::int64_t i) {
  return {a.rows.value.begin() + a.rows.offset[i], a.rows.value.begin() + a.rows.offset[i + 1]};
}

TEST(Random, PowerOfTwoIsAccurateAndExactAtWholeNumbers) {
  for (int k = -60; k <= 60; ++k) EXPECT_EQ(problems::power_of_two(k), std::ldexp(1.0, k));
  for (double x = -50.0; x < 50.0; x += 0.0137)
    ASSERT_NEAR(problems::power_of_two(x) / std::exp2(x), 1.0, 1e-15) << x;
}

TEST(Random, NormalHasMeanZeroVarianceOneAndNoMemory) {
  problems::Counter const counter(5, problems::Stream::cells);
  int const n = 100000;
  double sum = 0.0, squares = 0.0, products = 0.0, last = 0.0;
  for (int i = 0; i < n; ++i) {
    double const g = counter.normal(static_cast<std::uint64_t>(i));
    sum += g;
    squares += g * g;
    products += g * last;
    last = g;
    ASSERT_LT(std::abs(g), 4.9);
  }
  EXPECT_NEAR(sum / n, 0.0, 0.015);
  EXPECT_NEAR(squares / n, 1.0, 0.02);
  EXPECT_NEAR(products / n, 0.0, 0.015);
}

TEST(Poisson, ThreeNodesInOneDimension) {
  auto const a = assemble(with(problem("poisson1d", 3), Boundary::dirichlet, 1.0));
  EXPECT_EQ(a.rows.offset, (std::vector<std::int64_t>{0, 2, 5, 7}));
  EXPECT_EQ(a.rows.column, (std::vector<std::int64_t>{0, 1, 0, 1, 2, 1, 2}));
  EXPECT_EQ(a.rows.value, (std::vector<double>{2, -1, -1, 2, -1, -1, 2}));
  auto const free = assemble(with(problem("poisson1d", 3), Boundary::neumann, 1.0));
  EXPECT_EQ(free.rows.value, (std::vector<double>{1, -1, -1, 2, -1, -1, 1}));
}

TEST(Poisson, TwoByTwoNodesWithFivePoints) {
  auto const a = assemble(with(problem("poisson2d", 2, 2), Boundary::dirichlet, 1.0));
  EXPECT_EQ(a.rows.column, (std::vector<std::int64_t>{0, 1, 2, 0, 1, 3, 0, 2, 3, 1, 2, 3}));
  EXPECT_EQ(a.rows.value, (std::vector<double>{4, -1, -1, -1, 4, -1, -1, 4, -1, -1, -1, 4}));
}

TEST(Poisson, ConstantStencilsInsideHaveSixAndTwentySixNeighbours) {
  for (auto const& [kind, diagonal] : std::map<std::string, double>{{"poisson7", 6.0}, {"poisson27", 26.0}}) {
    auto const a = assemble(with(problem(kind, 3, 3, 3), Boundary::dirichlet, 1.0));
    std::vector<double> expected(static_cast<std::size_t>(diagonal) + 1, -1.0);
    expected[expected.size() / 2] = diagonal;
    EXPECT_EQ(row(a, 13), expected) << kind;
    EXPECT_EQ(a.at(0, 0), diagonal) << kind;
  }
}

/// Four cells in a row conduct like resistors in series: with flux 1 through them the drop over links is the
/// sum of the half-cell resistances, from which the conductivities can be told apart.
TEST(Poisson, LinksAreHarmonicMeansOfLogNormalCells) {
  auto const options = with(problem("poisson1d", 4), Boundary::neumann, 100.0);
  auto const a = assemble(options);
  problems::Counter const counter(options.seed, problems::Stream::cells);
  auto const cell = [&](int x) {  // of the extended lattice (nx + 2) x 3 x 3, at its middle line
    return std::pow(100.0, 0.25 * counter.normal(static_cast<std::uint64_t>(x + 1 + 6 * (1 + 3 * 1))));
  };
  for (int x = 0; x < 3; ++x)
    EXPECT_NEAR(-1.0 / a.at(x, x + 1), 0.5 / cell(x) + 0.5 / cell(x + 1), 1e-8 / cell(x));
}

TEST(Poisson, DirichletAndNeumannShareTheLinksInside) {
  for (std::string const kind : {"poisson2d", "circuit"}) {
    auto const held = assemble(with(problem(kind, 6, 5), Boundary::dirichlet, 50.0));
    auto const free = assemble(with(problem(kind, 6, 5), Boundary::neumann, 50.0));
    for (std::int64_t i = 0; i < held.size(); ++i)
      for (std::int64_t j = 0; j < held.size(); ++j)
        ASSERT_TRUE(i == j || held.at(i, j) == free.at(i, j)) << i << " " << j;
  }
}

TEST(PoissonTriangles, TwoTrianglesByHandAndSixNeighboursInside) {
  auto const two = assemble(with(problem("poisson2d-tri", 2, 2), Boundary::neumann, 1.0));
  EXPECT_EQ(two.rows.column, (std::vector<std::int64_t>{0, 1, 2, 3, 0, 1, 3, 0, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(two.rows.value,
            (std::vector<double>{2, -.5, -.5, -1, -.5, 1, -.5, -.5, 1, -.5, -1, -.5, -.5, 2}));
  auto const a = assemble(with(problem("poisson2d-tri", 3, 3), Boundary::dirichlet, 1.0));
  EXPECT_EQ(row(a, 4), (std::vector<double>{-1, -1, -1, 6, -1, -1, -1}));
  EXPECT_EQ(a.at(0, 0), 6.0);
}

/// Linear fields are solutions where the conductivity is constant, on any element: no force inside.
TEST(PoissonTriangles, LinearFieldHasNoForceInside) {
  std::int64_t const nx = 6, ny = 5;
  auto const a = assemble(with(problem("poisson2d-tri", nx, ny), Boundary::neumann, 1.0));
  std::vector<double> u;
  for (std::int64_t i = 0; i < nx * ny; ++i) u.push_back(0.3 + 2.0 * double(i % nx) - 0.7 * double(i / nx));
  auto const force = a.times(u);
  for (std::int64_t y = 1; y + 1 < ny; ++y)
    for (std::int64_t x = 1; x + 1 < nx; ++x) EXPECT_NEAR(force[x + nx * y], 0.0, 1e-13);
}

using Point = std::array<double, 3>;
using Field = std::function<Point(Point)>;

std::vector<double> displacements(ProblemOptions const& options, Field const& field) {
  std::vector<double> u;
  for (std::int64_t z = 0; z < options.nz; ++z)
    for (std::int64_t y = 0; y < options.ny; ++y)
      for (std::int64_t x = 0; x < options.nx; ++x)
        for (double component : field({double(x), double(y), double(z)})) u.push_back(component);
  return u;
}

class Elasticity : public testing::TestWithParam<std::string> {
 public:
  static constexpr double lambda = 0.3 / (1.3 * 0.4), mu = 1.0 / 2.6;  // E = 1, Poisson's ratio 0.3
};

TEST_P(Elasticity, RigidMotionsOfAFreeBodyNeedNoForce) {
  auto const options = with(problem(GetParam(), 3, 4, 2), Boundary::neumann, 100.0);
  auto const a = assemble(options);
  std::vector<Field> const motions{
      [](Point) { return Point{1, 0, 0}; },          [](Point) { return Point{0, 1, 0}; },
      [](Point) { return Point{0, 0, 1}; },          [](Point p) { return Point{-p[1], p[0], 0}; },
      [](Point p) { return Point{0, -p[2], p[1]}; }, [](Point p) { return Point{p[2], 0, -p[0]}; }};
  for (auto const& motion : motions) {
    auto const force = a.times(displacements(options, motion));
    for (std::int64_t i = 0; i < a.size(); ++i) EXPECT_NEAR(force[i], 0.0, 1e-13 * a.at(i, i));
  }
}

/// u' K u = volume * stress : strain for uniform strain.
TEST_P(Elasticity, EnergyOfUniformStrainIsTheOneOfHooke) {
  auto const options = with(problem(GetParam(), 3, 4, 2), Boundary::neumann, 1.0);
  auto const a = assemble(options);
  double const volume = 2 * 3 * 1;
  auto const energy = [&](Field const& field) { return a.energy(displacements(options, field)) / volume; };
  EXPECT_NEAR(energy([](Point p) { return Point{p[0], 0, 0}; }), lambda + 2 * mu, 1e-13);
  EXPECT_NEAR(energy([](Point p) { return Point{0, 0, p[2]}; }), lambda + 2 * mu, 1e-13);
  EXPECT_NEAR(energy([](Point p) { return Point{p[1], 0, 0}; }), mu, 1e-13);
  EXPECT_NEAR(energy([](Point p) { return Point{0, p[2], 0}; }), mu, 1e-13);
  EXPECT_NEAR(energy([](Point p) { return Point{p[0], p[1], p[2]}; }), 9 * lambda + 6 * mu, 1e-12);
}

TEST_P(Elasticity, PatchTest) {
  auto const options = with(problem(GetParam(), 5, 4, 6), Boundary::neumann, 1.0);
  auto const force = assemble(options).times(displacements(options, [](Point p) {
    return Point{0.1 + 0.2 * p[0] - 0.3 * p[1] + 0.5 * p[2], 0.4 * p[0] + 0.7 * p[1] - 0.2 * p[2],
                 -0.6 * p[0] + 0.1 * p[1] + 0.9 * p[2]};
  }));
  for (std::int64_t z = 1; z + 1 < options.nz; ++z)
    for (std::int64_t y = 1; y + 1 < options.ny; ++y)
      for (std::int64_t x = 1; x + 1 < options.nx; ++x)
        for (int c = 0; c < 3; ++c)
          EXPECT_NEAR(force[3 * (x + options.nx * (y + options.ny * z)) + c], 0.0, 1e-13);
}

/// The clamped nodes are a layer below y = 0, so a field growing from there has the energy of one more layer
/// of cubes.
TEST_P(Elasticity, StandsOnALayerBelowTheLattice) {
  auto const options = with(problem(GetParam(), 3, 4, 2), Boundary::standard, 1.0);
  double const energy = assemble(options).energy(displacements(options, [](Point p) {
    return Point{0, p[1] + 1, 0};
  }));
  EXPECT_NEAR(energy, (lambda + 2 * mu) * 2 * 4 * 1, 1e-12);
}

TEST_P(Elasticity, StiffLayersAlternateAcrossY) {
  double const contrast = 1e6;
  auto const a = assemble(with(problem(GetParam(), 2, 23, 2), Boundary::standard, contrast));
  // 24 layers of cubes, from -1 on, three to a layer of material: node 0 lies between soft cubes, 3 between
  // stiff ones
  for (std::int64_t y : {0, 6, 12, 18}) EXPECT_LT(a.at(3 * 2 * y, 3 * 2 * y), 100.0);
  for (std::int64_t y : {3, 9, 15, 21}) EXPECT_GT(a.at(3 * 2 * y, 3 * 2 * y), contrast / 100.0);
}

INSTANTIATE_TEST_SUITE_P(Elements, Elasticity, testing::Values("elasticity-hex8", "elasticity-tet4"),
                         [](auto const& kind) { return kind.param.substr(kind.param.size() - 4); });

/// Nodal values of one coordinate, or 1 for axis 3.
std::vector<double> coordinate(ProblemOptions const& options, int axis) {
  std::vector<double> u;
  for (std::int64_t z = 0; z < options.nz; ++z)
    for (std::int64_t y = 0; y < options.ny; ++y)
      for (std::int64_t x = 0; x < options.nx; ++x)
        u.push_back(std::array<double, 4>{double(x), double(y), double(z), 1.0}[axis]);
  return u;
}

TEST(Monodomain, MassIsTheVolumeAndConductivityHasTheTraceOfTheFibre) {
  auto options = with(problem("monodomain", 4, 5, 3), Boundary::standard, 1.0);
  options.time_step = 0.5;
  auto const a = assemble(options);
  double const sides[3] = {3, 4, 2}, volume = 3 * 4 * 2;
  EXPECT_NEAR(a.energy(coordinate(options, 3)), volume, 1e-12);
  double trace = 0.0;
  for (int axis = 0; axis < 3; ++axis) {
    double const second_moment =
        volume * sides[axis] * sides[axis] / 3.0;  // integral of the coordinate squared
    double const conducted = (a.energy(coordinate(options, axis)) - second_moment) / (0.5 * volume);
    EXPECT_GT(conducted, 1.0 / 7.5);
    EXPECT_LT(conducted, 1.0);
    trace += conducted;
  }
  EXPECT_NEAR(trace, 1.0 + 2.0 / 7.5, 1e-11);
}

/// One cube in the middle of the wall, where the fibre lies along x but for its dip of 14 degrees.
TEST(Monodomain, FibreInTheMiddleOfTheWall) {
  auto options = with(problem("monodomain", 2, 2, 2), Boundary::standard, 1.0);
  options.time_step = 1.0;
  auto const a = assemble(options);
  double const dip = std::sin(std::acos(0.97)), ratio = 1.0 / 7.5, third = 1.0 / 3.0;
  EXPECT_NEAR(a.energy(coordinate(options, 0)) - third, ratio + (1 - ratio) * 0.97 * 0.97, 1e-13);
  EXPECT_NEAR(a.energy(coordinate(options, 1)) - third, ratio + (1 - ratio) * dip * dip, 1e-13);
  EXPECT_NEAR(a.energy(coordinate(options, 2)) - third, ratio, 1e-13);
}

TEST(Monodomain, FibresTurnThroughTheWall) {
  auto options = with(problem("monodomain", 3, 40, 3), Boundary::standard, 1.0);
  options.time_step = 1e6;
  auto const a = assemble(options);
  // entry to the neighbour in x + z: positive conductivity D_xz on one side of the wall, negative on the
  // other
  auto const diagonal_neighbour = [&](std::int64_t y) {
    std::int64_t const node = 1 + 3 * (y + 40 * 1);
    return a.at(node, node + 1 + 3 * 40);
  };
  EXPECT_LT(diagonal_neighbour(1) * diagonal_neighbour(38), 0.0);
}

TEST(Circuit, HasTheEntriesOfG3CircuitAndIsInOnePiece) {
  auto options = problem("circuit", 300, 310);
  options.contrast = 1.0;
  auto const a = assemble(options);
  std::int64_t const n = 300 * 310;
  EXPECT_NEAR(double(a.entries()) / double(n), 4.83, 0.02);
  std::int64_t far = 0, grounded = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 0.0;
    std::int64_t far_here = 0;
    for (std::int64_t k = a.rows.offset[i]; k < a.rows.offset[i + 1]; ++k) {
      std::int64_t const distance = std::abs(a.rows.column[k] - i);
      far_here += distance != 0 && distance != 1 && distance != 300;
      sum += a.rows.value[k];
    }
    ASSERT_LE(far_here, 1);
    far += far_here;
    ASSERT_TRUE(sum == 0.0 || sum == 1.0);
    grounded += sum == 1.0;
  }
  EXPECT_NEAR(double(far), 2 * 0.02 * double(n), 4);  // a few fall on neighbours
  EXPECT_NEAR(double(grounded), 0.01 * double(n), 150);
  std::vector<bool> reached(static_cast<std::size_t>(n), false);
  std::queue<std::int64_t> next({0});
  std::int64_t count = 0;
  for (reached[0] = true; !next.empty(); next.pop(), ++count)
    for (std::int64_t k = a.rows.offset[next.front()]; k < a.rows.offset[next.front() + 1]; ++k)
      if (!reached[a.rows.column[k]]) {
        reached[a.rows.column[k]] = true;
        next.push(a.rows.column[k]);
      }
  EXPECT_EQ(count, n);
}

/// The first column is never cut, so a circuit one node wide is a chain.
TEST(Circuit, OneNodeWideIsAChain) {
  auto options = problem("circuit", 1, 200);
  options.long_edges = 0.0;
  auto const a = assemble(options);
  EXPECT_EQ(a.entries(), 3 * 200 - 2);
  for (std::int64_t i = 0; i + 1 < 200; ++i) EXPECT_LT(a.at(i, i + 1), 0.0);
}

TEST(Circuit, TakesTheShareOfLongEdgesItIsGiven) {
  auto options = problem("circuit", 60, 50);
  auto const far_entries = [](Assembled const& a) {
    std::int64_t far = 0;
    for (std::int64_t i = 0; i < a.size(); ++i)
      for (std::int64_t k = a.rows.offset[i]; k < a.rows.offset[i + 1]; ++k) {
        std::int64_t const distance = std::abs(a.rows.column[k] - i);
        far += distance != 0 && distance != 1 && distance != 60;
      }
    return far;
  };
  options.long_edges = 0.0;
  EXPECT_EQ(far_entries(assemble(options)), 0);
  options.long_edges = 0.5;  // every node ends one, but for those that fall on a neighbour
  EXPECT_NEAR(double(far_entries(assemble(options))), 3000, 12);
}

}  // namespace
}  // namespace hostless::test
