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
  if (!round.from.empty())
    round.out.push_back({plan.rank, 0, static_cast<std::int64_t>(round.from.size()), 0});
  auto gap = copies.gaps.begin();
  for (std::int64_t g = 0; g < plan.ghosts; ++g) {
    if (gap != copies.gaps.end() && *gap == g) {
      ++gap;
      continue;
    }
    auto const offset = static_cast<std::int32_t>(plan.receive == 0 ? plan.vector_offset(plan.owned + g) : g);
    bool const goes_on = !round.to.empty() && offset == round.to.back().vector_offset + 1;
    if (!goes_on) round.in.push_back({plan.rank, static_cast<std::int64_t>(round.to.size()), 0, 0});
    ++round.in.back().items;
    round.to.push_back({offset, 0});
  }
  round.most_in = static_cast<std::int64_t>(round.to.size());
  round.in_place = copies.gaps.empty();
  return round;
}

}  // namespace hostless
