#pragma once

#include <cstdint>

#include "hostless/plan/exchange_plan.hpp"

namespace hostless {

/// Calls visit(offset in the buffer) for every item, in the order in which a move takes them.
template <class Visit>
void each_item(Pieces const& pieces, Visit&& visit) {
  for (std::int32_t index : pieces.index) visit(pieces.first + index);
  if (!pieces.index.empty()) return;
  for (std::int64_t row = 0; row < pieces.rows; ++row)
    for (std::int64_t k = 0; k < pieces.count; ++k) visit(pieces.first + row * pieces.stride + k);
}

}  // namespace hostless
