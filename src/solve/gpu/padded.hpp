#pragma once
// How much memory of a GPU the vectors of a solve take.

#include <cstddef>
#include <cstdint>

#include "solve/gpu_solver/gpu_library.hpp"

namespace hostless::gpu {

/// Rows of a field before its first one, and in all.
struct Padded {
  explicit Padded(Problem const& p)
      : before(static_cast<std::size_t>(p.rows->rows_before() + 15) / 16 * 16),
        rows(before + static_cast<std::size_t>(p.owned + p.rows->rows_after())) {}
  std::size_t before, rows;
};

}  // namespace hostless::gpu
