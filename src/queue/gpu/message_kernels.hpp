#pragma once
// Kernels that execute messages: what they are given.

#include "device/memory.hpp"
#include "queue/gpu/message_library.hpp"
#include "queue/gpu/message_pool.hpp"
#include "queue/gpu/message_words.gpu.hpp"
#include "transport/memory/paths.hpp"

namespace hostless::gpu {

struct QueueWords {
  std::uint32_t* lost = nullptr;  ///< device memory: `told`, where kernels look
  QueueControl* control = nullptr;
};

/// A side of a message, by value in the parameters of kernels: what is captured holds no epoch.
struct EndCall {
  queue::MessageView view;
  SideWords* own = nullptr;
  queue::Side side = queue::Side::sender;
  std::int32_t first_block = 0, blocks = 1;  ///< of a start
};

/// As many as fit into a kernel's parameters, and a few, which are copied faster.
constexpr int most_ends = 24, few_ends = 4;

/// Of as many ends as one kernel takes.
void launch_start(HOSTLESS_GPU(Stream_t) stream, QueueWords const& queue, std::span<EndCall const> ends);
void launch_wait(HOSTLESS_GPU(Stream_t) stream, QueueWords const& queue, std::span<EndCall const> ends);
void launch_reduce(HOSTLESS_GPU(Stream_t) stream, QueueWords const& queue, StreamReduction const& what,
                   int most_blocks);
/// The other side of `side` goes, and kernels of `side` are awaited that move its bytes.
void launch_lose_other(HOSTLESS_GPU(Stream_t) stream, SideWords* side);
void launch_add_to_bytes(HOSTLESS_GPU(Stream_t) stream, std::byte* to, std::byte const* from,
                         std::size_t bytes, std::uint8_t plus, int most_blocks);
/// On the GPU in use. All but the last one: a wait that spins may hold up what loads a kernel.
void load_message_kernels();

/// Blocks for a message, as many as its bytes keep busy.
int blocks_of(std::size_t bytes, int most_blocks);

}  // namespace hostless::gpu
