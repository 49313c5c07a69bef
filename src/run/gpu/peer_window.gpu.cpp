#include "run/gpu/peer_window.hpp"

#include <algorithm>

namespace hostless::gpu {
namespace {

// Round 0 is sorted by the row that it takes.
std::vector<std::int32_t> firsts_of_slices(std::vector<PeerCopy> const& round, Tiling const& tiling) {
  std::vector<std::int32_t> first;
  for (int slice = 0; slice <= tiling.slices; ++slice) {
    std::int64_t const row = tiling.first(slice) * tiling.block;
    auto const at = std::lower_bound(round.begin(), round.end(), row,
                                     [](PeerCopy const& copy, std::int64_t r) { return copy.from < r; });
    first.push_back(static_cast<std::int32_t>(at - round.begin()));
  }
  return first;
}

/// The block that works on a row.
std::int32_t block_of(Layout const& layout, std::int32_t row) {
  Tiling const& tiling = layout.tiling;
  std::int64_t const block_row = row / tiling.block;
  auto slice = static_cast<int>(block_row * tiling.slices / tiling.block_rows);
  while (tiling.first(slice + 1) <= block_row) ++slice;  // what is rounded down may be one slice less
  return slice / slices_of_block % layout.blocks;
}

}  // namespace

PeerWindow::PeerWindow(PeerRank const& who, PeerCopies const& copies, Layout const& layout, Lending lending)
    : lending_(lending), opened_(who.rank, who.processes, who.symmetric), view_(1) {
  auto const rounds = static_cast<int>(copies.rounds.size());
  if (who.ranks > most_ranks || rounds > most_rounds) {
    throw Error(ErrorCode::usage, std::to_string(who.ranks) + " ranks and a plan of " +
                                      std::to_string(rounds) + " rounds on GPUs (kernels know of at most " +
                                      std::to_string(most_ranks) + " and " + std::to_string(most_rounds) +
                                      "). Use fewer ranks, or route direct.");
  }
  mine_.ranks = who.ranks;
  mine_.rank = who.rank;
  mine_.rounds = rounds;
  std::vector<PeerCopy> all;
  for (int round = 0; round < rounds; ++round) {
    auto const& of_round = copies.rounds[static_cast<std::size_t>(round)];
    all.insert(all.end(), of_round.begin(), of_round.end());
    mine_.first_of_round[round + 1] = static_cast<std::int32_t>(all.size());
  }
  item_ = Array<PeerCopy>(all.size());
  item_.put(all.data(), all.size());
  auto const first = firsts_of_slices(copies.rounds[0], layout.tiling);
  first_of_slice_ = Array<std::int32_t>(first.size());
  first_of_slice_.put(first.data(), first.size());
  staging_ = Array<double>(static_cast<std::size_t>(copies.staging), lending_);
  staging_.clear();
  mine_.item = item_.data();
  mine_.first_of_slice = first_of_slice_.data();
  if (rounds > 1) deal_out(copies, layout);
}

void PeerWindow::deal_out(PeerCopies const& copies, Layout const& layout) {
  KernelShape shape;
  shape.blocks = layout.blocks;
  shape.block_of_item = [&layout](std::int32_t row) { return block_of(layout, row); };
  KernelDuties const duties = share_duties(copies, shape, 0);
  duty_ = Array<PeerCopy>(duties.copies.size());
  duty_.put(duties.copies.data(), duties.copies.size());
  first_duty_ = Array<std::int32_t>(duties.first.size());
  first_duty_.put(duties.first.data(), duties.first.size());
  staged_ = Array<FlaggedWord>(2 * static_cast<std::size_t>(copies.staging), lending_);
  staged_.clear();
  mine_.copies = duty_.data();
  mine_.first = first_duty_.data();
  mine_.levels = duties.levels;
}

void PeerWindow::lend(PeerMemory& memory) const {
  memory.staging = gpu::lend(staging_, staging_.data(), lending_);
  for (std::size_t parity = 0; parity < 2; ++parity)
    memory.staged[parity] = gpu::lend(staged_, staged_.data() + parity * (staged_.size() / 2), lending_);
}

void PeerWindow::know(std::vector<PeerShape> const& all) {
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    mine_.partials[rank] = all[rank].partials;
    mine_.blocks[rank] = all[rank].blocks;
  }
}

void PeerWindow::connect(std::vector<PeerMemory> const& all) {
  int const own = all[static_cast<std::size_t>(mine_.rank)].device;
  for (int rank = 0; rank < mine_.ranks; ++rank) {
    PeerMemory const& other = all[static_cast<std::size_t>(rank)];
    opened_.reach(own, other.device);
    mine_.flagged_words[rank] = address_of<FlaggedWord>(other.flagged_words, rank);
    mine_.phase_flagged_words[rank] = address_of<FlaggedWord>(other.phase_flagged_words, rank);
    for (int k = 0; k < PeerView::sent_fields; ++k)
      mine_.sent[k][rank] = address_of<double>(other.sent[k], rank);
    for (int parity = 0; parity < 2; ++parity) {
      mine_.halo_source_flagged_words[parity][rank] =
          address_of<FlaggedWord>(other.halo_source_flagged_words[parity], rank);
      mine_.staged[parity][rank] = address_of<FlaggedWord>(other.staged[parity], rank);
    }
    mine_.staging[rank] = address_of<double>(other.staging, rank);
  }
  view_.put(&mine_, 1);
}

}  // namespace hostless::gpu
