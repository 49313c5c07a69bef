// The contract over every transport on the list and several numbers of ranks. Ranks that are processes are
// this program again, with the name of a case or "all"; they print one line for each case that was kept.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "host_ranks.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/transport/mpi.hpp"
#include "transport_contract.hpp"

namespace hostless {
namespace {

using contract::Case;
using test::Printed;

// ---- what a rank does
// ------------------------------------------------------------------------------------------

void tell(std::string const& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// Runs one case, or all that leave the world whole, on this rank.
void run_cases(Transport& transport, std::string const& wanted) {
  for (Case const& c : contract::cases()) {
    bool const chosen = wanted == "all" ? !c.breaks_world : wanted == c.name;
    if (!chosen || transport.group().size() < c.least_ranks) continue;
    try {
      c.run(transport);
    } catch (Error const& e) {
      if (c.breaks_world && std::string(e.what()) == "as it should be")
        tell(std::string("kept ") + c.name + ";");
      throw;
    } catch (std::exception const& e) {
      throw std::runtime_error(std::string(c.name) + ": " + e.what());
    }
    tell(std::string("kept ") + c.name + ";");
  }
}

// The last rank is killed in the middle of an exchange.
void run_killed(Transport& transport) {
  Group& group = transport.group();
  std::byte byte{};
  int const last = group.size() - 1;
  Binding binding;
  for (int r = 0; r < last && group.rank() == last; ++r) binding.out.push_back({r, r, &byte, 1});
  if (group.rank() != last) binding.in.push_back({group.rank(), last, &byte, 1});
  auto const endpoint = transport.bind(binding);
  group.barrier();
  if (group.rank() == last) std::raise(SIGKILL);
  endpoint->receive(0, 1);
  auto const waited = wait_for([&] { return endpoint->received(0); }, [&] { return endpoint->peer_left(); },
                               Deadline::after(120));
  if (waited != Waited::stopped) throw std::runtime_error("a killed rank was not noticed by the endpoint");
  try {
    group.barrier();
  } catch (Error const& e) {
    if (e.code() == ErrorCode::peer_lost) tell("kept killed;");
    throw;
  }
  throw std::runtime_error("a killed rank was not noticed by the group");
}

// All ranks are stopped for longer than their limit (ctrl-Z, a batch system that suspends) while all but the last
// wait for it, and go on: the waits do, too. The last one's process has the others stopped, by a child of its own.
void run_stopped(Transport& transport) {
  constexpr double limit_s = 2;
  constexpr unsigned stopped_us = 3'000'000;
  Group& group = transport.group();
  int const last = group.size() - 1;
  auto const size = static_cast<std::size_t>(group.size());
  // To the last one that a rank waits, and back what it waits for.
  std::vector<std::byte> in(size), out(size);
  Binding binding;
  for (int r = 0; r < last; ++r) {
    auto const k = static_cast<std::size_t>(r);
    if (group.rank() == last) {
      binding.in.push_back({r, r, &in[k], 1});
      binding.out.push_back({100 + r, r, &out[k], 1});
    } else if (group.rank() == r) {
      binding.in.push_back({100 + r, last, &in[k], 1});
      binding.out.push_back({r, last, &out[k], 1});
    }
  }
  auto const endpoint = transport.bind(binding);
  std::vector<pid_t> processes(size);
  pid_t const own = getpid();
  group.all_gather_blocks(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(processes)));
  auto const never = [] { return false; };
  auto const left = [&] { return endpoint->peer_left(); };
  if (group.rank() != last) {
    endpoint->receive(0, 1);
    // What lies between two polls, by the clock, is the stop; some polls behind it this wait has been continued.
    int polls_since = 0;
    bool is_told = false;
    auto looked = Clock::now();
    auto const waited = wait_for(
        [&] {
          if (!std::exchange(is_told, true)) endpoint->send(0, 1);
          auto const now = Clock::now();
          bool const was_stopped = now - looked > std::chrono::microseconds(stopped_us / 2);
          looked = now;
          polls_since += was_stopped || polls_since > 0 ? 1 : 0;
          return polls_since > 5;
        },
        left, Deadline::after(limit_s));
    if (waited != Waited::done) throw std::runtime_error("who was stopped took its peers for lost");
  } else {
    for (int r = 0; r < last; ++r) endpoint->receive(r, 1);
    for (int r = 0; r < last; ++r)
      if (wait_for([&] { return endpoint->received(r); }, left, Deadline::after(240)) != Waited::done)
        throw std::runtime_error("a rank did not come to its wait");
    pid_t const child = fork();
    if (child == 0) {
      for (pid_t const one : processes) kill(one, SIGSTOP);
      usleep(stopped_us);
      for (pid_t const one : processes) kill(one, SIGCONT);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    for (int r = 0; r < last; ++r) endpoint->send(r, 1);
  }
  bool const receives = group.rank() != last;
  auto const came = wait_for([&] { return receives ? endpoint->received(0) : endpoint->sent(0); },
                             receives ? std::function<bool()>(left) : never, Deadline::after(240));
  if (came != Waited::done) throw std::runtime_error("the message after the stop did not come");
  group.barrier();
  tell("kept stopped;");
}

int as_rank(HostTransport const& transport, std::vector<std::string> const& words) {
  std::string const wanted = words.at(0);
  auto const tell_and_leave = [&](int code, char const* why) {
    tell(why);
    test::leave_together(code, wanted == "killed" ? 1 : 0);
  };
  try {
    auto const opened = test::open_with_all(transport);
    if (wanted == "killed") run_killed(*opened);
    if (wanted == "stopped") run_stopped(*opened);
    run_cases(*opened, wanted);
  } catch (Error const& e) {
    tell_and_leave(e.exit_code(), e.what());
  } catch (std::exception const& e) {
    tell_and_leave(1, e.what());
  }
  if (wanted == "silent") tell_and_leave(4, "as it should be");
  return 0;
}

// ---- ranks as threads
// ------------------------------------------------------------------------------------------

// Who is only slow, on a busy machine, may be lost by the first of them, even before the case begins.
constexpr char const* scales_of_silence[] = {"0.001", "0.03"};

using RanksAndCase = std::tuple<test::Ranks, Case>;

class Threads : public testing::TestWithParam<RanksAndCase> {};

TEST_P(Threads, KeepTheContract) {
  auto const& [transport, c] = GetParam();
  auto const& [name, ranks] = transport;
  bool const silent = c.name == std::string("silent");
  std::string ended;
  for (char const* const scale : scales_of_silence) {
    if (silent) setenv("HOSTLESS_DEADLINE_SCALE", scale, 1);
    try {
      test::tested_transport(name).run(ranks, c.run);
      ended = "no error";
    } catch (std::exception const& e) {
      ended = e.what();
    }
    if (!silent || ended == "no error") break;
  }
  if (silent) unsetenv("HOSTLESS_DEADLINE_SCALE");
  // The rank that failed alone is the one to report, not those that noticed.
  EXPECT_EQ(ended, c.name == std::string("alone") ? "on one rank only." : "no error");
}

std::vector<RanksAndCase> threads_and_cases() {
  std::vector<RanksAndCase> all;
  for (test::Ranks const& ranks : test::with_ranks(test::names_with_threads(), {1, 2, 3, 4, 7}))
    for (Case const& c : contract::cases())
      if (std::get<1>(ranks) >= c.least_ranks) all.emplace_back(ranks, c);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Contract, Threads, testing::ValuesIn(threads_and_cases()), [](auto const& one) {
  return test::name_of(std::get<0>(one.param)) + "_" + std::get<1>(one.param).name;
});

// ---- ranks as processes
// ----------------------------------------------------------------------------------------

class Processes : public testing::TestWithParam<test::Ranks> {
 protected:
  void SetUp() override { test::need(transport()); }
  static HostTransport const& transport() { return test::tested_transport(std::get<0>(GetParam())); }
  static int ranks() { return std::get<1>(GetParam()); }
  /// Under a transport that does not, it is usually what started the ranks that ends them, before they can
  /// say anything.
  static bool survives() { return transport().capabilities && transport().capabilities->survives_peer_loss; }
  static Printed run_case(std::string const& wanted, std::string const& variables = "") {
    return test::run_as_ranks(transport(), ranks(), {test::own_path(), "--as-rank", transport().name, wanted},
                              variables);
  }
};

// One start for all cases: it takes longer than they do.
TEST_P(Processes, KeepTheContract) {
  Printed const printed = run_case("all");
  EXPECT_EQ(printed.status, 0) << printed.output;
  for (Case const& c : contract::cases()) {
    if (c.breaks_world || ranks() < c.least_ranks) continue;
    EXPECT_EQ(printed.kept(c.name), ranks()) << c.name << "\n" << printed.output;
  }
}

TEST_P(Processes, GoOnAfterAStop) {
  if (ranks() != 2) return;  // more of them wait alike
  Printed const printed = run_case("stopped");
  EXPECT_EQ(printed.status, 0) << printed.output;
  EXPECT_EQ(printed.kept("stopped"), ranks()) << printed.output;
}

// A rank is lost: afterwards the ranks are out of step, so each of these starts its own.
class Loss : public Processes {};

TEST_P(Loss, SilentRankEndsAtTheDeadline) {
  Printed printed;
  for (char const* const scale : {"0.004", "0.03"}) {  // as for threads, which start faster
    printed = run_case("silent", std::string("HOSTLESS_DEADLINE_SCALE=") + scale + " ");
    if (printed.kept("silent") >= ranks() - 1) break;
  }
  EXPECT_NE(printed.status, 0);
  EXPECT_GE(printed.kept("silent"), ranks() - 1) << printed.output;
}

TEST_P(Loss, RankThatFailsAloneTellsTheOthers) {
  Printed const printed = run_case("alone");
  EXPECT_NE(printed.status, 0);
  EXPECT_EQ(printed.kept("alone"), ranks() - 1) << printed.output;
  if (survives()) {
    EXPECT_EQ(printed.status, 3) << "the code of the cause, not of those that lost it";
  }
}

TEST_P(Loss, KilledRankEndsAllInTime) {
  Printed const printed = run_case("killed");
  EXPECT_NE(printed.status, 0);
  EXPECT_LT(printed.seconds, 400) << printed.output;
  if (survives()) {
    EXPECT_EQ(printed.status, 4);
    EXPECT_EQ(printed.kept("killed"), ranks() - 1) << printed.output;
  }
}

// Starting ranks of a library of others takes seconds, so there are fewer numbers of them.
std::vector<test::Ranks> processes(std::vector<int> const& ours, std::vector<int> const& of_others) {
  std::vector<test::Ranks> all;
  for (std::string const& name : test::names_with_processes())
    for (int const ranks : test::tested_transport(name).library_of_others ? of_others : ours)
      all.emplace_back(name, ranks);
  return all;
}

auto const named = [](auto const& one) { return test::name_of(one.param); };
INSTANTIATE_TEST_SUITE_P(Contract, Processes, testing::ValuesIn(processes({1, 2, 3, 4, 7}, {1, 2, 4})),
                         named);
INSTANTIATE_TEST_SUITE_P(Contract, Loss, testing::ValuesIn(processes({2, 7}, {2, 4})), named);

}  // namespace
}  // namespace hostless

int main(int count, char** words) { return hostless::test::main_of_ranks(count, words, hostless::as_rank); }
