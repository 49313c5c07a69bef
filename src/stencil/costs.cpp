#include "stencil/costs.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <thread>

#include "base/thread_team.hpp"
#include "hostless/base/error.hpp"
#include "stencil/agreement.hpp"
#include "stencil/halo_exchange.hpp"

namespace hostless {

namespace {

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// For exchanges that are repeated because others may have been in their way.
constexpr double patience_s = 2e-2;

/// Rows of zeros in the nearest cache, as a run has them.
class Sample {
 public:
  Sample(StencilKernel const& kernel, std::int64_t rows, std::int64_t cells) {
    auto const bytes = static_cast<std::int64_t>(kernel.value_bytes);
    auto const& r = kernel.radius;
    std::int64_t const planes = kernel.axes > 2 ? 4 : 1;
    // for rows of two axes follow along the first one
    int const along = kernel.axes > 2 ? 1 : 0;
    std::int64_t const a_line = 64 / bytes, edge = (r[2] + a_line - 1) / a_line * a_line, row = cells + edge;
    std::int64_t const plane = along == 1 ? row * (rows + 2 * r[1]) : row;
    std::int64_t const array = along == 1 ? plane * (planes + 2 * r[0]) : row * (rows + 2 * r[0]);
    // what is written lies half a page from what is read for it: a load waits for a store to the same place of a page
    constexpr std::int64_t page = 4096;
    std::int64_t const read = ((array * kernel.arrays() + edge) * bytes + page - 1) / page * page;
    lines_.resize(static_cast<std::size_t>((read + page / 2 + array * kernel.fields * bytes) / 64 + 1));
    std::byte* const old = lines_.front().bytes;
    std::byte* const out = old + read + page / 2;
    std::int64_t const begin = r[0] * plane + r[1] * row + edge;
    for (int f = 0; f < kernel.arrays(); ++f)
      for (int a = -r[0]; a <= r[0]; ++a)
        for (int b = -r[1]; b <= r[1]; ++b)
          in_.push_back(old + (f * array + begin + a * plane + b * row) * bytes);
    for (int f = 0; f < kernel.fields; ++f) to_.push_back(out + (f * array + begin) * bytes);
    strides_.assign(in_.size(), row);
    block_ = {to_.data(), in_.data(), strides_.data(), row, rows, cells, kernel.parameters.data()};
    block_.along = along;
    if (kernel.steps_planes) block_.planes = planes, block_.to_plane = plane;
  }
  /// Of one call, `calls` of them one after the other.
  double seconds(CellFunction update, int calls) const {
    auto const begin = Clock::now();
    for (int k = 0; k < calls; ++k) update(block_);
    return seconds_since(begin) / calls;
  }
  double cells() const { return static_cast<double>(block_.planes * block_.rows * block_.cells); }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines_;
  std::vector<void const*> in_;
  std::vector<std::int64_t> strides_;
  std::vector<void*> to_;
  CellBlock block_;
};

double of_a_cell(StencilKernel const& kernel) {
  Sample const sample(kernel, 16, kernel.axes > 2 ? 64 : 256);
  double least = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < 20; ++repeat) least = std::min(least, sample.seconds(kernel.update, 1));
  return least / sample.cells();
}

/// Seconds of once(), the same on all ranks.
template <class Once>
double least_of_pairs(Group& group, Once const& once) {
  // Two at a time: a rank that began later than its neighbour finds one message there already and waits twice
  // as long for the next, by turns. Two are never shorter than twice what messages take.
  double least = std::numeric_limits<double>::infinity();
  auto const pairs = [&](int count) {
    for (int pair = 0; pair < count; ++pair) {
      auto const begin = Clock::now();
      once(), once();
      least = std::min(least, seconds_since(begin) / 2);
    }
    return group.max(least);
  };
  // Where processors are busy with other work, few exchanges are on time: of short ones many are looked at.
  constexpr int first = 3, most = 50;
  double const longest = pairs(first);
  return pairs(static_cast<int>(std::clamp(patience_s / (2 * longest), 0.0, double{most})));
}

[[noreturn]] void refuse_lost_peer() {
  throw Error(ErrorCode::peer_lost,
              "a rank left or stayed silent past the deadline (a stencil was being set up). Look at what "
              "the rank said.");
}

/// The same on all ranks.
double of_an_exchange(Transport& transport, BoxPartition const& partition, StencilKernel const& kernel,
                      StencilOptions const& options) {
  std::array<std::int64_t, 3> depth{};
  for (std::size_t a = 0; a < 3; ++a) depth[a] = kernel.radius[a];
  HaloShape const shape{depth, true, 1, kernel.value_bytes};
  ExchangeOptions bound;
  bound.limits = options.limits;
  HaloExchange exchange(transport, partition, shape, options.route, nodes_of(options, partition), bound);
  auto const once = [&] {
    if (!exchange.run({})) refuse_lost_peer();
  };
  once();
  return least_of_pairs(transport.group(), once);
}

// This thread on the n-th of the processors that it may use, while this lives: threads that begin on one take turns there
// for ten milliseconds and more, until the system moves one.
class OnOneProcessor {
 public:
  explicit OnOneProcessor(int n) {
    if (sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &before_) || n-- > 0) continue;
      cpu_set_t here;
      CPU_ZERO(&here);
      CPU_SET(cpu, &here);
      is_bound_ = sched_setaffinity(0, sizeof here, &here) == 0;
      return;
    }
  }
  ~OnOneProcessor() {
    if (is_bound_) static_cast<void>(sched_setaffinity(0, sizeof before_, &before_));
  }
  OnOneProcessor(OnOneProcessor const&) = delete;
  OnOneProcessor& operator=(OnOneProcessor const&) = delete;

 private:
  cpu_set_t before_;
  bool is_bound_ = false;
};

}  // namespace

bool is_faster(CellFunction update, StencilKernel const& kernel) {
  Sample const sample(kernel, 8, 128 / static_cast<std::int64_t>(kernel.value_bytes));
  double least = std::numeric_limits<double>::infinity(), of_kernel = least;
  for (int repeat = 0; repeat < 15; ++repeat) {  // in turns: what disturbs them meets both
    of_kernel = std::min(of_kernel, sample.seconds(kernel.update, 4));
    least = std::min(least, sample.seconds(update, 4));
  }
  return least < of_kernel;
}

double measure_handshake() {
  static double const found = [] {
    struct alignas(128) Said {  // two lines, for one is fetched with the next
      std::atomic<int> rounds{0};
    };
    std::array<Said, 2> said;
    std::atomic<bool> is_over{false};
    constexpr int batches = 20, rounds = 50;
    Deadline const deadline = Deadline::after(patience_s);
    auto const shake_hands = [&](std::size_t me, int round) {
      said[me].rounds.store(round, std::memory_order_release);
      auto const& other = said[1 - me].rounds;
      for (int look = 1; other.load(std::memory_order_acquire) < round; ++look) {
        if (look % 1024 != 0) {
#if defined(__x86_64__)
          __builtin_ia32_pause();
#endif
          continue;
        }
        if (is_over || Clock::now() > deadline.at) return !(is_over = true);
        std::this_thread::yield();
      }
      return true;
    };
    double least = std::numeric_limits<double>::infinity();
    auto const one = [&](int me) {
      OnOneProcessor const bound(me);
      for (int batch = 0, round = 0; batch < batches; ++batch) {
        auto const begin = Clock::now();
        for (int k = 0; k < rounds; ++k)
          if (!shake_hands(static_cast<std::size_t>(me), ++round)) return true;
        if (me == 0 && batch > 0) least = std::min(least, seconds_since(begin) / rounds);
      }
      return true;
    };
    run_thread_team(2, one, [&] { is_over = true; });
    return std::min(least, 1e-6);  // of none that met in time
  }();
  return found;
}

StencilCosts measure_costs(Transport& transport, BoxPartition const& partition, StencilKernel const& kernel,
                           StencilOptions const& options) {
  StencilCosts costs;
  bool wraps = false;
  for (std::size_t a = 0; a < 3; ++a)
    wraps = wraps || (partition.grid.boundary[a] == GridBoundary::periodic && kernel.radius[a] > 0);
  if (partition.ranks() == 1 && !wraps) return costs;  // nothing is exchanged
  costs.cell = transport.group().max(of_a_cell(kernel));
  costs.exchange = of_an_exchange(transport, partition, kernel, options);
  return costs;
}

double measure_sharing(Transport& transport, SharedCells& shared, Box const& slab, std::int64_t radius,
                       bool wraps, Exchange& exchange) {
  constexpr std::int64_t line = 64;
  int const rank = transport.group().rank();
  std::array<std::vector<GridArray>, 2> const arrays{shared.now(), shared.next()};
  std::size_t turn = 0;
  // one value a line, for lines are what travels
  auto const each_line = [&](std::vector<GridArray> const& of, std::int64_t first, auto const& use) {
    for (GridArray const& array : of) {
      Box const& all = array.box();
      std::int64_t const n = all.extent(0), bytes = array.stride(0) * array.value_bytes();
      for (std::int64_t plane = first; plane < first + radius; ++plane) {
        if (!wraps && (plane < 0 || plane >= n)) continue;
        std::byte* const begin = array.at((plane + n) % n, all.low[1], all.low[2]);
        for (std::int64_t at = 0; at < bytes - line; at += line) use(begin + at);
      }
    }
  };
  float volatile sum = 0;
  auto const once = [&] {
    float found = 0;
    for (std::int64_t const first : {slab.low[0] - radius, slab.high[0]})
      each_line(arrays[turn], first, [&](std::byte const* at) {
        float value;
        std::memcpy(&value, at, sizeof value);
        found += value;
      });
    sum = sum + found;
    turn = 1 - turn;
    for (std::int64_t const first : {slab.low[0], slab.high[0] - radius})
      each_line(arrays[turn], first, [&](std::byte* at) { std::memset(at, 0, sizeof(float)); });
    shared.took(rank);
    if (!shared.await_neighbours(rank, wraps, exchange)) refuse_lost_peer();
  };
  shared.took(rank);
  if (!shared.await_neighbours(rank, wraps, exchange)) refuse_lost_peer();
  return least_of_pairs(transport.group(), once);
}

}  // namespace hostless
