#include "queue/gpu/message_kernels.hpp"

#include <algorithm>

#include "device/queue.hpp"
#include "queue/reduce.hpp"

namespace hostless::gpu {
namespace {

using queue::Progress;

template <int capacity>
struct QueueCall {
  QueueWords queue;
  std::int32_t count = 0;
  std::int32_t takes = 0;  // of a wait: whether something lies in a slot
  EndCall end[capacity];
};

/// A grid has the blocks of all its messages, one message after the other.
template <int capacity>
__global__ void start_kernel(HOSTLESS_PARAMETER QueueCall<capacity> const call) {
  auto const block = static_cast<std::int32_t>(blockIdx.x);
  int k = 0;
  while (k + 1 < call.count && block >= call.end[k + 1].first_block) ++k;
  EndCall const& end = call.end[k];
  std::uint64_t const starts = load_strong(&end.own->starts);  // both loads at once
  if (load_strong(call.queue.lost) != 0) return;
  GridWords words(end.own, {block - end.first_block, end.blocks}, starts);
  queue::start_message(words, end.view, end.side, &end.own->starts);
}

/// By one thread: until it is there, or will never be.
__device__ __forceinline__ Progress await_end(QueueControl const* control, EndCall const& end,
                                              std::uint64_t epoch) {
  LookWords words(end.side == queue::Side::sender ? end.view.receiver_gone : end.view.sender_gone);
  std::uint64_t begin = 0;
  for (std::uint32_t polls = 1;; ++polls) {
    // Whether the other side has gone is a load more: now and then.
    Progress const progress = polls % 64 == 0 ? queue::await_message(words, end.view, end.side, epoch)
                                              : queue::look_at_message(words, end.view, end.side, epoch);
    if (progress != Progress::pending) return progress;
    if (polls % 1024 != 0) continue;
    std::uint64_t now = 0;
    HOSTLESS_READ_NANOSECONDS(now);
    if (begin == 0) begin = now;
    std::uint64_t const limit = std::uint64_t{1000000} * load_host(&control->limit_ms);
    if (load_host(&control->ended) != 0 || now - begin > limit) return Progress::lost;
  }
}

/// One block; a thread for each end looks, then all of them take out of slots.
template <int capacity>
__global__ void wait_kernel(HOSTLESS_PARAMETER QueueCall<capacity> const call) {
  __shared__ std::uint32_t is_lost;
  int const mine = static_cast<int>(threadIdx.x);
  bool const waits = mine < call.count;
  std::uint64_t const epoch = waits ? load_strong(&call.end[mine].own->starts) : 0;  // both loads at once
  if (load_strong(call.queue.lost) != 0) return;  // all of them: no other kernel of this stream runs
  if (mine == 0) is_lost = 0;
  __syncthreads();
  if (waits) {
    EndCall const& end = call.end[mine];
    Progress const progress = await_end(call.queue.control, end, epoch);
    if (progress != Progress::done) is_lost = static_cast<std::uint32_t>(progress);
    fence_system();
  }
  __syncthreads();
  if (is_lost != 0) {
    if (mine == 0) {
      store_strong(call.queue.lost, 1u);
      store_strong(&call.queue.control->told, is_lost);
      fence_system();
    }
    return;
  }
  for (int k = 0; call.takes != 0 && k < call.count; ++k) {
    EndCall const& end = call.end[k];
    if (!queue::is_taken_out(end.view, end.side)) continue;
    std::uint64_t const of_end = load_strong(&end.own->starts);
    GridWords words(end.own, {}, of_end);
    queue::take_message(words, end.view, of_end);
  }
  if (waits) store_strong(&call.end[mine].own->waits, epoch);
}

// Said, because AMD's compiler leaves out what is only pointed to.
template __global__ void start_kernel<few_ends>(HOSTLESS_PARAMETER QueueCall<few_ends> const);
template __global__ void start_kernel<most_ends>(HOSTLESS_PARAMETER QueueCall<most_ends> const);
template __global__ void wait_kernel<few_ends>(HOSTLESS_PARAMETER QueueCall<few_ends> const);
template __global__ void wait_kernel<most_ends>(HOSTLESS_PARAMETER QueueCall<most_ends> const);

__global__ void lose_other_kernel(SideWords* side) {
  fence_system();
  atomicOr_system(&side->guard, 1u);
  while (load_strong(&side->guard) != 1u) {  // bounded: what moves bytes waits for nobody
  }
  fence_system();
  store_strong(&side->other_gone, std::uint64_t{1});
}

template <class T>
__device__ void reduce_items(StreamReduction const& what) {
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
                              HOSTLESS_PARAMETER StreamReduction const what) {
  if (load_strong(queue.lost) != 0) return;
  switch (what.datatype) {
    case Datatype::f32:
      return reduce_items<float>(what);
    case Datatype::f64:
      return reduce_items<double>(what);
    case Datatype::i32:
      return reduce_items<std::int32_t>(what);
    case Datatype::i64:
      return reduce_items<std::int64_t>(what);
    case Datatype::byte:
      return reduce_items<std::uint8_t>(what);
  }
}

struct PlusEach {
  std::uint8_t plus;
  __device__ std::uint8_t operator()(std::uint8_t value) const {
    return static_cast<std::uint8_t>(value + plus);
  }
  __device__ std::uint32_t operator()(std::uint32_t four) const {  // no byte carries into the next
    std::uint32_t const all = 0x01010101u * plus;
    return ((four & 0x7f7f7f7fu) + (all & 0x7f7f7f7fu)) ^ ((four ^ all) & 0x80808080u);
  }
  __device__ uint4 operator()(uint4 value) const {
    return {(*this)(value.x), (*this)(value.y), (*this)(value.z), (*this)(value.w)};
  }
};

__global__ void add_to_bytes_kernel(std::byte* to, std::byte const* from, std::size_t bytes,
                                    std::uint8_t plus) {
  pass_bytes({static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x)}, to, from, bytes, PlusEach{plus});
}

template <class Kernel, class... Parameters>
void launch_on(HOSTLESS_GPU(Stream_t) stream, Kernel* kernel, int blocks, int threads,
               Parameters... parameters) {
  void* all[] = {&parameters...};
  check(HOSTLESS_GPU(LaunchKernel)(reinterpret_cast<void const*>(kernel), dim3(static_cast<unsigned>(blocks)),
                                   dim3(static_cast<unsigned>(threads)), all, 0, stream),
        "launching a kernel of messages");
}

constexpr std::size_t item_bytes = 16;

int threads_of(std::size_t most_bytes) {
  constexpr std::size_t wave = 64;
  std::size_t const wanted = (most_bytes / item_bytes + wave - 1) / wave * wave;
  return static_cast<int>(std::clamp<std::size_t>(wanted, wave, block_threads));
}

template <int capacity>
void start_some(HOSTLESS_GPU(Stream_t) stream, QueueWords const& queue, std::span<EndCall const> ends) {
  QueueCall<capacity> call;
  call.queue = queue;
  call.count = static_cast<std::int32_t>(ends.size());
  std::int32_t blocks = 0;
  std::size_t most = 0;
  for (std::size_t k = 0; k < ends.size(); ++k) {
    call.end[k] = ends[k];
    call.end[k].first_block = blocks;
    blocks += ends[k].blocks;
    most = std::max(most, ends[k].view.bytes);
  }
  launch_on(stream, &start_kernel<capacity>, blocks, threads_of(most), call);
}

template <int capacity>
void wait_some(HOSTLESS_GPU(Stream_t) stream, QueueWords const& queue, std::span<EndCall const> ends) {
  QueueCall<capacity> call;
  call.queue = queue;
  call.count = static_cast<std::int32_t>(ends.size());
  std::size_t most = 0;
  for (std::size_t k = 0; k < ends.size(); ++k) {
    call.end[k] = ends[k];
    if (!queue::is_taken_out(ends[k].view, ends[k].side)) continue;
    call.takes = 1;
    most = std::max(most, ends[k].view.bytes);
  }
  launch_on(stream, &wait_kernel<capacity>, 1, threads_of(most), call);
}

}  // namespace

void launch_start(HOSTLESS_GPU(Stream_t) stream, QueueWords const& queue, std::span<EndCall const> ends) {
  ends.size() <= few_ends ? start_some<few_ends>(stream, queue, ends)
                          : start_some<most_ends>(stream, queue, ends);
}
void launch_wait(HOSTLESS_GPU(Stream_t) stream, QueueWords const& queue, std::span<EndCall const> ends) {
  ends.size() <= few_ends ? wait_some<few_ends>(stream, queue, ends)
                          : wait_some<most_ends>(stream, queue, ends);
}
void launch_reduce(HOSTLESS_GPU(Stream_t) stream, QueueWords const& queue, StreamReduction const& what,
                   int most_blocks) {
  auto const wanted = (what.count + block_threads - 1) / block_threads;
  auto const blocks = std::clamp<std::size_t>(wanted, 1, static_cast<std::size_t>(most_blocks));
  launch_on(stream, &reduce_kernel, static_cast<int>(blocks), block_threads, queue, what);
}
void launch_lose_other(HOSTLESS_GPU(Stream_t) stream, SideWords* side) {
  launch_on(stream, &lose_other_kernel, 1, 1, side);
}
void launch_add_to_bytes(HOSTLESS_GPU(Stream_t) stream, std::byte* to, std::byte const* from,
                         std::size_t bytes, std::uint8_t plus, int most_blocks) {
  launch_on(stream, &add_to_bytes_kernel, blocks_of(bytes, 2 * most_blocks), threads_of(bytes), to, from,
            bytes, plus);
}

void load_message_kernels() {
  for (void const* const kernel :
       {reinterpret_cast<void const*>(&start_kernel<few_ends>),
        reinterpret_cast<void const*>(&start_kernel<most_ends>),
        reinterpret_cast<void const*>(&wait_kernel<few_ends>),
        reinterpret_cast<void const*>(&wait_kernel<most_ends>), reinterpret_cast<void const*>(&reduce_kernel),
        reinterpret_cast<void const*>(&lose_other_kernel)})
    load_kernel(kernel);
}

int blocks_of(std::size_t bytes, int most_blocks) {
  constexpr std::size_t of_block = item_bytes * block_threads;  // one item a thread
  std::size_t const wanted = (bytes + of_block - 1) / of_block;
  return static_cast<int>(std::clamp<std::size_t>(wanted, 1, static_cast<std::size_t>(most_blocks)));
}

}  // namespace hostless::gpu
