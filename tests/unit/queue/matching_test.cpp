// What ends otherwise than by its message: requests that are freed before their match or after one that
// failed, promises that are broken, calls that would wait for themselves, sizes that no memory has.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <system_error>
#include <vector>

#include "hostless/base/wait.hpp"
#include "hostless/queue/queue.hpp"
#include "played_library.hpp"
#include "queue/offer.hpp"

namespace hostless {
namespace {

void match_one(Request& request) {
  Request* const one = &request;
  match({&one, 1});
}
// What a queue says of a start and a wait of these.
std::string text_of_run(Queue& queue, std::span<Request* const> requests) {
  queue.enqueue_start(requests);
  queue.enqueue_wait(requests);
  try {
    queue.wait();
  } catch (Error const& e) {
    return std::string(e.code() == ErrorCode::peer_lost ? "lost: " : "") + e.what();
  }
  return {};
}
template <class Work>
std::string text_of_refusal(Refusal why, Work const& work) {
  try {
    work();
  } catch (QueueError const& e) {
    return e.why() == why ? e.what() : std::string("for another reason: ") + e.what();
  }
  return "accepted";
}
template <class Work>
std::string text_of_error(ErrorCode code, Work const& work) {
  try {
    work();
  } catch (Error const& e) {
    return e.code() == code ? e.what() : std::string("of another code: ") + e.what();
  }
  return "accepted";
}

// A request that nobody matched goes: its twin, of the same rank and tag, is matched all the same.
TEST(QueueMatching, FreeingATwinLeavesTheMatchOfTheOther) {
  run_with_threads_transport(2, [](Transport& t) {
    Communicator communicator(t);
    int const rank = t.group().rank();
    std::vector<std::byte> buffer(16, static_cast<std::byte>(rank)), other(16);
    Request wanted =
        rank == 0 ? communicator.receive_init(buffer, 1, 3) : communicator.send_init(buffer, 0, 3);
    Request* const one = &wanted;
    if (rank == 0) {
      Request match = begin_match({&one, 1});
      Request twin = communicator.receive_init(other, 1, 3);
      twin.free();
      t.group().barrier();
      match.wait();
    } else {
      t.group().barrier();
      match_one(wanted);
    }
    Queue queue;
    EXPECT_EQ(text_of_run(queue, {&one, 1}), "");
    EXPECT_EQ(buffer.back(), std::byte{1});
    t.group().barrier();
    wanted.free();
  });
}

// Equal keys in the order of calls, also where one of them was given up.
TEST(QueueMatching, EqualKeysKeepTheirOrder) {
  constexpr int many = 50;
  run_with_threads_transport(2, [](Transport& t) {
    Communicator communicator(t);
    int const rank = t.group().rank();
    std::vector<int> values(many, -1);
    std::vector<Request> requests;
    std::vector<Request*> all;
    for (int k = 0; k < many; ++k) {
      auto const at = std::as_writable_bytes(std::span(&values[static_cast<std::size_t>(k)], 1));
      requests.push_back(rank == 0 ? communicator.receive_init(at, 1, 0) : communicator.send_init(at, 0, 0));
      if (rank == 1) values[static_cast<std::size_t>(k)] = k;
    }
    for (Request& request : requests) all.push_back(&request);
    match(all);
    Queue queue;
    EXPECT_EQ(text_of_run(queue, all), "");
    for (int k = 0; k < many; ++k) EXPECT_EQ(values[static_cast<std::size_t>(k)], k);
    t.group().barrier();
    for (Request& request : requests) request.free();
  });
}

// The other side left without its match: what waited for it is freed, and its buffer is the caller's.
TEST(QueueMatching, RequestsOfAFailedMatchAreFreed) {
  std::atomic<int> freed{0};
  run_with_threads_transport(2, [&](Transport& t) {
    Communicator communicator(t);
    std::vector<std::byte> buffer(8);
    if (t.group().rank() == 1) return;
    Request by_match = communicator.send_init(buffer, 1, 0),
            by_free = communicator.receive_init(buffer, 1, 1), tested = communicator.barrier_init();
    EXPECT_NE(text_of_error(ErrorCode::peer_lost, [&] { match_one(by_match); }).find("has left"),
              std::string::npos);
    Request* const one = &by_match;
    Queue queue;
    EXPECT_NE(text_of_refusal(Refusal::not_matched,
                              [&] {
                                queue.enqueue_start({&one, 1});
                              })
                  .find("lost its other"),
              std::string::npos);
    EXPECT_NE(text_of_refusal(Refusal::already_matched, [&] { match_one(by_match); }).find("lost its other"),
              std::string::npos);
    EXPECT_TRUE(by_match.status().lost);
    // Of one that nobody waits for, and of one that was only tested.
    Request *const second = &by_free, *const third = &tested;
    Request match_of_free = begin_match({&second, 1}), match_of_tested = begin_match({&third, 1});
    by_free.free();
    EXPECT_NE(text_of_error(ErrorCode::peer_lost, [&] { match_of_tested.test(); }).find("has left"),
              std::string::npos);
    match_of_tested.free();
    tested.free();
    by_match.free();
    freed += by_match.exists() || by_free.exists() || tested.exists() ? 0 : 3;
    EXPECT_NE(text_of_error(ErrorCode::peer_lost, [&] { match_of_free.wait(); }), "accepted");
    match_of_free.free();
  });
  EXPECT_EQ(freed.load(), 3);
}

// A match that ran into its limit: whoever offers its side later is told by its own.
TEST(QueueMatching, ALateOtherSideIsTold) {
  std::atomic<bool> given_up{false};
  run_with_threads_transport(2, [&](Transport& t) {
    Communicator communicator(t);
    std::vector<std::byte> buffer(100000);
    Request request = t.group().rank() == 0 ? communicator.receive_init(buffer, 1, 0)
                                            : communicator.send_init(buffer, 0, 0);
    t.group().barrier();
    if (t.group().rank() == 0) {
      // While the other looks at no variable.
      constexpr char const* scale = "HOSTLESS_DEADLINE_SCALE";
      std::string const before = std::getenv(scale) != nullptr ? std::getenv(scale) : "1";
      setenv(scale, "0.001", 1);
      EXPECT_NE(text_of_error(ErrorCode::peer_lost, [&] { match_one(request); }).find("in time"),
                std::string::npos);
      setenv(scale, before.c_str(), 1);
      given_up.store(true);
      request.free();
      t.group().barrier();
      Request later = communicator.receive_init(buffer, 1, 1);  // hears the other's offers
      match_one(later);
      t.group().barrier();
      later.free();
    } else {
      while (!given_up.load()) Backoff::give_core_away();
      auto const began = std::chrono::steady_clock::now();
      EXPECT_NE(text_of_error(ErrorCode::peer_lost, [&] { match_one(request); }).find("rank 0 has given up"),
                std::string::npos);
      EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(300)) << "by the limit";
      request.free();
      t.group().barrier();
      Request later = communicator.send_init(buffer, 0, 1);
      match_one(later);
      t.group().barrier();
      later.free();
    }
  });
}

// Sides that never find each other: after a tenth of a second each rank is told what it waits for, then each match ends
// by the limit of its communicator.
TEST(QueueMatching, WhatIsMissingIsTold) {
  constexpr char const* scale = "HOSTLESS_DEADLINE_SCALE";
  std::string const before = std::getenv(scale) != nullptr ? std::getenv(scale) : "1";
  setenv(scale, "0.02", 1);
  testing::internal::CaptureStderr();
  auto const began = std::chrono::steady_clock::now();
  run_with_threads_transport(3, [](Transport& t) {
    Communicator communicator(t);
    EXPECT_NE(text_of_error(ErrorCode::usage, [&] { communicator.set_limit(0); }).find("a limit of 0"),
              std::string::npos);
    communicator.set_limit(4);  // so that each has a look before it, however busy the machine
    std::vector<std::byte> buffer(8);
    int const rank = t.group().rank();
    Request first = rank == 0   ? communicator.receive_init(buffer, 1, 4)
                    : rank == 1 ? communicator.send_init(buffer, 0, 5)
                                : communicator.barrier_init(),
            second = communicator.receive_init(buffer, 2, 6);
    Request* const both[] = {&first, &second};
    Request begun = begin_match({both, rank == 0 ? std::size_t{2} : 1});
    t.group().barrier();
    std::string const said = text_of_error(ErrorCode::peer_lost, [&] { begun.wait(); });
    if (rank == 0) {
      EXPECT_EQ(said.find("a match was not answered in time: a receive from rank 1 with tag 4 (rank 1 has "
                          "offered one with tag 5), and for 1 more"),
                0u)
          << said;
    }
    t.group().barrier();
  });
  std::string const told = testing::internal::GetCapturedStderr();
  setenv(scale, before.c_str(), 1);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(300)) << "by another limit";
  for (std::string const& one :
       {std::string(
            "hostless: rank 0 has waited for 0.2 s for the match of a receive from rank 1 with tag 4 "
            "(rank 1 has offered one with tag 5), and for 1 more. Match its other side there; this one ends "
            "after 4 s.\n"),
        std::string("hostless: rank 1 has waited for 0.2 s for the match of a send to rank 0 with tag 5 "),
        std::string("hostless: rank 2 has waited for 0.2 s for the match of a barrier, in which rank 0 and "
                    "others are missing.")}) {
    auto const at = told.find(one);
    EXPECT_NE(at, std::string::npos) << one << "\nis not in\n" << told;
    if (at == std::string::npos) continue;
    EXPECT_EQ(told.find(one, at + 1), std::string::npos) << "twice";
  }
}

// A second one would number its notes as the other ranks' first one does.
TEST(QueueMatching, ATransportHasOneCommunicatorAtATime) {
  run_with_threads_transport(2, [](Transport& t) {
    for (int time = 0; time < 2; ++time) {
      Communicator communicator(t);
      EXPECT_EQ(text_of_error(ErrorCode::usage, [&] { Communicator const second(t); })
                    .find("a second communicator of one transport"),
                0u);
      std::vector<std::byte> buffer(8, std::byte{1});
      int const rank = t.group().rank();
      Request request =
          rank == 0 ? communicator.receive_init(buffer, 1, 0) : communicator.send_init(buffer, 0, 0);
      match_one(request);  // of the first one on both
      t.group().barrier();
      request.free();
    }
  });
}

// Of the right rank and the wrong tag. One waits while the other's offer stands: who is late finds it withdrawn.
TEST(QueueMatching, WhatWasOfferedInsteadIsTold) {
  run_with_threads_transport(2, [](Transport& t) {
    int const rank = t.group().rank();
    std::vector<std::byte> buffer(8);
    for (int const waiting : {0, 1}) {
      Communicator communicator(t);
      Request request =
          rank == 0 ? communicator.receive_init(buffer, 1, 0) : communicator.send_init(buffer, 0, 1);
      Request* const one = &request;
      Request begun = begin_match({&one, 1});
      communicator.set_limit(0.1);
      t.group().barrier();
      if (rank != waiting) t.group().barrier();
      std::string const said = text_of_error(ErrorCode::peer_lost, [&] { begun.wait(); });
      if (rank == waiting) {
        EXPECT_NE(said.find(rank == 0 ? "a receive from rank 1 with tag 0 (rank 1 has offered one with tag 1)"
                                      : "a send to rank 0 with tag 1 (rank 0 has offered one with tag 0)"),
                  std::string::npos)
            << said;
        t.group().barrier();
      }
      t.group().barrier();
    }
  });
}

// Two ready sends, and the receiver has started once: not the loss of a rank.
TEST(QueueMatching, ABrokenPromiseIsCalledSo) {
  run_with_threads_transport(2, [](Transport& t) {
    Communicator communicator(t);
    int const rank = t.group().rank();
    std::vector<std::byte> buffer(16);
    Request request =
        rank == 0 ? communicator.receive_init(buffer, 1, 3) : communicator.ready_send_init(buffer, 0, 3);
    match_one(request);
    Request* const one = &request;
    Queue queue;
    if (rank == 1)
      for (int k = 0; k < 2; ++k) {
        queue.enqueue_start({&one, 1});
        queue.enqueue_wait({&one, 1});
        queue.wait();
      }
    t.group().barrier();
    if (rank == 0) {
      queue.enqueue_start({&one, 1});
      queue.enqueue_wait({&one, 1});
      std::string const said = text_of_error(ErrorCode::usage, [&] { queue.wait(); });
      EXPECT_EQ(said.find("a receive from rank 1 with tag 3 found the message of another start"), 0u) << said;
    }
    t.group().barrier();
    request.free();
  });
}

// What would wait for the function that it stands in.
TEST(QueueMatching, CallsInsideAFunctionAreRefused) {
  auto const transport = single_transport();
  Communicator communicator(*transport);
  Queue queue, other;
  Request barrier = communicator.barrier_init();
  Request* const one = &barrier;
  int refused = 0;
  queue.enqueue_function([&] {
    auto const in_function = [&](auto const& call) {
      std::string const text = text_of_refusal(Refusal::in_use, call);
      refused += text.find("inside a function of a queue") != std::string::npos ? 1 : 0;
    };
    in_function([&] { queue.wait(); });
    in_function([&] { other.wait(); });
    in_function([&] { queue.test(); });
    in_function([&] { queue.enqueue_function([] {}); });
    in_function([&] { queue.enqueue_start({&one, 1}); });
    in_function([&] { queue.enqueue_wait({&one, 1}); });
    in_function([&] { queue.enqueue_wait_all(); });
    in_function([&] { queue.enqueue_start_and_wait({&one, 1}, {&one, 1}); });
    in_function([&] { match({&one, 1}); });
    in_function([&] { begin_match({&one, 1}); });
    in_function([&] { barrier.is_matched(); });
  });
  queue.wait();
  EXPECT_EQ(refused, 11);
  match_one(barrier);
  EXPECT_EQ(text_of_run(other, {&one, 1}), "");
}

// Products that 64 bits do not hold, and memory that is not there.
TEST(QueueMatching, SizesThatNoMemoryHas) {
  auto const transport = single_transport();
  Communicator communicator(*transport);
  double from = 1, to = 0;
  auto const reduce = [&](std::size_t count) {
    return
        [&, count] { communicator.all_reduce_init(&from, &to, count, Datatype::f64, ReduceOperation::sum); };
  };
  for (std::size_t const count : {SIZE_MAX / 8 + 2, std::size_t{1} << 61, std::size_t{1} << 59})
    EXPECT_NE(text_of_error(ErrorCode::usage, reduce(count)).find("no memory has as many"),
              std::string::npos);
#if !HOSTLESS_THREAD_SANITIZER && !HOSTLESS_ADDRESS_SANITIZER  // which end a program that asks for as much
  std::string const said = text_of_error(ErrorCode::environment, reduce(std::size_t{1} << 57));
  EXPECT_EQ(said.find("out of memory: an all-reduce takes 2305843009213693952 bytes"), 0u) << said;
#endif
}

TEST(QueueMatching, VariablesThatMeanNothing) {
  auto const transport = single_transport();
  for (auto const& [name, value] : {std::pair("HOSTLESS_QUEUE_SMALL_BYTES", "8k"),
                                    std::pair("HOSTLESS_QUEUE_SMALL_BYTES", "99999999999999999999"),
                                    std::pair("HOSTLESS_QUEUE_SMALL_BYTES", "268435457"),
                                    std::pair("HOSTLESS_QUEUE_PROGRESS", "threads")}) {
    setenv(name, value, 1);
    std::string const said = text_of_error(ErrorCode::usage, [&] { Communicator communicator(*transport); });
    EXPECT_EQ(said.find(std::string(name) + "='" + value + "'"), 0u) << said;
    unsetenv(name);
  }
}

TEST(QueueMatching, NamesThatMeanNothing) {
  auto const transport = single_transport();
  setenv("HOSTLESS_QUEUE_PROGRES", "thread", 1);
  std::string const said = text_of_error(ErrorCode::usage, [&] { Communicator communicator(*transport); });
  unsetenv("HOSTLESS_QUEUE_PROGRES");
  EXPECT_EQ(said,
            "HOSTLESS_QUEUE_PROGRES is no variable of hostless (it changes nothing). Did you mean "
            "'HOSTLESS_QUEUE_PROGRESS'?");
}

// What is no variable of queues: in a process of its own, for it is told once.
TEST(QueueMatching, NamesOfOthersAreToldOnce) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  setenv("HOSTLESS_DEADLINE_SCAL", "6", 1);
  auto const make_two = [] {
    auto const transport = single_transport();
    for (int k = 0; k < 2; ++k) Communicator communicator(*transport);
    std::_Exit(0);
  };
  EXPECT_EXIT(
      make_two(), testing::ExitedWithCode(0),
      "^hostless: HOSTLESS_DEADLINE_SCAL is no variable of hostless[^\n]*'HOSTLESS_DEADLINE_SCALE'.\n$");
  unsetenv("HOSTLESS_DEADLINE_SCAL");
}

// Before anything is open that others would hear of.
TEST(QueueMatching, ACommunicatorThatIsRefusedWasNeverOpen) {
  test::PlayedLibrary library(true);
  EXPECT_EQ(text_of_error(ErrorCode::usage, [&] { Communicator communicator(library, -2); }).find("GPU -2 "),
            0u);
  setenv("HOSTLESS_QUEUE_PROGRESS", "threads", 1);
  EXPECT_NE(text_of_error(ErrorCode::usage, [&] { Communicator communicator(library); }), "accepted");
  unsetenv("HOSTLESS_QUEUE_PROGRESS");
  EXPECT_EQ(library.opened, 0);
}

// Ranks with other variables: who sends would write beyond the other's slot, or wait for it.
TEST(QueueMatching, OtherSlotsOnTheOtherSideAreFound) {
  queue::Offer mine, other;
  mine.key = {1, 0, 0, queue::Side::sender};
  other.key = {1, 0, 0, queue::Side::receiver};
  mine.bytes = other.bytes = 100;
  mine.most_small = 8192, other.most_small = 50;
  EXPECT_NE(misfit(mine, other).find("HOSTLESS_QUEUE_SMALL_BYTES is 8192 here and 50 there"),
            std::string::npos);
  mine.carries = other.carries = false;
  EXPECT_EQ(misfit(mine, other), "");
  mine.carries = other.carries = true;
  mine.most_small = 50;
  EXPECT_EQ(misfit(mine, other), "");
}

// Offers that were told in part, and sides that could not be opened: nobody waits for them for good.
TEST(QueueMatching, ErrorsWhileOfferingLoseTheRequestsOfTheCall) {
  for (bool const by_system : {false, true}) {
    test::PlayedLibrary good(true), bad(true);
    Communicator first(good), second(bad);
    std::vector<std::byte> out(8, std::byte{7}), in(8);
    Request away = first.send_init(out, 0, 1), send = second.send_init(out, 0, 1),
            receive = second.receive_init(in, 0, 1);
    int left = 1;  // the first side of the second communicator opens, the next one does not
    bad.at_open = [&] {
      if (left-- > 0) return;
      if (by_system) throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
      throw Error(ErrorCode::peer_lost, "gone.");
    };
    Request* const all[] = {&away, &send, &receive};
    ErrorCode const code = by_system ? ErrorCode::environment : ErrorCode::peer_lost;
    std::string const said = text_of_error(code, [&] { match(all); });
    EXPECT_EQ(said.find(by_system ? "the system refused what a match needs" : "gone."), 0u) << said;
    for (Request* const one : all) {
      EXPECT_NE(text_of_refusal(Refusal::already_matched, [&] { match_one(*one); }).find("lost its other"),
                std::string::npos);
      one->free();
    }
  }
}

}  // namespace
}  // namespace hostless
