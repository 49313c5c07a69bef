// What ends the waits of ranks that are threads.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "hostless/base/wait.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {
namespace {

TEST(Threads, ARankThatEndsEarlyEndsTheWaitOfTheOthers) {
  auto const start = Clock::now();
  auto const body = [](Group& group) {
    if (group.rank() != 1) group.barrier();
  };
  try {
    run_on_threads(3, body);
    ADD_FAILURE() << "no error";
  } catch (Error const& e) {
    EXPECT_EQ(e.code(), ErrorCode::peer_lost) << e.what();
  }
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(240));
}

// Lower ranks hear of it at a barrier, and only say that somebody left.
TEST(Threads, OfLossesTheOneIsToldThatSaysWhatWasLost) {
  std::string const says = "a rank was lost while an exchange was queued.";
  try {
    run_on_threads(3, [&](Group& group) {
      if (group.rank() == 2) throw Error(ErrorCode::peer_lost, says);
      group.barrier();
    });
    ADD_FAILURE() << "no error";
  } catch (Error const& e) {
    EXPECT_EQ(e.what(), says);
  }
}

// The silent rank stays until the other has given up, so that nothing but the deadline can end the wait.
TEST(Threads, ADeadlineAloneEndsAWait) {
  setenv("HOSTLESS_DEADLINE_SCALE", "0.0005", 1);
  std::atomic<bool> over{false};
  std::string text;
  EXPECT_THROW(run_on_threads(2,
                              [&](Group& group) {
                                if (group.rank() == 1) {
                                  wait_for([&] { return over.load(); }, [] { return false; },
                                           Deadline::after(240));
                                  return;
                                }
                                try {
                                  group.barrier();
                                } catch (Error const& e) {
                                  text = e.what();
                                  over = true;
                                  throw;
                                }
                              }),
               Error);
  unsetenv("HOSTLESS_DEADLINE_SCALE");
  EXPECT_NE(text.find("did not arrive in time"), std::string::npos) << text;
}

TEST(Threads, NeedARank) {
  EXPECT_THROW(run_on_threads(0, [](Group&) {}), Error);
}

TEST(Threads, BlocksOfDifferentSizesAreAnError) {
  EXPECT_THROW(run_on_threads(2,
                              [](Group& group) {
                                std::vector<std::byte> mine(static_cast<std::size_t>(1 + group.rank()));
                                std::vector<std::byte> all(2 * mine.size());
                                group.all_gather_blocks(mine, all);
                              }),
               Error);
}

// They read what others have laid out for what they call themselves.
TEST(Threads, RanksThatCallDifferentThingsAreToldSo) {
  using Call = void (*)(Group&);
  Call const waits = [](Group& g) { g.barrier(); };
  Call const gathers = [](Group& g) { g.all_gather(g.rank()); };
  Call const exchanges = [](Group& g) { g.exchange_values(std::vector<std::vector<std::int64_t>>(3, {7})); };
  struct Pair {
    Call first, last;
    char const* says;
  };
  for (Pair const& one : {Pair{gathers, exchanges, "(rank 0 gathers, rank 2 exchanges)"},
                          Pair{exchanges, gathers, "(rank 0 exchanges, rank 2 gathers)"},
                          Pair{waits, exchanges, "(rank 0 waits, rank 2 exchanges)"},
                          Pair{gathers, waits, "(rank 0 gathers, rank 2 waits)"}}) {
    std::atomic<int> told{0};
    run_on_threads(3, [&](Group& group) {
      try {
        (group.rank() == 2 ? one.last : one.first)(group);
        ADD_FAILURE() << "rank " << group.rank() << " was not told: " << one.says;
      } catch (Error const& e) {
        EXPECT_EQ(e.code(), ErrorCode::usage);
        EXPECT_NE(std::string(e.what()).find(one.says), std::string::npos) << e.what();
        ++told;
      }
      group.barrier();  // they are in step again
    });
    EXPECT_EQ(told, 3);
  }
}

}  // namespace
}  // namespace hostless
