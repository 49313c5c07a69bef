#pragma once
// Set-up of matrices whose rows lie in a GPU's memory, by kernels of that GPU.

#include <cstdint>

#include "operate/gpu/generate.impl.hpp"
#include "operate/row_surveyor.hpp"

namespace hostless::gpu {

class CallerRowSurveyor final : public RowSurveyor {
 public:
  RowFault find_fault(GpuRows const& rows, std::int64_t first, std::int64_t last) const override;
  RowsSurvey survey(GpuRows const& rows, std::int64_t first, std::int64_t last,
                    bool in_blocks) const override;
  ShareCount count(CallerShare const& share, Tiling const& tiling) const override;
  RowPanel pattern(GpuRows const& rows, std::int64_t first, std::int64_t last) const override;
};

/// Writes all values and columns. `view`, `to`: of the GPU in use, which is the share's; the arrays are zero.
void lay_out_share(CallerShare const& share, RowsView const& view, LayoutArrays const& to);

}  // namespace hostless::gpu
