#include "hostless/transport/launcher.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "hostless/base/wait.hpp"
#include "own_folder.hpp"
#include "transport/signals.hpp"

namespace hostless {
namespace {

int run(int ranks, std::string const& script, double grace_s = 0.3, double limit_s = 600) {
  return launch({ranks, {"sh", "-c", script}, limit_s, grace_s});
}

TEST(Launcher, TellsEachRankWhoItIs) {
  testing::internal::CaptureStdout();
  int const code = run(3, "test -d \"$HOSTLESS_RENDEZVOUS\" && echo rank $HOSTLESS_RANK of $HOSTLESS_SIZE");
  std::istringstream lines(testing::internal::GetCapturedStdout());
  std::multiset<std::string> seen;
  for (std::string line; std::getline(lines, line);) seen.insert(line);
  EXPECT_EQ(code, 0);
  EXPECT_EQ(seen, (std::multiset<std::string>{"rank 0 of 3", "rank 1 of 3", "rank 2 of 3"}));
}

TEST(Launcher, ReplacesTheVariablesOfAnOuterLaunch) {
  setenv("HOSTLESS_RANK", "17", 1);
  EXPECT_EQ(run(1, "exit $HOSTLESS_RANK"), 0);
  unsetenv("HOSTLESS_RANK");
}

TEST(Launcher, PassesOnBothStreamsAndUnfinishedLines) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  int const code = run(2, "[ $HOSTLESS_RANK = 1 ] && { printf 'one\\ntwo'; printf three >&2; } || true");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "one\ntwo");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "three");
  EXPECT_EQ(code, 0);
}

TEST(Launcher, DoesNotMixLines) {
  testing::internal::CaptureStdout();
  std::string const print = "printf %s$HOSTLESS_RANK aaaaaaaa; printf 'bbbb\\n'";
  int const code = run(4, "[ $HOSTLESS_RANK = 0 ] || for k in $(seq 100); do " + print + "; done");
  std::istringstream lines(testing::internal::GetCapturedStdout());
  std::map<std::string, int> seen;
  for (std::string line; std::getline(lines, line);) ++seen[line];
  EXPECT_EQ(code, 0);
  EXPECT_EQ(seen, (std::map<std::string, int>{
                      {"aaaaaaaa1bbbb", 100}, {"aaaaaaaa2bbbb", 100}, {"aaaaaaaa3bbbb", 100}}));
}

/// Standard output is a pipe that has no room for more than it holds, and says so instead of waiting, while it lives.
class FullPipe {
 public:
  FullPipe() {
    EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0);
    fcntl(ends_[1], F_SETFL, O_NONBLOCK);
    before_ = dup(STDOUT_FILENO);
    dup2(ends_[1], STDOUT_FILENO);
  }
  FullPipe(FullPipe const&) = delete;
  FullPipe& operator=(FullPipe const&) = delete;
  ~FullPipe() { close(ends_[0]); }
  /// Bytes that have come, all of them read once the pipe is half full or `is_over`.
  std::size_t read_all(std::atomic<bool> const& is_over) const {
    int const room = fcntl(ends_[0], F_GETPIPE_SZ);
    for (int held = 0; 2 * held < room && !is_over; ioctl(ends_[0], FIONREAD, &held))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::size_t all = 0;
    char buffer[4096];
    for (ssize_t got = 0; (got = read(ends_[0], buffer, sizeof buffer)) > 0;)
      all += static_cast<std::size_t>(got);
    return all;
  }
  void give_back() {
    dup2(before_, STDOUT_FILENO);
    close(before_);
    close(ends_[1]);
  }

 private:
  int ends_[2] = {-1, -1};
  int before_ = -1;
};

// As a terminal is that another program has made so.
TEST(Launcher, LosesNothingWhereOutputHasNoRoomForAWhile) {
  FullPipe pipe;
  std::atomic<bool> is_over{false};
  std::size_t come = 0;
  std::thread reader([&] { come = pipe.read_all(is_over); });
  int const code = run(2, "[ $HOSTLESS_RANK = 0 ] || head -c 1000000 /dev/zero");
  is_over = true;
  pipe.give_back();
  reader.join();
  EXPECT_EQ(code, 0);
  EXPECT_EQ(come, 1000000u);
}

TEST(Launcher, ReturnsTheCodeThatIsNotZero) {
  EXPECT_EQ(run(3, "[ $HOSTLESS_RANK = 2 ] && exit 3; exit 0"), 3);
  for (char const* const when : {"0", "0.2"})  // its output is lost, and nothing has converged
    EXPECT_EQ(
        run(3, "[ $HOSTLESS_RANK = 0 ] || { sleep 0.1; exit 1; }; sleep " + std::string(when) + "; exit 4"),
        4);
}

TEST(Launcher, TheCauseSaysMoreThanThoseThatLostIt) {
  EXPECT_EQ(run(3, "[ $HOSTLESS_RANK = 2 ] && { sleep 0.2; exit 3; }; exit 4", 5), 3);
}

TEST(Launcher, ASignalIsFourAndEndsTheOthers) {
  auto const start = Clock::now();
  EXPECT_EQ(run(3, "[ $HOSTLESS_RANK = 1 ] && kill -9 $$; exec sleep 1200"), 4);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(240));
}

TEST(Launcher, KillsWhatDoesNotListen) {
  auto const start = Clock::now();
  EXPECT_EQ(run(2, "[ $HOSTLESS_RANK = 1 ] && exit 3; trap '' TERM; while :; do sleep 0.1; done"), 3);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(240));
}

TEST(Launcher, EndsAtTheTimeLimit) {
  auto const start = Clock::now();
  EXPECT_EQ(run(2, "exec sleep 1200", 0.3, 0.3), 4);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(240));
}

TEST(Launcher, RefusesWhatItCannotStart) {
  auto const code_of = [](Launch const& what) {
    try {
      launch(what);
    } catch (Error const& e) {
      return e.code();
    }
    return ErrorCode::aborted;
  };
  EXPECT_EQ(code_of({2, {"no-such-program-here"}}), ErrorCode::environment);
  EXPECT_EQ(code_of({0, {"true"}}), ErrorCode::usage);
  EXPECT_EQ(code_of({1, {}}), ErrorCode::usage);
  setenv("TMPDIR", "/no/such/folder", 1);
  EXPECT_EQ(code_of({1, {"true"}}), ErrorCode::environment);
  unsetenv("TMPDIR");
}

// A launcher in a child, whose rank 0 has written "up" when this returns.
struct Child {
  pid_t pid = -1;
  int from = -1;
};
Child launch_in_child(std::string const& script) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  pid_t const pid = fork();
  if (pid == 0) {
    dup2(ends[1], 1);
    close(ends[0]);
    close(ends[1]);
    _exit(run(2, script, 5, 600));
  }
  close(ends[1]);
  char up[3];
  EXPECT_EQ(read(ends[0], up, sizeof up), 3);
  return {pid, ends[0]};
}

// Only what asks for an end is one wish when it repeats: stopped twice and continued twice is running.
TEST(Signals, ThatContinueAreTakenEachTime) {
  Signals signals({SIGTERM, SIGCONT});
  for (int const number : {SIGTERM, SIGCONT, SIGTERM, SIGCONT}) {
    raise(number);
    std::vector<int> numbers;
    for (auto const& taken : signals.take()) numbers.push_back(taken.number);
    static int terms = 0;
    if (number == SIGTERM && terms++ > 0) {
      EXPECT_EQ(numbers, std::vector<int>{});
    } else {
      EXPECT_EQ(numbers, std::vector<int>{number});
    }
  }
}

TEST(Launcher, PassesSignalsOn) {
  // Rank 0 speaks when both are ready to be told.
  Child const child = launch_in_child(
      "trap 'exit 7' TERM; there=$HOSTLESS_RENDEZVOUS/ready; if [ $HOSTLESS_RANK = 1 ]; then touch $there; "
      "else while [ ! -e $there ]; do sleep 0.01; done; echo up; fi; while :; do sleep 0.1; done");
  kill(child.pid, SIGTERM);
  int status = 0;
  waitpid(child.pid, &status, 0);
  close(child.from);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

// `timeout` signals the launcher and then its whole group: ranks must not get a second one of it.
TEST(Launcher, WhatRepeatsWithinASecondIsPassedOnOnce) {
  Folder const folder;
  std::string const heard = folder.path + "/heard";
  Child const child = launch_in_child(
      "there=" + folder.path +
      "; if [ $HOSTLESS_RANK = 1 ]; then trap '' TERM; touch $there/ready; exit 0; fi; " +
      "trap 'echo . >> $there/heard' TERM; while [ ! -e $there/ready ]; do sleep 0.01; done; echo up; " +
      "until [ -e $there/end ]; do sleep 0.02; done");
  auto const times_heard = [&] {
    std::ifstream file(heard);
    return std::count(std::istreambuf_iterator<char>(file), {}, '.');
  };
  auto const hears_more_than = [&](auto before) {
    return wait_for([&] { return times_heard() > before; }, [] { return false; }, Deadline::after(5)) ==
           Waited::done;
  };
  auto const another_time = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1100)); };
  // The launcher may stand still between the two, or come to one so late that the next try is within its second: it counts
  // by when it hears them.
  constexpr int most = 20;
  bool once = false;
  for (int tries = 0; !once && tries < most; ++tries) {
    another_time();
    auto const before = times_heard();
    kill(child.pid, SIGTERM);
    if (!hears_more_than(before)) continue;
    kill(child.pid, SIGTERM);
    another_time();
    once = times_heard() == before + 1;
  }
  EXPECT_TRUE(once) << "of " << most << " tries";
  auto const before = times_heard();
  bool another = false;
  for (int tries = 0; !another && tries < most; ++tries) {
    kill(child.pid, SIGTERM);
    another = hears_more_than(before);
  }
  EXPECT_TRUE(another);
  std::ofstream(folder.path + "/end");
  int status = 0;
  waitpid(child.pid, &status, 0);
  close(child.from);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Launcher, RanksThatASignalPassedOnHasEndedAreNotSuccess) {
  Child const child = launch_in_child("[ $HOSTLESS_RANK = 0 ] && echo up; exec sleep 1200");
  kill(child.pid, SIGTERM);
  int status = 0;
  waitpid(child.pid, &status, 0);
  close(child.from);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 4) << WEXITSTATUS(status);
}

TEST(Launcher, RanksDoNotOutliveIt) {
  Folder const folder;  // a killed launcher leaves its rendezvous behind
  setenv("TMPDIR", folder.path.c_str(), 1);
  Child const child = launch_in_child("[ $HOSTLESS_RANK = 0 ] && echo up; exec sleep 1200");
  unsetenv("TMPDIR");
  auto const start = Clock::now();
  kill(child.pid, SIGKILL);
  waitpid(child.pid, nullptr, 0);
  char rest;
  EXPECT_EQ(read(child.from, &rest, 1), 0);  // ends when rank 0, which holds the other end, is gone
  close(child.from);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(240));
}

TEST(SocketGroup, RefusesVariablesWithoutSense) {
  auto const code_of = [](char const* rank, char const* size) {
    setenv("HOSTLESS_RANK", rank, 1);
    setenv("HOSTLESS_SIZE", size, 1);
    setenv("HOSTLESS_RENDEZVOUS", "/tmp", 1);
    try {
      open_socket_group();
    } catch (Error const& e) {
      return e.code();
    }
    return ErrorCode::aborted;
  };
  EXPECT_FALSE(started_by_launcher());
  EXPECT_EQ(code_of("2", "2"), ErrorCode::usage);
  EXPECT_EQ(code_of("-1", "2"), ErrorCode::usage);
  EXPECT_EQ(code_of("0x", "2"), ErrorCode::usage);
  EXPECT_EQ(code_of("", ""), ErrorCode::usage);
  EXPECT_TRUE(started_by_launcher());
  for (char const* name : {"HOSTLESS_RANK", "HOSTLESS_SIZE", "HOSTLESS_RENDEZVOUS"}) unsetenv(name);
}

}  // namespace
}  // namespace hostless
