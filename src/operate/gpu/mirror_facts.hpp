#pragma once

#include <cstdint>

namespace hostless::gpu {

/// How far a matrix is from its mirror image: as the processor measures it
/// (python/binding/array_rows.hpp).
struct MirrorFacts {
  bool same_bits = true;  ///< a_ij and a_ji everywhere; what is not stored counts as 0
  double difference = 0;  ///< largest |a_ij - a_ji| / max(|a_ij|, |a_ji|, sqrt|a_ii a_jj|) of finite ones
  std::int64_t row = 0, column = 0;  ///< where, if there is any
  double value = 0, other = 0;       ///< a_ij, a_ji
};

}  // namespace hostless::gpu
