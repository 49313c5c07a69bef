// What endpoints that carry by stores of kernels need (PutRound), and copies for the others.
#include "transport/composite/composite_leg.hpp"

#include <algorithm>

#include "device/memory.hpp"
#include "transport/peer/put_round.gpu.hpp"
#include "transport/stream/limits.hpp"

namespace hostless::gpu {
namespace {

template <class Unit>
__device__ __forceinline__ void copy_as(std::byte* to, std::byte const* from, std::int64_t bytes) {
  std::int64_t const step = std::int64_t{gridDim.x} * block_threads;
  for (std::int64_t k = std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
       k < bytes / std::int64_t{sizeof(Unit)}; k += step)
    reinterpret_cast<Unit*>(to)[k] = reinterpret_cast<Unit const*>(from)[k];
}
/// By all threads of a kernel.
__device__ __forceinline__ void copy_part(std::byte* to, std::byte const* from, std::int64_t bytes) {
  auto const all = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) |
                   static_cast<std::uintptr_t>(bytes);
  if (all % sizeof(std::uint64_t) == 0) return copy_as<std::uint64_t>(to, from, bytes);
  if (all % sizeof(std::uint32_t) == 0) return copy_as<std::uint32_t>(to, from, bytes);
  copy_as<std::uint8_t>(to, from, bytes);
}

/// What lies packed at `from` goes where it is put.
__global__ void __launch_bounds__(block_threads, 1)
    put_packed_kernel(std::byte const* from, HOSTLESS_PARAMETER PutRound const put) {
  if (*put.lost == 0) {
    int const parity = parity_of_exchange(*put.exchanges + 1);
    for (int k = 0; k < put.targets; ++k)
      copy_part(put.target[k].to + parity * put.other_buffer, from + put.target[k].first,
                put.target[k].end - put.target[k].first);
  }
  signal_round(put);
}

/// Parts of a round: bytes [first, end).
struct Pieces {
  int count = 0;
  struct {
    std::int64_t first = 0, end = 0;
  } piece[most_ranks];
};
/// What others have put goes where it is unpacked from.
__global__ void __launch_bounds__(block_threads, 1)
    take_arrived_kernel(HOSTLESS_PARAMETER ArrivedRound const arrived, HOSTLESS_PARAMETER Pieces const pieces,
                        std::byte* to) {
  std::byte const* const from = arrived_at(arrived);
  for (int k = 0; k < pieces.count; ++k)
    copy_part(to + pieces.piece[k].first, from + pieces.piece[k].first,
              pieces.piece[k].end - pieces.piece[k].first);
}

using Stretch = std::pair<std::int64_t, std::int64_t>;  // bytes [first, end)
// Parts that lie together or on each other are one.
std::vector<Stretch> stretches(std::vector<StreamPart> const& parts) {
  std::vector<Stretch> all;
  for (StreamPart const& part : parts) {
    if (all.empty() || part.first > all.back().second) all.emplace_back(part.first, part.first);
    all.back().second = std::max(all.back().second, part.first + part.bytes);
  }
  return all;
}
int blocks_for(std::vector<StreamPart> const& parts) {
  constexpr std::int64_t most_blocks = 64, bytes_a_block = std::int64_t{block_threads} * 16;
  std::int64_t bytes = 0;
  for (StreamPart const& part : parts) bytes += part.bytes;
  return static_cast<int>(
      std::clamp<std::int64_t>((bytes + bytes_a_block - 1) / bytes_a_block, 1, most_blocks));
}
}  // namespace

void queue_copy(StreamQueue& queue, void* to, void const* from, std::int64_t bytes) {
  queue.call([&](HOSTLESS_GPU(Stream_t) stream) {
    check(HOSTLESS_GPU(MemcpyAsync)(to, from, static_cast<std::size_t>(bytes), HOSTLESS_GPU(MemcpyDefault),
                                    stream),
          "copying between the buffers of two transports");
  });
}

void CompositeLeg::send(StreamQueue& queue, int round, std::byte const* from, std::byte* to) const {
  auto const& out = rounds_[static_cast<std::size_t>(round)].out;
  PutRound const put = endpoint_->put(round);
  if (put.exchanges != nullptr && put.targets != 0) {
    launch(queue, reinterpret_cast<void const*>(&put_packed_kernel), blocks_for(out), from, put);
  } else if (put.exchanges == nullptr && !out.empty() && !endpoint_->takes_from_field(round)) {
    std::byte* const packed = endpoint_->outgoing(round);
    for (auto const& [first, end] : stretches(out))
      queue_copy(queue, packed + first, from + first, end - first);
  }
  endpoint_->send(queue, round, to);
}

void CompositeLeg::land(StreamQueue& queue, int round, std::byte* to) const {
  auto const& in = rounds_[static_cast<std::size_t>(round)].in;
  endpoint_->await(queue, round, to);
  if (in.empty() || endpoint_->lands(round)) return;
  if (ArrivedRound const arrived = endpoint_->arrived(round); arrived.exchanges != nullptr) {
    Pieces pieces;
    for (auto const& [first, end] : stretches(in)) pieces.piece[pieces.count++] = {first, end};
    launch(queue, reinterpret_cast<void const*>(&take_arrived_kernel), blocks_for(in), arrived, pieces, to);
  } else {
    std::byte const* const from = endpoint_->incoming(round);
    for (auto const& [first, end] : stretches(in)) queue_copy(queue, to + first, from + first, end - first);
  }
}

}  // namespace hostless::gpu
