#include "queue/gpu/message_kernels.hpp"

#include <algorithm>

#include "device/dependent_launch.hpp"
#include "device/queue.hpp"
#include "hostless/base/environment.hpp"
#include "queue/gpu/message_blocks.gpu.hpp"
#include "queue/reduce.hpp"

namespace hostless::gpu {
namespace {

template <int capacity>
__global__ void start_kernel(HOSTLESS_PARAMETER QueueCall<capacity> const call) {
  start_by_block(call, static_cast<std::int32_t>(blockIdx.x));
}

template <int capacity>
__global__ void wait_kernel(HOSTLESS_PARAMETER QueueCall<capacity> const call) {
  wait_by_block(call, {static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x)});
}

/// First the blocks of the starts, which wait for nobody and are soon gone, then those of the waits. As many blocks
/// wait as in a kernel of their own, two of which a multiprocessor holds (MessagePool::join_waits), so they leave
/// room for starts: these, whatever order blocks take their places in, and those of other ranks.
template <int capacity>
__global__ void HOSTLESS_LAUNCH_BOUNDS(block_threads, 2)
    start_and_wait_kernel(HOSTLESS_PARAMETER QueueCall<capacity> const starts,
                          HOSTLESS_PARAMETER QueueCall<capacity> const waits) {
  auto const block = static_cast<std::int32_t>(blockIdx.x);
  if (block < starts.total)
    start_by_block(starts, block);
  else
    wait_by_block(waits, {block - starts.total, static_cast<int>(gridDim.x) - starts.total});
}

// Both calls are parameters, of which the oldest GPUs take so many bytes.
constexpr std::size_t most_parameter_bytes = 4096;
static_assert(2 * sizeof(QueueCall<most_ends>) <= most_parameter_bytes);

// Said, because AMD's compiler leaves out what is only pointed to.
template __global__ void start_kernel<few_ends>(HOSTLESS_PARAMETER QueueCall<few_ends> const);
template __global__ void start_kernel<most_ends>(HOSTLESS_PARAMETER QueueCall<most_ends> const);
template __global__ void wait_kernel<few_ends>(HOSTLESS_PARAMETER QueueCall<few_ends> const);
template __global__ void wait_kernel<most_ends>(HOSTLESS_PARAMETER QueueCall<most_ends> const);
template __global__ void start_and_wait_kernel<few_ends>(HOSTLESS_PARAMETER QueueCall<few_ends> const,
                                                         HOSTLESS_PARAMETER QueueCall<few_ends> const);
template __global__ void start_and_wait_kernel<most_ends>(HOSTLESS_PARAMETER QueueCall<most_ends> const,
                                                          HOSTLESS_PARAMETER QueueCall<most_ends> const);

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

/// Of a kernel for a call: each of its threads has one of `items`, at least.
struct KernelSize {
  int blocks;
  std::size_t items;
};

template <class... Calls>
void launch_calls(MessageLaunch const& to, void (*kernel)(Calls const...), KernelSize const& size,
                  Calls&... calls) {
  void* parameters[] = {&calls...};
  launch_dependent(reinterpret_cast<void const*>(kernel), size.blocks, threads_of(size.items), to.stream,
                   parameters, to.is_dependent);
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

/// Threads of a start's block that have bytes of a message: the same for both sides, whatever else they start with
/// it, because of each piece one of both moves those that the other leaves out.
int threads_of_piece(queue::Mode mode, std::size_t bytes) {
  std::size_t const words = words_of_slot(bytes);
  return threads_of(mode == queue::Mode::small ? std::min(words, slot_threads(words))
                                               : std::min(bytes / item_bytes, moving_threads(bytes)));
}

template <int capacity>
KernelSize fill_start(QueueCall<capacity>& call, MessageLaunch const& to, std::span<EndCall const> ends) {
  call.queue = to.queue;
  call.count = static_cast<std::int32_t>(ends.size());
  int most = 0;
  for (std::size_t k = 0; k < ends.size(); ++k) {
    int const threads = threads_of_piece(ends[k].mode, ends[k].bytes);
    call.end[k] = ends[k];
    call.end[k].first = call.total;
    call.end[k].threads = static_cast<std::uint16_t>(threads);
    call.total += ends[k].count;
    most = std::max(most, threads);
  }
  return {call.total, static_cast<std::size_t>(most)};
}

// With as much again for a step beyond the last of them.
static_assert(most_ends * (most_small_bytes / static_cast<std::int64_t>(bytes_of_word)) < INT32_MAX / 2);

template <int capacity>
KernelSize fill_wait(QueueCall<capacity>& call, MessageLaunch const& to, std::span<EndCall const> ends) {
  call.queue = to.queue;
  call.count = static_cast<std::int32_t>(ends.size());
  for (std::size_t k = 0; k < ends.size(); ++k) {
    call.end[k] = ends[k];
    call.end[k].first = call.total;
    if (ends[k].is_taken_out()) call.total += static_cast<std::int32_t>(words_of_slot(ends[k].bytes));
  }
  auto const words = static_cast<std::size_t>(call.total);
  return {blocks_of(words, block_threads, to.most_waiting_blocks), words};
}

template <int capacity>
void start_some(MessageLaunch const& to, std::span<EndCall const> ends) {
  QueueCall<capacity> call;
  KernelSize const size = fill_start(call, to, ends);
  launch_calls(to, &start_kernel<capacity>, size, call);
}

template <int capacity>
void wait_some(MessageLaunch const& to, std::span<EndCall const> ends) {
  QueueCall<capacity> call;
  KernelSize const size = fill_wait(call, to, ends);
  launch_calls(to, &wait_kernel<capacity>, size, call);
}

template <int capacity>
void start_and_wait_some(MessageLaunch const& to, std::span<EndCall const> starts,
                         std::span<EndCall const> waits) {
  QueueCall<capacity> first, then;
  KernelSize const start = fill_start(first, to, starts), wait = fill_wait(then, to, waits);
  launch_calls(to, &start_and_wait_kernel<capacity>,
               {start.blocks + wait.blocks, std::max(start.items, wait.items)}, first, then);
}

}  // namespace

void launch_start(MessageLaunch const& to, std::span<EndCall const> ends) {
  ends.size() <= few_ends ? start_some<few_ends>(to, ends) : start_some<most_ends>(to, ends);
}
void launch_wait(MessageLaunch const& to, std::span<EndCall const> ends) {
  ends.size() <= few_ends ? wait_some<few_ends>(to, ends) : wait_some<most_ends>(to, ends);
}
void launch_start_and_wait(MessageLaunch const& to, std::span<EndCall const> starts,
                           std::span<EndCall const> waits) {
  std::max(starts.size(), waits.size()) <= few_ends ? start_and_wait_some<few_ends>(to, starts, waits)
                                                    : start_and_wait_some<most_ends>(to, starts, waits);
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
        reinterpret_cast<void const*>(&wait_kernel<most_ends>),
        reinterpret_cast<void const*>(&start_and_wait_kernel<few_ends>),
        reinterpret_cast<void const*>(&start_and_wait_kernel<most_ends>),
        reinterpret_cast<void const*>(&reduce_kernel), reinterpret_cast<void const*>(&mark_kernel),
        reinterpret_cast<void const*>(&close_side_kernel)})
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
