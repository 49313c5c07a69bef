#include "exchange/gpu/packed_items.hpp"

#include <algorithm>

#include "transport/peer/await_round.gpu.hpp"

namespace hostless::gpu {
namespace {

struct alignas(16) SixteenBytes {
  std::uint64_t half[2];
};

/// Items, words of an item, and where words lie.
struct ItemsCall {
  MessageItem const* item = nullptr;
  std::int64_t items = 0, words = 0;
  ItemWord const* word = nullptr;
};

// use(word k of all, item, word of the item)
template <class Use>
__device__ __forceinline__ void each_word(ItemsCall const& call, Use const& use) {
  std::int64_t const all = call.items * call.words, step = std::int64_t{gridDim.x} * block_threads;
  for (std::int64_t k = std::int64_t{blockIdx.x} * block_threads + threadIdx.x; k < all; k += step) {
    std::int64_t const item = call.words == 1 ? k : k / call.words;
    use(k, call.item[item], call.words == 1 ? 0 : k - item * call.words);
  }
}

template <class Unit>
__global__ void __launch_bounds__(block_threads, 1)
    pack_words_kernel(HOSTLESS_PARAMETER ItemsCall const call, std::byte const* staging, std::byte* to,
                      HOSTLESS_PARAMETER PutRound const put) {
  bool const puts = put.exchanges != nullptr;
  if (puts && *put.lost != 0) return signal_round(put);
  int const parity = puts ? parity_of_exchange(*put.exchanges + 1) : 0;
  each_word(call, [&](std::int64_t k, MessageItem const& item, std::int64_t w) {
    ItemWord const& word = call.word[w];
    std::byte const* const from =
        item.staging != 0 ? staging + (item.vector_offset * call.words + w) * std::int64_t{sizeof(Unit)}
                          : word.send + item.vector_offset * word.stride;
    std::int64_t const at = k * std::int64_t{sizeof(Unit)};
    std::byte* const there = puts ? put_address(put, at, parity) : to + at;
    *reinterpret_cast<Unit*>(there) = *reinterpret_cast<Unit const*>(from);
  });
  if (puts) signal_round(put);
}

template <class Unit>
__device__ __forceinline__ void unpack_words(ItemsCall const& call, std::byte const* from,
                                             std::byte* staging) {
  each_word(call, [&](std::int64_t k, MessageItem const& item, std::int64_t w) {
    ItemWord const& word = call.word[w];
    std::byte* const to = item.staging != 0
                              ? staging + (item.vector_offset * call.words + w) * std::int64_t{sizeof(Unit)}
                              : word.receive + item.vector_offset * word.stride;
    *reinterpret_cast<Unit*>(to) = *reinterpret_cast<Unit const*>(from + k * std::int64_t{sizeof(Unit)});
  });
}

template <class Unit>
__global__ void __launch_bounds__(block_threads, 1)
    unpack_words_kernel(HOSTLESS_PARAMETER ItemsCall const call, HOSTLESS_PARAMETER ArrivedRound const round,
                        HOSTLESS_PARAMETER AwaitedRound const awaited, std::byte* staging) {
  bool const waits = awaited.exchanges != nullptr;
  std::uint64_t const expected = waits ? *awaited.exchanges + 1 : 0;
  bool const has_come = !waits || await_round(awaited, expected);
  std::byte const* const from = waits ? arrived_in(round, expected) : arrived_at(round);
  if (has_come) unpack_words<Unit>(call, from, staging);
  if (waits) count_round(awaited, expected);
}

template <class Unit>
struct Kernels {
  static void const* pack() { return reinterpret_cast<void const*>(&pack_words_kernel<Unit>); }
  static void const* unpack() { return reinterpret_cast<void const*>(&unpack_words_kernel<Unit>); }
};
template <class Use>
void const* of_width(int width, Use const& use) {
  switch (width) {
    case 16:
      return use(Kernels<SixteenBytes>{});
    case 8:
      return use(Kernels<std::uint64_t>{});
    case 4:
      return use(Kernels<std::uint32_t>{});
    case 2:
      return use(Kernels<std::uint16_t>{});
    default:
      return use(Kernels<std::uint8_t>{});
  }
}

// Blocks that wait hold their multiprocessors: few of them.
int blocks_for(std::int64_t words, bool waits = false) {
  std::int64_t const most_blocks = waits ? 16 : 256;
  return static_cast<int>(
      std::clamp<std::int64_t>((words + block_threads - 1) / block_threads, 1, most_blocks));
}

}  // namespace

ItemWords::ItemWords(std::vector<Field> const& fields) {
  std::uintptr_t all = 16;
  for (Field const& field : fields)
    all |= field.item_bytes | reinterpret_cast<std::uintptr_t>(field.send) |
           reinterpret_cast<std::uintptr_t>(field.receive);
  while (all % static_cast<std::uintptr_t>(2 * width_) == 0 && width_ < 16) width_ *= 2;
  std::vector<ItemWord> words;
  for (Field const& field : fields)
    for (std::size_t at = 0; at < field.item_bytes; at += static_cast<std::size_t>(width_)) {
      auto const* const send = static_cast<std::byte const*>(field.send);
      auto* const receive = static_cast<std::byte*>(field.receive);
      words.push_back({send == nullptr ? nullptr : send + at, receive == nullptr ? nullptr : receive + at,
                       static_cast<std::int64_t>(field.item_bytes)});
    }
  word_ = Array<ItemWord>(words.size());
  word_.put(words.data(), words.size());
}

void PackedItems::pack(StreamQueue& queue, ItemWords const& words, std::byte const* staging, std::byte* to,
                       PutRound const& put) const {
  ItemsCall const call{item_.data(), static_cast<std::int64_t>(item_.size()), words.words(), words.data()};
  launch(queue, of_width(words.width(), [](auto kernels) { return kernels.pack(); }),
         blocks_for(call.items * call.words), call, staging, to, put);
}

void PackedItems::unpack(StreamQueue& queue, ItemWords const& words, ArrivedRound const& from,
                         AwaitedRound const& awaited, std::byte* staging) const {
  ItemsCall const call{item_.data(), static_cast<std::int64_t>(item_.size()), words.words(), words.data()};
  launch(queue, of_width(words.width(), [](auto kernels) { return kernels.unpack(); }),
         blocks_for(call.items * call.words, awaited.exchanges != nullptr), call, from, awaited, staging);
}

}  // namespace hostless::gpu
