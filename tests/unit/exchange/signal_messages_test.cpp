// Halos and sums by puts with signals, without a GPU: each rank is a thread that does at once what a stream
// would do in this order. Puts are plain copies and signals are what orders them, so under the thread
// sanitizer every look at what may be overwritten is found.
#include "transport/stream/signal_messages.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <random>

#include "exchange/stream_rounds.hpp"
#include "hostless/base/deadline.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/plan/routes.hpp"
#include "message_cases.hpp"
#include "transport/stream/signals.hpp"

namespace hostless::gpu {
namespace {

using testing::Reads;

double part_of(int rank, int k, int epoch) { return 100.0 * rank + 10.0 * k + 0.25 * epoch; }

std::atomic_ref<std::uint64_t> signal_in(std::vector<double>& memory, std::int64_t offset) {
  return std::atomic_ref(
      *reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::byte*>(memory.data()) + offset));
}

// A stream that executes at once, of rank `rank`; or one that only looks, or that keeps for later.
class PlayedRank final : public SignalQueue {
 public:
  PlayedRank(std::vector<std::vector<double>>& memories, ExchangePlan const& plan, Group& group,
             double deadline_s)
      : memories_(memories),
        plan_(plan),
        copies_(peer_copies(plan, group)),
        rounds_(message_rounds(copies_, group)),
        messages(stream_rounds(rounds_, sizeof(double), true), plan.rank, plan.ranks),
        deadline_s_(deadline_s),
        random_(static_cast<unsigned>(plan.rank)) {
    auto const bytes = group.max(messages.offsets().bytes());
    memories_[me()].assign(static_cast<std::size_t>(bytes / 8), 0.0);
    vector_.assign(static_cast<std::size_t>(plan.owned + plan.ghosts), -1);
    staging_.assign(static_cast<std::size_t>(copies_.staging), -1);
    arrived_.assign(2 * static_cast<std::size_t>(messages.offsets().channels()), 0);
  }

  void exchange() {
    for (int round = 0; round < messages.offsets().sums(); ++round) {
      pack(round, messages.offsets().outgoing());
      messages.send(*this, round);
      messages.await(*this, round);
      unpack(round, messages.incoming(round));
    }
    messages.end_exchange(*this);
  }
  void pack(int round, std::int64_t to) {
    queue([this, round, to] {
      auto const& items = rounds_[static_cast<std::size_t>(round)].from;
      for (std::size_t k = 0; k < items.size(); ++k) at(to)[k] = item(items[k]);
    });
  }
  void unpack(int round, std::int64_t from) {
    queue([this, round, from] {
      auto const& items = rounds_[static_cast<std::size_t>(round)].to;
      for (std::size_t k = 0; k < items.size(); ++k) item(items[k]) = at(from)[k];
    });
  }
  void say(double const* mine, int count, std::int64_t to, std::int64_t own) override {
    queue([this, mine, count, to, own] {
      for (int k = 0; k < count; ++k) at(to)[k] = at(own)[k] = mine[k];
    });
  }
  void put(SignalPut const& put) override {
    queue([this, put] {
      if (random_() % 8 == 0) Backoff::give_core_away();
      auto& there = memories_[static_cast<std::size_t>(put.rank)];
      std::memcpy(reinterpret_cast<std::byte*>(there.data()) + put.to, at(put.from),
                  static_cast<std::size_t>(put.bytes));
      signal_in(there, put.signal).fetch_add(1, std::memory_order_release);
    });
  }
  void copy(std::int64_t to, std::int64_t from, std::int64_t bytes) override {
    queue([this, to, from, bytes] { std::memcpy(at(to), at(from), static_cast<std::size_t>(bytes)); });
  }
  void await(int channel, int parity, std::uint32_t sources) override {
    queue([this, channel, parity, sources] {
      std::uint64_t& arrived = arrived_[static_cast<std::size_t>(2 * channel + parity)];
      for (int source = 0; source < plan_.ranks; ++source)
        if ((sources >> source & 1u) != 0) await_one(channel, parity, source, arrived + 1);
      ++arrived;
    });
  }
  void in_earnest(std::function<void()> const& use) override {
    if (mode_ != Mode::looks) use();
  }

  // One of each after the other, compared with what was promised.
  void expect_exchange(Reads const& reads, int epoch) {
    own_values(epoch);
    exchange();
    expect_ghosts(reads, epoch);
  }
  void expect_sum(int count, int epoch) {
    speak(count, epoch);
    expect_parts(messages.gather(*this, said_.data(), count), count, epoch);
  }
  void own_values(int epoch) {
    for (std::int64_t k = 0; k < plan_.owned; ++k)
      vector_[static_cast<std::size_t>(plan_.ghosts_below + k)] = value_of(plan_.rank, k, epoch);
  }
  void expect_ghosts(Reads const& reads, int epoch) const {
    auto const expected = reads.ghosts(plan_.rank);
    for (std::size_t g = 0; g < expected.size(); ++g) {
      auto const offset =
          plan_.vector_offset(plan_.owned + static_cast<std::int64_t>(g)) + plan_.ghosts_below;
      ASSERT_EQ(vector_[static_cast<std::size_t>(offset)],
                value_of(expected[g].first, expected[g].second, epoch))
          << "ghost " << g << " of rank " << plan_.rank << ", epoch " << epoch;
    }
  }
  void speak(int count, int epoch) {
    said_.resize(widest_sum + 1);
    for (int k = 0; k < count; ++k) said_[static_cast<std::size_t>(k)] = part_of(plan_.rank, k, epoch);
  }
  double const* said() const { return said_.data(); }
  void expect_parts(std::int64_t all, int count, int epoch) {
    for (int rank = 0; rank < plan_.ranks; ++rank)
      for (int k = 0; k < count; ++k)
        ASSERT_EQ(at(all)[rank * count + k], part_of(rank, k, epoch))
            << "part " << k << " of rank " << rank << " on rank " << plan_.rank << ", epoch " << epoch;
  }

  void begin_looking() { mode_ = Mode::looks; }
  void begin_recording() {
    mode_ = Mode::records;
    recorded_.clear();
  }
  void queue(std::function<void()> work) {
    if (mode_ == Mode::executes) work();
    if (mode_ == Mode::records) recorded_.push_back(std::move(work));
  }
  void execute_again() { mode_ = Mode::executes; }
  void replay() const {
    for (auto const& work : recorded_) work();
  }

  bool lost() const { return lost_; }
  void poison_others() {
    SignalOffsets const& offsets = messages.offsets();
    for (int other = 0; other < plan_.ranks; ++other)
      for (int channel = 0; other != plan_.rank && channel < offsets.channels(); ++channel)
        for (int parity = 0; parity < 2; ++parity)
          signal_in(memories_[static_cast<std::size_t>(other)], offsets.signal(channel, parity, plan_.rank)) =
              poisoned_signal;
  }
  void forget() {
    std::fill(memories_[me()].begin(), memories_[me()].end(), 0.0);
    std::fill(arrived_.begin(), arrived_.end(), 0);
    lost_ = false;
    messages.forget();
  }

 private:
  enum class Mode { executes, looks, records };
  std::size_t me() const { return static_cast<std::size_t>(plan_.rank); }
  double* at(std::int64_t offset) { return memories_[me()].data() + offset / 8; }
  double& item(MessageItem const& i) {
    return i.staging != 0 ? staging_.at(static_cast<std::size_t>(i.vector_offset))
                          : vector_.at(static_cast<std::size_t>(i.vector_offset + plan_.ghosts_below));
  }
  void await_one(int channel, int parity, int source, std::uint64_t expected) {
    auto const signal = signal_in(memories_[me()], messages.offsets().signal(channel, parity, source));
    Deadline const deadline = Deadline::after(deadline_s_);
    while (!lost_) {
      Arrival const found = arrival_of(signal.load(std::memory_order_acquire), expected);
      if (found == Arrival::whole) return;
      if (found == Arrival::broken || deadline.passed()) lost_ = true;
      Backoff::give_core_away();
    }
  }

  std::vector<std::vector<double>>& memories_;
  ExchangePlan const& plan_;
  PeerCopies copies_;
  std::vector<MessageRound> rounds_;

 public:
  SignalMessages messages;

 private:
  double deadline_s_;
  std::mt19937 random_;
  std::vector<double> vector_, staging_, said_;
  std::vector<std::uint64_t> arrived_;
  std::vector<std::function<void()>> recorded_;
  Mode mode_ = Mode::executes;
  bool lost_ = false;
};

// body(rank, reads, group) on a thread for each rank of a random plan.
template <class Body>
void play(int ranks, Route route, double deadline_s, Body const& body) {
  Reads const reads = testing::random_reads(ranks, 7 * static_cast<unsigned>(ranks));
  auto const plans = make_plans(route, reads.patterns(), NodeMap::blocks(ranks, 2));
  std::vector<std::vector<double>> memories(static_cast<std::size_t>(ranks));
  run_on_threads(ranks, [&](Group& group) {
    PlayedRank rank(memories, plans[static_cast<std::size_t>(group.rank())], group, deadline_s);
    group.barrier();  // nobody puts before all memories are there
    body(rank, reads, group);
    group.barrier();
  });
}
constexpr double patience_s = 240;

TEST(Signals, ArrivalsAreCounted) {
  EXPECT_EQ(arrival_of(0, 1), Arrival::none);
  EXPECT_EQ(arrival_of(1, 1), Arrival::whole);
  EXPECT_EQ(arrival_of(2, 1), Arrival::broken) << "nobody may put again before this one is read";
  EXPECT_EQ(arrival_of(0, 2), Arrival::broken) << "an arrival was missed";
  for (std::uint64_t count : {0u, 1u, 2u}) EXPECT_EQ(arrival_of(poisoned_signal | count, 1), Arrival::broken);
}

// Limits may be without an end, as those of a debugger's session are: that is no wait of 0 cycles.
TEST(Signals, AnEndlessLimitIsALongWait) {
  constexpr double hertz = 1.98e9;
  constexpr double endless = std::numeric_limits<double>::infinity();
  EXPECT_EQ(cycles_of(60, hertz), std::uint64_t{118'800'000'000});
  for (double const seconds : {1e10, 1e300, endless})
    EXPECT_GT(cycles_of(seconds, hertz), cycles_of(1e7, hertz));
}

TEST(SignalOffsets, NothingOverlaps) {
  std::vector<StreamRound> rounds(2);
  rounds[0].most_in_bytes = 37;
  rounds[0].out_bytes = 24;
  rounds[1].most_in_bytes = 8;
  rounds[1].out_bytes = 31;
  SignalOffsets const offsets(rounds, 3);
  std::vector<std::pair<std::int64_t, std::int64_t>> pieces;  // offset, bytes
  for (int channel = 0; channel < offsets.channels(); ++channel)
    for (int parity = 0; parity < 2; ++parity)
      for (int source = 0; source < most_ranks; ++source)
        pieces.emplace_back(offsets.signal(channel, parity, source), 8);
  for (int parity = 0; parity < 2; ++parity) {
    pieces.emplace_back(offsets.incoming(0, parity), 37);
    pieces.emplace_back(offsets.incoming(1, parity), 8);
    pieces.emplace_back(offsets.said(parity), 8 * 3 * (widest_sum + 1));
  }
  pieces.emplace_back(offsets.spoken(), 8 * (widest_sum + 1));
  pieces.emplace_back(offsets.outgoing(), 31);
  std::sort(pieces.begin(), pieces.end());
  for (std::size_t k = 1; k < pieces.size(); ++k)
    EXPECT_LE(pieces[k - 1].first + pieces[k - 1].second, pieces[k].first);
  EXPECT_LE(pieces.back().first + pieces.back().second, offsets.bytes());
}

// Exchanges without a sum between them, as a polynomial has them, and sums without an exchange.
TEST(SignalMessages, GhostsAndPartsOfSumsArrive) {
  for (int ranks : {1, 2, 3, 5, 8})
    for (Route route : all_routes)
      play(ranks, route, patience_s, [](PlayedRank& rank, Reads const& reads, Group&) {
        for (int epoch = 1; epoch <= 40; ++epoch) {
          rank.expect_exchange(reads, epoch);
          for (int sum = 0; sum < epoch % 4; ++sum)
            rank.expect_sum(1 + (epoch + sum) % (widest_sum + 1), epoch);
        }
        EXPECT_FALSE(rank.lost());
      });
}

// A text that is only looked at, as kernels are loaded, puts nothing and takes no turn.
TEST(SignalMessages, LookingChangesNothing) {
  play(3, Route::two_step, patience_s, [](PlayedRank& rank, Reads const& reads, Group&) {
    for (int epoch = 1; epoch <= 9; ++epoch) {
      rank.begin_looking();
      int const before = rank.messages.phase();
      rank.exchange();
      static_cast<void>(rank.messages.gather(rank, nullptr, 2));
      EXPECT_EQ(rank.messages.phase(), before);
      rank.execute_again();
      rank.expect_exchange(reads, epoch);
      rank.expect_sum(2, epoch);
    }
  });
}

// As a graph of several iterations is: recorded at one phase, replayed after any number of other exchanges
// and sums.
TEST(SignalMessages, WhatIsRecordedIsReplayedAtItsPhase) {
  for (int ranks : {2, 3, 5})
    for (int before = 0; before < 4; ++before)
      play(ranks, Route::direct, patience_s, [&](PlayedRank& rank, Reads const& reads, Group&) {
        int epoch = 0;
        auto const directly = [&](int exchanges, int sums) {
          for (int k = 0; k < exchanges; ++k) rank.expect_exchange(reads, ++epoch);
          for (int k = 0; k < sums; ++k) rank.expect_sum(3, ++epoch);
        };
        directly(before % 2, before / 2);
        int const phase = rank.messages.phase();
        rank.begin_recording();
        for (int iteration = 0; iteration < 2; ++iteration) {
          rank.queue([&] { rank.own_values(++epoch); });
          rank.exchange();
          rank.queue([&] { rank.expect_ghosts(reads, epoch); });
          for (int sum = 0; sum < 3; ++sum) {
            rank.queue([&] { rank.speak(2, ++epoch); });
            rank.speak(2, 0);  // only to have its address
            std::int64_t const all = rank.messages.gather(rank, rank.said(), 2);
            rank.queue([&, all] { rank.expect_parts(all, 2, epoch); });
          }
        }
        EXPECT_EQ(rank.messages.phase(), phase) << "a recording must end where it began";
        rank.execute_again();
        for (int round = 0; round < 12; ++round) {
          directly(round % 3, round % 5);
          rank.messages.reach(rank, phase);
          EXPECT_EQ(rank.messages.phase(), phase);
          for (int k = 0; k <= round % 2; ++k) rank.replay();
        }
        EXPECT_FALSE(rank.lost());
      });
}

TEST(SignalMessages, ALostRankIsFoundAndForgotten) {
  for (bool poisons : {false, true}) {
    double const deadline_s = poisons ? 600 : 1;
    play(3, Route::direct, deadline_s, [&](PlayedRank& rank, Reads const& reads, Group& group) {
      for (int epoch = 1; epoch <= 5; ++epoch) {
        rank.expect_exchange(reads, epoch);
        rank.expect_sum(3, epoch);
      }
      group.barrier();
      auto const begin = Clock::now();
      if (group.rank() == 1) {
        if (poisons) rank.poison_others();
      } else {
        static_cast<void>(rank.messages.gather(rank, rank.said(), 3));
        EXPECT_TRUE(rank.lost());
        double const seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        if (poisons) {
          EXPECT_LT(seconds, 0.5 * deadline_s) << "poison was not seen";
        } else {
          EXPECT_GE(seconds, deadline_s) << "nobody waited";
        }
      }
      group.barrier();  // nothing is under way
      rank.forget();
      group.barrier();  // nobody puts before all have forgotten
      for (int epoch = 6; epoch <= 12; ++epoch) {
        rank.expect_exchange(reads, epoch);
        rank.expect_sum(3, epoch);
      }
      EXPECT_FALSE(rank.lost());
    });
  }
}

}  // namespace
}  // namespace hostless::gpu
