#include "exchange/message_rounds.hpp"

#include <algorithm>
#include <tuple>

namespace hostless {
namespace {

// In the order of the offsets where they go: a direct plan's then lie together there.
std::vector<PeerCopy> by_target(std::vector<PeerCopy> copies) {
  auto const key = [](PeerCopy const& c) { return std::tuple(c.target, c.to_staging, c.to); };
  std::sort(copies.begin(), copies.end(),
            [&](PeerCopy const& a, PeerCopy const& b) { return key(a) < key(b); });
  return copies;
}

bool lies_together(MessageRound const& round) {
  return std::all_of(round.in.begin(), round.in.end(), [&](MessagePart const& part) {
    MessageItem const* const item = round.to.data() + part.first;
    for (std::int64_t k = 0; k < part.items; ++k)
      if (item[k].staging != 0 || item[k].vector_offset != item[0].vector_offset + k) return false;
    return true;
  });
}

void add_part(std::vector<MessagePart>& parts, std::size_t rank, std::size_t first, std::size_t items) {
  if (items != 0)
    parts.push_back({static_cast<std::int32_t>(rank), static_cast<std::int64_t>(first),
                     static_cast<std::int64_t>(items)});
}

// Whoever puts into another rank's memory must know where.
void learn_offsets(MessageRound& round, Group& group) {
  std::vector<std::vector<std::int64_t>> first(static_cast<std::size_t>(group.size()));
  for (MessagePart const& part : round.in) first[static_cast<std::size_t>(part.rank)] = {part.first};
  auto const there = group.exchange_values(first);
  for (MessagePart& part : round.out) part.there = there[static_cast<std::size_t>(part.rank)].at(0);
  round.most_in = group.max(static_cast<std::int64_t>(round.to.size()));
}

}  // namespace

std::vector<MessageRound> message_rounds(PeerCopies const& copies, Group& group) {
  std::vector<MessageRound> rounds;
  for (auto const& all : copies.rounds) {
    MessageRound round;
    std::vector<std::vector<MessageItem>> there(static_cast<std::size_t>(group.size()));
    for (PeerCopy const& copy : by_target(all)) {
      round.from.push_back({copy.from, copy.from_staging ? 1 : 0});
      there[static_cast<std::size_t>(copy.target)].push_back({copy.to, copy.to_staging ? 1 : 0});
    }
    std::size_t first = 0;
    for (std::size_t rank = 0; rank < there.size(); first += there[rank++].size())
      add_part(round.out, rank, first, there[rank].size());
    auto const here = group.exchange_values(there);
    for (std::size_t rank = 0; rank < here.size(); ++rank) {
      add_part(round.in, rank, round.to.size(), here[rank].size());
      round.to.insert(round.to.end(), here[rank].begin(), here[rank].end());
    }
    round.in_place = lies_together(round);
    learn_offsets(round, group);
    rounds.push_back(std::move(round));
  }
  return rounds;
}

std::vector<std::int32_t> rows_sent(PeerCopies const& copies) {
  std::vector<std::int32_t> rows;
  for (auto const& round : copies.rounds)
    for (PeerCopy const& copy : round)
      if (!copy.from_staging) rows.push_back(copy.from);
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

}  // namespace hostless
