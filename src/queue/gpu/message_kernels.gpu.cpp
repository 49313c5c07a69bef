#include "queue/gpu/message_kernels.hpp"

#include <algorithm>

#include "device/dependent_launch.hpp"
#include "device/queue.hpp"
#include "hostless/base/environment.hpp"
#include "queue/reduce.hpp"

namespace hostless::gpu {
namespace {

using queue::Progress;

template <int capacity>
struct QueueCall {
  QueueWords queue;
  std::int32_t count = 0;
  std::int32_t slot_words = 0;  // of a wait
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

/// A grid has the blocks of all its messages, one message after the other.
template <int capacity>
__global__ void start_kernel(HOSTLESS_PARAMETER QueueCall<capacity> const call) {
  let_next_kernel_come();  // it waits for this one, which waits for nobody
  auto const block = static_cast<std::int32_t>(blockIdx.x);
  EndCall const& end = call.end[end_of(call, block)];
  SharedWork const work{block - end.first, end.count};
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
__device__ __forceinline__ Progress take_out(QueueCall<capacity> const& call, std::uint64_t const* epoch_of) {
  auto const step = static_cast<std::int32_t>(gridDim.x * blockDim.x);
  auto const mine = static_cast<std::int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  if (call.slot_words <= step)
    return mine < call.slot_words ? take_word(call, mine, epoch_of) : Progress::done;
  int k = 0;
  for (std::int32_t at = mine; at < call.slot_words; at += together * step) {
    FlaggedWord const* from[together];
    FlaggedWord word[together];
    int end[together];
    int words = 0;
    HOSTLESS_UNROLL
    for (int u = 0; u < together; ++u) {
      if (at + u * step >= call.slot_words) break;
      end[u] = k = end_of(call, at + u * step, k);
      queue::MessageView const m = call.end[k].view();
      from[u] = reinterpret_cast<FlaggedWord const*>(m.slots + (epoch_of[k] & 1u) * m.slot_bytes) +
                (at + u * step - call.end[k].first);
      words = u + 1;
    }
    auto const are_there = [&] {
      bool all = true;
      HOSTLESS_UNROLL
      for (int u = 0; u < together; ++u)
        if (u < words) word[u] = load_flagged_word(from[u]);
      HOSTLESS_UNROLL
      for (int u = 0; u < together; ++u) {
        if (u >= words) continue;
        auto const epoch = static_cast<std::uint32_t>(epoch_of[end[u]]);
        all = all && word[u].part[1] == epoch && word[u].part[3] == epoch;
      }
      return all;
    };
    Progress const progress = await(call, [&](bool also_gone) {
      if (are_there()) return Progress::done;
      bool is_gone = false;
      for (int u = 0; also_gone && u < words; ++u)
        is_gone = is_gone || load_acquiring(call.end[end[u]].view().sender_gone) != 0;
      if (!is_gone) return Progress::pending;
      return are_there() ? Progress::done : Progress::lost;
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

/// A thread of the first block for each end that others reach, and all of them for what lies in slots.
template <int capacity>
__global__ void wait_kernel(HOSTLESS_PARAMETER QueueCall<capacity> const call) {
  __shared__ std::uint32_t is_lost, was_lost;
  __shared__ std::uint64_t epoch_of[capacity];
  await_kernel_before();
  int const mine = static_cast<int>(threadIdx.x);
  bool const waits = mine < call.count;
  std::uint64_t const epoch = waits ? load_strong(&call.end[mine].own()->starts) >> share_bits : 0;
  // Into whose buffer something is stored here says when that is over: who has left waits for it.
  bool const takes = waits && call.end[mine].is_taken_out();
  bool const has_gone = takes && !enter_guard(&call.end[mine].own()->takers);
  // One asks for all threads: another block of this kernel may lose the queue meanwhile.
  if (mine == 0) is_lost = 0, was_lost = load_strong(call.queue.lost);
  if (waits) epoch_of[mine] = epoch;
  bool const may_take = __syncthreads_or(has_gone ? 1 : 0) == 0 && was_lost == 0;
  Progress progress = may_take ? Progress::done : Progress::lost;
  if (may_take && waits && blockIdx.x == 0 && !takes) progress = await_end(call, call.end[mine], epoch);
  if (progress == Progress::done) progress = take_out(call, epoch_of);
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
  SharedWork const work{static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x)};
  if (waits) add_share(&call.end[mine].own()->waits, work.share());
  end_taking();
}

// Said, because AMD's compiler leaves out what is only pointed to.
template __global__ void start_kernel<few_ends>(HOSTLESS_PARAMETER QueueCall<few_ends> const);
template __global__ void start_kernel<most_ends>(HOSTLESS_PARAMETER QueueCall<most_ends> const);
template __global__ void wait_kernel<few_ends>(HOSTLESS_PARAMETER QueueCall<few_ends> const);
template __global__ void wait_kernel<most_ends>(HOSTLESS_PARAMETER QueueCall<most_ends> const);

/// One thread. *closed, of the host, becomes `call`, or remains what it is where the limit passes before.
__global__ void close_side_kernel(SideWords* side, bool own_goes, std::uint64_t limit_ns,
                                  std::uint32_t* closed, std::uint32_t call) {
  fence_system();
  atomicOr_system(&side->guard, 1u);
  if (own_goes) {  // waits that spin end, and leave their guard
    atomicOr_system(&side->takers, 1u);
    store_strong(&side->other_gone, std::uint64_t{1});
  }
  std::uint64_t begin = 0, now = 0;
  HOSTLESS_READ_NANOSECONDS(begin);
  for (now = begin; now - begin < limit_ns;) {
    if (load_strong(&side->guard) == 1u && (!own_goes || load_strong(&side->takers) == 1u)) {
      fence_system();
      store_strong(closed, call);
      break;
    }
    HOSTLESS_READ_NANOSECONDS(now);
  }
  fence_system();
  store_strong(&side->other_gone, std::uint64_t{1});
}

/// One block, a thread for each rank and one for all. Groups of a rank come one after the other, so nobody else
/// counts meanwhile.
__global__ void mark_kernel(HOSTLESS_PARAMETER QueueWords const queue,
                            HOSTLESS_PARAMETER GroupMark const mark) {
  __shared__ bool is_over;
  auto const mine = static_cast<int>(threadIdx.x);
  if (mine == 0) is_over = load_host(mark.ended) != 0;
  __syncthreads();
  if (!is_over) {
    bool const counts =
        mine == most_group_ranks || (mine < most_group_ranks && (mark.peers >> mine & 1u) != 0);
    if (counts) store_strong(mark.shown + mine, ++mark.words[mine]);
  } else if (mine == 0 && load_strong(queue.lost) == 0) {
    store_strong(queue.lost, 1u);
    store_strong(&queue.control->told, static_cast<std::uint32_t>(Progress::lost));
    fence_system();
  }
}

template <class T>
__device__ void reduce_items(Reduction const& what) {
  auto const* const all = reinterpret_cast<T const*>(what.all);
  auto const* const own = reinterpret_cast<T const*>(what.own);
  auto* const result = reinterpret_cast<T*>(what.result);
  std::size_t const step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t at = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; at < what.count;
       at += step) {
    auto const of = [&](int rank) {
      return rank == what.rank ? own[at] : all[static_cast<std::size_t>(rank) * what.count + at];
    };
    T total = of(0);
    for (int rank = 1; rank < what.ranks; ++rank) total = queue::reduced(total, of(rank), what.operation);
    result[at] = total;
  }
}

__global__ void reduce_kernel(HOSTLESS_PARAMETER QueueWords const queue,
                              HOSTLESS_PARAMETER Reduction const what, SideWords* own) {
  __shared__ bool is_lost;
  if (threadIdx.x == 0) is_lost = load_strong(queue.lost) != 0;
  bool const is_open = begins_use(&own->takers);
  if (!is_lost && is_open) {
    switch (what.datatype) {
      case Datatype::f32:
        reduce_items<float>(what);
        break;
      case Datatype::f64:
        reduce_items<double>(what);
        break;
      case Datatype::i32:
        reduce_items<std::int32_t>(what);
        break;
      case Datatype::i64:
        reduce_items<std::int64_t>(what);
        break;
      case Datatype::byte:
        reduce_items<std::uint8_t>(what);
        break;
    }
  } else if (!is_lost && threadIdx.x == 0) {  // who has left has no result
    store_strong(queue.lost, 1u);
    store_strong(&queue.control->told, static_cast<std::uint32_t>(Progress::lost));
    fence_system();
  }
  ends_use(&own->takers);
}

template <class Kernel, class... Parameters>
void launch_on(HOSTLESS_GPU(Stream_t) stream, Kernel* kernel, int blocks, int threads,
               Parameters... parameters) {
  launch_kernel(reinterpret_cast<void const*>(kernel), blocks, threads, stream, parameters...);
}

/// Of a call for `kernel`, which has `items` for each of its threads.
template <int capacity>
void launch_call(MessageLaunch const& to, void (*kernel)(QueueCall<capacity> const), int blocks,
                 std::size_t items, QueueCall<capacity>& call) {
  void* parameters[] = {&call};
  launch_dependent(reinterpret_cast<void const*>(kernel), blocks, threads_of(items), to.stream, parameters,
                   to.is_dependent);
}

/// Of what a start moves itself: up to so many bytes fewer blocks of fewer threads keep a link busy, because
/// fences and counts that are under way at once stand in each other's way.
constexpr std::size_t few_bytes = std::size_t{1} << 20;
std::size_t moving_threads(std::size_t bytes) {
  constexpr std::size_t few_threads = 256;
  return bytes > few_bytes ? block_threads : few_threads;
}

/// Threads of a start's block for what goes into slots: many words leave sooner from many multiprocessors.
std::size_t slot_threads(std::size_t words) {
  constexpr std::size_t many = 2048, few_threads = 128;
  return words > many ? few_threads : block_threads;
}

template <int capacity>
void start_some(MessageLaunch const& to, std::span<EndCall const> ends) {
  QueueCall<capacity> call;
  call.queue = to.queue;
  call.count = static_cast<std::int32_t>(ends.size());
  std::int32_t blocks = 0;
  std::size_t most = 0;
  for (std::size_t k = 0; k < ends.size(); ++k) {
    call.end[k] = ends[k];
    call.end[k].first = blocks;
    blocks += ends[k].count;
    std::size_t const words = words_of_slot(ends[k].bytes);
    most = std::max(most, ends[k].mode == queue::Mode::small
                              ? std::min(words, slot_threads(words))
                              : std::min(ends[k].bytes / item_bytes, moving_threads(ends[k].bytes)));
  }
  launch_call(to, &start_kernel<capacity>, blocks, most, call);
}

// With as much again for a step beyond the last of them.
static_assert(most_ends * (most_small_bytes / static_cast<std::int64_t>(bytes_of_word)) < INT32_MAX / 2);

template <int capacity>
void wait_some(MessageLaunch const& to, std::span<EndCall const> ends) {
  QueueCall<capacity> call;
  call.queue = to.queue;
  call.count = static_cast<std::int32_t>(ends.size());
  for (std::size_t k = 0; k < ends.size(); ++k) {
    call.end[k] = ends[k];
    call.end[k].first = call.slot_words;
    if (ends[k].is_taken_out()) call.slot_words += static_cast<std::int32_t>(words_of_slot(ends[k].bytes));
  }
  auto const words = static_cast<std::size_t>(call.slot_words);
  int const blocks = blocks_of(words, block_threads, to.most_waiting_blocks);
  launch_call(to, &wait_kernel<capacity>, blocks, words, call);
}

}  // namespace

void launch_start(MessageLaunch const& to, std::span<EndCall const> ends) {
  ends.size() <= few_ends ? start_some<few_ends>(to, ends) : start_some<most_ends>(to, ends);
}
void launch_wait(MessageLaunch const& to, std::span<EndCall const> ends) {
  ends.size() <= few_ends ? wait_some<few_ends>(to, ends) : wait_some<most_ends>(to, ends);
}
void launch_reduce(HOSTLESS_GPU(Stream_t) stream, QueueWords const& queue, Reduction const& what,
                   SideWords* own, int most_blocks) {
  launch_on(stream, &reduce_kernel, blocks_of(what.count, block_threads, most_blocks), block_threads, queue,
            what, own);
}
void launch_mark(HOSTLESS_GPU(Stream_t) stream, QueueWords const& queue, GroupMark const& what) {
  launch_on(stream, &mark_kernel, 1, threads_of(most_group_ranks + 1), queue, what);
}
void launch_close_side(HOSTLESS_GPU(Stream_t) stream, SideWords* side, bool own_goes, std::uint64_t limit_ns,
                       std::uint32_t* closed, std::uint32_t call) {
  launch_on(stream, &close_side_kernel, 1, 1, side, own_goes, limit_ns, closed, call);
}
// Code for older GPUs, translated for one that could, has nothing by which a kernel waits for the one before.
bool message_kernels_may_come_early(int major) {
  constexpr int versions_of_major = 10;
  if (major < first_to_launch_early) return false;
  HOSTLESS_GPU(FuncAttributes) attributes{};
  check(HOSTLESS_GPU(FuncGetAttributes)(&attributes, reinterpret_cast<void const*>(&start_kernel<few_ends>)),
        "asking what a kernel was compiled for");
  return attributes.ptxVersion >= first_to_launch_early * versions_of_major;
}

void load_message_kernels() {
  for (void const* const kernel :
       {reinterpret_cast<void const*>(&start_kernel<few_ends>),
        reinterpret_cast<void const*>(&start_kernel<most_ends>),
        reinterpret_cast<void const*>(&wait_kernel<few_ends>),
        reinterpret_cast<void const*>(&wait_kernel<most_ends>), reinterpret_cast<void const*>(&reduce_kernel),
        reinterpret_cast<void const*>(&mark_kernel), reinterpret_cast<void const*>(&close_side_kernel)})
    load_kernel(kernel);
}

int pieces_of(queue::Mode mode, std::size_t bytes) {
  constexpr int pieces = most_pieces / 2;
  if (mode == queue::Mode::small) {
    std::size_t const words = words_of_slot(bytes);
    return blocks_of(words, together_in_slot * slot_threads(words), pieces);
  }
  // H100, ready sends, there and back in a graph, by 32 blocks of 512 threads and by these: 128 KB 12.6 and 12.3
  // us, 256 KB 13.1 to 13.3 and 12.9, 1 MB 17.9 to 18.9 and 18.2.
  // 64 MB 542 us by 132 blocks of 512, 536 by twice as many; 4 MB 42.1 and 43.3.
  constexpr int few_pieces = 16;
  constexpr std::size_t many_bytes = std::size_t{32} << 20;
  std::size_t const of_round = moving_threads(bytes) * item_bytes;
  if (bytes <= few_bytes) return blocks_of(bytes, of_round, few_pieces);
  return blocks_of(bytes, together * of_round, bytes > many_bytes ? most_pieces : pieces);
}

}  // namespace hostless::gpu
