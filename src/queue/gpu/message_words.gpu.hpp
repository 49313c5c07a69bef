#pragma once
// Who executes the text of messages (queue/message_text.hpp) on a GPU: a start by the blocks that its message
// has of a grid, a look of a wait by one thread, what is taken out of a slot by one block.

#include "device/runtime.hpp"
#include "queue/message_text.hpp"

namespace hostless::gpu {

/// One side of a message, in the memory of its GPU; all 0 in the beginning. What others store or count in
/// lies apart from what only kernels of this side use.
struct SideWords {
  alignas(128) unsigned long long count;
  alignas(128) std::uint64_t arrived;
  std::uint64_t full[2], sent, taken, other_gone;
  /// Bit 0: the other side has closed its buffer; 2 for each kernel of this side that may be moving its
  /// bytes.
  alignas(128) std::uint32_t guard;
  alignas(128) std::uint64_t starts;  ///< epochs
  std::uint64_t waits;
  std::uint64_t answer, answered;  ///< what the deciding block of a start has found, in which epoch
  std::uint32_t entered, left;     ///< blocks of a start
};

// Volatile: strong, of the whole system, and eight bytes at once, on both vendors' GPUs.
template <class T>
__device__ __forceinline__ T load_strong(T const* from) {
  return *static_cast<T const volatile*>(from);
}
template <class T>
__device__ __forceinline__ void store_strong(T* to, T value) {
  *static_cast<T volatile*>(to) = value;
}

/// Which of the blocks that share a piece of work this one is.
struct SharedWork {
  int block = 0, blocks = 1;
};

/// count items, several of a thread at once: what is loaded may lie on another GPU.
template <class T, class Change>
__device__ __forceinline__ void pass_items(SharedWork const& work, T* to, T const* from, std::size_t count,
                                           Change const& change) {
  constexpr int together = 4;
  std::size_t const step = static_cast<std::size_t>(work.blocks) * blockDim.x;
  for (std::size_t at = static_cast<std::size_t>(work.block) * blockDim.x + threadIdx.x; at < count;
       at += together * step) {
    T value[together];
    HOSTLESS_UNROLL
    for (int u = 0; u < together; ++u)
      if (at + u * step < count) value[u] = from[at + u * step];
    HOSTLESS_UNROLL
    for (int u = 0; u < together; ++u)
      if (at + u * step < count) to[at + u * step] = change(value[u]);
  }
}

/// bytes anywhere, by the widest items that lie alike on both sides. `change` is called with items of 16, 4
/// and 1 bytes.
template <class Change>
__device__ __forceinline__ void pass_bytes(SharedWork const& work, std::byte* to, std::byte const* from,
                                           std::size_t bytes, Change const& change) {
  auto const a = reinterpret_cast<std::uintptr_t>(to), b = reinterpret_cast<std::uintptr_t>(from);
  std::size_t const width = ((a ^ b) & 15u) == 0 ? 16 : ((a ^ b) & 3u) == 0 ? 4 : 1;
  std::size_t head = (width - (a & (width - 1))) & (width - 1);
  if (head > bytes) head = bytes;
  std::size_t const items = (bytes - head) / width, tail = head + items * width;
  auto const single = [&](std::size_t first, std::size_t end) {
    pass_items(work, reinterpret_cast<std::uint8_t*>(to) + first,
               reinterpret_cast<std::uint8_t const*>(from) + first, end - first, change);
  };
  if (width == 16) {
    pass_items(work, reinterpret_cast<uint4*>(to + head), reinterpret_cast<uint4 const*>(from + head), items,
               change);
  } else if (width == 4) {
    pass_items(work, reinterpret_cast<std::uint32_t*>(to + head),
               reinterpret_cast<std::uint32_t const*>(from + head), items, change);
  } else {
    single(head, tail);
  }
  single(0, head);
  single(tail, bytes);
}

struct Unchanged {
  template <class T>
  __device__ __forceinline__ T operator()(T value) const {
    return value;
  }
};

/// By all threads of the blocks that a message has. All calls are made by all of them.
class GridWords {
 public:
  /// starts: of `own`, as all blocks find it.
  __device__ __forceinline__ GridWords(SideWords* own, SharedWork const& work, std::uint64_t starts)
      : own_(own), work_(work), starts_(starts) {}

  __device__ __forceinline__ std::uint64_t own(std::uint64_t const*) const { return starts_; }
  // These two by the one thread of `once`, behind its fence.
  __device__ __forceinline__ void set_own(std::uint64_t* word, std::uint64_t value) const {
    store_strong(word, value);
  }
  __device__ __forceinline__ void store(std::uint64_t* word, std::uint64_t value) const {
    store_strong(word, value);
  }
  __device__ __forceinline__ std::uint64_t add(std::uint64_t* word, std::uint64_t value) {
    return decide(word, value);
  }
  __device__ __forceinline__ bool move(std::byte* to, std::byte const* from, std::size_t bytes) {
    if (!has_decided_) decide(nullptr, 0);
    if (is_closed_) return false;
    copy(to, from, bytes);
    return true;
  }
  __device__ __forceinline__ void copy(std::byte* to, std::byte const* from, std::size_t bytes) {
    has_copied_ = true;
    pass_bytes(work_, to, from, bytes, Unchanged{});
  }
  template <class Work>
  __device__ __forceinline__ void once(Work const& work) {
    __syncthreads();
    if (threadIdx.x != 0) return;
    if (has_copied_) fence_system();
    if (work_.blocks > 1) {
      if (atomicAdd(&own_->left, 1u) + 1 != static_cast<unsigned>(work_.blocks)) return;
      own_->left = own_->entered = 0;
      if (has_copied_) fence_system();
    }
    work();
    if (has_decided_) atomicAdd_system(&own_->guard, ~1u);  // 2 less
  }

 private:
  /// The first block that comes counts, and enters the guard of what the other side may close; the others
  /// hear of it. That one runs already: nobody waits for a block that has no room.
  __device__ __forceinline__ std::uint64_t decide(std::uint64_t* word, std::uint64_t value) {
    __shared__ std::uint64_t found;
    if (threadIdx.x == 0) {
      if (work_.blocks == 1 || atomicAdd(&own_->entered, 1u) == 0) {
        fence_system();
        std::uint32_t const guard = atomicAdd_system(&own_->guard, 2u);
        std::uint64_t before = 0;
        if (word != nullptr)
          before = atomicAdd_system(reinterpret_cast<unsigned long long*>(word),
                                    static_cast<unsigned long long>(value));
        fence_system();
        found = before << 1 | (guard & 1u);
        if (work_.blocks > 1) {
          store_strong(&own_->answer, found);
          fence_gpu();
          store_strong(&own_->answered, starts_ + 1);
        }
      } else {
        while (load_strong(&own_->answered) != starts_ + 1) {
        }
        fence_system();
        found = load_strong(&own_->answer);
      }
    }
    __syncthreads();
    has_decided_ = true;
    is_closed_ = (found & 1u) != 0;
    return found >> 1;
  }

  SideWords* own_;
  SharedWork work_;
  std::uint64_t starts_;
  bool has_decided_ = false, is_closed_ = false, has_copied_ = false;
};

/// By one thread, which fences when it has seen what it waits for.
class LookWords {
 public:
  __device__ __forceinline__ explicit LookWords(std::uint64_t const* other_gone) : other_gone_(other_gone) {}
  __device__ __forceinline__ std::uint64_t load(std::uint64_t const* word) const {
    std::uint64_t const found = load_strong(word);
    if (word == other_gone_ && found != 0) fence_system();  // what came before it is seen by the next load
    return found;
  }

 private:
  std::uint64_t const* other_gone_;
};

}  // namespace hostless::gpu
