#include "bench/stream_communication.hpp"

#include <cstring>

#include "bench/known_items.hpp"
#include "hostless/plan/routes.hpp"

namespace hostless::bench {
namespace {

constexpr PlanOptions as_alone = {ReuseGuarantee::answer, Space::host, true};

// `items` items of `source` that `target` reads.
std::vector<Pattern> one_message(int ranks, int source, int target, std::int64_t items) {
  std::vector<Pattern> patterns(static_cast<std::size_t>(ranks));
  for (Pattern& pattern : patterns) pattern.first = {0};
  Pattern& sends = patterns[static_cast<std::size_t>(source)];
  sends.owned = items;
  for (std::int64_t k = 0; k < items; ++k) {
    sends.item.push_back(static_cast<std::int32_t>(k));
    sends.first.push_back(k + 1);
    sends.receiver.push_back(target);
  }
  return patterns;
}

// One item of each rank that all others read.
std::vector<Pattern> all_to_all(int ranks) {
  std::vector<Pattern> patterns(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    Pattern& pattern = patterns[static_cast<std::size_t>(rank)];
    pattern.owned = 1;
    pattern.first = {0};
    for (int other = 0; other < ranks; ++other)
      if (other != rank) pattern.receiver.push_back(other);
    if (ranks == 1) continue;
    pattern.item = {0};
    pattern.first.push_back(ranks - 1);
  }
  return patterns;
}

Halo halo_of(std::vector<Pattern> patterns, int rank, std::size_t item_bytes) {
  Halo what;
  int const ranks = static_cast<int>(patterns.size());
  what.plan = make_plan(Route::direct, patterns, NodeMap::blocks(ranks, ranks), rank, as_alone);
  what.patterns = std::move(patterns);
  what.made_with = as_alone;
  what.item_bytes = item_bytes;
  return what;
}

/// Fields of one exchange: what is known of them on the host, and where they lie on the GPU.
class OnGpu {
 public:
  explicit OnGpu(Halo const& what)
      : fields_(static_cast<std::size_t>(what.fields)), known_(what, what.plan) {}
  void add_to(QueuedExchanges& queued, ExchangePlan const& plan) {
    base_.clear();
    for (std::size_t field = 0; field < fields_; ++field)
      base_.push_back(queued.bench().take(known_.bytes_of(field).size()));
    queued.add(plan, known_.fields_at(base_));
  }
  void fill(gpu::Workbench& bench, int round) {
    known_.fill(round);
    put(bench);
  }
  void put(gpu::Workbench& bench) {
    each(bench, [](gpu::Workbench& to, std::byte* there, std::span<std::byte> here) {
      to.put(there, here.data(), here.size());
    });
  }
  void check(gpu::Workbench& bench, int round) {
    fetch(bench);
    known_.check(round);
  }
  void fetch(gpu::Workbench& bench) {
    each(bench, [](gpu::Workbench& from, std::byte* there, std::span<std::byte> here) {
      from.get(here.data(), there, here.size());
    });
  }
  KnownItems& known() { return known_; }

 private:
  template <class Use>
  void each(gpu::Workbench& bench, Use const& use) {
    for (std::size_t field = 0; field < fields_; ++field) use(bench, base_[field], known_.bytes_of(field));
  }
  std::size_t fields_;
  KnownItems known_;
  std::vector<std::byte*> base_;
};

// Every plan of a step, some rounds with bytes of their own; ranks meet, for others' fields are filled.
std::vector<QueuedTiming> time_known(Transport& transport, std::vector<Halo> const& step,
                                     StreamWay const& way, Protocol const& protocol) {
  Group& group = transport.group();
  std::vector<std::unique_ptr<OnGpu>> all;
  group.together([&] {
    for (Halo const& what : step) all.push_back(std::make_unique<OnGpu>(what));
  });
  return time_ways(
      transport, way, protocol,
      [&](QueuedExchanges& queued) {
        for (std::size_t k = 0; k < step.size(); ++k) all[k]->add_to(queued, step[k].plan);
      },
      [&](QueuedExchanges& queued, std::function<void()> const& once) {
        for (int round = 1; round <= 4; ++round) {  // both parities of epochs, twice
          group.together([&] {
            for (auto const& one : all) one->fill(queued.bench(), round);
          });
          once();
          group.together([&] {
            for (auto const& one : all) one->check(queued.bench(), round);
          });
        }
      });
}

// One message of these bytes has as few items as may be.
std::size_t item_bytes_of(std::size_t bytes) {
  constexpr std::size_t longest = 4096;
  if (bytes <= longest) return bytes;
  std::size_t item = longest;
  while (bytes % item != 0) item /= 2;
  return item;
}

}  // namespace

std::vector<StreamPingPong> stream_ping_pong(Transport& transport, PingPong const& what, StreamWay const& way,
                                             Protocol const& protocol) {
  Group& group = transport.group();
  group.together([&] { check_ping_pong(what, group.size()); });
  std::vector<StreamPingPong> all;
  for (std::size_t const bytes : what.bytes) {
    std::size_t const item = item_bytes_of(bytes);
    auto const message = [&](int source, int target) {
      return halo_of(one_message(group.size(), source, target, static_cast<std::int64_t>(bytes / item)),
                     group.rank(), item);
    };
    Protocol mine = protocol;
    mine.steps = steps_of(bytes, protocol.steps);
    for (QueuedTiming& timing : time_known(
             transport, {message(what.first, what.second), message(what.second, what.first)}, way, mine)) {
      for (double& seconds : timing.timing.step_s) seconds /= 2;
      all.push_back({bytes, mine.steps, std::move(timing)});
    }
  }
  return all;
}

std::vector<QueuedTiming> stream_halo(Transport& transport, Halo const& what, StreamWay const& way,
                                      Protocol const& protocol) {
  Group& group = transport.group();
  Halo alone = what;
  group.together([&] {
    check_halo(what, group.size());
    alone.plan = plan_without_sums(what, alone.made_with.reuse_guarantee);
  });
  return time_known(transport, {alone}, way, protocol);
}

std::vector<QueuedTiming> stream_parts_of_sums(Transport& transport, int values, StreamWay const& way,
                                               Protocol const& protocol) {
  Group& group = transport.group();
  group.together([&] { check_sum_width(values); });
  Halo const what =
      halo_of(all_to_all(group.size()), group.rank(), sizeof(double) * static_cast<std::size_t>(values));
  OnGpu parts(what);
  KnownSums sums(group.rank(), group.size(), values);
  auto const add = [&](QueuedExchanges& queued) {
    parts.add_to(queued, what.plan);
    auto const mine = parts.known().bytes_of(0);
    std::memcpy(mine.data(), sums.mine().data(), what.item_bytes);
  };
  return time_ways(
      transport, way, protocol, add, [&](QueuedExchanges& queued, std::function<void()> const& once) {
        std::span<std::byte> const items = parts.known().bytes_of(0);
        auto const all = static_cast<std::size_t>(group.size());
        group.together([&] {
          std::memset(items.data() + what.item_bytes, 0, items.size() - what.item_bytes);
          parts.put(queued.bench());
        });
        once();
        group.together([&] {
          parts.fetch(queued.bench());
          std::fill(sums.totals().begin(), sums.totals().end(), 0.0);
          for (std::size_t rank = 0; rank < all; ++rank) {
            // the own part, then ghosts by rank: item 0 is this rank's
            std::size_t const me = static_cast<std::size_t>(group.rank()), at = rank == me  ? 0
                                                                                : rank < me ? rank + 1
                                                                                            : rank;
            for (std::size_t k = 0; k < sums.totals().size(); ++k) {
              double part = 0;
              std::memcpy(&part, items.data() + at * what.item_bytes + k * sizeof part, sizeof part);
              sums.totals()[k] += part;
            }
          }
          sums.check();
        });
      });
}

}  // namespace hostless::bench
