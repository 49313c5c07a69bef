#include "exchange/stream_rounds.hpp"

namespace hostless {

std::vector<gpu::StreamRound> stream_rounds(std::vector<MessageRound> const& rounds, std::int64_t item_bytes,
                                            bool in_place) {
  std::vector<gpu::StreamRound> all;
  for (MessageRound const& round : rounds) {
    gpu::StreamRound bytes;
    bytes.in_place = in_place && round.in_place;
    bytes.out_bytes = item_bytes * static_cast<std::int64_t>(round.from.size());
    bytes.in_bytes = item_bytes * static_cast<std::int64_t>(round.to.size());
    bytes.most_in_bytes = item_bytes * round.most_in;
    auto const part = [&](MessagePart const& p) {
      return gpu::StreamPart{p.rank, item_bytes * p.first, item_bytes * p.items, item_bytes * p.there, 0};
    };
    for (MessagePart const& p : round.out) bytes.out.push_back(part(p));
    for (MessagePart const& p : round.in) {
      bytes.in.push_back(part(p));
      bytes.in.back().lands = item_bytes * round.to[static_cast<std::size_t>(p.first)].vector_offset;
    }
    all.push_back(std::move(bytes));
  }
  return all;
}

MessageRound staged_round(PeerCopies const& copies, ExchangePlan const& plan) {
  MessageRound round;
  for (std::int32_t const row : rows_sent(copies)) round.from.push_back({row, 0});
  for (std::int64_t g = 0; g < plan.ghosts; ++g)
    round.to.push_back(
        {static_cast<std::int32_t>(plan.receive == 0 ? plan.vector_offset(plan.owned + g) : g), 0});
  auto const add = [&](std::vector<MessagePart>& parts, std::int64_t first, std::int64_t items) {
    if (items != 0) parts.push_back({plan.rank, first, items, 0});
  };
  add(round.out, 0, static_cast<std::int64_t>(round.from.size()));
  std::int64_t const below = plan.receive == 0 ? plan.ghosts_below : 0;
  add(round.in, 0, below);
  add(round.in, below, plan.ghosts - below);
  round.most_in = plan.ghosts;
  round.in_place = true;
  return round;
}

}  // namespace hostless
