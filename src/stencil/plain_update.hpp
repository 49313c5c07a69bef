#pragma once

#include <cstddef>
#include <string>

#include "hostless/stencil/kernel.hpp"

namespace hostless {

/// A named stencil as one loop over the cells of a row that the compiler makes vectors of, where its kernel may
/// compute packs (hostless/stencil/pack.hpp): what speed is compared with, and bits.
/// Errors  usage  unknown name
CellFunction plain_update(std::string const& name, int axes, std::size_t value_bytes);

}  // namespace hostless
