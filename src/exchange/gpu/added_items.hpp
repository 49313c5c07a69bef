#pragma once
// Contributions that have arrived, added to own items in their order: the bits are those of the host.

#include <vector>

#include "device/queue.hpp"
#include "exchange/gpu/exchange_library.hpp"

namespace hostless::gpu {

class AddedItems {
 public:
  /// contributions[f]: of field f, [sum] items in device memory.
  AddedItems(AddedFields const& added, std::vector<std::byte const*> contributions);
  void add(StreamQueue& queue) const;
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(item_.bytes() + first_.bytes() + from_.bytes());
  }
  bool guards_hold() const { return item_.guards_hold() && first_.guards_hold() && from_.guards_hold(); }

 private:
  std::vector<SumField> fields_;
  std::vector<std::byte const*> contributions_;
  Array<std::int32_t> item_, first_, from_;  // items that get some, and which, rising
};

}  // namespace hostless::gpu
