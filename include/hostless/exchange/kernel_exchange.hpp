#pragma once
// An exchange inside kernels of your own, by the blocks of the kernel: `start` sends what a block has,
// `await` passes on what goes through this rank and brings the block's ghosts. Device functions without any
// other header but kernel_view.hpp: they compile under NVRTC, as CUDA and as HIP.
//
// All blocks of all ranks' kernels must be resident at once (a cooperative launch sees to that), as many as
// the exchange was bound with, in one dimension; each calls start and await in turn, all threads, equally
// often on all ranks. Nothing stands between a block's start and its await but work of yours: no wait for
// another block.

#include "hostless/exchange/kernel_view.hpp"

namespace hostless::kernel {

constexpr unsigned poisoned_epoch = 0x80000000u;

/// Epochs have 31 bits and alternate their parity, also where they begin again.
__device__ inline unsigned next_exchange(unsigned epoch) {
  return epoch + 1 == poisoned_epoch ? 2 : epoch + 1;
}

// Volatile: strong, of the whole system, and eight bytes at once, on both vendors' GPUs.
__device__ inline unsigned long long load_half(unsigned long long const* from) {
  return *static_cast<unsigned long long const volatile*>(from);
}
__device__ inline void store_half(unsigned long long* to, unsigned long long value) {
  *static_cast<unsigned long long volatile*>(to) = value;
}
__device__ inline void store_bits(ItemWord* to, unsigned long long bits, unsigned epoch) {
  unsigned long long const mark = static_cast<unsigned long long>(epoch) << 32;
  store_half(&to->half[0], mark | (bits & 0xffffffffull));
  store_half(&to->half[1], mark | (bits >> 32));
}
/// found() is the epoch of what was loaded last, or of what it is not. False: it never came.
template <class Found>
__device__ inline bool await_epoch(KernelExchange const& x, unsigned epoch, Found const& found) {
  long long const begin = clock64();
  for (unsigned polls = 1;; ++polls) {
    unsigned const now = found();
    if (now == epoch) return true;
    if ((now & poisoned_epoch) != 0) return false;
    if (polls % 1024 == 0 && static_cast<unsigned long long>(clock64() - begin) > x.deadline_cycles)
      return false;
  }
}
__device__ inline bool await_bits(KernelExchange const& x, ItemWord const* from, unsigned epoch,
                                  unsigned long long& bits) {
  return await_epoch(x, epoch, [&] {
    unsigned long long const low = load_half(&from->half[0]), high = load_half(&from->half[1]);
    unsigned const first = static_cast<unsigned>(low >> 32), second = static_cast<unsigned>(high >> 32);
    bits = (low & 0xffffffffull) | high << 32;
    return first == second ? first : (first | second) & poisoned_epoch;
  });
}

__device__ inline bool fits(KernelExchange const& x) {
  return x.magic == exchange_magic && x.version == exchange_version && x.size == sizeof(KernelExchange) &&
         gridDim.x == static_cast<unsigned>(x.blocks);
}
/// What this block goes through, in words: use(copy, number of the word in its item).
template <class Use>
__device__ inline void each_of(KernelExchange const& x, int level, int end_level, Use const& use) {
  int const* const first = x.first + static_cast<int>(blockIdx.x) * x.levels;
  long long const begin = static_cast<long long>(first[level]) * x.words;
  long long const end = static_cast<long long>(first[end_level]) * x.words;
  for (long long at = begin + threadIdx.x; at < end; at += blockDim.x)
    use(x.copies[at / x.words], static_cast<int>(at % x.words));
}
__device__ inline ItemWord* target_of(KernelExchange const& x, ItemCopy const& copy, int word, int parity) {
  auto const& memory = copy.to_staging ? x.staged : x.ghosts;
  return memory[parity][copy.target] + static_cast<long long>(copy.to) * x.words + word;
}
/// Where a ghost lies in what `await` is given, in items.
__device__ inline int offset_of_ghost(KernelExchange const& x, int ghost) {
  if (x.owned < 0) return ghost;
  return ghost < x.ghosts_below ? ghost - x.ghosts_below : x.owned + ghost - x.ghosts_below;
}
/// Whoever gives up tells everybody: in all that this block would ever store.
__device__ inline void give_up(KernelExchange const& x) {
  *static_cast<unsigned volatile*>(x.lost) = 1;
  int const block = static_cast<int>(blockIdx.x);
  for (int parity = 0; parity < 2; ++parity) {
    each_of(x, 0, x.levels, [&](ItemCopy const& copy, int word) {
      store_bits(target_of(x, copy, word, parity), 0, poisoned_epoch);
    });
    for (int at = x.first_answer[block] + static_cast<int>(threadIdx.x); at < x.first_answer[block + 1];
         at += static_cast<int>(blockDim.x))
      store_half(x.answered[parity][x.answers[at].target] + x.answers[at].slot, poisoned_epoch);
  }
}
/// By all threads: true for all, or the exchange is given up.
__device__ inline bool agreed(KernelExchange const& x, bool whole) {
  if (__syncthreads_or(whole ? 0 : 1) == 0) return true;
  give_up(x);
  return false;
}

/// Sends the owned items that this block has, after its threads have met. send: [owned items of x.words * 8
/// bytes], those of this block written by it.
///
/// False, for all threads: a rank is lost, now or before, or the kernel was not made for this exchange; then
/// nothing is sent and `await` says the same.
__device__ inline bool start(KernelExchange const& x, void const* send) {
  bool whole = fits(x) && *static_cast<unsigned volatile*>(x.lost) == 0;
  if (__syncthreads_or(whole ? 0 : 1) != 0) return false;
  int const block = static_cast<int>(blockIdx.x);
  unsigned const epoch = next_exchange(x.ended[block].last), before = x.ended[block].before;
  int const parity = static_cast<int>(epoch & 1u);
  unsigned long long const* const answered = x.answered[parity][x.rank];
  for (int at = x.first_awaited[block] + static_cast<int>(threadIdx.x);
       before != 0 && whole && at < x.first_awaited[block + 1]; at += static_cast<int>(blockDim.x))
    whole = await_epoch(x, before, [&] { return static_cast<unsigned>(load_half(answered + at)); });
  if (!agreed(x, whole)) return false;
  auto const* const items = static_cast<unsigned long long const*>(send);
  each_of(x, 0, 1, [&](ItemCopy const& copy, int word) {
    store_bits(target_of(x, copy, word, parity), items[static_cast<long long>(copy.from) * x.words + word],
               epoch);
  });
  return true;
}

/// After `start`: passes on, takes the ghosts of this block to `receive` (where the plan has them: an array
/// of their own, or around the owned items), and answers. They are visible to this block; to others after a
/// barrier of yours.
///
/// False, for all threads: as above.
__device__ inline bool await(KernelExchange const& x, void* receive) {
  bool whole = fits(x) && *static_cast<unsigned volatile*>(x.lost) == 0;
  if (__syncthreads_or(whole ? 0 : 1) != 0) return false;
  int const block = static_cast<int>(blockIdx.x);
  unsigned const last = x.ended[block].last, epoch = next_exchange(last);
  int const parity = static_cast<int>(epoch & 1u);
  unsigned long long bits = 0;
  for (int level = 1; level < x.levels; ++level)  // what is awaited is on lower levels
    each_of(x, level, level + 1, [&](ItemCopy const& copy, int word) {
      whole = whole &&
              await_bits(x, x.staged[parity][x.rank] + static_cast<long long>(copy.from) * x.words + word,
                         epoch, bits);
      if (whole) store_bits(target_of(x, copy, word, parity), bits, epoch);
    });
  auto* const items = static_cast<unsigned long long*>(receive);
  long long const end = static_cast<long long>(x.first_landing[block + 1]) * x.words;
  for (long long at = static_cast<long long>(x.first_landing[block]) * x.words + threadIdx.x; at < end;
       at += blockDim.x) {
    int const ghost = x.landings[at / x.words], word = static_cast<int>(at % x.words);
    int const offset = offset_of_ghost(x, ghost);
    whole = whole && await_bits(x, x.ghosts[parity][x.rank] + static_cast<long long>(ghost) * x.words + word,
                                epoch, bits);
    if (whole) items[static_cast<long long>(offset) * x.words + word] = bits;
  }
  if (!agreed(x, whole)) return false;
  for (int at = x.first_answer[block] + static_cast<int>(threadIdx.x); at < x.first_answer[block + 1];
       at += static_cast<int>(blockDim.x))
    store_half(x.answered[parity][x.answers[at].target] + x.answers[at].slot, epoch);
  if (threadIdx.x == 0) x.ended[block] = {epoch, last};
  __syncthreads();
  return true;
}

}  // namespace hostless::kernel
