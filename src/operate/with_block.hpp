#pragma once

#include <type_traits>

namespace hostless {

/// use(integral constant) with the size of a block for which there are kernels.
template <class Use>
auto with_block(int block, Use const& use) {
  switch (block) {
    case 2:
      return use(std::integral_constant<int, 2>{});
    case 3:
      return use(std::integral_constant<int, 3>{});
    case 4:
      return use(std::integral_constant<int, 4>{});
    case 6:
      return use(std::integral_constant<int, 6>{});
    default:
      return use(std::integral_constant<int, 1>{});
  }
}

}  // namespace hostless
