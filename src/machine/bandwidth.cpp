#include "hostless/machine/bandwidth.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "hostless/base/error.hpp"
#include "hostless/base/isa.hpp"
#include "hostless/base/rows.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/machine/topology.hpp"

namespace hostless {
namespace {

constexpr std::int64_t chunk = std::int64_t{1} << 19;  // 4 MiB of words between two looks at the clock

// Whole numbers, because their sum may be reordered: it vectorises without any licence to change rounding.
__attribute__((always_inline)) inline std::uint64_t sum_words(std::uint64_t const* word, std::int64_t n) {
  std::uint64_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  std::int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    for (std::int64_t k = 0; k < 8; ++k) {
      s0 += word[i + k];
      s1 += word[i + 8 + k];
      s2 += word[i + 16 + k];
      s3 += word[i + 24 + k];
    }
  }
  for (; i < n; ++i) s0 += word[i];
  return s0 + s1 + s2 + s3;
}

__attribute__((always_inline)) inline void triad_doubles(double* a, double const* b, double const* c,
                                                         double s, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) a[i] = b[i] + s * c[i];
}

HOSTLESS_TARGET_BASELINE std::uint64_t sum_baseline(std::uint64_t const* word, std::int64_t n) {
  return sum_words(word, n);
}
HOSTLESS_TARGET_V3 std::uint64_t sum_v3(std::uint64_t const* word, std::int64_t n) {
  return sum_words(word, n);
}
HOSTLESS_TARGET_V4 std::uint64_t sum_v4(std::uint64_t const* word, std::int64_t n) {
  return sum_words(word, n);
}

HOSTLESS_TARGET_BASELINE void triad_baseline(double* a, double const* b, double const* c, double s,
                                             std::int64_t n) {
  triad_doubles(a, b, c, s, n);
}
HOSTLESS_TARGET_V3 void triad_v3(double* a, double const* b, double const* c, double s, std::int64_t n) {
  triad_doubles(a, b, c, s, n);
}
HOSTLESS_TARGET_V4 void triad_v4(double* a, double const* b, double const* c, double s, std::int64_t n) {
  triad_doubles(a, b, c, s, n);
}

using Sum = std::uint64_t(std::uint64_t const*, std::int64_t);
using Triad = void(double*, double const*, double const*, double, std::int64_t);
constexpr std::array<Sum*, 3> sums = {sum_baseline, sum_v3, sum_v4};  // by Isa
constexpr std::array<Triad*, 3> triads = {triad_baseline, triad_v3, triad_v4};

// Sum of the whole numbers [first, last), modulo 2^64 like the loop that is checked with it.
std::uint64_t sum_of_range(std::int64_t first, std::int64_t last) {
  auto const below = [](std::int64_t n) {
    auto const u = static_cast<std::uint64_t>(n);
    return n % 2 == 0 ? u / 2 * (u - 1) : (u - 1) / 2 * u;
  };
  return last <= first ? 0 : below(last) - (first > 0 ? below(first) : 0);
}

// Memory that nobody has touched yet, so that each thread's pages come from its own NUMA node.
template <class T>
std::unique_ptr<T[]> untouched(std::int64_t n) {
  try {
    return std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(n));
  } catch (std::bad_alloc const&) {
    throw Error(
        ErrorCode::environment,
        "no memory for " + std::to_string(n * static_cast<std::int64_t>(sizeof(T)) >> 20) +
            " MiB (the bandwidth is measured on arrays four times the caches). Free memory and try again.");
  }
}

// One thread's part of a measurement: `prepare` touches it first, `walk(first, last)` is timed and says
// whether the values were right.
struct Tally {
  double bytes_per_s = 0.0;
  bool right = true;
  bool waited_too_long = false;  ///< for the others: nothing was walked
};

template <class Walk>
Tally walk_for(std::int64_t first, std::int64_t last, double seconds, double bytes_an_item,
               Walk const& walk) {
  Tally tally;
  std::int64_t items = 0, at = first;
  auto const start = Clock::now();
  double elapsed = 0.0;
  do {
    std::int64_t const end = std::min(at + chunk, last);
    tally.right = walk(at, end) && tally.right;
    items += end - at;
    at = end == last ? first : end;
    elapsed = std::chrono::duration<double>(Clock::now() - start).count();
  } while (elapsed < seconds);
  tally.bytes_per_s = static_cast<double>(items) * bytes_an_item / elapsed;
  return tally;
}

void check_arguments(int threads, double seconds) {
  if (threads < 1) {
    throw Error(ErrorCode::usage, "threads is " + std::to_string(threads) +
                                      " (nobody would read the memory). Give at least 1.");
  }
  if (!(seconds > 0) || !std::isfinite(seconds)) {
    throw Error(ErrorCode::usage, "seconds is " + std::to_string(seconds) +
                                      " (a rate needs a duration). Give a positive, finite number.");
  }
}

// Each thread takes one piece, prepares it, waits for the others and walks; the rates add up because all walk
// at the same time for the same time.
template <class Prepare, class Walk>
double measure(int threads, double seconds, std::int64_t items, double bytes_an_item, Prepare const& prepare,
               Walk const& walk) {
  std::vector<Tally> tallies(static_cast<std::size_t>(threads));
  std::atomic<int> ready{0};
  std::atomic<bool> stop{false};
  auto const one = [&](int t) {
    std::int64_t const first = piece(t, threads, items), last = piece(t + 1, threads, items);
    prepare(first, last);
    ready.fetch_add(1);
    auto const waited = wait_for([&] { return ready.load() == threads; }, [&] { return stop.load(); },
                                 Deadline::after(WaitLimits::from_environment().first_s));
    Tally& tally = tallies[static_cast<std::size_t>(t)];
    tally.waited_too_long = waited == Waited::late;
    if (waited == Waited::done) tally = walk_for(first, last, seconds, bytes_an_item, walk);
  };
  std::vector<std::thread> team;
  std::string trouble;
  try {
    for (int t = 1; t < threads; ++t) team.emplace_back(one, t);
  } catch (std::system_error const& e) {
    trouble = e.what();
    stop = true;
  }
  if (trouble.empty()) one(0);
  for (auto& member : team) member.join();  // bounded: each walks for `seconds`, after a wait that ends
  if (!trouble.empty()) {
    throw Error(ErrorCode::environment,
                "thread " + std::to_string(team.size() + 1) + " of " + std::to_string(threads) +
                    " cannot be started: " + trouble +
                    " (the bandwidth of all cores stays unknown). Use fewer threads.");
  }
  double rate = 0.0;
  for (Tally const& tally : tallies) {
    if (tally.waited_too_long) {
      throw Error(ErrorCode::environment,
                  "a thread waited too long for the other ones of " + std::to_string(threads) +
                      " to write their memory (they measure at the same time). Use fewer threads, or raise "
                      "HOSTLESS_DEADLINE_SCALE.");
    }
    if (!tally.right || tally.bytes_per_s <= 0) {
      throw Error(
          ErrorCode::environment,
          "memory returned other values than were written (no result of this machine can be trusted). "
          "Test its memory.");
    }
    rate += tally.bytes_per_s;
  }
  return rate;
}

std::int64_t bytes_to_walk() { return bandwidth_bytes(find_topology().last_level_bytes()); }

}  // namespace

double measure_read_bandwidth(int threads, double seconds, int at_once) {
  check_arguments(threads, seconds);
  if (at_once < 1)
    throw Error(ErrorCode::usage,
                "at_once is " + std::to_string(at_once) + " (this process is one of them). Give at least 1.");
  std::int64_t const items = std::max<std::int64_t>(bytes_to_walk() / 8 / at_once, threads);
  Sum* const sum = sums[static_cast<std::size_t>(active_isa())];
  auto const word = untouched<std::uint64_t>(items);
  return measure(
      threads, seconds, items, 8.0,
      [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i)
          word[static_cast<std::size_t>(i)] = static_cast<std::uint64_t>(i);
      },
      [&](std::int64_t first, std::int64_t last) {
        return sum(word.get() + first, last - first) == sum_of_range(first, last);
      });
}

double measure_triad_bandwidth(int threads, double seconds) {
  check_arguments(threads, seconds);
  constexpr double factor = 3.0;
  Triad* const triad = triads[static_cast<std::size_t>(active_isa())];
  std::int64_t const items = std::max<std::int64_t>(bytes_to_walk() / 24, threads);
  auto const a = untouched<double>(items), b = untouched<double>(items), c = untouched<double>(items);
  return measure(
      threads, seconds, items, 24.0,
      [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) {
          auto const k = static_cast<std::size_t>(i);
          a[k] = 0.0;
          b[k] = static_cast<double>(i);
          c[k] = 1.0;
        }
      },
      [&](std::int64_t first, std::int64_t last) {
        triad(a.get() + first, b.get() + first, c.get() + first, factor, last - first);
        auto const seen = static_cast<std::size_t>(last - 1);
        return a[seen] == static_cast<double>(last - 1) + factor;
      });
}

}  // namespace hostless
