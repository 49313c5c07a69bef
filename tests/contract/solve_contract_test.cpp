// Equal plan, equal bits: every transport on the list, run, route and format against the reference cell.
// Ranks that are processes are this program again. HOSTLESS_FULL_PRODUCT chooses all cells instead of a cover
// of all pairs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "host_ranks.hpp"
#include "hostless/transport/mpi.hpp"
#include "sample.hpp"
#include "solve_contract_check.hpp"

namespace hostless {
namespace {

// Each cell of the cover once in peace and `schedules` times under delays; of the full product once in peace.
bool full() { return std::getenv("HOSTLESS_FULL_PRODUCT") != nullptr; }
// Sanitizers are up to 20 times slower; that of threads sees races that did not happen.
int schedules() { return test::of_all(20, 2); }

// What is wrong, line by line; told as well.
std::vector<std::string> check(Transport& transport, std::string const& ranks) {
  auto const tell = [&](std::string const& line) {
    std::printf("%s: %s\n", ranks.c_str(), line.c_str());
    std::fflush(stdout);
  };
  contract::Findings const found =
      full() ? contract::check(transport, contract::full_product(), 0, tell)
             : contract::check(transport, contract::pairwise_cover(), schedules(), tell);
  std::vector<std::string> problems = found.different;
  if (!full() && !found.lateness.beyond_chance())
    problems.push_back("the delays made nobody late: these schedules prove nothing");
  if (found.converged == 0 || found.converged == found.cells)
    problems.push_back("all cells end the same way: choose another tolerance or limit");
  if (transport.group().rank() != 0) return problems;
  for (std::string const& line : problems) tell(line);
  tell(found.summary());
  return problems;
}

TEST(Cover, HoldsEveryPair) {
  auto const cells = contract::pairwise_cover();
  auto const all = contract::full_product();
  EXPECT_LT(cells.size(), 60u);
  EXPECT_EQ(all.size(), 4u * 2 * 4 * methods().size() * 3 * 5 * all_routes.size() * 6);
  constexpr std::size_t axes = 8, most = 64;  // values of an axis
  auto const pairs = [&](std::vector<contract::Cell> const& of) {
    std::vector<bool> found(axes * axes * most * most);  // a set of them took 13 s under a sanitizer
    for (auto const& c : of) {
      int const point[axes] = {c.plan.problem,        c.plan.partition, c.plan.slices, c.plan.method,
                               c.plan.preconditioner, c.way.run,        c.way.route,   c.way.format};
      for (std::size_t i = 0; i < axes; ++i)
        for (std::size_t j = i + 1; j < axes; ++j)
          found.at(((i * axes + j) * most + static_cast<std::size_t>(point[i])) * most +
                   static_cast<std::size_t>(point[j])) = true;
    }
    return found;
  };
  EXPECT_EQ(pairs(cells), pairs(all));
}

TEST(Cover, ADifferenceOfOneBitIsSeen) {
  contract::Outcome a;
  a.history = {1, 2};
  a.x = {1, 0.0, 3};
  EXPECT_EQ(a.difference(contract::Outcome::from(a.bytes())), "");
  contract::Outcome b = a;
  b.x[1] = -0.0;
  EXPECT_EQ(a.difference(b), "x[1] differs");
  b = a;
  b.history[1] = std::nextafter(2.0, 3.0);
  EXPECT_EQ(a.difference(b), "residual 1 differs");
}

// The plans of all ranks of every matrix of the cover.
struct PlannedRank {
  ExchangePlan plan;
  SweepPlan sweep;
};
template <class Look>
void look_at_plans(int ranks, Look const& look) {
  std::vector<PlannedRank> plans(static_cast<std::size_t>(ranks));
  run_with_threads_transport(ranks, [&](Transport& transport) {
    int const rank = transport.group().rank();
    for (contract::Cell const& cell : contract::pairwise_cover()) {
      auto const source = make_problem(contract::problem_of(cell.plan.problem).options, ranks, rank);
      Matrix const matrix = Matrix::from_source(transport, *source, contract::matrix_options(cell));
      plans[static_cast<std::size_t>(rank)] = {matrix.plan(), matrix.sweep()};
      transport.group().barrier();
      if (rank == 0) look(cell, plans);
      transport.group().barrier();
    }
  });
}

// Small problems, but with everything that may be carried out in another order.
TEST(Cover, PlansHaveWhatCouldBeReordered) {
  for (int ranks : {3, 4, 7}) {
    int ahead = 0, led = 0;
    look_at_plans(ranks, [&](contract::Cell const& cell, std::vector<PlannedRank> const& plans) {
      std::string const what = name(cell) + " on " + std::to_string(ranks) + " ranks";
      std::size_t neighbours = 0;
      bool inner = false, some = false;
      for (auto const& [plan, sweep] : plans) {
        std::set<Rank> from, to;
        for (Stage const& stage : plan.stages) {
          for (Message const& m : stage.out) to.insert(m.target);
          for (Message const& m : stage.in) from.insert(m.source);
          inner = inner || (!stage.after.empty() && !stage.out.empty());
        }
        EXPECT_FALSE(from.empty() || to.empty() || plan.ghosts == 0) << what << ": ghosts both ways";
        EXPECT_GT(sweep.tiling.block_rows, 1) << what;
        EXPECT_TRUE(cell.plan.slices == 0 || sweep.tiling.slices >= 3) << what;  // 0: the library's choice
        from.merge(to);
        neighbours = std::max(neighbours, from.size());
        auto const needing = std::count_if(sweep.needs.begin(), sweep.needs.end(),
                                           [](auto const& needs) { return !needs.empty(); });
        some = some || (needing > 0 && needing < sweep.tiling.slices);
      }
      EXPECT_GE(neighbours, 2u) << what;
      // A leader that reads alone what a node gets has nothing to pass on.
      if (contract::matrix_options(cell).route == Route::leader)
        led += inner ? 1 : 0;
      else
        EXPECT_EQ(inner, cell.way.route != 0) << what << ": stages that pass on what they received";
      ahead += some ? 1 : 0;
    });
    EXPECT_GE(led, 1) << "leaders that pass on what they received on " << ranks << " ranks";
    EXPECT_GE(ahead, 8) << "plans where slices go ahead of the ghosts on " << ranks << " ranks";
  }
}

// Loopback differs from threads in how a message goes: of these two numbers of ranks, unless everything is asked for.
std::vector<test::Ranks> ranks_of_threads() {
  std::vector<test::Ranks> all = test::with_ranks(test::names_with_threads(), {1, 2, 3, 4, 7});
  std::erase_if(all, [](test::Ranks const& one) {
    auto const& [name, ranks] = one;
    return !full() && name == "loopback" && ranks != 2 && ranks != 7;
  });
  return all;
}

class Threads : public testing::TestWithParam<test::Ranks> {};
INSTANTIATE_TEST_SUITE_P(SolveContract, Threads, testing::ValuesIn(ranks_of_threads()),
                         [](auto const& one) { return test::name_of(one.param); });

TEST_P(Threads, EqualPlansGiveEqualBits) {
  auto const& [name, ranks] = GetParam();
  std::string const what = name + ", " + std::to_string(ranks) + " ranks";
  test::tested_transport(name).run(ranks, [&](Transport& transport) {
    auto const problems = check(transport, what);
    if (transport.group().rank() != 0) return;
    EXPECT_EQ(problems.size(), 0u) << "the lines above say what is wrong";
  });
}

class Processes : public testing::TestWithParam<test::Ranks> {
 protected:
  void SetUp() override { test::need(transport()); }
  static HostTransport const& transport() { return test::tested_transport(std::get<0>(GetParam())); }
};
INSTANTIATE_TEST_SUITE_P(SolveContract, Processes,
                         testing::ValuesIn(test::with_ranks(test::names_with_processes(), {1, 2, 4})),
                         [](auto const& one) { return test::name_of(one.param); });

// One start for all cells of a number of ranks: it takes longer than they do.
TEST_P(Processes, EqualPlansGiveEqualBits) {
  EXPECT_EQ(test::start_again(transport(), std::get<1>(GetParam()), {}), 0)
      << "the lines above say what differs";
}

int as_rank(HostTransport const& wanted, std::vector<std::string> const&) {
  try {
    auto const transport = test::open_with_all(wanted);
    std::string const ranks = wanted.name + ", " + std::to_string(transport->group().size()) + " ranks";
    return check(*transport, ranks).empty() ? 0 : 1;
  } catch (std::exception const& e) {
    std::printf("%s: %s\n", wanted.name.c_str(), e.what());
    leave_process(4);
  }
}

}  // namespace
}  // namespace hostless

int main(int count, char** words) { return hostless::test::main_of_ranks(count, words, hostless::as_rank); }
