#include "exchange/kernel_duties.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "exchange/refusal.hpp"
#include "hostless/base/error.hpp"
#include "plan/index.hpp"

namespace hostless {
namespace {

/// Where ghosts lie in the vector of a rank (ExchangePlan::vector_offset).
struct GhostOffsets {
  std::int64_t owned = 0, below = 0;
  std::int32_t number(std::int32_t offset) const {
    return static_cast<std::int32_t>(offset < 0 ? offset + below : offset - owned + below);
  }
};

/// A flagged word that a block of one rank stores into the memory of another.
struct StoredWord {
  std::int32_t to = 0, to_staging = 0, block = 0;
};

/// Two blocks, on the rank that stores and on the one that reads.
struct BlockPair {
  std::int32_t writer = 0, reader = 0;
  auto operator<=>(BlockPair const&) const = default;
};

template <class Use>
void each_copy(KernelDuties const& duties, Use const& use) {
  for (int block = 0; block < duties.blocks; ++block)
    for (std::int32_t k = duties.first_of(block, 0); k < duties.first_of(block + 1, 0); ++k)
      use(block, duties.copies[at(k)]);
}

class Answers {
 public:
  Answers(KernelDuties& duties, std::int64_t ghosts, Group& group)
      : duties_(duties), group_(group), readers_(at(duties.staging)), taker_(at(ghosts)) {
    each_copy(duties_, [&](int block, PeerCopy const& copy) {
      if (copy.from_staging) readers_[at(copy.from)].push_back(block);
    });
    for (int block = 0; block < duties_.blocks; ++block)
      for (std::int32_t k = duties_.first_landing[at(block)]; k < duties_.first_landing[at(block) + 1]; ++k)
        taker_[at(duties_.landings[at(k)])] = block;
  }

  void add() {
    auto const pairs = pairs_of(group_.exchange_values(stored_words()));  // [rank that stores]
    auto const slots = group_.exchange_values(number(group_.exchange_values(pairs)));
    std::vector<std::vector<DutyAnswer>> of_block(at(duties_.blocks));
    for (std::size_t rank = 0; rank < pairs.size(); ++rank)
      for (std::size_t k = 0; k < pairs[rank].size(); ++k)
        of_block[at(pairs[rank][k].reader)].push_back({static_cast<std::int32_t>(rank), slots[rank].at(k)});
    for (std::size_t block = 0; block < of_block.size(); ++block) {
      duties_.first_answer[block] = static_cast<std::int32_t>(duties_.answers.size());
      duties_.answers.insert(duties_.answers.end(), of_block[block].begin(), of_block[block].end());
    }
    duties_.first_answer.back() = static_cast<std::int32_t>(duties_.answers.size());
  }

 private:
  std::vector<std::vector<StoredWord>> stored_words() const {
    std::vector<std::vector<StoredWord>> to(at(group_.size()));
    each_copy(duties_, [&](int block, PeerCopy const& copy) {
      to[at(copy.target)].push_back({copy.to, copy.to_staging ? 1 : 0, block});
    });
    return to;
  }
  std::vector<std::vector<BlockPair>> pairs_of(std::vector<std::vector<StoredWord>> const& here) const {
    std::vector<std::vector<BlockPair>> pairs(here.size());
    for (std::size_t rank = 0; rank < here.size(); ++rank) {
      auto& of_rank = pairs[rank];
      for (StoredWord const& word : here[rank]) {
        if (word.to_staging == 0)
          of_rank.push_back({word.block, taker_[at(word.to)]});
        else
          for (std::int32_t const reader : readers_[at(word.to)]) of_rank.push_back({word.block, reader});
      }
      std::sort(of_rank.begin(), of_rank.end());
      of_rank.erase(std::unique(of_rank.begin(), of_rank.end()), of_rank.end());
    }
    return pairs;
  }
  /// Gives every pair a slot here, those of one block side by side.
  std::vector<std::vector<std::int32_t>> number(std::vector<std::vector<BlockPair>> const& told) {
    std::vector<std::tuple<std::int32_t, std::size_t, std::size_t>> all;  // writer, rank, position
    std::vector<std::vector<std::int32_t>> slot(told.size());
    for (std::size_t rank = 0; rank < told.size(); ++rank) {
      slot[rank].resize(told[rank].size());
      for (std::size_t k = 0; k < told[rank].size(); ++k) all.emplace_back(told[rank][k].writer, rank, k);
    }
    std::sort(all.begin(), all.end());
    std::int32_t next = 0;
    for (auto const& [writer, rank, k] : all) {
      ++duties_.first_awaited[at(writer) + 1];
      slot[rank][k] = next++;
    }
    for (std::size_t block = 1; block < duties_.first_awaited.size(); ++block)
      duties_.first_awaited[block] += duties_.first_awaited[block - 1];
    return slot;
  }

  KernelDuties& duties_;
  Group& group_;
  std::vector<std::vector<std::int32_t>> readers_;  // [staged item] blocks, some twice
  std::vector<std::int32_t> taker_;                 // [ghost] its block
};

}  // namespace

std::string duty_refusal(ExchangePlan const& plan, KernelShape const& shape, DutyOptions const& options) {
  if (std::string text = refusal(plan, options.has_sums); !text.empty()) return text;
  if (std::string text = shape_flaw(shape, plan.ghosts); !text.empty()) return text;
  if (options.item_bytes == 0 || options.item_bytes % 8 != 0)
    return fmt::format("item_bytes: {}, which is no multiple of the 8 that a flagged word carries",
                       options.item_bytes);
  if (!options.has_sums && !shape.lands)
    return "lands: false, but without sums over all ranks (`has_sums`) only blocks that take ghosts can "
           "answer "
           "that they are read";
  if (plan.receive != 0 && !shape.lands)
    return "receive: 1, but only ghosts that land (`lands`) have an array of their own";
  return {};
}

KernelDuties kernel_duties(ExchangePlan const& plan, Group& group, KernelShape const& shape,
                           DutyOptions const& options) {
  group.together([&] {
    if (std::string const text = duty_refusal(plan, shape, options); !text.empty())
      throw Error(ErrorCode::usage,
                  fmt::format("rank {}: {} (the plan cannot be executed inside a kernel). Correct it, or "
                              "exchange on a stream",
                              plan.rank, text));
  });
  PeerCopies copies = peer_copies(plan, group, true);
  if (shape.lands && plan.receive == 0) {
    auto const offsets = group.all_gather(GhostOffsets{plan.owned, plan.ghosts_below});
    for (auto& round : copies.rounds)
      for (PeerCopy& copy : round)
        if (!copy.to_staging) copy.to = offsets[at(copy.target)].number(copy.to);
  }
  KernelDuties duties;
  group.together([&] { duties = share_duties(copies, shape, plan.ghosts); });
  if (!options.has_sums) Answers(duties, plan.ghosts, group).add();
  return duties;
}

}  // namespace hostless
