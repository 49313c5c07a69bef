#pragma once
// Work on a matrix that is in no method's text: its entries made on the GPU, its diagonal, one product.

#include <cstdint>

#include "operate/device_rows.hpp"

namespace hostless::problems {
struct Recipe;
}

namespace hostless::gpu {

struct LayoutArrays;

/// Writes all values and columns. `rows`, `to`, `recipe`: device memory; the arrays are zero.
void generate_rows(RowsView const& rows, LayoutArrays const& to, problems::Recipe const* recipe);
/// Diagonal blocks of block rows [first, first + count), row-major, into device memory.
void read_diagonal(RowsView const& rows, std::int64_t first, std::int64_t count, double* to);
/// y = A x. x is readable as far before and after as DeviceRows says. A row's products in rising column.
void multiply_rows(RowsView const& rows, double const* x, double* y);

}  // namespace hostless::gpu
