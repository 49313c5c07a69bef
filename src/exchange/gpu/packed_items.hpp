#pragma once
// Items of any number of bytes and fields, packed by kernels: an item of a round is all fields' items, one
// after the other.

#include <vector>

#include "device/queue.hpp"
#include "exchange/message_rounds.hpp"
#include "hostless/exchange/field.hpp"
#include "transport/peer/put_round.hpp"

namespace hostless::gpu {

/// A word of an item: where it lies in the memory of its field, for item 0.
struct ItemWord {
  std::byte const* send = nullptr;
  std::byte* receive = nullptr;
  std::int64_t stride = 0;
};

/// The fields of an exchange, cut into words of 1 to 16 bytes: the widest that fit all sizes and addresses.
class ItemWords {
 public:
  explicit ItemWords(std::vector<Field> const& fields);
  int width() const { return width_; }
  std::int64_t words() const { return static_cast<std::int64_t>(word_.size()); }
  std::int64_t item_bytes() const { return words() * width_; }
  ItemWord const* data() const { return word_.data(); }
  bool guards_hold() const { return word_.guards_hold(); }
  std::int64_t bytes() const { return static_cast<std::int64_t>(word_.bytes()); }

 private:
  int width_ = 1;
  Array<ItemWord> word_;
};

/// One round's items of one side, in device memory.
class PackedItems {
 public:
  PackedItems() = default;
  explicit PackedItems(std::vector<MessageItem> const& items) : item_(items.size()) {
    item_.put(items.data(), items.size());
  }
  std::size_t size() const { return item_.size(); }
  /// Packed to `to`, or put where it goes (PutRound::exchanges).
  void pack(StreamQueue& queue, ItemWords const& words, std::byte const* staging, std::byte* to,
            PutRound const& put) const;
  /// After it has come, or once it has (AwaitedRound::exchanges).
  void unpack(StreamQueue& queue, ItemWords const& words, ArrivedRound const& from,
              AwaitedRound const& awaited, std::byte* staging) const;
  bool guards_hold() const { return item_.guards_hold(); }
  std::int64_t bytes() const { return static_cast<std::int64_t>(item_.bytes()); }

 private:
  Array<MessageItem> item_;
};

}  // namespace hostless::gpu
