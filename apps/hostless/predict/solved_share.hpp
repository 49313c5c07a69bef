#pragma once
// What a matrix gives each rank to do: of lattices by counts alone, of anything else by its plan.

#include <cstdint>
#include <vector>

#include "hostless/model/counts.hpp"
#include "hostless/model/solve_price.hpp"
#include "input.hpp"

namespace hostless {

/// How ranks have got their rows.
enum class Dealing : std::uint8_t { boxes, contiguous, metis };
char const* name(Dealing dealing);

/// The work of the slowest rank, and what the exchange of all ranks sends by each route that was counted.
struct SolvedShare {
  SolveShare work;
  double rows = 0.0, entries = 0.0;    ///< of the whole matrix
  std::vector<ExchangeCounts> counts;  ///< empty: one rank
  Dealing dealing = Dealing::boxes;
};

/// Whether a generated problem is a lattice of boxes (poisson1d, 2d, 7, 27, monodomain), for which nothing is made.
bool is_lattice(ProblemOptions const& problem);

/// The same problem with `times` as many rows, sides in turn doubled. Errors  usage  `times` no power of two
ProblemOptions grown(ProblemOptions problem, int times);

/// Of a lattice dealt in boxes. Errors  usage  more ranks than boxes
SolvedShare share_of_lattice(ProblemOptions const& problem, NodeMap const& nodes);

/// Bytes by which a processor stores a matrix. Estimated of a rank by what the whole matrix takes; of parts by METIS,
/// whose rows form no long diagonals, without those.
struct StoredBytes {
  double entry = 0.0;     ///< of each entry
  double left_out = 0.0;  ///< less, of each beside the diagonal whose mirror the same rank has
};

/// The rows of a matrix without their values, held by this process: 4 bytes an entry.
struct MatrixGraph {
  std::vector<std::int64_t> first;        ///< [rows + 1] others in row r: other[first[r] .. first[r + 1])
  std::vector<std::int32_t> other;        ///< columns but for the row's own
  std::vector<std::int32_t> row_entries;  ///< [rows] with the diagonal
  StoredBytes contiguous, metis;          ///< by how rows are dealt; where it was asked for
  std::int64_t rows() const { return static_cast<std::int64_t>(row_entries.size()); }
};

/// Of a file, whose entries may be symmetry_tolerance from their mirrors where symmetry is required, or a generated
/// problem.
/// memory  where it will lie: what is stored is counted for the host's, by what a solve stores
/// Errors  those of reading; bad_input  not symmetric; usage  2^31 rows or more
MatrixGraph graph_of(InputOptions const& input, Symmetry symmetry, double symmetry_tolerance,
                     MemoryKind memory);

/// Dealt row by row, also where rows come in blocks: contiguous ones where that leaves few ghosts, else by METIS.
/// Whatever the number of ranks, none is started. `work` has the most of any rank in each of its numbers.
/// seed  of METIS
/// Errors  usage  more ranks than rows
/// Cost    O(n log n) time for n = entries whose column another rank owns, and METIS'
SolvedShare share_of_matrix(MatrixGraph const& graph, NodeMap const& nodes, int seed);

}  // namespace hostless
