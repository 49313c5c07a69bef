#pragma once

#include <vector>

#include "device/queue.hpp"
#include "exchange/message_rounds.hpp"

namespace hostless::gpu {

/// Items of a round of messages, in device memory; each is one fp64 number.
class ItemList {
 public:
  ItemList() = default;
  explicit ItemList(std::vector<MessageItem> const& items) : item_(items.size()) {
    item_.put(items.data(), items.size());
  }
  std::size_t size() const { return item_.size(); }
  /// to[k] = item k.
  void pack(StreamQueue& queue, double const* field, double const* staging, double* to) const;
  /// item k = from[k].
  void unpack(StreamQueue& queue, double const* from, double* field, double* staging) const;
  std::int64_t bytes() const { return static_cast<std::int64_t>(item_.bytes()); }
  bool guards_hold() const { return item_.guards_hold(); }

 private:
  Array<MessageItem> item_;
};

}  // namespace hostless::gpu
