#pragma once

#include <cstdint>

namespace hostless {

/// One item that a rank stores into the memory of a rank (its own, too). Places are those of
/// ExchangePlan::vector_offset.
struct PeerCopy {
  std::int32_t from = 0;    ///< offset of an owned row, or index into this rank's staging memory
  std::int32_t to = 0;      ///< offset of a ghost in the target's vector, or index into its staging memory
  std::int16_t target = 0;  ///< rank, may be this one
  bool from_staging = false, to_staging = false;
  bool operator==(PeerCopy const&) const = default;
};

}  // namespace hostless
