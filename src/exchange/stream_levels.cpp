#include "exchange/stream_levels.hpp"

namespace hostless {

std::vector<gpu::StreamLevel> stream_levels(std::vector<MessageLevel> const& levels, std::int64_t item_bytes,
                                            bool in_place) {
  std::vector<gpu::StreamLevel> all;
  for (MessageLevel const& level : levels) {
    gpu::StreamLevel bytes;
    bytes.in_place = in_place && level.in_place;
    bytes.out_bytes = item_bytes * static_cast<std::int64_t>(level.from.size());
    bytes.in_bytes = item_bytes * static_cast<std::int64_t>(level.to.size());
    bytes.most_in_bytes = item_bytes * level.most_in;
    auto const part = [&](MessagePart const& p) {
      return gpu::StreamPart{p.rank, item_bytes * p.first, item_bytes * p.items, item_bytes * p.there, 0};
    };
    for (MessagePart const& p : level.out) bytes.out.push_back(part(p));
    for (MessagePart const& p : level.in) {
      bytes.in.push_back(part(p));
      bytes.in.back().lands = item_bytes * level.to[static_cast<std::size_t>(p.first)].vector_offset;
    }
    all.push_back(std::move(bytes));
  }
  return all;
}

MessageLevel staged_level(PeerCopies const& copies, ExchangePlan const& plan) {
  MessageLevel level;
  for (std::int32_t const row : rows_sent(copies)) level.from.push_back({row, 0});
  for (std::int64_t g = 0; g < plan.ghosts; ++g)
    level.to.push_back(
        {static_cast<std::int32_t>(plan.receive == 0 ? plan.vector_offset(plan.owned + g) : g), 0});
  auto const add = [&](std::vector<MessagePart>& parts, std::int64_t first, std::int64_t items) {
    if (items != 0) parts.push_back({plan.rank, first, items, 0});
  };
  add(level.out, 0, static_cast<std::int64_t>(level.from.size()));
  std::int64_t const below = plan.receive == 0 ? plan.ghosts_below : 0;
  add(level.in, 0, below);
  add(level.in, below, plan.ghosts - below);
  level.most_in = plan.ghosts;
  level.in_place = true;
  return level;
}

}  // namespace hostless
