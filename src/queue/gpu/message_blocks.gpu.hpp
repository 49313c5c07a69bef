#pragma once
// What blocks of kernels execute of a start and of a wait: message_kernels.gpu.cpp has the kernels.

#include "device/dependent_launch.hpp"
#include "queue/gpu/message_kernels.hpp"

namespace hostless::gpu {

using queue::Progress;

template <int capacity>
struct QueueCall {
  QueueWords queue;
  std::int32_t count = 0;
  std::int32_t total = 0;  ///< blocks of a start, words of slots of a wait
  EndCall end[capacity];
};

/// Whose part of the kernel's `index` is: blocks of a start, words of slots in a wait.
template <int capacity>
__device__ __forceinline__ int end_of(QueueCall<capacity> const& call, std::int32_t index, int k = 0) {
  while (k + 1 < call.count && index >= call.end[k + 1].first) ++k;
  return k;
}

/// By all threads of a block: whether it may use what the guard is of, until `ends_use`.
__device__ __forceinline__ bool begins_use(std::uint32_t* guard) {
  __shared__ bool is_open;
  if (threadIdx.x == 0) is_open = enter_guard(guard);
  __syncthreads();
  return is_open;
}
__device__ __forceinline__ void ends_use(std::uint32_t* guard) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence();
  leave_guard(guard);
}

/// By the block with that number of call.total: they have the blocks of all messages, one message after the other.
template <int capacity>
__device__ __forceinline__ void start_by_block(QueueCall<capacity> const& call, std::int32_t block) {
  let_next_kernel_come();  // it waits for this block, which waits for nobody
  EndCall const& end = call.end[end_of(call, block)];
  SharedWork const work{block - end.first, end.count, end.threads};
  queue::MessageView const view = end.view();
  SideWords* const own = end.own();
  LoadedAhead ahead(view, end.side, work);
  bool const is_sender = end.side == queue::Side::sender;
  bool const is_open =
      !is_sender || begins_use(&own->guard);  // costs nothing here: the kernel before still runs
  await_kernel_before();
  std::uint64_t const starts = load_strong(&own->starts);  // all loads at once
  std::uint32_t const is_lost = load_strong(call.queue.lost);
  if (is_open) ahead.load();
  if (is_lost != 0) {
    if (is_sender) ends_use(&own->guard);
    return;
  }
  PieceWords words(own, work, starts, ahead, end.side, end.fences_count, is_open);
  queue::start_message(words, view, end.side, &own->starts);
}

/// Whether one of those has left whose waits these are.
template <int capacity>
__device__ __forceinline__ bool has_left(QueueCall<capacity> const& call) {
  for (int k = 0; k < call.count; ++k)
    if ((load_strong(&call.end[k].own()->takers) & 1u) != 0) return true;
  return false;
}

/// By one thread: until look(also whether others have gone) is not pending.
template <int capacity, class Look>
__device__ __forceinline__ Progress await(QueueCall<capacity> const& call, Look const& look) {
  QueueControl const* const control = call.queue.control;
  std::uint64_t begin = 0;
  for (std::uint32_t polls = 1;; ++polls) {
    // Whether the other side has gone is a load more: now and then.
    Progress const progress = look(polls % 64 == 0);
    if (progress != Progress::pending) return progress;
    if (polls % 1024 != 0) continue;
    std::uint64_t now = 0;
    HOSTLESS_READ_NANOSECONDS(now);
    if (begin == 0) begin = now;
    std::uint64_t const limit = std::uint64_t{1000000} * load_host(&control->limit_ms);
    if (load_host(&control->ended) != 0 || now - begin > limit || has_left(call)) return Progress::lost;
  }
}

template <int capacity>
__device__ __forceinline__ Progress await_end(QueueCall<capacity> const& call, EndCall const& end,
                                              std::uint64_t epoch) {
  LookWords words;
  queue::MessageView const view = end.view();
  return await(call, [&](bool also_gone) {
    return also_gone ? queue::await_message(words, view, end.side, epoch)
                     : queue::look_at_message(words, view, end.side, epoch);
  });
}

/// One word, where each thread has one at most: with as few instructions as can be.
template <int capacity>
__device__ __forceinline__ Progress take_word(QueueCall<capacity> const& call, std::int32_t index,
                                              std::uint64_t const* epoch_of) {
  int const k = end_of(call, index);
  queue::MessageView const m = call.end[k].view();
  auto const at = static_cast<std::uint32_t>(index - call.end[k].first);
  auto const epoch = static_cast<std::uint32_t>(epoch_of[k]);
  auto const* const from =
      reinterpret_cast<FlaggedWord const*>(m.slots + ((epoch & 1u) != 0 ? m.slot_bytes : 0)) + at;
  FlaggedWord word;
  auto const is_there = [&] {
    word = load_flagged_word(from);
    return word.part[1] == epoch && word.part[3] == epoch;
  };
  Progress const progress = await(call, [&](bool also_gone) {
    if (is_there()) return Progress::done;
    if (!also_gone || load_acquiring(m.sender_gone) == 0) return Progress::pending;
    return is_there() ? Progress::done : Progress::lost;
  });
  if (progress != Progress::done) return progress;
  store_eight(m.to, bytes_of_word * at, m.bytes, {word.part[0], word.part[2]});
  if (m.bytes == 0) fence_system();  // what came before it is seen
  return Progress::done;
}

/// By all threads: out of the slots, a word as soon as it says that it has its end's epoch.
template <int capacity>
__device__ __forceinline__ Progress take_out(QueueCall<capacity> const& call, SharedWork const& work,
                                             std::uint64_t const* epoch_of) {
  auto const threads = static_cast<std::int32_t>(blockDim.x);
  std::int32_t const step = work.blocks * threads;
  std::int32_t const mine = work.block * threads + static_cast<std::int32_t>(threadIdx.x);
  if (call.total <= step) return mine < call.total ? take_word(call, mine, epoch_of) : Progress::done;
  int k = 0;
  for (std::int32_t at = mine; at < call.total; at += together * step) {
    FlaggedWord const* from[together];
    FlaggedWord word[together];
    int end[together];
    int words = 0;
    HOSTLESS_UNROLL
    for (int u = 0; u < together; ++u) {
      if (at + u * step >= call.total) break;
      end[u] = k = end_of(call, at + u * step, k);
      queue::MessageView const m = call.end[k].view();
      from[u] = reinterpret_cast<FlaggedWord const*>(m.slots + (epoch_of[k] & 1u) * m.slot_bytes) +
                (at + u * step - call.end[k].first);
      words = u + 1;
    }
    auto const is_of = [&](int u, FlaggedWord const& one) {
      auto const epoch = static_cast<std::uint32_t>(epoch_of[end[u]]);
      return one.part[1] == epoch && one.part[3] == epoch;
    };
    Progress const progress = await(call, [&](bool also_gone) {
      HOSTLESS_UNROLL
      for (int u = 0; u < together; ++u)
        if (u < words) word[u] = load_flagged_word(from[u]);
      bool all = true;
      HOSTLESS_UNROLL
      for (int u = 0; u < together; ++u)
        if (u < words) all = all && is_of(u, word[u]);
      if (all) return Progress::done;
      // A sender that has gone has stored its words before: one of it that is missing then never comes. Those of
      // the others may.
      if (!also_gone) return Progress::pending;
      HOSTLESS_UNROLL
      for (int u = 0; u < together; ++u) {
        if (u >= words || load_acquiring(call.end[end[u]].view().sender_gone) == 0) continue;
        word[u] = load_flagged_word(from[u]);
        if (!is_of(u, word[u])) return Progress::lost;
      }
      return Progress::pending;
    });
    if (progress != Progress::done) return progress;
    HOSTLESS_UNROLL
    for (int u = 0; u < together; ++u) {
      if (u >= words) continue;
      queue::MessageView const m = call.end[end[u]].view();
      store_eight(m.to, bytes_of_word * static_cast<std::size_t>(at + u * step - call.end[end[u]].first),
                  m.bytes, {word[u].part[0], word[u].part[2]});
      if (m.bytes == 0) fence_system();  // what came before it is seen
    }
  }
  return Progress::done;
}

/// By one thread: what the host sees of a wait is that its start is over too, whose blocks may be at work in the
/// same kernel. They wait for nobody; those of a lost queue count nothing.
template <int capacity>
__device__ __forceinline__ Progress await_start(QueueCall<capacity> const& call, SideWords const* own,
                                                std::uint64_t epoch) {
  return await(call, [&](bool) {
    if (load_strong(&own->starts) >> share_bits >= epoch) return Progress::done;
    return load_strong(call.queue.lost) != 0 ? Progress::lost : Progress::pending;
  });
}

/// By one of the blocks that wait together: a thread of the first for each end that others reach, and all of them
/// for what lies in slots.
///
/// Between two starts is one wait, so the epoch of this one is one more than waits have ended before it. What starts
/// have counted does not say it, because blocks of one may be adding their shares in this kernel. Waits do so too,
/// but only all shares together are one more, and who adds has read before.
template <int capacity>
__device__ __forceinline__ void wait_by_block(QueueCall<capacity> const& call, SharedWork const& work) {
  __shared__ std::uint32_t is_lost, was_lost;
  __shared__ std::uint64_t epoch_of[capacity];
  await_kernel_before();
  int const mine = static_cast<int>(threadIdx.x);
  bool const waits = mine < call.count;
  std::uint64_t const epoch = waits ? (load_strong(&call.end[mine].own()->waits) >> share_bits) + 1 : 0;
  // Into whose buffer something is stored here says when that is over: who has left waits for it.
  bool const takes = waits && call.end[mine].is_taken_out();
  bool const has_gone = takes && !enter_guard(&call.end[mine].own()->takers);
  // One asks for all threads: another block of this kernel may lose the queue meanwhile.
  if (mine == 0) is_lost = 0, was_lost = load_strong(call.queue.lost);
  if (waits) epoch_of[mine] = epoch;
  bool const may_take = __syncthreads_or(has_gone ? 1 : 0) == 0 && was_lost == 0;
  Progress progress = may_take ? Progress::done : Progress::lost;
  if (may_take && waits && work.block == 0 && !takes) progress = await_end(call, call.end[mine], epoch);
  if (progress == Progress::done) progress = take_out(call, work, epoch_of);
  if (progress == Progress::done && waits && work.block == 0)
    progress = await_start(call, call.end[mine].own(), epoch);
  if (progress != Progress::done) is_lost = static_cast<std::uint32_t>(progress);
  __syncthreads();
  auto const end_taking = [&] {
    if (!takes) return;
    __threadfence();
    leave_guard(&call.end[mine].own()->takers);
  };
  if (is_lost != 0) {
    end_taking();
    if (was_lost != 0) return;
    if (mine == 0) {
      store_strong(call.queue.lost, 1u);
      store_strong(&call.queue.control->told, is_lost);
      fence_system();
    }
    return;
  }
  let_next_kernel_come();  // not before: it may be what another rank of this GPU has to have room for
  if (waits) add_share(&call.end[mine].own()->waits, work.share());
  end_taking();
}

}  // namespace hostless::gpu
