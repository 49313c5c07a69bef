#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hostless/transport/group.hpp"

namespace hostless::files {

/// This rank's share_first entries of a Matrix Market array of n rows and one column, or one row of n.
/// Collective over group. Throws the first bad line as an Error on every rank.
/// Cost  one read of the text; every value is sent once
std::vector<double> read_market_vector(Group& group, std::string const& path, std::int64_t n, int columns);

/// The larger extent of the array that a Matrix Market file holds; nothing where it holds coordinates.
/// Collective over group.
std::optional<std::int64_t> market_vector_entries(Group& group, std::string const& path);

}  // namespace hostless::files
