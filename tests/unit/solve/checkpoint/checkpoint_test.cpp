// A solve that was cut anywhere and goes on from its checkpoint ends as the uncut one, bit for bit; a file
// that is not its checkpoint is refused.
#include "solve/checkpoint.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "checkpoint_checks.hpp"
#include "failing_calls.hpp"
#include "sample.hpp"
#include "systems.hpp"

namespace hostless::test {
namespace {

struct Where {
  Method method;
  int ranks;
  RunChoice run;
};
class Checkpoint : public testing::TestWithParam<Where> {
 protected:
  Setting setting() const {
    Setting p;
    p.ranks = GetParam().ranks;
    p.matrix.slices = 3;
    p.solve.method = GetParam().method;
    p.solve.rtol = 1e-9;
    p.solve.preconditioner = PreconditionerKind::jacobi;
    use(p.solve, GetParam().run);
    return p;
  }
  System const a = System::problem(problem("poisson2d", 5, 4, 1));
  std::vector<double> const b = random_vector(20, 4);
  Folder folder;
};
std::vector<Where> everywhere() {
  std::vector<Where> all;
  std::size_t row = 0;
  for (Method method : all_methods())  // of a sample a run has 1 rank or 3, so that all pairs come
    for (std::size_t number = row++; RunChoice const& run : all_runs()) {
      for (int ranks : {1, 3})
        if (run.threads < 3 && is_tried(number++, 2)) all.push_back({method, ranks, run});
      ++number;
    }
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, Checkpoint, testing::ValuesIn(everywhere()), [](auto const& one) {
  std::string text = name(one.param.method);
  std::replace(text.begin(), text.end(), '-', '_');
  return text + "_" + std::to_string(one.param.ranks) + "_" + one.param.run.name;
});

TEST_P(Checkpoint, CutAnywhereGoesOnBitForBit) {
  Ending const whole = solve_on_threads(a, b, setting());
  ASSERT_EQ(whole.result.status, Status::converged);
  ASSERT_GT(whole.result.iterations, 6);
  for (std::int64_t k = 1; k < whole.result.iterations; k += of_all(1, 3)) {
    Setting cut = setting();
    cut.solve.checkpoint_file = folder.file("k");
    cut.solve.checkpoint_every = k;
    cut.solve.max_iterations = k + 1;
    Ending const first = solve_on_threads(a, b, cut);
    bool const converges = k + 1 == whole.result.iterations;
    EXPECT_EQ(first.result.status, converges ? Status::converged : Status::iteration_limit);
    EXPECT_EQ(first.result.checkpoints, converges ? 1 : 2);  // of k, and of the end
    EXPECT_EQ(folder.files(), 1u);
    Setting rest = setting();
    rest.solve.resume_file = folder.file("k");
    // The guess does not matter any more.
    expect_same(solve_on_threads(a, b, std::vector<double>(20, 5.0), rest), whole,
                "cut at " + std::to_string(k));
  }
}

// However short the parts are, each goes on from the end of the one before.
TEST_P(Checkpoint, AChainOfLimitsGoesOnBitForBit) {
  Ending const whole = solve_on_threads(a, b, setting());
  for (std::int64_t part : {1, 3}) {
    Setting p = setting();
    p.solve.checkpoint_file = folder.file("e");
    p.solve.checkpoint_every = 1000;
    p.solve.max_iterations = part;
    Ending last = solve_on_threads(a, b, p);
    for (; last.result.status == Status::iteration_limit; last = solve_on_threads(a, b, p)) {
      ASSERT_EQ(last.result.iterations, p.solve.max_iterations);
      EXPECT_EQ(last.result.checkpoints, 1);
      EXPECT_EQ(last.result.message.find("heckpoint"), std::string::npos) << last.result.message;
      Setting uncut = setting();
      uncut.solve.max_iterations = p.solve.max_iterations;
      Ending const without = solve_on_threads(a, b, uncut);
      expect_same(last, without, "up to " + std::to_string(p.solve.max_iterations));
      p.solve.resume_file = p.solve.checkpoint_file;
      p.solve.max_iterations += part;
    }
    expect_same(last, whole, "parts of " + std::to_string(part));
  }
}

// What a wish ends is as whole as what the limit ends.
TEST_P(Checkpoint, AWishedEndGoesOnBitForBit) {
  Ending const whole = solve_on_threads(a, b, setting());
  for (std::int64_t k = 1; k + 3 < whole.result.iterations; k += 2) {
    Setting cut = setting();
    cut.solve.checkpoint_file = folder.file("s");
    cut.solve.checkpoint_every = 1000;
    Ending const first = solve_on_threads(a, b, cut, [&](int, SolveOptions& o) {
      o.callback = [k](Progress const& at) { return at.iteration >= k; };
    });
    ASSERT_EQ(first.result.status, Status::aborted);
    EXPECT_EQ(first.result.checkpoints, 1);
    Setting rest = setting();
    rest.solve.resume_file = folder.file("s");
    Ending const e = solve_on_threads(a, b, rest);
    EXPECT_EQ(e.result.resumed_at, first.result.iterations);
    expect_same(e, whole, "stopped at " + std::to_string(k));
  }
}

TEST_P(Checkpoint, WritingThemChangesNothing) {
  Ending const whole = solve_on_threads(a, b, setting());
  for (std::int64_t every : {1, 3}) {
    Setting p = setting();
    p.solve.checkpoint_file = folder.file("w");
    p.solve.checkpoint_every = every;
    Ending const e = solve_on_threads(a, b, p);
    expect_same(e, whole, "every " + std::to_string(every));
    EXPECT_EQ(e.result.checkpoints, (whole.result.iterations - 1) / every);
  }
}

// Iterations that end in a true residual cannot be left there: those on a multiple are written one later, and
// the rest goes on to be written.
TEST(CheckpointsAndTrueResiduals, OneInTheWayEndsNone) {
  Folder folder;
  System const a = System::problem(problem("poisson2d", 24, 24, 1, 1e6));
  auto const b = random_vector(a.rows(), 6);
  Setting p;
  p.solve.matrix_precision = MatrixPrecision::fp32;
  p.solve.preconditioner = PreconditionerKind::jacobi;
  p.solve.rtol = 1e-14;
  p.solve.checkpoint_file = folder.file("k");
  for (std::int64_t every : {5, 37}) {
    p.solve.checkpoint_every = every;
    auto const e = solve_on_threads(a, b, p);
    ASSERT_GT(e.result.replacements, 1);
    std::int64_t const met = (e.result.iterations - 1) / every,
                       ends = e.result.replacements + e.result.restarts;
    EXPECT_LE(e.result.checkpoints, met) << every;
    EXPECT_GE(e.result.checkpoints, met - ends) << every;
  }
}

// With a polynomial an iteration starts where it can pause: what was written there is not written again.
TEST(CheckpointOfAPolynomial, GoesOnBitForBit) {
  Folder folder;
  System const a = System::problem(problem("poisson2d", 20, 20, 1));
  auto const b = random_vector(a.rows(), 6);
  Setting p;
  p.solve.preconditioner = PreconditionerKind::chebyshev;
  Ending const whole = solve_on_threads(a, b, p);
  ASSERT_EQ(whole.result.status, Status::converged);
  ASSERT_GT(whole.result.iterations, 6);
  Setting cut = p;
  cut.solve.checkpoint_file = folder.file("k");
  cut.solve.checkpoint_every = 3;
  cut.solve.max_iterations = 4;
  EXPECT_EQ(solve_on_threads(a, b, cut).result.checkpoints, 2);
  Setting rest = p;
  rest.solve.resume_file = folder.file("k");
  Ending const gone_on = solve_on_threads(a, b, rest);
  EXPECT_EQ(gone_on.result.resumed_at, 4);
  expect_same(gone_on, whole, "after 4 iterations");
}

// M r that a function has left is read by the next iteration, so a checkpoint has it too.
TEST_P(Checkpoint, OfAFunctionGoesOnBitForBit) {
  if (!facts_of(GetParam().method).offers.apart) return;
  Setting p = setting();
  p.solve.preconditioner = PreconditionerKind::function;
  auto const solve = [&](Setting const& with) {
    return solve_on_threads(a, b, with, [&](int rank, SolveOptions& o) {
      auto const rows =
          static_cast<std::size_t>(piece(rank + 1, with.ranks, 20) - piece(rank, with.ranks, 20));
      o.preconditioner_function = [rows](double const* r, double* z) {
        for (std::size_t i = 0; i < rows; ++i) z[i] = r[i] / static_cast<double>(1 + i % 3);
      };
    });
  };
  Ending const whole = solve(p);
  ASSERT_EQ(whole.result.status, Status::converged);
  ASSERT_GT(whole.result.iterations, 6);
  for (std::int64_t k = 1; k < whole.result.iterations; k += of_all(1, 3)) {
    Setting cut = p;
    cut.solve.checkpoint_file = folder.file("f");
    cut.solve.checkpoint_every = k;
    cut.solve.max_iterations = k + 1;
    EXPECT_GE(solve(cut).result.checkpoints, 1);
    Setting rest = p;
    rest.solve.resume_file = folder.file("f");
    expect_same(solve(rest), whole, "cut at " + std::to_string(k));
  }
}

// Where x is projected at an end and the method goes on from it, that is no other solve.
TEST_P(Checkpoint, GoesOnThroughProjections) {
  System almost = System::path(20, true);
  almost.at(0, 0) += 1e-9;  // what is left of it in the residual keeps the target out of reach
  std::vector<double> const rhs = System::path(20, true).times(b), far(20, 1e5);
  Setting p = setting();
  p.solve.preconditioner = PreconditionerKind::none;
  p.solve.null_space_constant = true;
  p.solve.rtol = 1e-12;
  Ending const whole = solve_on_threads(almost, rhs, far, p);
  bool const gives_up_late = GetParam().method == Method::bicgstab;  // its restarts are long
  ASSERT_TRUE(whole.result.status == Status::stagnated ||
              (gives_up_late && whole.result.status == Status::iteration_limit));
  ASSERT_GE(whole.result.restarts, gives_up_late ? 0 : 1);
  for (std::int64_t k = 1, missed = 0; k < whole.result.iterations; k += 5) {
    Setting cut = p;
    cut.solve.checkpoint_file = folder.file("p");
    cut.solve.checkpoint_every = k;
    cut.solve.max_iterations = k + 1;
    if (solve_on_threads(almost, rhs, far, cut).result.checkpoints == 0) {
      ASSERT_LE(++missed, whole.result.restarts + 1);  // an end was proposed just there
      continue;
    }
    Setting rest = p;
    rest.solve.resume_file = folder.file("p");
    expect_same(solve_on_threads(almost, rhs, far, rest), whole, "cut at " + std::to_string(k));
  }
}

// A checkpoint is of the method and the plan, not of the run: it goes on under another one.
TEST_P(Checkpoint, GoesOnUnderAnotherRun) {
  Ending const whole = solve_on_threads(a, b, setting());
  Setting cut = setting();
  cut.solve.checkpoint_file = folder.file("r");
  cut.solve.checkpoint_every = 4;
  cut.solve.max_iterations = 5;
  solve_on_threads(a, b, cut);
  Setting rest = setting();
  use(rest.solve, all_runs()[2]);
  rest.solve.resume_file = folder.file("r");
  expect_same(solve_on_threads(a, b, rest), whole, "under persistent");
}

class Refused : public Saved {
 protected:
  void SetUp() override {
    Saved::SetUp();
    bytes = std::filesystem::file_size(folder.file("c"));
  }
  ErrorCode refusal(Setting const& p, std::vector<double> const& rhs, std::string const& says = "") {
    return refusal(a, p, rhs, says);
  }
  ErrorCode refusal(System const& system, Setting const& p, std::vector<double> const& rhs,
                    std::string const& says) {
    try {
      solve_on_threads(system, rhs, p);
    } catch (Error const& e) {
      EXPECT_NE(std::string(e.what()).find(p.solve.resume_file), std::string::npos) << e.what();
      if (!says.empty())
        EXPECT_NE(std::string(e.what()).find(": a checkpoint of another solve: " + says + " (it would"),
                  std::string::npos)
            << e.what();
      return e.code();
    }
    return ErrorCode::usage;
  }
  std::uintmax_t bytes = 0;
};

TEST_F(Refused, NotWhenEverythingFits) {
  EXPECT_EQ(solve_on_threads(a, b, resumed).result.status, Status::converged);
}

TEST_F(Refused, OtherPlanMethodPreconditionerOrRightHandSide) {
  Setting p = resumed;
  p.ranks = 3;
  EXPECT_EQ(refusal(p, b, "ranks 2 (here 3)"), ErrorCode::bad_input);
  p = resumed;
  p.matrix.slices = 2;
  EXPECT_EQ(refusal(p, b, "another partition, block size, route, nodes, slices or pattern of the matrix"),
            ErrorCode::bad_input);
  p = resumed;
  p.solve.method = Method::pipelined_cg;
  EXPECT_EQ(refusal(p, b, "method cg (here pipelined-cg)"), ErrorCode::bad_input);
  p = resumed;
  p.solve.preconditioner = PreconditionerKind::jacobi;
  EXPECT_EQ(refusal(p, b, "preconditioner none (here jacobi)"), ErrorCode::bad_input);
  p = resumed;
  p.solve.reduction = Reduction::fast;
  EXPECT_EQ(refusal(p, b, "reduction ordered (here fast)"), ErrorCode::bad_input);
  p = resumed;
  p.solve.method = Method::minres;
  p.solve.preconditioner = PreconditionerKind::jacobi;
  EXPECT_EQ(refusal(p, b, "method cg (here minres), preconditioner none (here jacobi)"),
            ErrorCode::bad_input);
  auto other = b;
  other[7] = std::nextafter(other[7], 2.0);
  EXPECT_EQ(refusal(resumed, other, "another right-hand side"), ErrorCode::bad_input);
  for (std::size_t i = 0; i < b.size(); ++i) other[i] = -b[i];  // the same norm
  EXPECT_EQ(refusal(resumed, other, "another right-hand side"), ErrorCode::bad_input);
}

TEST_F(Refused, OtherValuesOfTheSamePattern) {
  System scaled = a;
  for (double& v : scaled.value) v *= 2;
  EXPECT_EQ(refusal(scaled, resumed, b, "another matrix"), ErrorCode::bad_input);
}

TEST_F(Refused, AnotherSize) {
  System const larger = System::problem(problem("poisson2d", 6, 4, 1));
  EXPECT_EQ(refusal(larger, resumed, random_vector(24, 4), "rows 20 (here 24)"), ErrorCode::bad_input);
}

TEST_F(Refused, CutAnywhere) {
  std::ifstream in(folder.file("c"), std::ios::binary);
  std::string const whole((std::istreambuf_iterator<char>(in)), {});
  for (std::uintmax_t length = 0; length < bytes; length += 1 + bytes / 40) {
    std::ofstream(folder.file("cut"), std::ios::binary) << whole.substr(0, length);
    Setting p = resumed;
    p.solve.resume_file = folder.file("cut");
    EXPECT_EQ(refusal(p, b), ErrorCode::bad_input) << length << " of " << bytes;
  }
}

// One bit anywhere, the state and the history included.
TEST_F(Refused, DamagedAnywhere) {
  std::ifstream in(folder.file("c"), std::ios::binary);
  std::string const whole((std::istreambuf_iterator<char>(in)), {});
  Ending const right = solve_on_threads(a, b, resumed);
  for (std::size_t at = 0; at < whole.size(); at += 1 + whole.size() / 200) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    std::ofstream(folder.file("damaged"), std::ios::binary) << damaged;
    Setting p = resumed;
    p.solve.resume_file = folder.file("damaged");
    EXPECT_EQ(refusal(p, b), ErrorCode::bad_input) << "byte " << at << " of " << whole.size();
  }
}

TEST_F(Refused, FilesThatAreNone) {
  Setting p = resumed;
  p.solve.resume_file = folder.file("not there");
  EXPECT_EQ(refusal(p, b), ErrorCode::bad_input);
  std::ofstream(folder.file("text")) << std::string(5000, 'x');
  p.solve.resume_file = folder.file("text");
  EXPECT_EQ(refusal(p, b), ErrorCode::bad_input);
}

TEST_F(Refused, WhatCannotBeReadIsBadInput) {
  samples::FailingCalls counting(0);
  use_file_calls(&counting);
  solve_on_threads(a, b, resumed);
  use_file_calls(nullptr);
  ASSERT_GT(counting.calls(), 4);
  for (int k = 1; k <= counting.calls(); ++k) {
    samples::FailingCalls failing(k);
    use_file_calls(&failing);
    EXPECT_EQ(refusal(resumed, b), ErrorCode::bad_input) << "call " << k;
    use_file_calls(nullptr);
    EXPECT_TRUE(failing.all_closed()) << "call " << k;
  }
}

// A file whose checksums are right and whose numbers are not: whoever made it meant it.
TEST_F(Refused, NumbersThatNoPausedSolveHas) {
  std::ifstream in(folder.file("c"), std::ios::binary);
  std::string const whole((std::istreambuf_iterator<char>(in)), {});
  std::vector<std::uint64_t> words(whole.size() / 8);
  std::memcpy(words.data(), whole.data(), whole.size());
  auto const refused = [&](std::size_t at, std::uint64_t value) {
    auto bad = words;
    bad[at] = value;
    bad[CheckpointWords::checksum] = 0;
    std::size_t const head = std::min<std::size_t>(bad[CheckpointWords::head], bad.size());
    bad[CheckpointWords::checksum] = checksum(std::as_bytes(std::span(bad).first(head)));
    std::ofstream(folder.file("made"), std::ios::binary)
        .write(reinterpret_cast<char const*>(bad.data()), static_cast<std::streamsize>(whole.size()));
    Setting p = resumed;
    p.solve.resume_file = folder.file("made");
    return refusal(p, b);
  };
  std::size_t const history = CheckpointWords::identity + 17, state = history + 1, iteration = state + 12;
  ASSERT_EQ(words[iteration], 5u);
  ASSERT_EQ(words[history], 6u);
  for (std::uint64_t const value : {~0ull, 1ull << 63, 1ull << 53, 6ull, 4ull})
    EXPECT_EQ(refused(iteration, value), ErrorCode::bad_input) << "iteration " << value;
  for (std::uint64_t const value : {~0ull, 1ull << 63, 1ull << 61, 0ull, 5ull, 7ull})
    EXPECT_EQ(refused(history, value), ErrorCode::bad_input) << "history " << value;
  for (std::uint64_t const value : {~0ull, 1ull << 63, 0ull, 5ull, 1ull + words.size()})
    EXPECT_EQ(refused(CheckpointWords::head, value), ErrorCode::bad_input) << "head " << value;
  auto const nan = std::bit_cast<std::uint64_t>(std::nan(""));
  std::size_t const values = state + 21, upper = values + 22;
  for (std::size_t k = 0; k < 8; ++k) EXPECT_EQ(refused(state + k, nan), ErrorCode::bad_input) << k;
  for (std::size_t k = 0; k < 24; ++k) EXPECT_EQ(refused(values + k, nan), ErrorCode::bad_input) << k;
  for (std::size_t k : {9u, 10u, 11u, 13u, 14u, 15u, 16u, 17u, 18u, 19u, 20u})  // counts and flags
    EXPECT_EQ(refused(state + k, ~0ull), ErrorCode::bad_input) << k;
  EXPECT_EQ(refused(state + 8, 6), ErrorCode::bad_input);   // changed at an iteration to come
  EXPECT_EQ(refused(state + 17, 0), ErrorCode::bad_input);  // neither gate: it would turn for ever
  EXPECT_EQ(refused(state + 10, 1), ErrorCode::bad_input) << "a rounded matrix that is not there";
  auto const infinite = std::bit_cast<std::uint64_t>(HUGE_VAL), negative = std::bit_cast<std::uint64_t>(-1.0);
  for (std::size_t k = 0; k < 2; ++k)
    EXPECT_EQ(refused(upper + k, negative), ErrorCode::bad_input) << "a bound of eigenvalues";
  for (std::size_t k = 0; k < 4 * 6; ++k) {
    for (std::uint64_t const value : {nan, infinite, negative})
      EXPECT_EQ(refused(values + 24 + k, value), ErrorCode::bad_input) << "word " << k << " of the history";
  }
  EXPECT_EQ(refused(state + 19, 1 - words[state + 19]), ErrorCode::usage) << "what is fine is not refused";
}

TEST_F(Refused, WhatFollowsAWholeOne) {
  std::filesystem::copy_file(folder.file("c"), folder.file("longer"));
  std::ofstream(folder.file("longer"), std::ios::binary | std::ios::app) << "12345678";
  Setting p = resumed;
  p.solve.resume_file = folder.file("longer");
  EXPECT_EQ(refusal(p, b), ErrorCode::bad_input);
}

TEST_F(Refused, WhatCannotBeWrittenKeepsTheOlderOne) {
  Setting p = setting;
  p.solve.checkpoint_file = folder.file("no such folder") + "/c";
  try {
    solve_on_threads(a, b, p);
    FAIL() << "accepted";
  } catch (Error const& e) {
    EXPECT_EQ(e.code(), ErrorCode::environment) << e.what();
  }
  EXPECT_EQ(solve_on_threads(a, b, resumed).result.status, Status::converged);
}

// Two files that differ in nothing but the values of rank 1, of which each rank reads another: as where one takes the
// place of the other meanwhile.
TEST(CheckpointOfRanks, EachReadsTheSameFile) {
  Folder folder;
  std::vector<StepRecord> const history(1);
  auto const path = [&](int which) { return folder.file(which == 0 ? "a" : "b"); };
  for (bool const mixed : {false, true}) {
    run_on_threads(2, [&](Group& group) {
      int const rank = group.rank();
      for (int which = 0; which < 2; ++which) {
        std::vector<double> const mine(3, rank == 1 ? which : 5.0);
        write_checkpoint(group, path(which), {}, State{}, history, {mine});
      }
      std::vector<double> read(3);
      std::vector<StepRecord> kept(4);
      auto const of_one = [&](int which) { read_checkpoint(group, path(which), {}, State{}, kept, {read}); };
      if (!mixed) {
        of_one(1);
        EXPECT_EQ(read, std::vector<double>(3, rank == 1 ? 1.0 : 5.0));
        return;
      }
      try {
        of_one(rank);
        ADD_FAILURE() << "accepted";
      } catch (Error const& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_input);
        EXPECT_NE(std::string(error.what()).find("another file had taken its place"), std::string::npos)
            << error.what();
      }
    });
  }
}

// The seeds of the fuzzer stay what they are meant to be.
TEST(CheckpointCorpus, SeedsAreReadOrRefused) {
  int good = 0, bad = 0;
  for (auto const& entry : std::filesystem::directory_iterator(HOSTLESS_CHECKPOINT_CORPUS)) {
    auto const name = entry.path().filename().string();
    if (name.front() == '.') continue;
    std::vector<StepRecord> history(8);
    std::vector<double> first(2), second(2);
    std::string problem;
    try {
      State const state = read_checkpoint(*single_group(), entry.path().string(), CheckpointIdentity{},
                                          State{}, history, {first, second});
      EXPECT_EQ(state.iteration, name == "good" ? 3 : 0);
      EXPECT_EQ(second, (std::vector<double>{3, 4}));
      ++good;
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      problem = error.what();
      ++bad;
    }
    EXPECT_EQ(problem.empty(), name.rfind("good", 0) == 0) << name << ": " << problem;
  }
  EXPECT_EQ(good, 2);
  EXPECT_GE(bad, 12);
}

}  // namespace
}  // namespace hostless::test
