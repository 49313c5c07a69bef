// Messages between two ranks with every order of what they do: start-start, slots, ready sends, epochs, a
// rank that leaves anywhere; and that what could be forgotten in them is found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "sample.hpp"
#include "text_explorer.hpp"

namespace hostless::test {
namespace {

using queue::Mode;
using Kind = Act::Kind;
using Acts = std::vector<Act>;

Acts sends(int message, int epochs) {
  Acts acts;
  for (int e = 1; e <= epochs; ++e)
    acts.insert(acts.end(), {{Kind::fill, message, e}, {Kind::start, message, e}, {Kind::wait, message, e}});
  return acts;
}
Acts receives(int message, int epochs) {
  Acts acts;
  for (int e = 1; e <= epochs; ++e)
    acts.insert(acts.end(), {{Kind::start, message, e}, {Kind::wait, message, e}, {Kind::check, message, e}});
  return acts;
}
Scene one_message(Mode mode, int epochs, Fault const& fault = {}) {
  Scene scene;
  scene.modes = {mode};
  scene.sender = {0};
  scene.acts = {sends(0, epochs), receives(0, epochs)};
  scene.fault = fault;
  return scene;
}
// A message each way. Each rank waits for its send first.
Scene both_ways(Mode mode, int epochs) {
  Scene scene;
  scene.modes = {mode, mode};
  scene.sender = {0, 1};
  for (int r = 0; r < 2; ++r)
    for (int e = 1; e <= epochs; ++e)
      for (Act const& act : Acts{{Kind::fill, r, e},
                                 {Kind::start, 1 - r, e},
                                 {Kind::start, r, e},
                                 {Kind::wait, r, e},
                                 {Kind::wait, 1 - r, e},
                                 {Kind::check, 1 - r, e}})
        scene.acts[static_cast<std::size_t>(r)].push_back(act);
  return scene;
}
// Starts and the waits directly behind them as by one kernel: others of the rank wait while it starts.
Scene at_once(Scene scene) {
  for (Acts& acts : scene.acts) {
    Acts forked;
    for (auto at = acts.begin(); at != acts.end();) {
      auto const is = [](Kind kind) { return [kind](Act const& act) { return act.kind == kind; }; };
      auto const waits = std::find_if_not(at, acts.end(), is(Kind::start));
      auto const end = std::find_if_not(waits, acts.end(), is(Kind::wait));
      auto const is_among = [](Act const& one, auto first, auto last) {
        return std::any_of(first, last, [&](Act const& other) {
          return other.message == one.message && other.epoch == one.epoch;
        });
      };
      Acts before, at_once, behind;
      for (auto one = at; one != waits; ++one)
        (is_among(*one, waits, end) ? at_once : before).push_back(*one);
      for (auto one = waits; one != end; ++one)
        if (!is_among(*one, at, waits)) behind.push_back(*one);
      forked.insert(forked.end(), before.begin(), before.end());
      if (!at_once.empty()) forked.push_back({Kind::fork});
      forked.insert(forked.end(), at_once.begin(), at_once.end());
      if (!at_once.empty()) forked.push_back({Kind::join});
      forked.insert(forked.end(), behind.begin(), behind.end());
      if (at == end)
        forked.push_back(*at++);
      else
        at = end;
    }
    acts = forked;
  }
  return scene;
}
// The receiver says by a small message that it has started; then the ready send comes.
Scene promised(int epochs, bool kept) {
  Scene scene;
  scene.modes = {Mode::ready, Mode::small};
  scene.sender = {0, 1};
  for (int e = 1; e <= epochs; ++e) {
    Acts const sender = {{Kind::start, 1, e}, {Kind::wait, 1, e},  {Kind::check, 1, e},
                         {Kind::fill, 0, e},  {Kind::start, 0, e}, {Kind::wait, 0, e}};
    Acts receiver = {{Kind::start, 0, e}, {Kind::fill, 1, e}, {Kind::start, 1, e},
                     {Kind::wait, 1, e},  {Kind::wait, 0, e}, {Kind::check, 0, e}};
    scene.acts[0].insert(scene.acts[0].end(), kept ? sender.begin() : sender.begin() + 3, sender.end());
    if (!kept) receiver = receives(0, 1), receiver.front().epoch = receiver[1].epoch = receiver[2].epoch = e;
    scene.acts[1].insert(scene.acts[1].end(), receiver.begin(), receiver.end());
  }
  return scene;
}

Found tried(std::string const& what, Scene const& scene) {
  Found const f = explore_text(scene);
  std::printf("%s: %llu states, %llu moves, %llu ends%s%s\n", what.c_str(),
              static_cast<unsigned long long>(f.states), static_cast<unsigned long long>(f.moves),
              static_cast<unsigned long long>(f.ends),
              f.problem.empty() ? "" : "; found: ", f.problem.c_str());
  return f;
}
void expect_held(std::string const& what, Scene const& scene) {
  Found const f = tried(what, scene);
  EXPECT_EQ(f.problem, "") << what;
  EXPECT_GT(f.ends, 0u) << what;
}

#if defined(NDEBUG) && !HOSTLESS_ADDRESS_SANITIZER && !HOSTLESS_THREAD_SANITIZER
constexpr int epochs = 4;
#else
constexpr int epochs = 3;  // a tenth as fast
#endif

TEST(Text, OneMessage) {
  expect_held("standard", one_message(Mode::standard, epochs));
  expect_held("small", one_message(Mode::small, epochs));
  expect_held("ready", promised(epochs - 1, true));
}

TEST(Text, EachWaitsForItsSendFirst) {
  expect_held("standard both ways", both_ways(Mode::standard, epochs - 2));
  expect_held("small both ways", both_ways(Mode::small, epochs - 2));
}

TEST(Text, StartsAndWaitsAtOnce) {
  for (Mode const mode : {Mode::standard, Mode::small}) {
    std::string const of = ", mode " + std::to_string(static_cast<int>(mode));
    expect_held("at once" + of, at_once(one_message(mode, epochs)));
    expect_held("at once both ways" + of, at_once(both_ways(mode, epochs - 2)));
  }
  expect_held("at once, ready", at_once(promised(epochs - 1, true)));
}

// One rank is both sides: `epoch` of an act says which.
TEST(Text, ToItself) {
  for (Mode const mode : {Mode::standard, Mode::small, Mode::ready}) {
    Scene scene;
    scene.modes = {mode};
    scene.sender = {0};
    scene.to_itself = true;
    for (int e = 1; e <= epochs; ++e)
      for (Act const& act : Acts{{Kind::fill, 0, e},
                                 {Kind::start, 0, 0},
                                 {Kind::start, 0, 1},
                                 {Kind::wait, 0, 1},
                                 {Kind::wait, 0, 0},
                                 {Kind::check, 0, e}})
        scene.acts[0].push_back(act);
    std::string const of = "to itself, mode " + std::to_string(static_cast<int>(mode));
    expect_held(of, scene);
    expect_held(of + " at once", at_once(scene));
  }
}

// A rank leaves after any of its acts: nobody touches its memory afterwards, and the other one's waits end.
TEST(Text, OneLeavesAnywhere) {
  std::uint64_t losses = 0;
  std::size_t number = 0;
  for (Mode const mode : {Mode::standard, Mode::small, Mode::ready})
    for (std::size_t leaver = 0; leaver < 2; ++leaver) {
      Scene const whole = mode == Mode::ready ? promised(2, true) : one_message(mode, 3);
      for (std::size_t acts = 0; acts <= whole.acts[leaver].size(); ++acts) {
        Scene scene = whole;
        scene.acts[leaver].resize(acts);
        scene.acts[leaver].push_back({Kind::leave});
        scene.may_be_lost = true;
        for (bool const forked : {false, true}) {
          if (!is_tried(number++, 5)) continue;
          Found const f = explore_text(forked ? at_once(scene) : scene);
          EXPECT_EQ(f.problem, "") << "mode " << static_cast<int>(mode) << ", rank " << leaver << " after "
                                   << acts << (forked ? " at once" : "");
          EXPECT_GT(f.ends, 0u);
          losses += f.losses;
        }
      }
    }
  EXPECT_GT(losses, 0u);
  std::printf("%llu ends in which the other one was told\n", static_cast<unsigned long long>(losses));
}

// ---- what must be found

void expect_found(std::string const& what, Scene const& scene) {
  EXPECT_NE(tried(what, scene).problem, "") << what;
}

TEST(BrokenText, IsFound) {
  Fault fault;
  fault.adds_in_two_steps = true;
  expect_found("a count that is not atomic", one_message(Mode::standard, 2, fault));
  fault = {};
  fault.stores_release_nothing = true;
  for (Mode const mode : {Mode::standard, Mode::small})
    expect_found("stores without a release", one_message(mode, 2, fault));
  fault = {};
  fault.loads_acquire_nothing = true;
  for (Mode const mode : {Mode::standard, Mode::small})
    expect_found("loads without an acquire", one_message(mode, 2, fault));
  fault = {};
  fault.one_slot = true;
  expect_found("one slot", one_message(Mode::small, 3, fault));
  fault = {};
  fault.sends_without_taken = true;
  expect_found("a small send that awaits nothing", one_message(Mode::small, 4, fault));
  expect_found("a broken promise", promised(2, false));
  fault = {};
  fault.waits_before_start_counts = true;
  for (Mode const mode : {Mode::standard, Mode::small})
    expect_found("an epoch that starts had not counted", at_once(one_message(mode, 2, fault)));
}

TEST(BrokenText, MovesIntoMemoryThatIsGone) {
  Scene scene = one_message(Mode::standard, 1);
  scene.fault.moves_after_leave = scene.may_be_lost = true;
  scene.acts[1] = {{Kind::start, 0, 1}, {Kind::leave}};
  expect_found("a move after its target has gone", scene);
}

}  // namespace
}  // namespace hostless::test
