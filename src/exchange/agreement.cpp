#include "exchange/agreement.hpp"

#include <algorithm>

namespace hostless {

std::optional<Difference> first_difference(Group& group, std::vector<std::int64_t> const& mine) {
  auto const all = group.exchange_values(
      std::vector<std::vector<std::int64_t>>(static_cast<std::size_t>(group.size()), mine));
  auto const other = std::find_if(all.begin(), all.end(), [&](auto const& list) { return list != all[0]; });
  if (other == all.end()) return {};
  Difference found;
  found.rank = static_cast<int>(other - all.begin());
  found.count_of_first = all[0].size();
  found.count = other->size();
  std::size_t const both = std::min(found.count_of_first, found.count);
  while (found.index < both && (*other)[found.index] == all[0][found.index]) ++found.index;
  if (found.is_length()) return found;
  found.of_first = all[0][found.index];
  found.value = (*other)[found.index];
  return found;
}

}  // namespace hostless
