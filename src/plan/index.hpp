#pragma once

#include <cstddef>
#include <cstdint>

namespace hostless {

/// Items and offsets of a plan are signed, indices of the standard library are not.
inline std::size_t at(std::int64_t k) { return static_cast<std::size_t>(k); }

}  // namespace hostless
