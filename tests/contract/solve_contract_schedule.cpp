#include "solve_contract_schedule.hpp"

#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <utility>

#include "hostless/base/wait.hpp"

namespace hostless::contract {
namespace {

std::uint64_t mixed(std::uint64_t z) {  // splitmix64
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

}  // namespace

void Lateness::add(Lateness const& other) {
  told += other.told;
  last += other.last;
  by_chance += other.by_chance;
}

bool Lateness::beyond_chance() const {
  return static_cast<double>(last) > by_chance + 5 * std::sqrt(by_chance);  // its variance is below its mean
}

Schedule::Schedule(int rank, int ranks, int threads)
    : rank_(rank), ranks_(ranks), threads_count_(threads), threads_(static_cast<std::size_t>(threads)) {}

void Schedule::choose(std::uint64_t seed) {
  if (seed_ == 0) alone_ = threads_.front().barriers - threads_.back().barriers;
  seed_ = seed;
  for (Thread& thread : threads_) thread.barriers = 0;
  threads_.front().barriers = -alone_;
  if (seed != 0) rounds_.push_back({seed, threads_[0].arrivals.size()});
}

// Nobody: -1.
int Schedule::late_party(std::uint64_t seed, std::int64_t barrier) const {
  std::uint64_t const z = mixed(seed * 4096 + static_cast<std::uint64_t>(barrier));
  if (z % 3 != 0) return -1;
  return static_cast<int>((z >> 8) % static_cast<unsigned>(ranks_ * threads_count_));
}

void Schedule::arrive(int thread) {
  Thread& mine = threads_[static_cast<std::size_t>(thread)];
  std::int64_t const barrier = mine.barriers++;
  if (seed_ == 0 || barrier < 0) return;
  int const party = rank_ * threads_count_ + thread;
  std::uint64_t const z =
      mixed(mixed(seed_ + static_cast<unsigned>(party)) + static_cast<std::uint64_t>(barrier));
  if ((z & 7) == 0) Backoff::give_core_away();
  if (late_party(seed_, barrier) == party)
    std::this_thread::sleep_for(std::chrono::microseconds(20 + (z >> 8) % 80));
  mine.arrivals.push_back(Clock::now().time_since_epoch().count());
}

Lateness Schedule::lateness(Group& group) {
  std::vector<Clock::rep> all;  // [rank][thread][arrival]
  std::size_t const arrivals = threads_[0].arrivals.size();
  for (Thread& thread : threads_) {
    all.insert(all.end(), thread.arrivals.begin(), thread.arrivals.end());
    thread.arrivals.clear();
  }
  Bytes mine(all.size() * sizeof(Clock::rep));
  if (!mine.empty()) std::memcpy(mine.data(), all.data(), mine.size());
  std::vector<Round> const rounds = std::exchange(rounds_, {});
  auto const parts = group.all_gather_bytes(mine);
  all.clear();
  for (Bytes const& part : parts) {
    if (part.size() != mine.size()) return {};  // another number of barriers: another ending, told elsewhere
    std::size_t const before = all.size();
    all.resize(before + part.size() / sizeof(Clock::rep));
    if (!part.empty()) std::memcpy(all.data() + before, part.data(), part.size());
  }
  Lateness found;
  auto const parties = static_cast<std::size_t>(ranks_ * threads_count_);
  if (parties == 1) return found;
  for (std::size_t k = 0; k < rounds.size(); ++k) {
    std::size_t const end = k + 1 < rounds.size() ? rounds[k + 1].first : arrivals;
    for (std::size_t at = rounds[k].first; at < end; ++at) {
      int const late = late_party(rounds[k].seed, static_cast<std::int64_t>(at - rounds[k].first));
      if (late < 0) continue;
      std::size_t last = 0;
      for (std::size_t party = 1; party < parties; ++party)
        if (all[party * arrivals + at] > all[last * arrivals + at]) last = party;
      ++found.told;
      found.last += static_cast<int>(last) == late ? 1 : 0;
      found.by_chance += 1.0 / static_cast<double>(parties);
    }
  }
  return found;
}

}  // namespace hostless::contract
