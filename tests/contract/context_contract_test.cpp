// A text with several operators, two of them rectangular, and several gathered fields, over every transport
// on the list and in every run of the processor: against dense products in the order of decision 0001, bit
// for bit. Ranks that are processes are this program again.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "host_ranks.hpp"
#include "hostless/transport/mpi.hpp"
#include "run/context_run.impl.hpp"
#include "run/field_numbering.hpp"
#include "run/on_threads.impl.hpp"

namespace hostless::host {
namespace {

enum Matrix { a_fine, restriction, a_coarse, prolongation, a_blocks };
constexpr std::int64_t fine = 700, coarse = 90;
constexpr int block = 2;  // of a_blocks

// Symmetric, in whole blocks beside the diagonal: each is stored once, and sums wait for later rows.
double entry_of_blocks(std::int64_t i, std::int64_t j) {
  if (std::abs(i / block - j / block) > 3) return 0;
  return 1e-3 * static_cast<double>((std::min(i, j) * 31 + std::max(i, j) * 17) % 501 + 1);
}
// Entry (i, j), without symmetry but of a_blocks; 0: there is none.
double entry(int matrix, std::int64_t i, std::int64_t j) {
  if (matrix == a_blocks) return entry_of_blocks(i, j);
  auto const mixed = static_cast<std::uint64_t>(i * 7919 + j * 104729 + matrix * 15485863 + 1);
  std::uint64_t const h = mixed * 0x9e3779b97f4a7c15u >> 40;
  if (h % 9 != 0 && i != j) return 0;
  return static_cast<double>(static_cast<std::int64_t>(h % 2001) - 1000) * 1e-3 +
         1e-9 * static_cast<double>(i);
}
// All that are there, row by row with rising columns: asked for once, where each solve of each rank would ask 2,000,000 times.
struct Entry {
  std::int64_t column;
  double value;
};
using Rows = std::vector<std::vector<Entry>>;
Rows const& all_rows(int matrix) {
  static std::vector<Rows> const all = [] {
    std::vector<Rows> made;
    for (int const one : {a_fine, restriction, a_coarse, prolongation, a_blocks}) {
      Rows& rows = made.emplace_back(one == restriction || one == a_coarse ? coarse : fine);
      std::int64_t const columns = one == a_coarse || one == prolongation ? coarse : fine;
      for (std::size_t i = 0; i < rows.size(); ++i)
        for (std::int64_t j = 0; j < columns; ++j)
          if (double const value = entry(one, static_cast<std::int64_t>(i), j); value != 0)
            rows[i].push_back({j, value});
    }
    return made;
  }();
  return all[static_cast<std::size_t>(matrix)];
}

struct Share {
  std::int64_t first, last;
};
// Uneven, and nothing for the last one of four.
Share share_of(std::int64_t all, int rank, int ranks) {
  if (ranks == 4) return rank == 3 ? Share{all, all} : Share{all * rank / 3, all * (rank + 1) / 3};
  return {all * rank * rank / ranks / ranks, all * (rank + 1) * (rank + 1) / ranks / ranks};
}

LocalPanel rows_of(int matrix, FieldNumbering const& rows, LocalNumbering const& local) {
  LocalPanel panel;
  panel.offset = {0};
  for (std::int64_t i = rows.first(); i < rows.first() + rows.owned(); ++i) {
    for (auto const& [j, value] : all_rows(matrix)[static_cast<std::size_t>(i)]) {
      panel.column.push_back(local.column(j));
      panel.value.push_back(value);
    }
    panel.offset.push_back(static_cast<std::int64_t>(panel.column.size()));
  }
  return panel;
}
std::vector<std::int64_t> read_by(int matrix, FieldNumbering const& rows) {
  std::vector<std::int64_t> read;
  for (std::int64_t i = rows.first(); i < rows.first() + rows.owned(); ++i)
    for (Entry const& one : all_rows(matrix)[static_cast<std::size_t>(i)]) read.push_back(one.column);
  return read;
}
// With ghosts in the middle of their owners' numbers local columns rise as all do.
std::vector<double> dense(int matrix, std::vector<double> const& x) {
  std::vector<double> y;
  for (std::vector<Entry> const& row : all_rows(matrix)) {
    double sum = 0;
    for (auto const& [j, value] : row) sum = std::fma(value, x[static_cast<std::size_t>(j)], sum);
    y.push_back(sum);
  }
  return y;
}

struct CopyTo {
  template <class L, class Sums, class G, class X>
  void operator()(State const&, L block_row, Sums const&, G const& g, X const& x) const {
    for (int j = 0; j < L::rows; ++j) g(block_row, j) = x(block_row, j);
  }
};
struct Rest {  // to = own - products
  template <class L, class Sums, class Products, class G, class To>
  void operator()(State const&, L block_row, Sums const&, Products const& a, G const& g, To const& to) const {
    for (int j = 0; j < L::rows; ++j) to(block_row, j) = g(block_row, j) - a(block_row, j);
  }
};
struct Keep {
  template <class L, class Sums, class Products, class To>
  void operator()(State const&, L block_row, Sums const&, Products const& a, NoOwnRows, To const& to) const {
    for (int j = 0; j < L::rows; ++j) to(block_row, j) = a(block_row, j);
  }
};
struct Plus {
  template <class L, class Sums, class Products, class To>
  void operator()(State const&, L block_row, Sums const&, Products const& a, NoOwnRows, To const& to) const {
    for (int j = 0; j < L::rows; ++j) to(block_row, j) += a(block_row, j);
  }
};
struct ShrinkAndSum {
  template <class L, class Sums, class X>
  void operator()(State const&, L block_row, Sums const& sum, X const& x) const {
    for (int j = 0; j < L::rows; ++j) sum.add(0, x(block_row, j) *= 0x1p-10);
  }
};
struct CountDown {
  void operator()(State& s) const { s.iterate = ++s.iteration < 5; }
};

// x += P (c - A_c c) with c = R (1 - B) (x - A x), five times over.
std::vector<double> reference() {
  std::vector<double> x;
  for (std::int64_t i = 0; i < fine; ++i) x.push_back(1e-3 * static_cast<double>(i % 13 - 6));
  for (int k = 0; k < 5; ++k) {
    std::vector<double> rest = dense(a_fine, x);
    for (std::size_t i = 0; i < rest.size(); ++i) rest[i] = x[i] - rest[i];
    std::vector<double> const b = dense(a_blocks, rest);
    for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= b[i];
    std::vector<double> const c = dense(restriction, rest);
    std::vector<double> last = dense(a_coarse, c);
    for (std::size_t i = 0; i < last.size(); ++i) last[i] = c[i] - last[i];
    std::vector<double> const more = dense(prolongation, last);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = (x[i] + more[i]) * 0x1p-10;
  }
  return x;
}
/// By a rank that leaves.
struct Thrown {};

struct Way {
  RunKind kind;
  int threads, interval;
};

// What one rank has of it.
struct Problem {
  Problem(Transport& transport, Route route)
      : fines(transport.group(), share(transport.group(), fine)),
        coarses(transport.group(), share(transport.group(), coarse)),
        tiling{fines.owned(), 1, 5},
        small{coarses.owned(), 1, 3},
        blocked{fines.owned() / block, block, 4} {
    Group& group = transport.group();
    NodeMap const nodes = NodeMap::blocks(group.size(), 2);
    WaitLimits const limits{600, 600};
    LocalNumbering const of_a(fines, read_by(a_fine, fines)), of_b(fines, read_by(a_blocks, fines)),
        of_r(fines, read_by(restriction, coarses));
    std::vector<std::int64_t> both = read_by(a_coarse, coarses);
    for (std::int64_t const one : read_by(prolongation, fines)) both.push_back(one);
    LocalNumbering const of_c(coarses, both);
    x_field.emplace(transport, of_a.plan(group, route, nodes), tiling, limits);
    between.emplace(transport, of_b.plan(group, route, nodes), blocked, limits);
    rest.emplace(transport, of_r.plan(group, route, nodes), tiling, limits);
    corrected.emplace(transport, of_c.plan(group, route, nodes), small, limits);
    r = RectangularMatrix(rows_of(restriction, coarses, of_r), small, rest->columns());
    p = RectangularMatrix(rows_of(prolongation, fines, of_c), tiling, corrected->columns());
    a_c.emplace(square(a_coarse, coarses, of_c), small);
    a.emplace(square(a_fine, fines, of_a), tiling);
    b.emplace(square(a_blocks, fines, of_b), blocked);
  }
  static LocalRowArrays square(int matrix, FieldNumbering const& rows, LocalNumbering const& local) {
    ColumnSpace const space = local.columns();
    return {space.ghosts, rows_of(matrix, rows, local), space.ghosts_below};
  }
  static std::int64_t share(Group& group, std::int64_t all) {
    Share const mine = share_of(all / 2, group.rank(), group.size());
    return (mine.last - mine.first) * 2;
  }

  FieldNumbering fines, coarses;
  Tiling tiling, small, blocked;
  std::optional<GatheredField> x_field, between, rest, corrected;
  RectangularMatrix r, p;
  std::optional<LocalMatrix> a_c, a, b;
};

/// How the text ended on this rank, and what it left of x.
struct Ending {
  State state;
  std::int64_t first;
  std::vector<double> x;
};
Ending solve(Transport& transport, Route route, Way const& way, std::function<void(int)> disturb = {},
             WaitLimits const& of_threads = {600, 600}) {
  Problem problem(transport, route);
  auto const owned = static_cast<std::size_t>(problem.fines.owned());
  Operator const by_a(*problem.a, *problem.x_field, problem.tiling),
      by_b(*problem.b, *problem.between, problem.blocked),
      by_ac(*problem.a_c, *problem.corrected, problem.small);
  Operator const by_r(problem.r, *problem.rest, problem.small),
      by_p(problem.p, *problem.corrected, problem.tiling);
  std::vector<double> vector(owned), last(static_cast<std::size_t>(problem.coarses.owned()));
  for (std::size_t i = 0; i < owned; ++i)
    problem.x_field->values()[i] =
        1e-3 * static_cast<double>((problem.fines.first() + static_cast<std::int64_t>(i)) % 13 - 6);
  ExchangePlan plan =
      LocalNumbering(problem.fines, {})
          .plan(transport.group(), Route::direct, NodeMap::blocks(transport.group().size(), 2));
  Exchange exchange(transport, plan, vector.data(), Reduction::ordered, {600, 600});
  SweepPlan const sweep = make_sweep(plan, problem.tiling);
  RunOptions chosen;
  chosen.kind = way.kind;
  chosen.threads = way.threads;
  chosen.check_interval = way.interval;
  chosen.disturb = std::move(disturb);
  State state;
  state.iterate = true;
  Engine engine(state, sweep, Multiplier{}, exchange, chosen, of_threads);
  engine.exchanges_of_context = {&problem.x_field->exchange(), &problem.between->exchange(),
                                 &problem.rest->exchange(), &problem.corrected->exchange()};
  auto const text = [&](auto& run) {
    auto const fine_x = run.gathered(*problem.x_field), between = run.gathered(*problem.between);
    auto const rest = run.gathered(*problem.rest);
    auto const c = run.gathered(*problem.corrected);
    auto const kept = run.keep(last.data());
    run.repeat(Gate::iterate, [&] {
      run.send(fine_x);
      run.sweep(by(by_a), nothing(), Rest{}, NoDecision{}, own(between));
      run.send(between);
      run.sweep(by(by_b), nothing(), Rest{}, NoDecision{}, own(rest));
      run.send(rest);
      run.sweep(by(by_r), nothing(), Keep{}, NoDecision{}, own(c));
      run.send(c);
      run.sweep(by(by_ac), nothing(), Rest{}, NoDecision{}, kept);
      run.publish(c, CopyTo{}, reads(kept));
      run.sweep(by(by_p), nothing(), Plus{}, NoDecision{}, own(fine_x));
      run.rows(into(ScalarIndex::rr), ShrinkAndSum{}, CountDown{}, own(fine_x));
    });
  };
  auto const execute = [&] {
    if (way.kind != RunKind::graph) return on_threads<ContextRun>(engine, way.threads, text);
    on_threads<ContextRun>(engine, 1, [&](auto& thread) {
      GraphRun graph(thread);
      text(graph);
      graph.launch();
    });
  };
  try {
    execute();
  } catch (Thrown const&) {  // by `disturb`
  }
  double const* const values = problem.x_field->values();
  return {state, problem.fines.first(), {values, values + owned}};
}

// What is wrong on this rank, way by way.
std::vector<std::string> differences(Transport& transport) {
  std::vector<double> const expected = reference();
  std::vector<std::string> problems;
  if (Problem const problem(transport, Route::direct);
      problem.blocked.block_rows > 0 && problem.b->ring() == 0)
    problems.push_back("blocks are stored in full: " + problem.b->describe());
  for (Route route : all_routes) {
    for (Way const& way : {Way{RunKind::host, 1, 1}, Way{RunKind::host, 1, 3}, Way{RunKind::persistent, 2, 1},
                           Way{RunKind::persistent, 3, 2}, Way{RunKind::graph, 1, 1}}) {
      Ending const got = solve(transport, route, way);
      bool same = got.state.status == Status::running && got.state.iteration == 5;
      for (std::size_t i = 0; i < got.x.size(); ++i)
        same = same && got.x[i] == expected[static_cast<std::size_t>(got.first) + i];
      if (!same)
        problems.push_back(std::string("run ") + name(way.kind) + ", route " + name(route) + ", interval " +
                           std::to_string(way.interval) + ": other bits");
    }
  }
  for (std::string const& line : problems) {
    std::printf("rank %d: %s\n", transport.group().rank(), line.c_str());
    std::fflush(stdout);
  }
  return problems;
}

class Threads : public testing::TestWithParam<test::Ranks> {};
INSTANTIATE_TEST_SUITE_P(ContextContract, Threads,
                         testing::ValuesIn(test::with_ranks(test::names_with_threads(), {1, 2, 3, 4})),
                         [](auto const& one) { return test::name_of(one.param); });
TEST_P(Threads, OperatorsAreDenseProducts) {
  auto const& [name, ranks] = GetParam();
  test::tested_transport(name).run(
      ranks, [&](Transport& transport) { EXPECT_EQ(differences(transport).size(), 0u); });
}

// A rank that throws in the middle leaves all exchanges: nobody waits for it until a deadline.
TEST_P(Threads, ALostRankEndsTheOthers) {
  int const ranks = std::get<1>(GetParam());
  auto const begin = Clock::now();
  test::tested_transport(std::get<0>(GetParam())).run(ranks, [&](Transport& transport) {
    int barriers = 0;
    bool const throws = transport.group().rank() == ranks - 1;
    Ending const got = solve(transport, Route::direct, {RunKind::host, 1, 1}, [&](int) {
      if (throws && ++barriers == 12) throw Thrown{};
    });
    EXPECT_EQ(got.state.status, Status::peer_lost);
  });
  EXPECT_LT(Engine::seconds_since(begin), 300);
}

// The first exchange of a field may take as long as ranks are apart, which is more than threads wait for each other:
// those that read no ghost (there are more threads than slices) wait for it as the others do.
TEST_P(Threads, ALateRankIsWaitedForByAllThreads) {
  if (std::get<1>(GetParam()) != 2) return;
  std::vector<double> const expected = reference();
  test::tested_transport(std::get<0>(GetParam())).run(2, [&](Transport& transport) {
    std::atomic<bool> is_late = transport.group().rank() == 1;  // all threads of a rank ask
    Ending const got = solve(transport, Route::direct, {RunKind::host, is_late ? 1 : 12, 1},
                             [&](int) {
                               if (is_late.exchange(false))
                                 std::this_thread::sleep_for(std::chrono::milliseconds(3500));
                             },
                             {600, 2});
    EXPECT_EQ(got.state.status, Status::running);
    EXPECT_EQ(got.state.iteration, 5);
    for (std::size_t i = 0; i < got.x.size(); ++i)
      ASSERT_EQ(got.x[i], expected[static_cast<std::size_t>(got.first) + i]);
  });
}

class Processes : public testing::TestWithParam<test::Ranks> {
 protected:
  void SetUp() override { test::need(transport()); }
  static HostTransport const& transport() { return test::tested_transport(std::get<0>(GetParam())); }
};
INSTANTIATE_TEST_SUITE_P(ContextContract, Processes,
                         testing::ValuesIn(test::with_ranks(test::names_with_processes(), {2, 4})),
                         [](auto const& one) { return test::name_of(one.param); });
TEST_P(Processes, OperatorsAreDenseProducts) {
  EXPECT_EQ(test::start_again(transport(), std::get<1>(GetParam()), {}), 0)
      << "the lines above say what differs";
}

int as_rank(HostTransport const& wanted, std::vector<std::string> const&) {
  try {
    auto const transport = test::open_with_all(wanted);
    return differences(*transport).empty() ? 0 : 1;
  } catch (std::exception const& e) {
    std::printf("%s: %s\n", wanted.name.c_str(), e.what());
    leave_process(4);
  }
}

}  // namespace
}  // namespace hostless::host

int main(int count, char** words) {
  return hostless::test::main_of_ranks(count, words, hostless::host::as_rank);
}
