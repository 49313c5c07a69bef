#pragma once
// Who executes the text of messages (queue/message_text.hpp) on a GPU. A start is executed by the blocks that
// its message has of a grid, each for a piece of the bytes; a look of a wait by one thread; slots are awaited
// and taken out by all threads of a wait.
//
// No block waits for another one: where blocks together must have done something, each adds its share to a
// word, and all shares together are an epoch.
//
// A fence of the whole system costs 1.5 us (H100, whatever was stored before it), so there are few: one
// between the bytes that another GPU stores into a buffer and what says that they are there, and none around
// slots, each of whose words says which epoch it has. What acquires is a load or an atomic, which costs
// nothing beside one that does not. What a receiver has read of a slot is read when its next start says so,
// because a kernel lies between.

#include "device/runtime.hpp"
#include "queue/message_text.hpp"

namespace hostless::gpu {

/// Of a message: blocks of a start.
constexpr int most_pieces = 264;
constexpr int share_bits = 16;

/// One side of a message, in the memory of its GPU; all 0 in the beginning. What others store or count in
/// lies apart from what only kernels of this side use.
struct SideWords {
  alignas(128) unsigned long long count[most_pieces];  ///< a sender's
  alignas(128) std::uint64_t arrived;                  ///< in shares, as `sent`
  std::uint64_t sent, taken, other_gone;
  /// Bit 0: one of both sides has gone; 2 for each block of a start of this side that may be moving bytes, or
  /// loading what it will send.
  alignas(128) std::uint32_t guard;
  /// Bit 0: this side has gone; 2 for each block of a wait, or of what follows it, that may store into this
  /// side's buffer. Apart from `guard`, because what has come is taken out though its sender has gone.
  std::uint32_t takers;
  alignas(128) std::uint64_t starts;  ///< in shares
  std::uint64_t waits;                ///< in shares
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
__device__ __forceinline__ void add_share(std::uint64_t* to, std::uint64_t share) {
  atomicAdd_system(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(share));
}

/// Which of the blocks that share a piece of work this one is.
struct SharedWork {
  int block = 0, blocks = 1;
  int threads = 0;  ///< of a block, that have a part of it; it may have more, which have none
  /// The shares of all blocks are an epoch.
  __device__ __forceinline__ std::uint64_t share() const {
    return block == 0 ? (std::uint64_t{1} << share_bits) - static_cast<std::uint64_t>(blocks - 1) : 1;
  }
};

/// Items that a thread loads before it stores any: they may lie on another GPU.
constexpr int together = 4;

/// By one thread. True: nobody has closed it, or all who want to wait for leave_guard.
__device__ __forceinline__ bool enter_guard(std::uint32_t* guard) {
  return (atomicAdd_system(guard, 2u) & 1u) == 0;
}
/// What its block has loaded and stored lies before.
__device__ __forceinline__ void leave_guard(std::uint32_t* guard) { atomicAdd_system(guard, ~1u); }

struct NothingAhead {
  template <class T>
  __device__ __forceinline__ T item(bool, int, T const* from) const {
    return *from;
  }
};

/// count items, by indices of a type that holds twice as many. ahead.item(whether it is the first time
/// around, which one of a thread's, where it lies).
template <class Index, class T, class Change, class Ahead>
__device__ __forceinline__ void pass_items(SharedWork const& work, T* to, T const* from, Index count,
                                           Change const& change, Ahead const& ahead) {
  auto const threads = static_cast<unsigned>(work.threads);
  if (threadIdx.x >= threads) return;
  Index const step = static_cast<Index>(work.blocks) * threads;
  bool is_first = true;
  for (Index at = static_cast<Index>(work.block) * threads + threadIdx.x; at < count; at += together * step) {
    T value[together];
    HOSTLESS_UNROLL
    for (int u = 0; u < together; ++u)
      if (at + u * step < count) value[u] = ahead.item(is_first, u, from + at + u * step);
    is_first = false;
    HOSTLESS_UNROLL
    for (int u = 0; u < together; ++u)
      if (at + u * step < count) to[at + u * step] = change(value[u]);
  }
}

/// Whether bytes can be passed by 16 at once from the first to the last.
__device__ __forceinline__ bool are_whole_items(void const* a, void const* b) {
  return ((reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b)) & 15u) == 0;
}

/// bytes anywhere, by the widest items that lie alike on both sides. `change` is called with items of 16, 4
/// and 1 bytes.
template <class Change, class Ahead = NothingAhead>
__device__ __forceinline__ void pass_bytes(SharedWork const& work, std::byte* to, std::byte const* from,
                                           std::size_t bytes, Change const& change,
                                           Ahead const& ahead = Ahead()) {
  auto const a = reinterpret_cast<std::uintptr_t>(to), b = reinterpret_cast<std::uintptr_t>(from);
  std::size_t const width = ((a ^ b) & 15u) == 0 ? 16 : ((a ^ b) & 3u) == 0 ? 4 : 1;
  std::size_t head = (width - (a & (width - 1))) & (width - 1);
  if (head > bytes) head = bytes;
  std::size_t const items = (bytes - head) / width, tail = head + items * width;
  constexpr std::size_t many = std::size_t{1} << 30;
  auto const single = [&](std::size_t begin, std::size_t end) {
    if (begin == end) return;
    pass_items(work, reinterpret_cast<std::uint8_t*>(to) + begin,
               reinterpret_cast<std::uint8_t const*>(from) + begin, end - begin, change, NothingAhead());
  };
  auto* const to16 = reinterpret_cast<uint4*>(to + head);
  auto const* const from16 = reinterpret_cast<uint4 const*>(from + head);
  if (width == 16 && items < many) {  // half the instructions: short messages wait for those
    pass_items(work, to16, from16, static_cast<std::uint32_t>(items), change, ahead);
  } else if (width == 16) {
    pass_items(work, to16, from16, items, change, ahead);
  } else if (width == 4) {
    pass_items(work, reinterpret_cast<std::uint32_t*>(to + head),
               reinterpret_cast<std::uint32_t const*>(from + head), items, change, NothingAhead());
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

// ---- slots: words of eight bytes of the message and the epoch

constexpr std::size_t bytes_of_word = 8, slot_line = 256;  ///< slots have whole lines
/// One at least: who sends no bytes says that he has come.
HOSTLESS_HOST_DEVICE std::size_t words_of_slot(std::size_t bytes) {
  return bytes == 0 ? 1 : (bytes + bytes_of_word - 1) / bytes_of_word;
}

/// The eight bytes from `at` on, or those that are left of them.
__device__ __forceinline__ uint2 load_eight(std::byte const* from, std::size_t at, std::size_t bytes) {
  std::size_t const left = at < bytes ? bytes - at : 0;
  if (left >= bytes_of_word && (reinterpret_cast<std::uintptr_t>(from) & 7u) == 0)
    return *reinterpret_cast<uint2 const*>(from + at);
  std::uint64_t value = 0;
  for (std::size_t k = 0; k < bytes_of_word && k < left; ++k)
    value |= static_cast<std::uint64_t>(from[at + k]) << (8 * k);
  return {static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32)};
}
__device__ __forceinline__ void store_eight(std::byte* to, std::size_t at, std::size_t bytes, uint2 value) {
  std::size_t const left = at < bytes ? bytes - at : 0;
  if (left >= bytes_of_word && (reinterpret_cast<std::uintptr_t>(to) & 7u) == 0) {
    *reinterpret_cast<uint2*>(to + at) = value;
    return;
  }
  std::uint64_t const both = static_cast<std::uint64_t>(value.y) << 32 | value.x;
  for (std::size_t k = 0; k < bytes_of_word && k < left; ++k)
    to[at + k] = static_cast<std::byte>(both >> (8 * k) & 0xffu);
}

/// Words of a slot that a thread of a start has at once.
constexpr unsigned together_in_slot = 2;

/// The first items that a sender's thread will store, loaded while it does not know yet where to and whether.
class LoadedAhead {
 public:
  /// Loads nothing yet.
  __device__ __forceinline__ LoadedAhead(queue::MessageView const& m, queue::Side side,
                                         SharedWork const& work)
      : from_(m.from), bytes_(m.bytes) {
    auto const threads = static_cast<unsigned>(work.threads);
    bool const has_part = threadIdx.x < threads;
    step_ = static_cast<unsigned>(work.blocks) * threads;
    first_ = has_part ? static_cast<unsigned>(work.block) * threads + threadIdx.x : ~0u;
    if (side != queue::Side::sender || !has_part) return;
    has_words_ = m.mode == queue::Mode::small;
    has_items_ = !has_words_ && are_whole_items(m.from, m.to);
    is_even_ = ((reinterpret_cast<std::uintptr_t>(from_) | bytes_) & 7u) == 0;
  }
  __device__ __forceinline__ void load() {
    if (has_words_) {
      HOSTLESS_UNROLL
      for (unsigned u = 0; u < together_in_slot; ++u) {
        uint2 const word = word_at(first_ + u * step_);
        items_[u].x = word.x, items_[u].y = word.y;
      }
    } else if (has_items_) {
      HOSTLESS_UNROLL
      for (unsigned u = 0; u < together; ++u)
        if (first_ + u * step_ < bytes_ / sizeof(uint4))
          items_[u] = reinterpret_cast<uint4 const*>(from_)[first_ + u * step_];
    }
  }
  /// Of pass_items.
  __device__ __forceinline__ uint4 item(bool is_first, int u, uint4 const* from) const {
    return is_first && has_items_ ? items_[u] : *from;
  }
  /// Eight bytes of a slot's word, the u-th of this thread's first ones or any.
  __device__ __forceinline__ uint2 word(unsigned u) const { return {items_[u].x, items_[u].y}; }
  __device__ __forceinline__ uint2 word_at(unsigned at) const {
    std::size_t const begin = std::size_t{at} * bytes_of_word;
    if (begin >= bytes_) return {0, 0};
    return is_even_ ? *reinterpret_cast<uint2 const*>(from_ + begin) : load_eight(from_, begin, bytes_);
  }
  /// Beyond all words, of a thread that has none.
  __device__ __forceinline__ unsigned first() const { return first_; }
  __device__ __forceinline__ unsigned step() const { return step_; }

 private:
  std::byte const* from_;
  std::size_t bytes_;
  unsigned step_, first_;
  uint4 items_[together];
  bool has_words_ = false, has_items_ = false, is_even_ = false;
};

// ---- who executes the text

/// By all threads of a block, which has a piece of a message. All calls are made by all of them.
class PieceWords {
 public:
  /// starts: of `own`, as a block finds it that has not added its share. is_open: of a sender, whose block has
  /// entered the guard.
  __device__ __forceinline__ PieceWords(SideWords* own, SharedWork const& work, std::uint64_t starts,
                                        LoadedAhead const& ahead, queue::Side side, bool fences_count,
                                        bool is_open)
      : own_(own),
        work_(work),
        epochs_(starts >> share_bits),
        ahead_(ahead),
        side_(side),
        fences_count_(fences_count),
        has_entered_(side == queue::Side::sender),
        is_closed_(!is_open) {}

  __device__ __forceinline__ std::uint64_t own(std::uint64_t const*) const { return epochs_; }
  // These three by the one thread of `once`, behind its fence.
  __device__ __forceinline__ void set_own(std::uint64_t* word, std::uint64_t) const {
    add_share(word, work_.share());
  }
  __device__ __forceinline__ void reach(std::uint64_t* word, std::uint64_t) const {
    add_share(word, work_.share());
  }
  __device__ __forceinline__ void store(std::uint64_t* word, std::uint64_t value) const {
    store_strong(word, value);
  }
  /// Of the piece.
  __device__ __forceinline__ std::uint64_t add(std::uint64_t* words, std::uint64_t) {
    __shared__ std::uint64_t found;
    if (threadIdx.x == 0) {
      // A sender has entered; a receiver does while its count is under way.
      bool const is_open = side_ == queue::Side::sender ? !is_closed_ : enter_guard(&own_->guard);
      found = count_start(words + work_.block) << 1 | (is_open ? 0u : 1u);
    }
    __syncthreads();
    has_entered_ = true;
    is_closed_ = (found & 1u) != 0;
    return found >> 1;
  }
  __device__ __forceinline__ bool move(std::byte* to, std::byte const* from, std::size_t bytes) {
    if (is_closed_) return false;
    has_moved_ = true;
    pass_bytes(work_, to, from, bytes, Unchanged{}, ahead_);
    return true;
  }
  __device__ __forceinline__ void put(std::byte* slot, std::byte const*, std::size_t bytes, std::uint64_t*,
                                      std::uint64_t epoch) const {
    if (is_closed_) return;
    // Without bytes it is for order alone: whatever this stream has stored, wherever, comes before it.
    if (bytes == 0) fence_system();
    auto* const to = reinterpret_cast<FlaggedWord*>(slot);
    auto const words = static_cast<unsigned>(words_of_slot(bytes)), step = ahead_.step();
    bool is_first = true;
    for (unsigned at = ahead_.first(); at < words; at += together_in_slot * step) {
      uint2 value[together_in_slot];
      HOSTLESS_UNROLL
      for (unsigned u = 0; u < together_in_slot; ++u)
        value[u] = is_first ? ahead_.word(u) : ahead_.word_at(at + u * step);
      is_first = false;
      HOSTLESS_UNROLL
      for (unsigned u = 0; u < together_in_slot; ++u)
        if (at + u * step < words)
          store_flagged_word(to + at + u * step, value[u].x, value[u].y, static_cast<std::uint32_t>(epoch));
    }
  }
  template <class Work>
  __device__ __forceinline__ void once(Work const& work) {
    __syncthreads();
    if (threadIdx.x != 0) return;
    if (has_moved_) fence_system();
    work();
    if (has_entered_) leave_guard(&own_->guard);
  }

 private:
  /// What the first start has done before is seen by the second one, which moves.
  __device__ __forceinline__ std::uint64_t count_start(std::uint64_t* count) const {
    if (side_ == queue::Side::sender) {  // the word is of this GPU
      std::uint64_t const now = load_acquiring(count);
      if ((now & 1u) != 0) {  // second, whatever comes: nobody will look for what this GPU has done
        atomicAdd_system(reinterpret_cast<unsigned long long*>(count), 1ull);
        return now;
      }
    }
    if (side_ == queue::Side::sender || fences_count_) fence_system();
    std::uint64_t const before = atomicAdd_system(reinterpret_cast<unsigned long long*>(count), 1ull);
    if ((before & 1u) != 0) static_cast<void>(load_acquiring(count));  // of what the first has released
    return before;
  }

  SideWords* own_;
  SharedWork work_;
  std::uint64_t epochs_;
  LoadedAhead const& ahead_;
  queue::Side side_;
  bool fences_count_, has_entered_, is_closed_, has_moved_ = false;
};

/// By one thread.
class LookWords {
 public:
  __device__ __forceinline__ std::uint64_t load(std::uint64_t const* word) const {
    return load_acquiring(word);
  }
  __device__ __forceinline__ std::uint64_t reached(std::uint64_t const* word) const {
    return load_acquiring(word) >> share_bits;
  }
};

}  // namespace hostless::gpu
