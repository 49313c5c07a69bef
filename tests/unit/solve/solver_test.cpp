// What a solver does beside its method: stopping, watching, preconditioner functions, products, refusals.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>

#include "systems.hpp"

namespace hostless::test {
namespace {

struct Where {
  Method method;
  int ranks;
  RunChoice run;
};
class Solvers : public testing::TestWithParam<Where> {
 protected:
  Setting setting() const {
    Setting p;
    p.ranks = GetParam().ranks;
    p.solve.method = GetParam().method;
    p.solve.rtol = 1e-9;
    use(p.solve, GetParam().run);
    return p;
  }
  // work(solver, this rank's rows of b) on every rank.
  template <class Work>
  void with_solver(Work const& work, std::function<bool(Progress const&)> const& callback = {}) const {
    Setting p = setting();
    p.solve.callback = callback;
    run_with_threads_transport(p.ranks, [&](Transport& t) {
      Share const s = share_of(a, p.ranks, t.group().rank(), false);
      Matrix const matrix = Matrix::from_rows(t, s.first, s.offset, s.column, s.value, p.matrix);
      Solver solver(matrix, p.solve);
      work(solver, std::span(b).subspan(static_cast<std::size_t>(s.first),
                                        static_cast<std::size_t>(s.last - s.first)));
    });
  }
  System const a = System::problem(problem("poisson2d", 7, 6, 1));
  std::vector<double> const b = random_vector(42, 4);
};
std::vector<Where> everywhere() {
  std::vector<Where> all;
  for (Method method : all_methods()) {
    for (RunChoice const& run : all_runs()) all.push_back({method, run.kind == RunKind::host ? 1 : 3, run});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, Solvers, testing::ValuesIn(everywhere()), [](auto const& one) {
  std::string text = name(one.param.method);
  std::replace(text.begin(), text.end(), '-', '_');
  return text + "_" + std::to_string(one.param.ranks) + "_" + one.param.run.name;
});

// One rank asks; all ranks end with the x of the same complete iteration, as a limit there would give it.
TEST_P(Solvers, CallbackStops) {
  for (std::int64_t at : {0, 1, 5}) {
    auto const stopped = solve_on_threads(a, b, setting(), [&](int rank, SolveOptions& o) {
      if (rank == 0) o.callback = [at](Progress const& p) { return p.iteration == at; };
    });
    EXPECT_EQ(stopped.result.status, Status::aborted);
    for (Result const& one : stopped.by_rank) EXPECT_EQ(one.message, "the callback asked it to stop.");
    EXPECT_GE(stopped.result.iterations, at);
    EXPECT_LE(stopped.result.iterations, at + 2);
    Setting limited = setting();
    limited.solve.max_iterations = stopped.result.iterations;
    auto const expected = solve_on_threads(a, b, limited);
    EXPECT_EQ(expected.result.status, Status::iteration_limit);
    EXPECT_TRUE(same_bits(stopped.x, expected.x)) << "asked at " << at;
    EXPECT_EQ(stopped.result.true_residual, expected.result.true_residual);
    EXPECT_NEAR(stopped.result.true_residual, residual_of(a, b, stopped.x), 1e-12);
  }
}

TEST_P(Solvers, CallbackSeesRisingIterations) {
  std::vector<std::vector<Progress>> seen(static_cast<std::size_t>(GetParam().ranks));
  auto const e = solve_on_threads(a, b, setting(), [&](int rank, SolveOptions& o) {
    o.callback = [&seen, rank](Progress const& p) {
      seen[static_cast<std::size_t>(rank)].push_back(p);
      return false;
    };
  });
  ASSERT_EQ(e.result.status, Status::converged);
  for (auto const& rank : seen) {
    ASSERT_EQ(rank.size(), e.result.residual_history.size());
    for (std::size_t k = 0; k < rank.size(); ++k) {
      EXPECT_EQ(rank[k].iteration, static_cast<std::int64_t>(k));
      EXPECT_EQ(rank[k].residual_norm, e.result.residual_history[k]);
      EXPECT_EQ(rank[k].target, 1e-9 * e.result.rhs_norm);
    }
  }
}

TEST_P(Solvers, TimeLimit) {
  Setting p = setting();
  p.solve.rtol = 0;
  p.solve.time_limit_s = 1e-9;
  auto const e = solve_on_threads(a, b, p);
  EXPECT_EQ(e.result.status, Status::aborted);
  EXPECT_LE(e.result.iterations, 1);
}

TEST_P(Solvers, StopRequestedByOneRank) {
  auto const e = solve_on_threads(a, b, setting(), [&](int rank, SolveOptions& o) {
    if (rank == GetParam().ranks - 1) o.run.stop_requested = [polls = 0]() mutable { return ++polls == 6; };
  });
  EXPECT_EQ(e.result.status, Status::aborted);
  EXPECT_LT(e.result.iterations, 6);
  EXPECT_NEAR(e.result.true_residual, residual_of(a, b, e.x), 1e-12);
}

TEST_P(Solvers, WhatStoppedASolveDoesNotStopTheNext) {
  std::atomic<std::int64_t> stop_at{2};
  auto const solve_twice = [&](Solver& solver, std::span<double const> mine) {
    std::vector<double> x(mine.size(), 0.0), again(mine.size(), 0.0);
    EXPECT_EQ(solver.solve(mine, x).status, Status::aborted);
    solver.multiply(x, again);  // in step: every rank has left the first solve
    std::fill(again.begin(), again.end(), 0.0);
    stop_at = -1;
    EXPECT_EQ(solver.solve(mine, again).status, Status::converged);
  };
  with_solver(solve_twice, [&](Progress const& p) { return p.iteration == stop_at; });
}

TEST_P(Solvers, SolveAgainAndAgain) {  // nothing is left over from one solve to the next
  with_solver([&](Solver& solver, std::span<double const> mine) {
    std::size_t const rows = mine.size();
    std::vector<double> x(rows, 0.0), again(rows, 0.0), other(rows, 0.0);
    Result const first = solver.solve(mine, x);
    solver.solve(std::vector<double>(rows, 1.0), other);
    Result const second = solver.solve(mine, again);
    EXPECT_EQ(second.status, Status::converged);
    EXPECT_TRUE(same_bits(first.residual_history, second.residual_history));
    EXPECT_TRUE(same_bits(x, again));
    // The solution as a guess: nothing to do, and the waiting of one solve is not counted in the next.
    Result const third = solver.solve(mine, again);
    EXPECT_EQ(third.iterations, 0);
    EXPECT_TRUE(same_bits(x, again));
  });
}

// In the middle of a solve x is that of a solve which ends there, and in other tolerances nothing is left
// over.
TEST_P(Solvers, CallbackSeesX) {
  constexpr std::int64_t at = 4;
  std::vector<std::vector<double>> seen(static_cast<std::size_t>(GetParam().ranks));
  solve_on_threads(a, b, setting(), [&](int rank, SolveOptions& o) {
    o.callback_reads_x = true;
    o.callback = [&seen, rank](Progress const& p) {
      if (p.iteration == at) seen[static_cast<std::size_t>(rank)].assign(p.x.begin(), p.x.end());
      return false;
    };
  });
  std::vector<double> whole;
  for (auto const& rank : seen) whole.insert(whole.end(), rank.begin(), rank.end());
  Setting limited = setting();
  limited.solve.max_iterations = at;
  auto expected = solve_on_threads(a, b, limited).x;
  std::sort(whole.begin(), whole.end());  // each rank's are in an order of its own
  std::sort(expected.begin(), expected.end());
  EXPECT_TRUE(same_bits(whole, expected));
}

TEST_P(Solvers, OtherTolerances) {
  with_solver([&](Solver& solver, std::span<double const> mine) {
    std::size_t const rows = mine.size();
    std::vector<double> fine(rows, 0.0), coarse(rows, 0.0), again(rows, 0.0);
    solver.solve(mine, fine);
    solver.set_tolerances(1e-2, 0);
    Result const rough = solver.solve(mine, coarse);
    EXPECT_EQ(rough.status, Status::converged);
    EXPECT_GT(rough.true_relative_residual, 1e-9);
    EXPECT_LE(rough.true_relative_residual, 1e-2);
    solver.set_tolerances(1e-9, 0);
    solver.solve(mine, again);
    EXPECT_TRUE(same_bits(fine, again));
    EXPECT_THROW(solver.set_tolerances(-1, 0), Error);
    EXPECT_THROW(solver.set_tolerances(0, std::numeric_limits<double>::quiet_NaN()), Error);
  });
}

TEST_P(Solvers, AnswersInSinglePrecision) {
  with_solver([&](Solver& solver, std::span<double const> mine) {
    std::size_t const rows = mine.size();
    std::vector<double> fine(rows, 0.0), rounded(rows, 0.0), coarse(rows, 0.0), again(rows, 0.0);
    solver.solve(mine, fine);
    solver.round_answers(true);
    Result const lost = solver.solve(mine, rounded);
    EXPECT_EQ(lost.status, Status::stagnated);
    EXPECT_TRUE(lost.lost_by_rounding);
    EXPECT_NE(lost.message.find("x rounded to fp32"), std::string::npos) << lost.message;
    EXPECT_GT(lost.true_relative_residual, 1e-9);
    EXPECT_LT(lost.true_relative_residual, 1e-5);
    for (double& one : fine) one = static_cast<float>(one);
    EXPECT_TRUE(same_bits(fine, rounded));
    std::vector<double> large(mine.begin(), mine.end()), beyond(rows, 0.0);
    for (double& one : large) one *= 1e60;
    Result const overflowed = solver.solve(large, beyond);
    EXPECT_EQ(overflowed.status, Status::not_finite);
    EXPECT_TRUE(overflowed.lost_by_rounding);
    EXPECT_NE(overflowed.message.find("beyond fp32"), std::string::npos) << overflowed.message;
    solver.set_tolerances(1e-3, 0);
    Result const held = solver.solve(mine, coarse);
    EXPECT_EQ(held.status, Status::converged);
    EXPECT_FALSE(held.lost_by_rounding);
    solver.set_tolerances(1e-9, 0);
    solver.round_answers(false);
    EXPECT_EQ(solver.solve(mine, again).status, Status::converged);
    EXPECT_FALSE(same_bits(again, rounded));
  });
}

TEST_P(Solvers, ManufacturedSolution) {
  Setting const p = setting();
  run_with_threads_transport(p.ranks, [&](Transport& t) {
    Share const s = share_of(a, p.ranks, t.group().rank(), false);
    Matrix const matrix = Matrix::from_rows(t, s.first, s.offset, s.column, s.value, p.matrix);
    Solver solver(matrix, p.solve);
    solver.manufacture(3);
    EXPECT_NEAR(solver.manufactured_error(3), 1.0, 1e-14);  // x is zero, |x*| one
    EXPECT_EQ(solver.solve().status, Status::converged);
    EXPECT_LT(solver.manufactured_error(3), 1e-6);
    EXPECT_GT(solver.manufactured_error(4), 0.1);
  });
}

// A function that multiplies with the inverse diagonal is Jacobi: z has the same bits, (r, z) the same
// contributions in the same order, so that even the bits agree.
TEST(PreconditionerFunction, DoingJacobiIsJacobi) {
  System const a = System::problem(problem("poisson2d", 9, 8, 1));
  auto const b = random_vector(72, 4);
  for (int ranks : {1, 3}) {
    for (RunChoice const& run : all_runs()) {
      Setting p;
      p.ranks = ranks;
      p.matrix.partition = MatrixOptions::Partition::contiguous;  // the function counts rows in local order
      use(p.solve, run);
      p.solve.preconditioner = PreconditionerKind::jacobi;
      auto const expected = solve_on_threads(a, b, p);
      p.solve.preconditioner = PreconditionerKind::function;
      auto const got = solve_on_threads(a, b, p, [&](int rank, SolveOptions& o) {
        std::vector<double> inverse;
        System copy = a;
        for (auto row = piece(rank, ranks, 72); row < piece(rank + 1, ranks, 72); ++row)
          inverse.push_back(1.0 / copy.at(row, row));
        o.preconditioner_function = [inverse](double const* r, double* z) {
          for (std::size_t i = 0; i < inverse.size(); ++i) z[i] = inverse[i] * r[i];
        };
      });
      EXPECT_EQ(got.result.status, Status::converged);
      EXPECT_EQ(got.result.iterations, expected.result.iterations);
      EXPECT_TRUE(same_bits(got.result.residual_history, expected.result.residual_history)) << run.name;
      EXPECT_TRUE(same_bits(got.x, expected.x)) << run.name;
    }
  }
}

TEST(Products, AreRowsOfFma) {
  System const a = System::problem(problem("poisson2d", 9, 8, 1));
  auto const x = random_vector(72, 4);
  run_with_threads_transport(1, [&](Transport& t) {
    Matrix const matrix = Matrix::from_rows(t, 0, a.offset, a.column, a.value);
    Solver solver(matrix, {});
    std::vector<double> y(72);
    solver.multiply(x, y);
    for (std::size_t i = 0; i < 72; ++i) {
      double sum = 0;
      for (auto k = static_cast<std::size_t>(a.offset[i]); k < static_cast<std::size_t>(a.offset[i + 1]); ++k)
        sum = std::fma(a.value[k], x[static_cast<std::size_t>(a.column[k])], sum);
      EXPECT_EQ(y[i], sum);
    }
  });
}

// Halved storage fixes who multiplies what; threads that find no piece, and threads with several, change no
// bit.
TEST(Products, WhoMultipliesWhatChangesNoBit) {
  System const a = System::problem(problem("elasticity-hex8", 5, 9, 4));
  auto const b = random_vector(a.rows(), 4);
  for (int ranks : {1, 2}) {
    Setting setting;
    setting.ranks = ranks;
    setting.aligned = true;
    setting.matrix.partition = MatrixOptions::Partition::contiguous;
    setting.matrix.slices = 12;
    setting.matrix.format.half_reach = 0;
    setting.solve.max_iterations = 12;
    auto const expected = solve_on_threads(a, b, setting);
    setting.matrix.format.half_reach = FormatRequest::automatic;
    for (int stored_for : {1, 2, 5}) {
      setting.matrix.format.threads = stored_for;
      for (int threads : {1, 2, 3}) {
        setting.solve.run.kind = threads == 1 ? RunKind::host : RunKind::persistent;
        setting.solve.run.threads = threads;
        auto const got = solve_on_threads(a, b, setting);
        std::string const what =
            fmt::format("{} ranks, stored for {}, {} threads", ranks, stored_for, threads);
        auto const& choices = got.result.choices;
        auto const format =
            std::find_if(choices.begin(), choices.end(), [](auto const& c) { return c.first == "format"; });
        ASSERT_NE(format, choices.end());
        EXPECT_TRUE(stored_for == 5 || format->second.find("stored once") != std::string::npos) << what;
        EXPECT_TRUE(same_bits(got.result.residual_history, expected.result.residual_history)) << what;
        EXPECT_TRUE(same_bits(got.x, expected.x)) << what;
      }
    }
  }
}

ErrorCode refusal(SolveOptions const& options) {
  Setting p;
  p.ranks = 2;
  p.solve = options;
  try {
    solve_on_threads(System::path(6), std::vector<double>(6, 1.0), p);
  } catch (Error const& e) {
    return e.code();
  }
  ADD_FAILURE() << "accepted";
  return ErrorCode::aborted;
}

TEST(Refusals, OptionsThatDoNotFit) {
  auto const with = [](auto change) {
    SolveOptions options;
    change(options);
    return refusal(options);
  };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(with([](SolveOptions& o) { o.rtol = -1; }), ErrorCode::usage);
  EXPECT_EQ(with([](SolveOptions& o) { o.rtol = nan; }), ErrorCode::usage);
  EXPECT_EQ(with([](SolveOptions& o) { o.atol = -1; }), ErrorCode::usage);
  EXPECT_EQ(with([](SolveOptions& o) { o.run.threads = 0; }), ErrorCode::usage);
  EXPECT_EQ(with([](SolveOptions& o) { o.run.threads = 2; }), ErrorCode::usage);
  EXPECT_EQ(with([](SolveOptions& o) { o.run.check_interval = 0; }), ErrorCode::usage);
  EXPECT_EQ(with([](SolveOptions& o) { o.run.check_interval = 1'000'001; }), ErrorCode::usage);
  EXPECT_EQ(with([](SolveOptions& o) { o.run.host_waits = HostWaits::every_sum; }), ErrorCode::usage);
  EXPECT_EQ(with([](SolveOptions& o) {
              o.run.gpus = 1;  // refused before anybody looks for one
              o.run.kind = RunKind::persistent;
              o.run.host_waits = HostWaits::every_iteration;
            }),
            ErrorCode::usage);
  EXPECT_EQ(with([](SolveOptions& o) { o.preconditioner = PreconditionerKind::function; }), ErrorCode::usage);
  auto const identity = [](double const* r, double* z) { std::copy_n(r, 3, z); };
  EXPECT_EQ(with([&](SolveOptions& o) { o.preconditioner_function = identity; }), ErrorCode::usage);
  EXPECT_EQ(with([&](SolveOptions& o) {
              o.preconditioner = PreconditionerKind::function;
              o.preconditioner_function = identity;
              o.method = Method::pipelined_cg;
            }),
            ErrorCode::usage);
  EXPECT_EQ(with([](SolveOptions& o) { o.checkpoint_file = "x"; }), ErrorCode::usage);
  EXPECT_EQ(with([](SolveOptions& o) { o.resume_file = "/no/such/file"; }), ErrorCode::bad_input);
}

// A transport that lacks something.
class Poorer final : public Transport {
 public:
  Poorer(Transport& whole, Support Capabilities::*absent) : whole_(whole), absent_(absent) {}
  Capabilities capabilities() const override {
    Capabilities c = whole_.capabilities();
    c.*absent_ = Support::absent;
    return c;
  }
  Group& group() override { return whole_.group(); }
  std::unique_ptr<Endpoint> bind(Binding const& binding) override { return whole_.bind(binding); }

 private:
  Transport& whole_;
  Support Capabilities::*absent_;
};

TEST(Refusals, WhatTheTransportHasNot) {
  System const a = System::path(6);
  auto const lacking = [&](Support Capabilities::*face, SolveOptions const& options) {
    auto const whole = single_transport();
    Poorer transport(*whole, face);
    Share const s = share_of(a, 1, 0, false);
    try {
      Matrix const m = Matrix::from_rows(transport, s.first, s.offset, s.column, s.value);
      Solver const solver(m, options);
    } catch (Error const& e) {
      EXPECT_EQ(e.code(), ErrorCode::usage);
      return std::string(e.what());
    }
    return std::string();
  };
  auto const run = [](RunKind kind) {
    SolveOptions options;
    options.run.kind = kind;
    return options;
  };
  EXPECT_EQ(lacking(&Capabilities::stream, run(RunKind::host)), "");  // nobody asks for it
  EXPECT_NE(lacking(&Capabilities::host, run(RunKind::host)).find("no host run"), std::string::npos);
  EXPECT_NE(lacking(&Capabilities::graph, run(RunKind::graph)).find("no graph run"), std::string::npos);
  EXPECT_NE(lacking(&Capabilities::kernel, run(RunKind::persistent)).find("no persistent run"),
            std::string::npos);
  EXPECT_NE(lacking(&Capabilities::gather, run(RunKind::host)).find("cannot gather"), std::string::npos);
  SolveOptions function;
  function.preconditioner = PreconditionerKind::function;
  function.preconditioner_function = [](double const* r, double* z) { std::copy_n(r, 6, z); };
  EXPECT_NE(lacking(&Capabilities::host_callback, function).find("no host functions"), std::string::npos);
  auto const whole = single_transport();
  Poorer transport(*whole, &Capabilities::host_callback);
  EXPECT_THROW(
      Matrix::from_function(transport, 0, 6, [](double const* x, double* y) { std::copy_n(x, 6, y); }),
      Error);
}

TEST(Refusals, VectorsOfAnotherLength) {
  EXPECT_THROW(run_with_threads_transport(2,
                                          [](Transport& t) {
                                            System const a = System::path(6);
                                            Share const s = share_of(a, 2, t.group().rank(), false);
                                            Matrix const m =
                                                Matrix::from_rows(t, s.first, s.offset, s.column, s.value);
                                            Solver solver(m, {});
                                            std::vector<double> b(3), x(t.group().rank() == 1 ? 4 : 3);
                                            solver.solve(b, x);
                                          }),
               Error);
}

TEST(Names, GoBothWays) {
  for (Method m : all_methods()) EXPECT_EQ(method_from(name(m)), m);
  for (auto k : {PreconditionerKind::none, PreconditionerKind::jacobi, PreconditionerKind::block_jacobi})
    EXPECT_EQ(preconditioner_from(name(k)), k);
  for (auto r : {Reduction::ordered, Reduction::fast}) EXPECT_EQ(reduction_from(name(r)), r);
  for (auto k : {RunKind::host, RunKind::persistent, RunKind::graph, RunKind::stream, RunKind::automatic})
    EXPECT_EQ(run_kind_from(name(k)), k);
  EXPECT_THROW(method_from("CG"), Error);
  EXPECT_THROW(preconditioner_from("function"), Error);
  EXPECT_THROW(reduction_from(""), Error);
  EXPECT_THROW(run_kind_from("streams"), Error);
}

// A projection hides what a regular matrix needs of b: with new values the null space is looked at again.
TEST(NullSpace, NewValuesMustHaveItToo) {
  for (int ranks : {1, 2}) {
    run_with_threads_transport(ranks, [&](Transport& t) {
      std::int64_t const first = 4 * t.group().rank() / ranks, last = 4 * (t.group().rank() + 1) / ranks;
      std::vector<std::int64_t> offset{0}, column;
      std::vector<double> singular, regular;
      for (std::int64_t i = first; i < last; ++i) {
        for (std::int64_t j = std::max<std::int64_t>(i - 1, 0); j <= std::min<std::int64_t>(i + 1, 3); ++j) {
          column.push_back(j);
          singular.push_back(i != j ? -1.0 : i == 0 || i == 3 ? 1.0 : 2.0);
          regular.push_back(singular.back() + (i == j ? 1.0 : 0.0));
        }
        offset.push_back(static_cast<std::int64_t>(column.size()));
      }
      Matrix matrix = Matrix::from_rows(t, first, offset, column, singular, {});
      SolveOptions options;
      options.null_space_constant = true;
      Solver solver(matrix, options);
      auto const count = static_cast<std::size_t>(last - first);
      std::vector<double> b(count), x(count);
      for (std::size_t i = 0; i < count; ++i)
        b[i] = static_cast<double>((first + static_cast<std::int64_t>(i)) * 2 - 3);
      EXPECT_EQ(solver.solve(b, x).status, Status::converged);
      matrix.update_values(offset, column, regular);
      for (int turn = 0; turn < 2; ++turn) {
        try {
          solver.solve(b, x);
          ADD_FAILURE() << "a regular matrix was accepted";
        } catch (Error const& error) {
          EXPECT_EQ(error.code(), ErrorCode::bad_input);
          EXPECT_NE(std::string(error.what()).find("not in the null space"), std::string::npos);
        }
      }
      matrix.update_values(offset, column, singular);
      EXPECT_EQ(solver.solve(b, x).status, Status::converged);
    });
  }
}

}  // namespace
}  // namespace hostless::test
