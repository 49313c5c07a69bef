#pragma once
// Kernels that execute messages: what they are given.

#include <algorithm>

#include "device/block.hpp"
#include "device/memory.hpp"
#include "queue/gpu/kernel_parts.hpp"
#include "queue/gpu/message_library.hpp"
#include "queue/gpu/message_pool.hpp"
#include "queue/gpu/message_words.gpu.hpp"
#include "transport/memory/paths.hpp"

namespace hostless::gpu {

struct QueueWords {
  std::uint32_t* lost = nullptr;  ///< device memory: `told`, where kernels look
  QueueControl* control = nullptr;
};

/// A side of a message, by value in the parameters of kernels: what is captured holds no epoch. One line of the
/// memory that parameters are read from.
struct alignas(64) EndCall {
  SideWords *sender = nullptr, *receiver = nullptr;
  std::byte* slots = nullptr;  ///< the receiver's
  std::byte const* from = nullptr;
  std::byte* to = nullptr;
  std::size_t bytes = 0;
  std::uint32_t slot_lines = 0;  ///< of slot_line bytes
  std::int32_t first = 0;        ///< of a start's blocks; of a wait's words of slots
  std::uint16_t count = 1;       ///< of a start's blocks
  std::uint16_t threads = 0;     ///< of each of those, that have bytes
  queue::Side side = queue::Side::sender;
  queue::Mode mode = queue::Mode::standard;
  /// Of a receiver: kernels before its start may have written to its buffer, and the next one does not find
  /// that without a fence. So in the host's memory, and on AMD's GPUs. Elsewhere a GPU's own memory has what
  /// its kernels before have stored where others' loads and stores arrive.
  bool fences_count = false;

  HOSTLESS_HOST_DEVICE SideWords* own() const { return side == queue::Side::sender ? sender : receiver; }
  HOSTLESS_HOST_DEVICE bool is_taken_out() const {
    return side == queue::Side::receiver && mode == queue::Mode::small;
  }
  HOSTLESS_HOST_DEVICE queue::MessageView view() const {
    queue::MessageView m;
    // Of the sender, whose start is the second one where receives come early: a count of the other GPU takes
    // a microsecond longer.
    m.count = reinterpret_cast<std::uint64_t*>(sender->count);
    m.arrived = &receiver->arrived;
    m.sender_gone = &receiver->other_gone;
    m.slots = slots;
    m.slot_bytes = std::size_t{slot_lines} * slot_line;
    m.sent = &sender->sent;
    m.taken = &sender->taken;
    m.receiver_gone = &sender->other_gone;
    m.from = from;
    m.to = to;
    m.bytes = bytes;
    m.mode = mode;
    return m;
  }
};
static_assert(sizeof(EndCall) == 64);

/// What marks that a group begins, or is done.
struct GroupMark {
  std::uint64_t* words = nullptr;        ///< [most_group_ranks + 1]: of each rank, and of all; device memory
  std::uint64_t* shown = nullptr;        ///< the same in the host's memory
  std::uint32_t const* ended = nullptr;  ///< of the host: the library was given up
  GroupPeers peers = 0;
};

/// Where kernels of a queue go.
struct MessageLaunch {
  HOSTLESS_GPU(Stream_t) stream = nullptr;
  QueueWords queue;
  bool is_dependent = false;  ///< launch_dependent
  /// Waits of all streams together must leave room for what they wait for, where ranks share a GPU.
  int most_waiting_blocks = 1;
};

/// Of as many ends as one kernel takes.
void launch_start(MessageLaunch const& to, std::span<EndCall const> ends);
void launch_wait(MessageLaunch const& to, std::span<EndCall const> ends);
/// By one kernel: at least one each, and of both as many as one takes.
void launch_start_and_wait(MessageLaunch const& to, std::span<EndCall const> starts,
                           std::span<EndCall const> waits);
/// own: of a side that goes with the request.
void launch_reduce(HOSTLESS_GPU(Stream_t) stream, QueueWords const& queue, Reduction const& what,
                   SideWords* own, int most_blocks);
/// Once more for each; or, where the library was given up, the queue is lost.
void launch_mark(HOSTLESS_GPU(Stream_t) stream, QueueWords const& queue, GroupMark const& what);
/// The other side of `side` goes, or this one: kernels of `side` are awaited that use the buffer of who goes.
/// *closed, which kernels store to, becomes `call` when there are none any more.
void launch_close_side(HOSTLESS_GPU(Stream_t) stream, SideWords* side, bool own_goes, std::uint64_t limit_ns,
                       std::uint32_t* closed, std::uint32_t call);
/// On the GPU in use: a wait that spins may hold up what loads a kernel.
void load_message_kernels();
/// Whether they may be launched before the kernel before them has ended, by a GPU whose number begins so.
bool message_kernels_may_come_early(int major);

constexpr std::size_t item_bytes = 16;
/// As many as `amount` keeps busy.
inline int blocks_of(std::size_t amount, std::size_t of_block, int most_blocks) {
  return static_cast<int>(
      std::clamp<std::size_t>((amount + of_block - 1) / of_block, 1, static_cast<std::size_t>(most_blocks)));
}
inline int threads_of(std::size_t items) {
  constexpr std::size_t wave = 64;
  return static_cast<int>(std::clamp<std::size_t>((items + wave - 1) / wave * wave, wave, block_threads));
}
/// Blocks of a start that moves them: the same for both sides, whatever their GPUs.
int pieces_of(queue::Mode mode, std::size_t bytes);

}  // namespace hostless::gpu
