// A solve that was cut anywhere and goes on from its checkpoint ends as the uncut one, bit for bit; a file
// that is not its checkpoint is refused.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "systems.hpp"

namespace hostless::test {
namespace {

class Folder {
 public:
  Folder() {
    // Thousands of flushed files: in memory where there is such a folder.
    std::filesystem::path const memory = "/dev/shm";
    auto const parent = access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
    std::string text = (parent / "hostless-checkpoint-XXXXXX").string();
    if (mkdtemp(text.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = text;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(char const* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

struct Where {
  Method method;
  int ranks;
  RunChoice run;
};
class Checkpoint : public testing::TestWithParam<Where> {
 protected:
  Place place() const {
    Place p;
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
  for (Method method : all_methods()) {
    for (int ranks : {1, 3}) {
      for (RunChoice const& run : all_runs()) {
        if (run.lanes < 3) all.push_back({method, ranks, run});
      }
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, Checkpoint, testing::ValuesIn(everywhere()), [](auto const& one) {
  std::string text = name(one.param.method);
  std::replace(text.begin(), text.end(), '-', '_');
  return text + "_" + std::to_string(one.param.ranks) + "_" + one.param.run.name;
});

void expect_same(Ending const& got, Ending const& whole, std::string const& what) {
  EXPECT_EQ(got.result.status, whole.result.status) << what;
  EXPECT_EQ(got.result.iterations, whole.result.iterations) << what;
  EXPECT_EQ(got.result.restarts, whole.result.restarts) << what;
  EXPECT_EQ(got.result.true_residual, whole.result.true_residual) << what;
  EXPECT_TRUE(same_bits(got.result.residual_history, whole.result.residual_history)) << what;
  EXPECT_TRUE(same_bits(got.x, whole.x)) << what;
}

TEST_P(Checkpoint, CutAnywhereGoesOnBitForBit) {
  Ending const whole = solve_on_threads(a, b, place());
  ASSERT_EQ(whole.result.status, Status::converged);
  ASSERT_GT(whole.result.iterations, 6);
  for (std::int64_t k = 1; k < whole.result.iterations; ++k) {
    Place cut = place();
    cut.solve.checkpoint_file = folder.file("k");
    cut.solve.checkpoint_every = k;
    cut.solve.max_iterations = k + 1;  // what is after k is lost
    Ending const first = solve_on_threads(a, b, cut);
    EXPECT_EQ(first.result.status,
              k + 1 == whole.result.iterations ? Status::converged : Status::iteration_limit);
    EXPECT_EQ(first.result.checkpoints, 1);
    EXPECT_FALSE(std::filesystem::exists(folder.file("k.partial")));
    Place rest = place();
    rest.solve.resume_file = folder.file("k");
    // The guess does not matter any more.
    expect_same(solve_on_threads(a, b, std::vector<double>(20, 5.0), rest), whole,
                "cut at " + std::to_string(k));
  }
}

TEST_P(Checkpoint, WritingThemChangesNothing) {
  Ending const whole = solve_on_threads(a, b, place());
  for (std::int64_t every : {1, 3}) {
    Place p = place();
    p.solve.checkpoint_file = folder.file("w");
    p.solve.checkpoint_every = every;
    Ending const e = solve_on_threads(a, b, p);
    expect_same(e, whole, "every " + std::to_string(every));
    EXPECT_EQ(e.result.checkpoints, (whole.result.iterations - 1) / every);
  }
}

// With a polynomial an iteration starts where it can pause: what was written there is not written again.
TEST(CheckpointOfAPolynomial, GoesOnBitForBit) {
  Folder folder;
  System const a = System::problem(problem("poisson2d", 20, 20, 1));
  auto const b = random_vector(a.rows(), 6);
  Place p;
  p.solve.preconditioner = PreconditionerKind::chebyshev;
  Ending const whole = solve_on_threads(a, b, p);
  ASSERT_EQ(whole.result.status, Status::converged);
  ASSERT_GT(whole.result.iterations, 6);
  Place cut = p;
  cut.solve.checkpoint_file = folder.file("k");
  cut.solve.checkpoint_every = 3;
  cut.solve.max_iterations = 4;
  EXPECT_EQ(solve_on_threads(a, b, cut).result.checkpoints, 1);
  Place rest = p;
  rest.solve.resume_file = folder.file("k");
  expect_same(solve_on_threads(a, b, rest), whole, "after 3 iterations");
}

// A checkpoint is of the method and the plan, not of the run: it goes on under another one.
TEST_P(Checkpoint, GoesOnUnderAnotherRun) {
  Ending const whole = solve_on_threads(a, b, place());
  Place cut = place();
  cut.solve.checkpoint_file = folder.file("r");
  cut.solve.checkpoint_every = 4;
  cut.solve.max_iterations = 5;
  solve_on_threads(a, b, cut);
  Place rest = place();
  use(rest.solve, all_runs()[2]);
  rest.solve.resume_file = folder.file("r");
  expect_same(solve_on_threads(a, b, rest), whole, "under persistent");
}

class Refused : public testing::Test {
 protected:
  void SetUp() override {
    place.ranks = 2;
    place.solve.checkpoint_file = folder.file("c");
    place.solve.checkpoint_every = 2;
    place.solve.max_iterations = 5;
    solve_on_threads(a, b, place);
    resumed.ranks = 2;
    resumed.solve.resume_file = folder.file("c");
    bytes = std::filesystem::file_size(folder.file("c"));
  }
  ErrorCode refusal(Place const& p, std::vector<double> const& rhs) {
    try {
      solve_on_threads(a, rhs, p);
    } catch (Error const& e) {
      EXPECT_NE(std::string(e.what()).find(p.solve.resume_file), std::string::npos) << e.what();
      return e.code();
    }
    return ErrorCode::usage;
  }
  System const a = System::problem(problem("poisson2d", 5, 4, 1));
  std::vector<double> const b = random_vector(20, 4);
  Folder folder;
  Place place, resumed;
  std::uintmax_t bytes = 0;
};

TEST_F(Refused, NotWhenEverythingFits) {
  EXPECT_EQ(solve_on_threads(a, b, resumed).result.status, Status::converged);
}

TEST_F(Refused, OtherPlanMethodPreconditionerOrRightHandSide) {
  Place p = resumed;
  p.ranks = 3;
  EXPECT_EQ(refusal(p, b), ErrorCode::bad_input);
  p = resumed;
  p.matrix.slices = 2;
  EXPECT_EQ(refusal(p, b), ErrorCode::bad_input);
  p = resumed;
  p.solve.method = Method::pipelined_cg;
  EXPECT_EQ(refusal(p, b), ErrorCode::bad_input);
  p = resumed;
  p.solve.preconditioner = PreconditionerKind::jacobi;
  EXPECT_EQ(refusal(p, b), ErrorCode::bad_input);
  auto other = b;
  other[7] = std::nextafter(other[7], 2.0);
  EXPECT_EQ(refusal(resumed, other), ErrorCode::bad_input);
  for (std::size_t i = 0; i < b.size(); ++i) other[i] = -b[i];  // the same norm
  EXPECT_EQ(refusal(resumed, other), ErrorCode::bad_input);
}

TEST_F(Refused, OtherValuesOfTheSamePattern) {
  System scaled = a;
  for (double& v : scaled.value) v *= 2;
  EXPECT_THROW(solve_on_threads(scaled, b, resumed), Error);
}

TEST_F(Refused, CutAnywhere) {
  std::ifstream in(folder.file("c"), std::ios::binary);
  std::string const whole((std::istreambuf_iterator<char>(in)), {});
  for (std::uintmax_t length = 0; length < bytes; length += 1 + bytes / 40) {
    std::ofstream(folder.file("cut"), std::ios::binary) << whole.substr(0, length);
    Place p = resumed;
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
    Place p = resumed;
    p.solve.resume_file = folder.file("damaged");
    EXPECT_EQ(refusal(p, b), ErrorCode::bad_input) << "byte " << at << " of " << whole.size();
  }
}

TEST_F(Refused, FilesThatAreNone) {
  Place p = resumed;
  p.solve.resume_file = folder.file("not there");
  EXPECT_EQ(refusal(p, b), ErrorCode::usage);
  std::ofstream(folder.file("text")) << std::string(5000, 'x');
  p.solve.resume_file = folder.file("text");
  EXPECT_EQ(refusal(p, b), ErrorCode::bad_input);
}

TEST_F(Refused, WhatCannotBeWrittenKeepsTheOlderOne) {
  Place p = place;
  p.solve.checkpoint_file = folder.file("no such folder") + "/c";
  try {
    solve_on_threads(a, b, p);
    FAIL() << "accepted";
  } catch (Error const& e) {
    EXPECT_EQ(e.code(), ErrorCode::environment) << e.what();
  }
  EXPECT_EQ(solve_on_threads(a, b, resumed).result.status, Status::converged);
}

}  // namespace
}  // namespace hostless::test
