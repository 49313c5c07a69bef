#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hostless/transport/group.hpp"

namespace hostless {

/// Where the lists of two ranks differ: at `index`, or in their lengths behind all that both have.
struct Difference {
  int rank = 0;  ///< the first whose list is not that of rank 0
  std::size_t index = 0, count_of_first = 0, count = 0;
  std::int64_t of_first = 0, value = 0;  ///< at index, where both have it
  bool is_length() const { return index >= count_of_first || index >= count; }
};

/// Collective. Empty: all ranks have the same list.
std::optional<Difference> first_difference(Group& group, std::vector<std::int64_t> const& mine);

}  // namespace hostless
