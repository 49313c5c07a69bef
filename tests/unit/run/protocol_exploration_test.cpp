// The protocols between ranks with every order of stores, loads, losses and deadlines, and that what could be
// forgotten in them is found: two buffers, fences, both epochs of a flagged word, the barrier between two
// stores.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "protocols.hpp"

namespace hostless::test {
namespace {

#if defined(NDEBUG) && !HOSTLESS_ADDRESS_SANITIZER && !HOSTLESS_THREAD_SANITIZER
constexpr int barriers = 3;
#else
constexpr int barriers = 2;  // a tenth as fast
#endif
constexpr std::uint32_t last_epoch = gpu::poison - 1;

Ranks of(Ranks ranks, int count, int data_every = 2, std::uint32_t first_epoch = 0) {
  ranks.barriers = count;
  ranks.data_every = data_every;
  ranks.first_epoch = first_epoch;
  return ranks;
}
// Blocks 0 and 1 of one rank, and a rank of one block. Blocks of a rank read each other's rows, too.
Ranks three_blocks() { return {{0, 0, 1}, {{0, 0}, {0, 1}, {2, 0}}}; }
// Two blocks of each rank.
Ranks four_blocks() { return {{0, 0, 1, 1}, {{0, 1}, {1, 0}, {2, 0}, {3, 1}}}; }

struct Way {
  char const* name;
  Protocol (*make)(Ranks const&, Mutation const&);
  Telling telling;
};
Protocol phases(Ranks const& ranks, Mutation const& mutation) {
  return ordered_by_fences(ranks, true, mutation);
}
Protocol kernel(Ranks const& ranks, Mutation const& mutation) {
  return ordered_by_fences(ranks, false, mutation);
}
Protocol own_flagged_words(Ranks const& ranks, Mutation const& mutation) {
  return flagged_words_of_their_own(ranks, true, mutation);
}
Protocol puts(Ranks const& ranks, Mutation const& mutation) {
  return puts_with_signals(ranks, false, mutation);
}
Protocol puts_after_answers(Ranks const& ranks, Mutation const& mutation) {
  return puts_with_signals(ranks, true, mutation);
}
constexpr Way by_phases{"phases", phases, Telling::missed}, in_kernel{"kernel", kernel, Telling::everybody},
    by_flagged_words{"values as words", own_flagged_words, Telling::everybody},
    by_signals{"signals", puts, Telling::everybody},
    by_signals_after_answers{"signals after answers", puts_after_answers, Telling::everybody};
constexpr std::array<Way, 5> ways = {by_phases, in_kernel, by_flagged_words, by_signals,
                                     by_signals_after_answers};

Explored tried(std::string const& what, Protocol const& protocol, Stores stores) {
  Explored const e = explore(protocol, stores);
  std::printf("%s%s: %llu states, %llu moves, %llu ends%s%s\n", what.c_str(),
              stores == Stores::each ? ", each store" : "", static_cast<unsigned long long>(e.states),
              static_cast<unsigned long long>(e.moves), static_cast<unsigned long long>(e.ends),
              e.problem.empty() ? "" : "; found: ", e.problem.c_str());
  return e;
}
void expect_held(std::string const& what, Protocol const& protocol, Stores stores = Stores::that_matter) {
  Explored const e = tried(what, protocol, stores);
  std::string path;
  for (std::string const& move : e.path) path += "\n  " + move;
  EXPECT_EQ(e.problem, "") << what << path;
  EXPECT_GT(e.ends, 0u) << what;
  EXPECT_EQ(e.losses > 0, protocol.deadlines != Deadlines::never) << what << ": somebody failed, or nobody";
}
Protocol losing(Way const& way, Ranks const& ranks, unsigned lost, Deadlines deadlines,
                Mutation const& mutation = {}) {
  Protocol protocol = way.make(ranks, mutation);
  protocol.telling = way.telling;
  protocol.lost_together = lost;
  protocol.deadlines = deadlines;
  return protocol;
}

// ---- what holds

TEST(Protocols, OfThreeRanks) {
  for (Way const& way : ways) expect_held(way.name, way.make(of(ring(3), barriers), {}));
  expect_held("values as words at every meeting", own_flagged_words(of(ring(3), barriers, 1), {}));
  Ranks two_flagged_words = of(ring(3), barriers);  // a sum and the orders
  two_flagged_words.words = 2;
  expect_held("phases, two words each", phases(two_flagged_words, {}));
}

// Sums, and halos where everybody is everybody's neighbour.
TEST(Protocols, OfSignalsFromEachToEach) {
  expect_held("signals from each to each", puts(of(complete(3), 2), {}));
  expect_held("signals from each to each, two ranks", puts(of(complete(2), barriers + 1), {}));
}

TEST(Protocols, OfThreeRanksWithEachStoreInEveryOrder) {
  expect_held("kernel", kernel(of(ring(3), barriers), {}), Stores::each);
}

TEST(Protocols, OfBlocksThatShareMemory) {
  for (Way const& way : {in_kernel, by_flagged_words})
    for (Ranks const& ranks : {three_blocks(), four_blocks()})
      expect_held(std::to_string(ranks.memory_of.size()) + " blocks, " + way.name,
                  way.make(of(ranks, barriers), {}));
}

TEST(Protocols, WhereEpochsBeginAgain) {
  for (Way const& way : ways)
    for (std::uint32_t ago = 0; ago < 4; ++ago)
      expect_held(std::string(way.name) + ", " + std::to_string(ago) + " before the last epoch",
                  way.make(of(ring(3), 4, 2, last_epoch - ago), {}));
}

// ---- lost and late ones

TEST(LostRanks, AnyOfThreeAnywhere) {
  for (Way const& way : ways)
    for (std::uint32_t first : {0u, last_epoch - 1})
      expect_held(std::string(way.name) + ", a rank of three is lost",
                  losing(way, of(ring(3), barriers, 2, first), 1, Deadlines::last_resort));
  expect_held("values as words at every barrier, a rank of three is lost",
              losing(by_flagged_words, of(ring(3), barriers, 1), 1, Deadlines::last_resort));
}

TEST(LostRanks, WhoeverFailsNeedNotPoisonValues) {
  Protocol protocol = flagged_words_of_their_own(of(ring(3), barriers), false);
  protocol.lost_together = 1;
  protocol.deadlines = Deadlines::last_resort;
  expect_held("values without poison, a rank of three is lost", protocol);
}

TEST(LostRanks, BlocksAloneOrTogether) {
  auto const lose = [](Way const& way, unsigned lost, int count) {
    expect_held(std::string("three blocks, ") + way.name + ", lost: " + std::to_string(lost),
                losing(way, of(three_blocks(), count), lost, Deadlines::last_resort));
  };
  for (unsigned lost : {1u, 2u, 3u, 4u}) lose(in_kernel, lost, barriers);
  for (unsigned lost : {1u, 2u, 4u}) lose(by_flagged_words, lost, barriers);
  lose(by_flagged_words, 3, 2);
  expect_held("four blocks, one is lost", losing(in_kernel, of(four_blocks(), 2), 1, Deadlines::last_resort));
}

// Deadlines that pass although nobody is lost, or before what a lost one has stored arrives.
TEST(LateRanks, AcceptNothingWrong) {
  for (Way const& way : ways)
    for (unsigned lost : {0u, 1u})
      expect_held(std::string(way.name) + ", two ranks, late" + (lost != 0 ? " or lost" : ""),
                  losing(way, of(ring(2), barriers), lost, Deadlines::any_time));
  expect_held("phases, three ranks, late", losing(by_phases, of(ring(3), barriers), 0, Deadlines::any_time));
}

// ---- what must be found

struct Fault {
  char const* name;
  Way way;
  Mutation mutation;
  char const* problem;
  int data_every = 2;
  std::uint32_t first_epoch = 0;
};
Mutation mutated(bool Mutation::*what) {
  Mutation mutation;
  mutation.*what = true;
  return mutation;
}
Mutation with_rules(Rules rules) {
  Mutation mutation;
  mutation.rules = rules;
  return mutation;
}
std::vector<Fault> faults() {
  char const* const overwritten = "overwritten";
  char const* const stale = "of another meeting";
  char const* const torn = "nobody meant";
  Rules one_epoch, begins_at_1;
  one_epoch.accepts = [](gpu::FlaggedWord const& word, std::uint32_t epoch) { return word.part[1] == epoch; };
  begins_at_1.next = [](std::uint32_t epoch) { return epoch == last_epoch ? 1u : epoch + 1; };
  std::vector<Fault> all;
  for (Way const& way : ways) {
    all.push_back({"OneBufferOfBarriers", way, mutated(&Mutation::one_buffer), overwritten});
    all.push_back({"OneEpochOfTwo", way, with_rules(one_epoch), torn});
    all.push_back({"EpochsBeginAtOne", way, with_rules(begins_at_1), overwritten, 2, last_epoch - 1});
    all.push_back({"ValuesABarrierEarly", way, mutated(&Mutation::sends_early), overwritten});
  }
  for (Way const& way : {by_signals, by_signals_after_answers}) {
    all.push_back({"NoFenceBeforeWords", way, mutated(&Mutation::no_fence_before), stale});
    all.push_back({"NoFenceAfterWords", way, mutated(&Mutation::no_fence_after), stale});
    all.push_back({"OneBufferOfValues", way, mutated(&Mutation::one_value_buffer), overwritten});
  }
  for (Way const& way : {by_phases, in_kernel}) {
    all.push_back({"NoFenceBeforeWords", way, mutated(&Mutation::no_fence_before), stale});
    all.push_back({"NoFenceAfterWords", way, mutated(&Mutation::no_fence_after), stale});
    all.push_back({"ValuesAtEveryBarrier", way, {}, overwritten, 1});
  }
  all.push_back(
      {"OneBufferOfValues", by_flagged_words, mutated(&Mutation::one_value_buffer), overwritten, 1});
  all.push_back({"ValuesAreNotPolled", by_flagged_words, mutated(&Mutation::unpolled), stale});
  return all;
}

class Faults : public testing::TestWithParam<Fault> {};
INSTANTIATE_TEST_SUITE_P(All, Faults, testing::ValuesIn(faults()), [](auto const& one) {
  std::string way = one.param.way.name;
  std::replace(way.begin(), way.end(), ' ', '_');
  return std::string(one.param.name) + "_" + way;
});

// By both searches alike.
TEST_P(Faults, AreFound) {
  Fault const& fault = GetParam();
  for (int ranks : {2, 3}) {
    Ranks const who = of(ring(ranks), 3, fault.data_every, fault.first_epoch);
    for (Stores stores : {Stores::each, Stores::that_matter}) {
      std::string const what = std::string(fault.name) + ", " + fault.way.name;
      Explored const e = tried(what, fault.way.make(who, fault.mutation), stores);
      EXPECT_NE(e.problem.find(fault.problem), e.problem.npos) << ranks << " ranks: '" << e.problem << "'";
      EXPECT_FALSE(e.path.empty());
    }
  }
}

// Of three ranks in a circle: what two say to each other is an answer to either.
TEST(Signals, WithoutAnswersAreOverwritten) {
  Explored const e = tried("signals without answers", puts(of(ring(3), 3), mutated(&Mutation::no_answers)),
                           Stores::that_matter);
  EXPECT_NE(e.problem.find("overwritten"), e.problem.npos) << e.problem;
}

TEST(LostRanks, HangTheOthersWhereThereIsNoDeadline) {
  for (Way const& way : ways) {
    Explored const e = tried(std::string(way.name) + ", no deadline",
                             losing(way, of(ring(3), barriers), 1, Deadlines::never), Stores::that_matter);
    EXPECT_NE(e.problem.find("waits for ever"), e.problem.npos) << e.problem;
  }
}

// The two searches end in as many ways: nothing is lost where stores are shown at once.
TEST(Search, IsTheSameWithoutStoresThatDoNotMatter) {
  for (Way const& way : ways)
    for (unsigned lost : {0u, 1u}) {
      Protocol const protocol = losing(way, of(ring(2), 3), lost, Deadlines::last_resort);
      std::string const what = std::string(way.name) + ", two ranks" + (lost != 0 ? ", one is lost" : "");
      Explored const each = tried(what, protocol, Stores::each);
      Explored const fewer = tried(what, protocol, Stores::that_matter);
      EXPECT_EQ(each.problem, "");
      EXPECT_EQ(fewer.problem, "");
      EXPECT_LT(fewer.states, each.states);
      EXPECT_EQ(fewer.ends, each.ends);
      EXPECT_EQ(fewer.losses, each.losses);
    }
}

}  // namespace
}  // namespace hostless::test
