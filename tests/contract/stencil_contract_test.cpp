// Stencils in every decomposition, depth, blocking, precision and boundary, over every transport on the list:
// each cell has the bits of one step at a time. Points are a pairwise cover of those axes,
// HOSTLESS_FULL_PRODUCT=1 takes all. Ranks that are processes are this program again.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "base/hash.hpp"
#include "cover.hpp"
#include "host_ranks.hpp"
#include "hostless/base/error.hpp"
#include "hostless/stencil/body.hpp"
#include "hostless/stencil/catalogue.hpp"
#include "hostless/stencil/stencil.hpp"
#include "sample.hpp"
#include "stencil_oracle.hpp"

namespace hostless::contract {
namespace {

/// Looks two cells far, off the axes, at a coefficient too, and updates two fields.
struct Wide {
  static constexpr int axes = 2, radius = 2, fields = 2, coefficients = 1;
  static constexpr bool star = false;
  double k;
  template <class Cell>
  HOSTLESS_HOST_DEVICE auto operator()(Cell const& u) const {
    using T = typename Cell::value_type;
    T const a = (u(-2, 1) + u(2, -1)) * u.of(2, 1, 0) + u.of(1, 0, -2) * T(k);
    return std::array<T, 2>{a * T(0.25), (u(0, 0) - u.of(1, -1, 2)) * T(0.5) + u.of(2, 0, 0)};
  }
};

/// One of the stencils, and what it is to a cell.
template <class T>
struct Subject {
  char const* name;
  StencilKernel kernel;
  Update<T> update;
};

template <class T>
std::vector<Subject<T>> subjects() {
  std::size_t const bytes = sizeof(T);
  std::vector<Subject<T>> all;
  all.push_back({"jacobi2d", make_stencil("jacobi2d", 2, bytes), [](auto const& u) {
                   return std::vector<T>{
                       T(0.25) * ((u(0, 0, 0, -1) + u(0, 0, 0, 1)) + (u(0, -1, 0, 0) + u(0, 1, 0, 0)))};
                 }});
  all.push_back({"jacobi3d", make_stencil("jacobi3d", 3, bytes), [](auto const& u) {
                   return std::vector<T>{((u(0, 0, 0, -1) + u(0, 0, 0, 1)) +
                                          (u(0, 0, -1, 0) + u(0, 0, 1, 0)) +
                                          (u(0, -1, 0, 0) + u(0, 1, 0, 0))) /
                                         T(6)};
                 }});
  all.push_back(
      {"wave3d", make_stencil("wave", 3, bytes, {0.125}), [](auto const& u) {
         T const around = ((u(0, 0, 0, -1) + u(0, 0, 0, 1)) + (u(0, 0, -1, 0) + u(0, 0, 1, 0)) +
                           (u(0, -1, 0, 0) + u(0, 1, 0, 0))) -
                          T(6) * u(0, 0, 0, 0);
         return std::vector<T>{(T(2) * u(0, 0, 0, 0) - u(1, 0, 0, 0)) + T(0.125) * around, u(0, 0, 0, 0)};
       }});
  all.push_back({"life", make_stencil("life", 2, bytes), [](auto const& u) {
                   int alive = 0;
                   for (int y = -1; y <= 1; ++y)
                     for (int x = -1; x <= 1; ++x)
                       alive += (x != 0 || y != 0) && u(0, y, 0, x) == T(1) ? 1 : 0;
                   return std::vector<T>{alive == 3 || (alive == 2 && u(0, 0, 0, 0) == T(1)) ? T(1) : T(0)};
                 }});
  all.push_back(
      {"wide", kernel_of<T>(Wide{0.3}, "wide"), [](auto const& u) {
         T const a = (u(0, -2, 0, 1) + u(0, 2, 0, -1)) * u(2, 1, 0, 0) + u(1, 0, 0, -2) * T(0.3);
         return std::vector<T>{a * T(0.25), (u(0, 0, 0, 0) - u(1, -1, 0, 2)) * T(0.5) + u(2, 0, 0, 0)};
       }});
  return all;
}
constexpr int number_of_subjects = 5;

enum Axis { subject, precision, boundary_first, boundary_last, depth, block, shape, steps, cut, beside };
constexpr int depths[]{0, 1, 2, 3, 5};
constexpr int blocks[]{0, 1, 2, 5};
constexpr int step_counts[]{0, 1, 7, 12};
// odd, thin, long, and one that is cut into boxes one cell wide
constexpr std::array<std::int64_t, 3> shapes[]{{17, 11, 23}, {5, 6, 70}, {31, 4, 8}, {4, 4, 4}};
Point const sizes{number_of_subjects, 2, 3, 3, 5, 4, 4, 4, 2, 2};

template <class T>
Cells<T> some_cells(std::array<std::int64_t, 3> extent, std::uint64_t seed, bool zero_or_one) {
  Cells<T> cells(extent);
  for (std::size_t k = 0; k < cells.value.size(); ++k) {
    std::uint64_t const h = mixed(seed * 1000003 + k);
    cells.value[k] = zero_or_one ? T(h % 3 == 0) : T(static_cast<double>(h % 20001) * 1e-4 - 1);
  }
  return cells;
}

std::string text_of(Point const& point) {
  std::string text;
  for (int const value : point) text += " " + std::to_string(value);
  return text;
}

/// A global array that a rank sees as its caller's.
template <class T>
CellArray seen(Cells<T>& cells) {
  auto const bytes = static_cast<std::int64_t>(sizeof(T));
  return {cells.value.data(), {cells.extent[1] * cells.extent[2] * bytes, cells.extent[2] * bytes, bytes}};
}

/// What one step at a time leaves of `arrays`, which the point decides: the same on all ranks, on any number of them and
/// with all halos and blocks, so stepped once in this process.
template <class T>
std::vector<Cells<T>> const& expected_at(Point const& point, std::vector<Cells<T>> const& arrays,
                                         Grid const& grid, Subject<T> const& one) {
  static std::mutex used;
  static std::map<Point, std::vector<Cells<T>>> known;
  std::lock_guard const lock(used);
  auto const [found, is_new] = known.try_emplace(
      Point{point[subject], point[boundary_first], point[boundary_last], point[shape], point[steps]}, arrays);
  if (is_new)
    step_by_step<T>(found->second, one.kernel.fields, grid, one.kernel.radius, one.update,
                    step_counts[point[steps]]);
  return found->second;
}

/// What is wrong on this rank at a point; empty: nothing. refused: the point asks for halos that its boxes do
/// not allow.
template <class T>
std::string wrong_at(Transport& transport, Point const& point, bool& refused) {
  Subject<T> const& one = [&]() -> Subject<T> const& {
    static std::vector<Subject<T>> const all = subjects<T>();
    return all[static_cast<std::size_t>(point[subject])];
  }();
  Grid grid;
  grid.extent = shapes[point[shape]];
  if (one.kernel.axes == 2) grid.extent[1] = 1;
  grid.boundary = {static_cast<GridBoundary>(point[boundary_first]), GridBoundary::neumann,
                   static_cast<GridBoundary>(point[boundary_last])};
  std::vector<Cells<T>> arrays;
  for (int f = 0; f < one.kernel.arrays(); ++f)
    arrays.push_back(some_cells<T>(grid.extent, static_cast<std::uint64_t>(f + point[subject] * 10),
                                   std::string(one.name) == "life"));
  std::vector<Cells<T>> got = arrays;
  std::vector<Cells<T>> const& expected = expected_at<T>(point, arrays, grid, one);
  int const count = step_counts[point[steps]];
  StencilOptions options;
  options.depth = depths[point[depth]];
  options.block_steps = blocks[point[block]];
  options.overlap = point[beside] == 1;
  options.share = point[block] == 1 ? ShareCells::always : ShareCells::chosen;
  options.limits = {60, 60};
  if (point[cut] == 1) options.ranks_along = {transport.group().size(), 1, 1};
  StencilStop stop;
  stop.every = point[depth] % 2 == 0 ? 3 : 0;
  StencilResult result;
  try {
    StencilRun run(transport, grid, one.kernel, options);
    for (int f = 0; f < one.kernel.arrays(); ++f) run.give(f, seen(arrays[static_cast<std::size_t>(f)]));
    result = run.run(count, stop);
    for (int f = 0; f < one.kernel.fields; ++f) run.take(f, seen(got[static_cast<std::size_t>(f)]));
    Box const box = run.box();
    if (result.status != StencilStatus::steps_done || result.steps != count)
      return std::string("ended ") + name(result.status) + ": " + result.message;
    for (int f = 0; f < one.kernel.fields; ++f)
      for (std::int64_t a = box.low[0]; a < box.high[0]; ++a)
        for (std::int64_t b = box.low[1]; b < box.high[1]; ++b)
          for (std::int64_t c = box.low[2]; c < box.high[2]; ++c)
            if (std::memcmp(&got[static_cast<std::size_t>(f)].at(a, b, c),
                            &expected[static_cast<std::size_t>(f)].at(a, b, c), sizeof(T)) != 0)
              return "field " + std::to_string(f) + " differs at " + std::to_string(a) + ", " +
                     std::to_string(b) + ", " + std::to_string(c);
  } catch (Error const& error) {
    refused = error.code() == ErrorCode::usage;
    return refused ? "" : error.what();
  }
  return "";
}

/// Corners where cells that stay as given meet mirrored ones, stepped several times between two exchanges
/// without blocking: once wrong, and in no pair.
void add_once_wrong(std::vector<Point>& found) {
  for (int const which : {3, 4})
    for (int const boundary : {0, 1, 2})
      for (int const overlap : {0, 1}) found.push_back({which, 0, 0, boundary, 4, 1, 0, 3, 0, overlap});
}

/// What threads step in arrays that all share: every stencil, every end of the axis that is cut.
void add_shared(std::vector<Point>& found) {
  for (int which = 0; which < number_of_subjects; ++which)
    for (int const first : {0, 1, 2})
      for (int const last : {0, 1, 2})
        found.push_back({which, (which + first) % 2, first, last, 0, 1, which == 1 || last == 1 ? 2 : 0, 3,
                         first % 2, 0});
}

std::vector<Point> points() {
  if (char const* const all = std::getenv("HOSTLESS_FULL_PRODUCT"); all != nullptr && std::string(all) == "1")
    return all_points(
        sizes, {subject, precision, boundary_first, boundary_last, depth, block, shape, steps, cut, beside});
  std::vector<Point> found = cover_pairs(sizes);
  add_shared(found);
  std::size_t number = 0;
  std::erase_if(found, [&](Point const&) { return !test::is_tried(number++, 2); });
  add_once_wrong(found);
  return found;
}

std::string differences(Transport& transport) {
  std::string found;
  int compared = 0;
  std::vector<Point> const all = points();
  for (Point const& point : all) {
    bool refused = false;
    std::string const wrong = point[precision] == 0 ? wrong_at<float>(transport, point, refused)
                                                    : wrong_at<double>(transport, point, refused);
    if (!wrong.empty()) found += "point" + text_of(point) + ": " + wrong + "\n";
    compared += refused ? 0 : 1;
  }
  if (compared < static_cast<int>(all.size()) / 2)
    found += "only " + std::to_string(compared) + " points could be compared\n";
  if (transport.group().rank() == 0)
    std::printf("%d ranks: %zu points, %d compared, the others refused\n", transport.group().size(),
                all.size(), compared);
  return found;
}

/// What one rank is asked for and the others not.
struct Odd {
  char const* what;
  std::int64_t steps = 6, before = 0;
  std::int64_t every = 2;
  double tolerance = 1e-30;
  bool given = true;
};
constexpr Odd odd_ones[]{{"steps", 7},
                         {"no steps", 0},
                         {"a look", 6, 0, 3},
                         {"no look", 6, 0, 0, 0},
                         {"a tolerance", 6, 0, 2, 1e-3},
                         {"steps before", 6, 1},
                         {"a senseless stop", 6, 0, 0, 1},
                         {"negative steps", -1},
                         {"an array missing", 6, 0, 2, 1e-30, false}};

/// Of ranks of which the last is asked for something else: all must refuse, and step when asked for the same.
std::string unrefused(Transport& transport) {
  std::string found;
  bool const is_odd = transport.group().rank() == transport.group().size() - 1;
  Grid const grid{{9, 1, 9}, {}};
  Cells<float> cells = some_cells<float>(grid.extent, 5, false);
  StencilOptions options;
  options.limits = {60, 60};
  StencilKernel const kernel = make_stencil("heat", 2, 4);
  auto const asked = [&](StencilRun& run, Odd const& one) {
    if (one.given) run.give(0, seen(cells));
    run.count_from(one.before);
    StencilStop stop;
    stop.every = one.every, stop.tolerance = one.tolerance;
    return run.run(one.steps, stop);
  };
  for (Odd const& one : odd_ones) {
    StencilRun run(transport, grid, kernel, options);
    try {
      StencilResult const result = asked(run, is_odd ? one : Odd{""});
      found += std::string(one.what) + ": ended " + name(result.status) + "\n";
    } catch (Error const& error) {
      if (error.code() != ErrorCode::usage) found += std::string(one.what) + ": " + error.what() + "\n";
    }
    StencilResult const result = asked(run, {""});
    if (result.status != StencilStatus::steps_done || result.steps != 6)
      found += std::string("after ") + one.what + ": ended " + name(result.status) + "\n";
  }
  return found;
}

class Threads : public testing::TestWithParam<test::Ranks> {};
INSTANTIATE_TEST_SUITE_P(StencilContract, Threads,
                         testing::ValuesIn(test::with_ranks(test::names_with_threads(), {1, 2, 3, 4})),
                         [](auto const& one) { return test::name_of(one.param); });
TEST_P(Threads, CellsAreThoseOfOneStepAtATime) {
  auto const& [name, ranks] = GetParam();
  test::tested_transport(name).run(ranks,
                                   [&](Transport& transport) { EXPECT_EQ(differences(transport), ""); });
}

TEST_P(Threads, RefuseToBeAskedForDifferentThings) {
  auto const& [name, ranks] = GetParam();
  if (ranks == 1) return;  // nobody differs
  test::tested_transport(name).run(ranks, [&](Transport& transport) { EXPECT_EQ(unrefused(transport), ""); });
}

class Processes : public testing::TestWithParam<test::Ranks> {
 protected:
  void SetUp() override { test::need(transport()); }
  static HostTransport const& transport() { return test::tested_transport(std::get<0>(GetParam())); }
};
INSTANTIATE_TEST_SUITE_P(StencilContract, Processes,
                         testing::ValuesIn(test::with_ranks(test::names_with_processes(), {2, 4})),
                         [](auto const& one) { return test::name_of(one.param); });
TEST_P(Processes, CellsAreThoseOfOneStepAtATime) {
  EXPECT_EQ(test::start_again(transport(), std::get<1>(GetParam()), {}), 0)
      << "the lines above say what differs";
}

TEST_P(Processes, RefuseToBeAskedForDifferentThings) {
  EXPECT_EQ(test::start_again(transport(), std::get<1>(GetParam()), {"refusals"}), 0)
      << "the lines above say what was not refused";
}

int as_rank(HostTransport const& wanted, std::vector<std::string> const& words) {
  return test::rank_that_looks(wanted, words.empty() ? differences : unrefused);
}

// The change of a step is added up so that boxes cannot be told from it.
TEST(StencilChanges, AreEqualForAllBoxes) {
  Grid grid;
  grid.extent = {40, 1, 37};
  Cells<double> const initial = some_cells<double>(grid.extent, 5, false);
  std::vector<std::vector<double>> norms;
  for (int const ranks : {1, 2, 3, 4, 6}) {
    std::vector<double> found;
    test::tested_transport("threads").run(ranks, [&](Transport& transport) {
      Cells<double> mine = initial;
      StencilRun run(transport, grid, make_stencil("jacobi2d", 2, 8));
      run.give(0, seen(mine));
      StencilStop stop;
      stop.every = 5;
      StencilResult const result = run.run(20, stop);
      if (transport.group().rank() != 0) return;
      for (StencilChange const& change : result.history)
        found.push_back(change.norm[0]), found.push_back(change.largest[0]);
    });
    norms.push_back(found);
  }
  ASSERT_EQ(norms[0].size(), 8u);
  for (auto const& found : norms) EXPECT_EQ(found, norms[0]);
  // and it is the change: of the fifth step, by cells
  std::vector<Cells<double>> before{initial}, after{initial};
  Update<double> const update = subjects<double>()[0].update;
  step_by_step<double>(before, 1, grid, {1, 0, 1}, update, 4);
  step_by_step<double>(after, 1, grid, {1, 0, 1}, update, 5);
  long double squares = 0;
  for (std::size_t k = 0; k < initial.value.size(); ++k)
    squares += std::pow(static_cast<long double>(after[0].value[k] - before[0].value[k]), 2);
  EXPECT_NEAR(norms[0][0], static_cast<double>(std::sqrt(squares)), 1e-15 * norms[0][0] * 8);
}

TEST(StencilEndings, NaNSteadyAskedToStopAndRefused) {
  Grid grid;
  grid.extent = {9, 1, 9};
  test::tested_transport("threads").run(2, [&](Transport& transport) {
    Cells<float> cells = some_cells<float>(grid.extent, 5, false);
    cells.at(4, 0, 4) = std::nanf("");
    StencilRun run(transport, grid, make_stencil("heat", 2, 4));
    EXPECT_THROW((void)run.run(1), Error);  // nothing was given
    run.give(0, seen(cells));
    EXPECT_EQ(run.run(5).status, StencilStatus::not_finite);
    cells = some_cells<float>(grid.extent, 5, false);
    run.give(0, seen(cells));
    StencilStop stop;
    stop.every = 1, stop.tolerance = 1e-3;
    StencilResult const steady = run.run(100000, stop);
    EXPECT_EQ(steady.status, StencilStatus::steady);
    EXPECT_LE(steady.history.back().norm[0], 1e-3);
    EXPECT_GT(steady.history[steady.history.size() - 2].norm[0], 1e-3);
    run.give(0, seen(cells));
    StencilStop asked;
    asked.every = 2;
    asked.stop_requested = [&] { return transport.group().rank() == 1; };
    StencilResult const stopped = run.run(100, asked);
    EXPECT_EQ(stopped.status, StencilStatus::aborted);
    EXPECT_EQ(stopped.history.size(), 1u);
    EXPECT_EQ(run.steps() % 2, 0);
    StencilStop seen_enough;
    seen_enough.every = 3;
    seen_enough.observer = [&](StencilChange const& change) {
      return transport.group().rank() == 0 && change.step >= run.steps();
    };
    std::int64_t const before = run.steps();
    EXPECT_EQ(run.run(100, seen_enough).steps, 3 - before % 3);
    EXPECT_EQ(run.steps() % 3, 0);
    StencilStop senseless;
    senseless.tolerance = 1;
    EXPECT_THROW((void)run.run(5, senseless), Error);
    EXPECT_THROW((void)run.run(-1), Error);
    EXPECT_THROW(run.give(1, seen(cells)), Error);
    EXPECT_THROW(run.take(1, seen(cells)), Error);
    StencilOptions deep;
    deep.depth = 5;  // boxes of 4 and 5 cells
    EXPECT_THROW(StencilRun(transport, grid, make_stencil("heat", 2, 4), deep), Error);
  });
}

// Without looks too, by one rank that has a function to be asked; and fields that are not finite are called
// so whatever ended the run.
TEST(StencilEndings, AskedToStopBetweenLooks) {
  Grid grid;
  grid.extent = {9, 1, 9};
  for (int const ranks : {1, 2})
    for (bool const finite : {true, false})
      for (std::int64_t const every : {std::int64_t{0}, std::int64_t{1} << 50}) {
        test::tested_transport("threads").run(ranks, [&](Transport& transport) {
          Cells<float> cells = some_cells<float>(grid.extent, 5, false);
          if (!finite) cells.at(4, 0, 4) = std::nanf("");
          StencilRun run(transport, grid, make_stencil("heat", 2, 4));
          run.give(0, seen(cells));
          StencilStop stop;
          stop.every = every;
          int polls = 0;
          if (transport.group().rank() == ranks - 1) stop.stop_requested = [&] { return ++polls == 1; };
          StencilResult const result = run.run(std::int64_t{1} << 52, stop);
          EXPECT_EQ(result.status, finite ? StencilStatus::aborted : StencilStatus::not_finite);
          EXPECT_EQ(result.steps, run.steps());
          EXPECT_LE(result.steps, 64);  // asked soon, whatever a step takes
          EXPECT_LT(result.run_s, 240);
          EXPECT_TRUE(result.history.empty());
        });
      }
}

// Rows that take a while, of a stencil that looks along the last axis alone.
void slow_rows(CellBlock const& block) {
  for (std::int64_t r = 0; r < block.rows; ++r) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    std::memcpy(static_cast<double*>(block.out[0]) + r * block.out_stride,
                static_cast<double const*>(block.in[0]) + r * block.in_stride[0],
                static_cast<std::size_t>(block.cells) * sizeof(double));
  }
}

// Exchanges that are far apart, since they carry nothing or because the caller said so, do not put the end
// off.
TEST(StencilEndings, AskedToStopBetweenExchanges) {
  StencilKernel slow;
  slow.name = "slow rows";
  slow.radius = {0, 0, 1};
  slow.update = slow_rows;
  Grid const grid{{64, 1, 64}, {GridBoundary::neumann, GridBoundary::neumann, GridBoundary::neumann}};
  for (int const ranks : {1, 2})
    test::tested_transport("threads").run(ranks, [&](Transport& transport) {
      StencilOptions options;
      options.ranks_along = {ranks, 1, 1};
      options.depth = ranks == 1 ? 500 : 0;
      StencilRun run(transport, grid, slow, options);
      EXPECT_GE(run.depth(), 500);
      Cells<double> cells = some_cells<double>(grid.extent, 5, false);
      run.give(0, seen(cells));
      StencilStop stop;
      auto const begin = std::chrono::steady_clock::now();
      stop.stop_requested = [&] {
        return std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(100);
      };
      StencilResult const result = run.run(std::int64_t{1} << 52, stop);
      EXPECT_EQ(result.status, StencilStatus::aborted);
      EXPECT_LT(result.steps, 400);  // of some milliseconds each
    });
}

struct Nearest {
  static constexpr int axes = 2, radius = 1;
  template <class Cell>
  auto operator()(Cell const& u) const {
    auto const at = [&](int a, int b) { return u(a, b) + 1 < u(0, 0) ? u(a, b) + 1 : u(0, 0); };
    auto const one = at(0, -1), other = at(0, 1);
    return one < other ? one : other;
  }
};

// What is infinite on its way may be finite in the end.
TEST(StencilEndings, InfinityBetweenLooks) {
  Grid const line{{3, 1, 40}, {GridBoundary::neumann, GridBoundary::neumann, GridBoundary::neumann}};
  test::tested_transport("threads").run(2, [&](Transport& transport) {
    Cells<double> cells = some_cells<double>(line.extent, 1, false);
    for (double& one : cells.value) one = std::numeric_limits<double>::infinity();
    for (std::int64_t a = 0; a < 3; ++a) cells.at(a, 0, 0) = 0;
    StencilRun run(transport, line, kernel_of<double>(Nearest{}, "nearest"));
    run.give(0, seen(cells));
    EXPECT_EQ(run.run(20).status, StencilStatus::not_finite);
    EXPECT_EQ(run.run(19).status, StencilStatus::steps_done);
  });
}

}  // namespace
}  // namespace hostless::contract

int main(int count, char** words) {
  return hostless::test::main_of_ranks(count, words, hostless::contract::as_rank);
}
