#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hostless {

/// Splits the vertices of a graph (rows or block rows of a matrix) into parts of nearly equal size
/// with few edges between them, by METIS' k-way method.
///
/// first      [vertices + 1] the neighbours of vertex v are neighbour[first[v] .. first[v + 1])
/// neighbour  vertex numbers, any order; the vertex itself is skipped, repeats count once, a missing opposite
/// edge is
///            added (METIS does not survive without)
/// seed       equal seed, equal parts, with the same METIS library
/// Returns    [vertices] the part of each vertex. No part is empty unless there are fewer vertices than
/// parts; then
///            vertex v is part v. A part that METIS leaves empty takes the last vertex of the largest part.
/// Local; threads may call it at once, one is served after the other.
/// Errors     usage        parts < 1, or an index out of range
///            environment  a graph too large for METIS' integers on this machine, or METIS ran out of memory
/// Cost       O(edges) memory beside METIS' own
std::vector<std::int32_t> partition_graph(std::span<std::int64_t const> first,
                                          std::span<std::int32_t const> neighbour, int parts, int seed);

/// Reads a partition: one part number a line, line k for vertex k (what METIS' own programs write).
///
/// Errors  bad_input    not exactly `vertices` lines, or a line that is not one number in [0, parts):
/// file:line; or it cannot be opened or read, or is no regular file
/// Cost    holds 64 KiB of the file and the result; nothing in the file decides an allocation
std::vector<std::int32_t> read_partition(std::string const& path, std::int64_t vertices, int parts);

/// Writes what read_partition reads; the file gets its name when it is whole.
/// Errors  environment  the file cannot be written
void write_partition(std::string const& path, std::span<std::int32_t const> part);

}  // namespace hostless
