// A process ends with its exit code, and without a crash, whatever is still inside a library.
#include "transport/stream/stragglers.hpp"

#include <gtest/gtest.h>

namespace hostless::gpu {
namespace {

/// A thread that works for so long on what a static's destructor takes away.
void work_for(std::chrono::milliseconds duration, double patience_s) {
  auto done = std::make_shared<std::atomic<bool>>(false);
  std::thread thread([done, duration] {
    std::this_thread::sleep_for(duration);
    std::fputs("worked to the end\n", stderr);
    done->store(true);
  });
  Stragglers::keep(std::move(thread), done, patience_s);
}

class Gone {
 public:
  ~Gone() { std::fputs("destructors of statics\n", stderr); }
};
void end(int code) {
  static Gone const gone;
  std::exit(code);
}

class StragglersDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(StragglersDeathTest, AreAwaitedBeforeStaticsGo) {
  EXPECT_EXIT(
      {
        static Gone const gone;  // made before: goes after
        work_for(std::chrono::milliseconds(200), 240);
        std::exit(7);
      },
      testing::ExitedWithCode(7), "worked to the end\ndestructors of statics");
}

TEST_F(StragglersDeathTest, ThatStayEndTheProcessWithItsCode) {
  EXPECT_EXIT(
      {
        work_for(std::chrono::hours(1), 0.1);
        end(3);
      },
      testing::ExitedWithCode(3), "");
}

TEST_F(StragglersDeathTest, ManyAreJoinedAsTheyEnd) {
  EXPECT_EXIT(
      {
        for (int k = 0; k < 50; ++k) work_for(std::chrono::milliseconds(k % 3), 240);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hostless::gpu
