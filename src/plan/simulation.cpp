#include "plan/simulation.hpp"

#include <algorithm>
#include <set>

#include "plan/index.hpp"
#include "plan/pieces.hpp"

namespace hostless {
namespace {

std::size_t position(ExchangePlan const& plan, StageId id) {
  auto const stage =
      std::find_if(plan.stages.begin(), plan.stages.end(), [id](Stage const& s) { return s.id == id; });
  return static_cast<std::size_t>(stage - plan.stages.begin());
}

}  // namespace

std::vector<Happening> order_of(std::vector<ExchangePlan> const& plans, Wiring const& wiring) {
  std::vector<std::size_t> base(1, 0);  // happenings are numbered: begin of a stage even, its end odd
  std::vector<Happening> all;
  for (std::size_t r = 0; r < plans.size(); ++r) {
    for (std::size_t s = 0; s < plans[r].stages.size(); ++s)
      for (bool end : {false, true}) all.push_back({static_cast<Rank>(r), s, end});
    base.push_back(all.size());
  }
  std::vector<std::vector<std::size_t>> then(all.size());
  std::vector<std::size_t> waits(all.size(), 0);
  auto edge = [&](std::size_t from, std::size_t to) {
    then[from].push_back(to);
    ++waits[to];
  };
  for (std::size_t r = 0; r < plans.size(); ++r)
    for (std::size_t s = 0; s < plans[r].stages.size(); ++s) {
      edge(base[r] + 2 * s, base[r] + 2 * s + 1);
      for (StageId id : plans[r].stages[s].after)
        edge(base[r] + 2 * position(plans[r], id) + 1, base[r] + 2 * s);
    }
  for (auto const& [id, wired] : wiring)
    edge(base[at(wired.out.rank)] + 2 * wired.out.stage, base[at(wired.in.rank)] + 2 * wired.in.stage + 1);
  std::vector<std::size_t> ready;
  for (std::size_t k = 0; k < all.size(); ++k)
    if (waits[k] == 0) ready.push_back(k);
  for (std::size_t done = 0; done < ready.size(); ++done)
    for (std::size_t next : then[ready[done]])
      if (--waits[next] == 0) ready.push_back(next);
  std::vector<Happening> order;
  for (std::size_t k : ready) order.push_back(all[k]);
  return order;
}

std::vector<std::vector<char>> complete_before(ExchangePlan const& plan) {
  std::size_t const stages = plan.stages.size();
  std::vector<std::vector<char>> before(stages, std::vector<char>(stages, 0));
  for (std::size_t s = 0; s < stages; ++s)
    for (StageId id : plan.stages[s].after) before[position(plan, id)][s] = 1;
  for (std::size_t via = 0; via < stages; ++via)
    for (std::size_t a = 0; a < stages; ++a)
      for (std::size_t b = 0; before[a][via] && b < stages; ++b) before[a][b] |= before[via][b];
  return before;
}

Simulation::Simulation(std::vector<ExchangePlan> const& plans, Wiring const& wiring,
                       std::vector<std::vector<Value>> const& ghosts, Complaints& complaints)
    : plans_(plans), wiring_(wiring), ghosts_(ghosts), complaints_(complaints) {
  for (ExchangePlan const& plan : plans) {
    before_.push_back(complete_before(plan));
    auto& buffers = cells_.emplace_back();
    for (Buffer const& buffer : plan.buffers)
      buffers.emplace_back(at(buffer.items - (buffer.id == 0 ? plan.owned : 0)));
  }
}

Value Simulation::read(Rank rank, BufferId buffer, std::int64_t offset, When now) {
  std::int64_t const owned = buffer == 0 ? plans_[at(rank)].owned : 0;
  if (offset < owned) return value_of(rank, offset);
  Cell const& cell = cells_[at(rank)][at(buffer)][at(offset - owned)];
  bool const before =
      cell.written && (cell.when.stage == now.stage ? cell.when.part < now.part
                                                    : before_[at(rank)][cell.when.stage][now.stage] != 0);
  if (!before) {
    auto const& stages = plans_[at(rank)].stages;
    if (cell.written)
      complaints_.add(7, rank,
                      "stage {} reads item {} of buffer {}, which stage {} writes without being in front",
                      stages[now.stage].id, offset, buffer, stages[cell.when.stage].id);
    else
      complaints_.add(7, rank, "stage {} reads item {} of buffer {} before anything has written it",
                      stages[now.stage].id, offset, buffer);
    return nothing;
  }
  return cell.value;
}

void Simulation::write(Rank rank, BufferId buffer, std::int64_t offset, Value value, When now) {
  ExchangePlan const& plan = plans_[at(rank)];
  StageId const stage = plan.stages[now.stage].id;
  std::int64_t const owned = buffer == 0 ? plan.owned : 0;
  if (offset < owned) {
    complaints_.add(7, rank, "stage {} overwrites owned item {}", stage, offset);
    return;
  }
  Cell& cell = cells_[at(rank)][at(buffer)][at(offset - owned)];
  if (std::int64_t const ghost = plan.ghost_at(buffer, offset); cell.written && ghost >= 0)
    complaints_.add(1, rank, "ghost {} is written by stage {} and again by stage {}", ghost,
                    plan.stages[cell.when.stage].id, stage);
  else if (cell.written)
    complaints_.add(7, rank, "item {} of buffer {} is written by stage {} and again by stage {}", offset,
                    buffer, plan.stages[cell.when.stage].id, stage);
  cell = {value, true, now};
}

void Simulation::move(Rank rank, Move const& what, When now) {
  std::vector<Value> values;
  each_item(what.from,
            [&](std::int64_t offset) { values.push_back(read(rank, what.from.buffer, offset, now)); });
  std::size_t k = 0;
  each_item(what.to, [&](std::int64_t offset) { write(rank, what.to.buffer, offset, values[k++], now); });
}

void Simulation::run(std::vector<Happening> const& order) {
  for (Happening const& what : order) {
    Stage const& stage = plans_[at(what.rank)].stages[what.stage];
    if (!what.end) {
      for (Move const& pack : stage.pack) move(what.rank, pack, {what.stage, Part::pack});
      for (Message const& message : stage.out) {
        auto& values = sent_values_[message.id];
        for (std::int64_t k = 0; k < message.items; ++k)
          values.push_back(read(what.rank, message.from, message.from_first + k, {what.stage, Part::out}));
      }
      continue;
    }
    for (Message const& message : stage.in) {
      auto const& values = sent_values_[message.id];
      for (std::size_t k = 0; k < values.size(); ++k)
        write(what.rank, message.to, message.to_first + static_cast<std::int64_t>(k), values[k],
              {what.stage, Part::in});
    }
    for (Move const& unpack : stage.unpack) move(what.rank, unpack, {what.stage, Part::unpack});
  }
}

void Simulation::compare_ghosts() {
  for (std::size_t r = 0; r < plans_.size(); ++r)
    for (std::size_t g = 0; g < ghosts_[r].size(); ++g) {
      Cell const& cell = cells_[r][at(plans_[r].receive)][g];
      auto const rank = static_cast<Rank>(r);
      std::int64_t const source = ghosts_[r][g] >> 32, item = ghosts_[r][g] & 0xffffffff;
      if (!cell.written)
        complaints_.add(1, rank, "ghost {} (item {} of rank {}) is never written", g, item, source);
      else if (cell.value == nothing)
        complaints_.add(4, rank, "ghost {} ends with nothing, must be item {} of rank {}", g, item, source);
      else if (cell.value != ghosts_[r][g])
        complaints_.add(4, rank, "ghost {} ends with item {} of rank {}, must be item {} of rank {}", g,
                        cell.value & 0xffffffff, cell.value >> 32, item, source);
    }
}

void Simulation::count_crossings() {
  auto const& node = plans_.front().nodes.node;
  std::set<std::pair<Value, int>> asked, crossed;
  for (std::size_t r = 0; r < plans_.size(); ++r)
    for (Value value : ghosts_[r])
      if (node[at(value >> 32)] != node[r]) asked.insert({value, node[r]});
  for (auto const& [id, wired] : wiring_) {
    int const to = node[at(wired.in.rank)];
    if (node[at(wired.out.rank)] == to) continue;
    for (Value value : sent_values_[id]) {
      if (value == nothing) continue;
      std::int64_t const source = value >> 32, item = value & 0xffffffff;
      if (!asked.count({value, to}))
        complaints_.add(5, wired.out.rank,
                        "message {} brings item {} of rank {} to node {}, where nobody reads it", id, item,
                        source, to);
      else if (!crossed.insert({value, to}).second)
        complaints_.add(5, wired.out.rank, "message {} brings item {} of rank {} to node {} again", id, item,
                        source, to);
    }
  }
}

}  // namespace hostless
