#include "bench/neighbor/gpu/blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "bench/known.hpp"

namespace hostless::bench {
namespace {

std::uint64_t edge_of(int source, int target) {
  return (static_cast<std::uint64_t>(source) << 20) + static_cast<std::uint64_t>(target);
}

std::vector<std::int64_t> bytes_of(std::vector<gpu::GroupedPart> const& parts) {
  std::vector<std::int64_t> bytes;
  for (gpu::GroupedPart const& part : parts) bytes.push_back(static_cast<std::int64_t>(part.bytes));
  return bytes;
}

}  // namespace

char const* name(Collective collective) {
  return collective == Collective::allgather ? "allgather" : "alltoallv";
}

std::size_t BlockSizes::of(int source, int target) const {
  if (collective == Collective::allgather) return bytes;
  constexpr std::size_t parts = 16;
  std::size_t const part = std::bit_floor(std::max<std::size_t>(1, bytes / parts));
  std::uint64_t const whole = bytes / part;
  std::uint64_t const drawn = mixed(mixed(seed + 1) ^ edge_of(source, target)) % (whole + 1);
  return part * std::max<std::uint64_t>(1, whole / 2 + drawn);
}

void GpuBlocks::Counts::add(std::size_t block, std::size_t first) {
  bytes.push_back(static_cast<int>(block));
  before.push_back(static_cast<int>(first));
}

GpuBlocks::GpuBlocks(BlockSizes const& sizes, Neighbors const& mine, int rank, BlockMemory const& memory)
    : sizes_(sizes), mine_(&mine), rank_(rank), memory_(memory) {
  bool const one_for_all = sizes.collective == Collective::allgather;
  if (one_for_all) sent_bytes_ = sizes.bytes;
  for (int const target : mine.destinations) {
    std::size_t const bytes = sizes.of(rank, target), first = one_for_all ? 0 : sent_bytes_;
    out_.push_back({target, memory.send + first, bytes});
    out_counts_.add(bytes, first);
    if (!one_for_all) sent_bytes_ += bytes;
  }
  for (int const source : mine.sources) {
    in_.push_back({source, memory.receive + received_bytes_, sizes.of(source, rank)});
    in_counts_.add(in_.back().bytes, received_bytes_);
    received_bytes_ += in_.back().bytes;
  }
  for (Counts* const counts :
       {&out_counts_, &in_counts_})  // MPI wants an address of a list without entries, too
    for (auto* const list : {&counts->bytes, &counts->before}) list->reserve(list->size() + 1);
}

void GpuBlocks::by_library(LibraryNeighbors& library) const {
  if (sizes_.collective == Collective::allgather)
    return library.allgather({memory_.send, sent_bytes_}, {memory_.receive, received_bytes_});
  library.alltoallv({memory_.send, out_counts_.bytes, out_counts_.before},
                    {memory_.receive, in_counts_.bytes, in_counts_.before});
}

// Allgather has counts alone, of one block each; alltoallv also what lies in front of a block.
void GpuBlocks::require_counted() const {
  constexpr std::size_t most = std::numeric_limits<int>::max();
  std::size_t const front = sizes_.collective == Collective::allgather ? 0 : 1;
  for (auto const* parts : {&out_, &in_}) {
    std::size_t before = 0;
    for (gpu::GroupedPart const& part : *parts) {
      if (std::max(part.bytes, front * before) > most)
        throw Error(
            ErrorCode::usage,
            fmt::format(
                "a block of {} bytes with {} in front of it (MPI counts up to {}). Use shorter blocks.",
                part.bytes, front * before, most));
      before += part.bytes;
    }
  }
}

NeighborCollective GpuBlocks::plan(Transport& transport) const {
  Neighborhood const neighborhood(transport, mine_->sources, mine_->destinations, {Route::direct, 0});
  std::span<std::byte const> const send(memory_.send, sent_bytes_);
  std::span<std::byte> const receive(memory_.receive, received_bytes_);
  if (sizes_.collective == Collective::allgather) return neighborhood.allgather(send, receive);
  auto const sent = bytes_of(out_), received = bytes_of(in_);
  return neighborhood.alltoallv({send, sent, {}, 1}, {receive, received, {}, 1});
}

// Of allgather the same for every target.
std::uint64_t GpuBlocks::seed_of(std::uint64_t number, int source, int target) const {
  int const whom = sizes_.collective == Collective::allgather ? 0 : target + 1;
  return mixed(mixed(number) ^ edge_of(source, whom));
}

// By way of a block of the host: the copies are done when they return.
void GpuBlocks::fill(gpu::Workbench& bench, std::uint64_t number) const {
  Bytes block;
  auto const put = [&](std::byte* at, std::size_t bytes, std::uint64_t seed, std::byte flipped) {
    block.resize(bytes);
    fill_known(block, seed);
    for (std::byte& one : block) one ^= flipped;
    bench.put(at, block.data(), bytes);
  };
  if (sizes_.collective == Collective::allgather) {
    put(memory_.send, sent_bytes_, seed_of(number, rank_, 0), std::byte{0});
  } else {
    for (gpu::GroupedPart const& part : out_)
      put(part.at, part.bytes, seed_of(number, rank_, part.rank), std::byte{0});
  }
  for (gpu::GroupedPart const& part : in_)
    put(part.at, part.bytes, seed_of(number, part.rank, rank_), std::byte{0xff});
}

std::string GpuBlocks::first_wrong(gpu::Workbench& bench, std::uint64_t number) const {
  Bytes block;
  for (gpu::GroupedPart const& part : in_) {
    block.resize(part.bytes);
    bench.get(block.data(), part.at, part.bytes);
    std::size_t const at = first_unknown(block, seed_of(number, part.rank, rank_));
    if (at != block.size())
      return fmt::format("rank {}: byte {} of the block of {} bytes from rank {} is not what was sent", rank_,
                         at, part.bytes, part.rank);
  }
  return {};
}

}  // namespace hostless::bench
