// What kernels ask of the host, without a GPU: a thread asks as kernels on a stream do, another one answers.
#include "transport/stream/requests.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "hostless/base/deadline.hpp"
#include "hostless/base/wait.hpp"

namespace hostless::gpu {
namespace {

TEST(Requests, AreDoneOnce) {
  Requests requests;
  EXPECT_EQ(requests.asked(0), Requests::none) << "nobody has asked yet";
  std::uint64_t const first = request_of(1, 3);
  EXPECT_EQ(requests.asked(first), 3);
  EXPECT_EQ(requests.asked(first), 3) << "it was looked at, not done";
  EXPECT_EQ(requests.answer(), 1u);
  EXPECT_EQ(requests.asked(first), Requests::none);
  EXPECT_EQ(requests.asked(request_of(2, 0)), 0) << "job 0 is one as well";
  EXPECT_EQ(requests.answer(), 2u);
}

TEST(Requests, HoldAllJobsAndNumbers) {
  Requests requests;
  constexpr int last_job = (1 << job_bits) - 1;
  EXPECT_EQ(requests.asked(request_of(1, last_job)), last_job);
  EXPECT_EQ(requests.asked(request_of((std::uint64_t{1} << 40) + 1, 0)), Requests::none) << "of another life";
}

TEST(Requests, BeginAgain) {
  Requests requests;
  static_cast<void>(requests.answer());
  requests.forget();
  EXPECT_EQ(requests.asked(0), Requests::none);
  EXPECT_EQ(requests.asked(request_of(1, 7)), 7);
}

// Numbers lie in plain memory on both sides: the words alone order them, as ThreadSanitizer would say.
TEST(Requests, OrderWhatIsSaidAndAnswered) {
  constexpr int count = 2000;
  std::atomic<std::uint64_t> word = 0, answer = 0;
  double said = 0, brought = 0;
  int wrong = 0;
  std::jthread stream([&] {
    std::mt19937 random(3);
    for (int number = 1; number <= count; ++number) {
      said = number;
      if (random() % 16 == 0) Backoff::give_core_away();
      word.store(request_of(static_cast<std::uint64_t>(number), number % 5), std::memory_order_release);
      Deadline const deadline = Deadline::after(240);
      while (answer.load(std::memory_order_acquire) != static_cast<std::uint64_t>(number) &&
             !deadline.passed())
        Backoff::give_core_away();
      if (brought != 10.0 * number + number % 5) ++wrong;
    }
  });
  Requests requests;
  Deadline const deadline = Deadline::after(240);
  for (int done = 0; done < count && !deadline.passed();) {
    int const job = requests.asked(word.load(std::memory_order_acquire));
    if (job == Requests::none) {
      Backoff::give_core_away();
      continue;
    }
    brought = 10 * said + job;
    answer.store(requests.answer(), std::memory_order_release);
    ++done;
  }
  stream.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(answer.load(), static_cast<std::uint64_t>(count));
}

}  // namespace
}  // namespace hostless::gpu
