#pragma once
// Set-up of matrices whose rows lie in a GPU's memory, by kernels of that GPU.

#include <cstdint>

#include "operate/gpu/generate.impl.hpp"
#include "operate/pattern_scan.hpp"

namespace hostless::gpu {

class CallerPatternScan final : public PatternScan {
 public:
  RowFault find_fault(GpuRows const& rows, std::int64_t first, std::int64_t last) const override;
  ScannedRows scan(GpuRows const& rows, std::int64_t first, std::int64_t last, bool in_blocks) const override;
  ShareCount count(CallerShare const& share, Tiling const& tiling) const override;
  RowPanel pattern(GpuRows const& rows, std::int64_t first, std::int64_t last) const override;
};

/// Writes all values and columns. `view`, `to`: of the GPU in use, which is the share's; the arrays are zero.
void lay_out_share(CallerShare const& share, RowsView const& view, LayoutArrays const& to);

}  // namespace hostless::gpu
