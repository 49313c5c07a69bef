// Checkpoints that cannot be written: the older one stays, and the solve goes on.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "checkpoint_checks.hpp"
#include "failing_calls.hpp"

namespace hostless::test {
namespace {

class Unwritten : public Saved {};

// Whatever call fails: the older checkpoint as it was, nothing beside it, and the answer with a word of why.
TEST_F(Unwritten, EveryCallThatFailsKeepsTheOlderOne) {
  auto const content = [&] {
    std::ifstream in(folder.file("c"), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  Setting p = setting;
  p.solve.checkpoint_every = p.solve.max_iterations = 3;  // other bytes than the older one's
  for (int ranks : {1, 2}) {
    std::string const older = content();
    p.ranks = ranks;
    samples::FailingCalls counting(0);
    Setting elsewhere = p;
    elsewhere.solve.checkpoint_file = folder.file("other");
    use_file_calls(&counting);
    Ending const whole = solve_on_threads(a, b, elsewhere);
    use_file_calls(nullptr);
    EXPECT_EQ(whole.result.checkpoint_problem, "");
    EXPECT_TRUE(counting.stored());
    EXPECT_TRUE(counting.all_closed());
    std::filesystem::remove(folder.file("other"));
    ASSERT_GT(counting.calls(), 8);
    int changed = 0, refused = 0, unseen = 0;
    for (int k = 1; k <= counting.calls(); ++k) {
      samples::FailingCalls failing(k);
      use_file_calls(&failing);
      std::string problem;
      try {
        Ending const ended = solve_on_threads(a, b, p);
        expect_same(ended, whole, "call " + std::to_string(k));
        problem = ended.result.checkpoint_problem;
        EXPECT_EQ(ended.result.checkpoints, problem.empty() ? 1 : 0) << "call " << k;
      } catch (Error const& e) {  // before the first iteration
        EXPECT_EQ(e.code(), ErrorCode::environment) << "call " << k << ": " << e.what();
        problem = e.what();
        ++refused;
      }
      use_file_calls(nullptr);
      if (problem.empty()) {
        ++unseen;
      } else {
        EXPECT_NE(problem.find(p.solve.checkpoint_file), std::string::npos)
            << "call " << k << ": " << problem;
      }
      EXPECT_TRUE(failing.all_closed()) << "call " << k;
      EXPECT_EQ(folder.files(), 1u) << "call " << k;
      if (content() != older) {
        ++changed;  // only the folder could not be stored: the new one is there, and whole
        Setting q = resumed;
        q.ranks = ranks;
        EXPECT_EQ(solve_on_threads(a, b, q).result.status, Status::converged);
        solve_on_threads(a, b, setting);
      }
    }
    EXPECT_LE(changed - unseen, 2) << "opening the folder, and storing it";
    EXPECT_LE(unseen, 1) << "closing what was only tried";
    EXPECT_LE(refused, 3) << "whether there can be one at all";
  }
}

// Two are due: what is told is of the last.
TEST_F(Unwritten, OneThatFitsAfterOneThatDidNot) {
  Setting p = setting;
  p.ranks = 1;
  p.solve.max_iterations = 4;
  int mended = 0, told = 0;
  for (int k = 1;; ++k) {
    samples::FailingCalls failing(k);
    use_file_calls(&failing);
    Result ended;
    try {
      ended = solve_on_threads(a, b, p).result;
    } catch (Error const&) {  // before the first iteration
    }
    use_file_calls(nullptr);
    if (failing.calls() < k) break;
    if (ended.checkpoints == 1) ++(ended.checkpoint_problem.empty() ? mended : told);
  }
  EXPECT_GT(mended, 2);
  EXPECT_GT(told, 2);
}

}  // namespace
}  // namespace hostless::test
