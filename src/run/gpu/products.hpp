#pragma once
// Products with the matrix that are made apart from the phases: CSR arrays multiplied by merge path, or by
// the vendor's library.

#include <cstdint>
#include <memory>

#include "device/memory.hpp"
#include "operate/device_rows.hpp"
#include "run/gpu/queue.hpp"

namespace hostless::gpu {

/// rows.csr: device memory, which must stay; with `entries` in all. Waits for what it prepares on the GPU.
std::unique_ptr<Product> make_merge_product(RowsView const& rows, std::int64_t entries);

/// The library is loaded now. x: a vector to try the product on, into rows.ready.
/// Errors  environment  it was not there when this was compiled, or cannot be loaded, or fails
std::unique_ptr<Product> make_vendor_product(RowsView const& rows, std::int64_t entries, double const* x);

}  // namespace hostless::gpu
