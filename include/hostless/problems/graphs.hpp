#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hostless/base/rows.hpp"

namespace hostless {

/// Graphs whose adjacency matrices Temuçin et al. 2024 multiply (table III), by the names that they have there:
///
/// - ccc_G_06: cube-connected cycles of 6 dimensions, 384 rows, 1152 entries: that graph
/// - debr_G_08: the de Bruijn graph of words of 8 bits, its edges without direction, without loops and each once,
///   256 rows, 1018 entries: that graph
/// - delaunay_n10: the Delaunay triangulation of 1024 random points of a square, numbered along a Z curve. A
///   stand-in of 1024 rows and 6108 entries (6112 there)
/// - crack: triangles on a plate of 100 x 102 nodes with a slit of 40 from its rim, numbered line by line. A
///   stand-in of 10240 rows and 60474 entries (60760 there)
std::vector<std::string> graph_names();

/// Rows of such a matrix: 1 for each edge, in both triangles, and no diagonal. So it is indefinite: to be
/// multiplied by, not for solves.
///
/// size, rank  the share of the rows, as make_problem() has it
/// Errors  usage  unknown name; rank outside [0, size); a panel outside this rank's rows
/// Cost    every rank makes the whole graph, within 0.1 s, and keeps it
std::unique_ptr<RowSource> make_graph(std::string const& name, int size, int rank);

/// One line for people: name, what it is, rows, entries. Errors  usage  unknown name
std::string describe_graph(std::string const& name);

}  // namespace hostless
