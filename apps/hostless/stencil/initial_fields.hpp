#pragma once
// What a stencil begins with where no file says it. Every value follows from the indices of its cell by
// additions, multiplications and divisions of doubles in a fixed order, and is rounded once, so that it has
// the same bits on every machine and however the grid is dealt out.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hostless/stencil/stencil.hpp"

namespace hostless {

/// The value of one cell of a field, by its indices in an array of that shape.
double initial_value(std::string const& problem, int field, std::vector<std::int64_t> const& shape,
                     std::vector<std::int64_t> const& index);

/// In words, for reports.
char const* initial_words(std::string const& problem);

/// Fills the cells of this rank's box, the last axis fastest, with 4 or 8 bytes each.
void fill_initial(std::string const& problem, int field, std::vector<std::int64_t> const& shape,
                  std::vector<std::int64_t> const& low, std::vector<std::int64_t> const& high,
                  std::span<std::byte> cells, std::size_t value_bytes);

}  // namespace hostless
