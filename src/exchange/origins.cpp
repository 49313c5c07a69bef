#include "exchange/origins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "hostless/base/error.hpp"
#include "plan/index.hpp"
#include "plan/pieces.hpp"
#include "plan/simulation.hpp"

namespace hostless {
namespace {

class Trace {
 public:
  explicit Trace(ExchangePlan const& plan) : plan_(plan) {
    found_.before = complete_before(plan);
    for (Buffer const& buffer : plan.buffers)
      cells_.emplace_back(at(buffer.items - (buffer.id == 0 ? plan.owned : 0)));
    for (std::size_t s = 0; s < plan.stages.size(); ++s)
      for (Message const& message : plan.stages[s].in) found_.arrivals.push_back({&message, s});
  }

  Origins run() {
    std::vector<std::vector<Departure>> sent(plan_.stages.size());
    for (std::size_t s : order()) {
      Stage const& stage = plan_.stages[s];
      for (Move const& pack : stage.pack) move(pack, stage.id);
      for (Message const& message : stage.out) sent[s].push_back(depart(message, s));
      arrive(s);
      for (Move const& unpack : stage.unpack) move(unpack, stage.id);
    }
    for (auto& list : sent)
      for (Departure& departure : list) found_.departures.push_back(std::move(departure));
    std::vector<Origin>& ghosts = cells_[at(plan_.receive)];
    for (std::size_t g = 0; g < ghosts.size() && plan_.receive == 0; ++g)
      if (ghosts[g].arrival == Origin::unwritten) refuse(fmt::format("ghost {} is never written", g));
    found_.ghosts = std::move(ghosts);
    return std::move(found_);
  }

 private:
  [[noreturn]] void refuse(std::string const& what) const {
    throw Error(ErrorCode::usage,
                fmt::format("rank {}: {} (the plan cannot be executed). Make the plan anew with this version",
                            plan_.rank, what));
  }

  /// Positions of the stages in an order in which they can run: whoever is in front has fewer in front.
  std::vector<std::size_t> order() const {
    std::size_t const stages = plan_.stages.size();
    std::vector<std::size_t> all(stages), fronts(stages, 0);
    std::iota(all.begin(), all.end(), std::size_t{0});
    for (std::size_t b = 0; b < stages; ++b)
      for (std::size_t a = 0; a < stages; ++a) fronts[b] += found_.before[a][b] != 0;
    for (std::size_t s = 0; s < stages; ++s)
      if (found_.before[s][s] != 0) refuse(fmt::format("stage {} waits for itself", plan_.stages[s].id));
    std::stable_sort(all.begin(), all.end(),
                     [&](std::size_t a, std::size_t b) { return fronts[a] < fronts[b]; });
    return all;
  }

  Origin read(BufferId buffer, std::int64_t offset, StageId stage) const {
    std::int64_t const owned = buffer == 0 ? plan_.owned : 0;
    if (offset < owned) return {Origin::owned, static_cast<std::int32_t>(offset)};
    Origin const origin = cells_[at(buffer)][at(offset - owned)];
    if (origin.arrival == Origin::unwritten)
      refuse(fmt::format("stage {} reads item {} of buffer {} before anything has written it", stage, offset,
                         buffer));
    return origin;
  }

  void write(BufferId buffer, std::int64_t offset, Origin origin, StageId stage) {
    std::int64_t const owned = buffer == 0 ? plan_.owned : 0;
    if (offset < owned) refuse(fmt::format("stage {} overwrites owned item {}", stage, offset));
    Origin& cell = cells_[at(buffer)][at(offset - owned)];
    if (cell.arrival != Origin::unwritten)
      refuse(fmt::format("stage {} writes item {} of buffer {} again", stage, offset, buffer));
    cell = origin;
  }

  void move(Move const& what, StageId stage) {
    std::vector<Origin> values;
    each_item(what.from,
              [&](std::int64_t offset) { values.push_back(read(what.from.buffer, offset, stage)); });
    std::size_t k = 0;
    each_item(what.to, [&](std::int64_t offset) { write(what.to.buffer, offset, values[k++], stage); });
  }

  Departure depart(Message const& message, std::size_t stage) const {
    Departure departure{&message, stage, {}};
    for (std::int64_t k = 0; k < message.items; ++k)
      departure.items.push_back(read(message.from, message.from_first + k, plan_.stages[stage].id));
    return departure;
  }

  void arrive(std::size_t stage) {
    for (std::size_t a = 0; a < found_.arrivals.size(); ++a) {
      Message const& message = *found_.arrivals[a].message;
      if (found_.arrivals[a].stage != stage) continue;
      for (std::int64_t k = 0; k < message.items; ++k)
        write(message.to, message.to_first + k, {static_cast<std::int32_t>(a), static_cast<std::int32_t>(k)},
              plan_.stages[stage].id);
    }
  }

  ExchangePlan const& plan_;
  Origins found_;
  std::vector<std::vector<Origin>> cells_;  // [buffer][item]; of buffer 0 what is not owned
};

}  // namespace

Origins origins_of(ExchangePlan const& plan) { return Trace(plan).run(); }

}  // namespace hostless
