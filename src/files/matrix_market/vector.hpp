#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "hostless/files/vector_file.hpp"
#include "hostless/transport/group.hpp"

namespace hostless::files {

/// This rank's share_first entries of a Matrix Market array of n rows and one column, or one row of n.
/// Collective over group. Throws the first bad line as an Error on every rank.
/// Cost  one read of the text; every value is sent once
std::vector<double> read_market_vector(Group& group, std::string const& path, std::int64_t n, int columns);

/// What an array of so many rows and columns is: a vector where one of them is at most 1, or where columns
/// are more than anybody counts (whoever reads it as one says so).
inline RowsAndColumns shape_of_vectors(std::int64_t rows, std::int64_t columns) {
  bool const several = rows > 1 && columns > 1 && columns <= std::numeric_limits<int>::max();
  if (several) return {rows, static_cast<int>(columns)};
  return {rows == 1 ? columns : rows, 1};
}

/// vector_shape of a Matrix Market file; nothing where it holds coordinates. Collective over group.
std::optional<RowsAndColumns> market_vector_shape(Group& group, std::string const& path);

}  // namespace hostless::files
