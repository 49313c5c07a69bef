#include "predict/solved_share.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "base/counted.hpp"
#include "base/setup_watch.hpp"
#include "hostless/base/error.hpp"
#include "hostless/operate/storage_count.hpp"
#include "hostless/plan/partition.hpp"
#include "hostless/solve/matrix.hpp"
#include "setup_shown.hpp"
#include "solve/matrix/assembly.hpp"

namespace hostless {
namespace {

int axes_of(std::string const& kind) { return kind == "poisson1d" ? 1 : kind == "poisson2d" ? 2 : 3; }

// The last axis is x.
Grid grid_of(ProblemOptions const& p) {
  Grid grid;
  int const axes = axes_of(p.kind);
  grid.extent = {axes == 3 ? p.nz : axes == 2 ? p.ny : 1, axes == 3 ? p.ny : 1, p.nx};
  return grid;
}

/// Where the columns of a row lie besides its own cell: both along each axis, edges and corners of a cube, or (monodomain)
/// along the edges of Kuhn's tetrahedra.
std::vector<Direction> couplings_of(std::string const& kind, std::array<int, 3> const& radius) {
  std::vector<Direction> all;
  for (int z = -radius[0]; z <= radius[0]; ++z)
    for (int y = -radius[1]; y <= radius[1]; ++y)
      for (int x = -radius[2]; x <= radius[2]; ++x) {
        int const axes = std::abs(z) + std::abs(y) + std::abs(x);
        bool const one_way = std::min({z, y, x}) >= 0 || std::max({z, y, x}) <= 0;
        if (axes == 1 || (axes > 1 && (kind == "poisson27" || (kind == "monodomain" && one_way))))
          all.push_back({z, y, x});
      }
  return all;
}

// Of a box: each cell, and each of its columns where the grid goes on.
double entries_of(Box const& box, Grid const& grid, std::vector<Direction> const& couplings) {
  auto entries = static_cast<double>(box.cells());
  for (Direction const& direction : couplings) {
    double cells = 1;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      bool const ends = (direction[axis] < 0 && box.low[axis] == 0) ||
                        (direction[axis] > 0 && box.high[axis] == grid.extent[axis]);
      cells *= static_cast<double>(box.extent(static_cast<int>(axis)) - (ends ? 1 : 0));
    }
    entries += cells;
  }
  return entries;
}

/// The cells of a box that have a neighbour in another one.
double border_of(Box const& box, Grid const& grid) {
  std::int64_t inner = 1;
  for (std::size_t axis = 0; axis < 3; ++axis)
    inner *= std::max<std::int64_t>(
        0, box.extent(static_cast<int>(axis)) - (box.low[axis] > 0) - (box.high[axis] < grid.extent[axis]));
  return static_cast<double>(box.cells() - inner);
}

/// [rows] the rank of each row.
std::vector<std::int32_t> contiguous(std::int64_t rows, int ranks) {
  std::vector<std::int32_t> part(static_cast<std::size_t>(rows));
  for (std::int64_t row = 0; row < rows; ++row)
    part[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(row * ranks / rows);
  return part;
}

/// A value that another rank than its owner reads.
struct Read {
  std::int32_t row;  ///< whose value
  Rank reader;
  auto operator<=>(Read const&) const = default;
};

/// Each once, rising.
std::vector<Read> reads_of(MatrixGraph const& graph, std::vector<std::int32_t> const& part) {
  std::vector<Read> reads;
  for (std::size_t row = 0; row < part.size(); ++row)
    for (auto k = graph.first[row]; k < graph.first[row + 1]; ++k) {
      std::int32_t const column = graph.other[static_cast<std::size_t>(k)];
      if (part[static_cast<std::size_t>(column)] != part[row]) reads.push_back({column, part[row]});
    }
  std::sort(reads.begin(), reads.end());
  reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
  return reads;
}

struct Dealt {
  std::vector<std::int32_t> part;
  std::vector<Read> reads;
  Dealing dealing = Dealing::contiguous;
};

Dealt dealt(MatrixGraph const& graph, int ranks, int seed) {
  std::vector<std::int32_t> part = contiguous(graph.rows(), ranks);
  std::vector<Read> reads = reads_of(graph, part);
  std::vector<std::int64_t> ghosts(static_cast<std::size_t>(ranks));
  for (Read const& read : reads) ++ghosts[static_cast<std::size_t>(read.reader)];
  double const worst = static_cast<double>(*std::max_element(ghosts.begin(), ghosts.end()));
  if (worst * ranks <= most_ghosts * static_cast<double>(graph.rows()))
    return {std::move(part), std::move(reads), Dealing::contiguous};
  SetupStage const stage("partitioning");
  part = partition_graph(graph.first, graph.other, ranks, seed);
  reads = reads_of(graph, part);
  return {std::move(part), std::move(reads), Dealing::metis};
}

std::vector<Pattern> patterns_of(Dealt const& rows, int ranks) {
  auto const& part = rows.part;
  auto const& reads = rows.reads;
  std::vector<Pattern> patterns(static_cast<std::size_t>(ranks));
  std::vector<std::int32_t> number;  // of a row among those of its rank
  number.reserve(part.size());
  for (std::int32_t const owner : part)
    number.push_back(static_cast<std::int32_t>(patterns[static_cast<std::size_t>(owner)].owned++));
  for (Pattern& pattern : patterns) pattern.first = {0};
  for (std::int32_t last = -1; Read const& read : reads) {
    auto const row = static_cast<std::size_t>(read.row);
    Pattern& pattern = patterns[static_cast<std::size_t>(part[row])];
    if (read.row != last) {
      pattern.item.push_back(number[row]);
      pattern.first.push_back(pattern.first.back());
    }
    last = read.row;
    pattern.receiver.push_back(read.reader);
    ++pattern.first.back();
  }
  return patterns;
}

/// The most of any rank.
SolveShare work_of(MatrixGraph const& graph, Dealt const& dealt, int ranks) {
  std::vector<SolveShare> works(static_cast<std::size_t>(ranks));
  std::vector<std::int32_t> const& part = dealt.part;
  StoredBytes const& stored = dealt.dealing == Dealing::metis ? graph.metis : graph.contiguous;
  for (std::size_t row = 0; row < part.size(); ++row) {
    SolveShare& work = works[static_cast<std::size_t>(part[row])];
    auto const begin = graph.other.begin() + graph.first[row],
               end = graph.other.begin() + graph.first[row + 1];
    auto const mine = std::count_if(
        begin, end, [&](std::int32_t column) { return part[static_cast<std::size_t>(column)] == part[row]; });
    ++work.rows;
    work.entries += graph.row_entries[row];
    work.border_rows += mine < end - begin ? 1 : 0;
    work.stored_bytes += stored.entry * graph.row_entries[row] - stored.left_out * static_cast<double>(mine);
  }
  SolveShare most;
  for (SolveShare const& work : works) {
    most.rows = std::max(most.rows, work.rows);
    most.entries = std::max(most.entries, work.entries);
    most.border_rows = std::max(most.border_rows, work.border_rows);
    most.stored_bytes = std::max(most.stored_bytes, work.stored_bytes);
  }
  return most;
}

void add_rows(RowSource const& source, MatrixGraph& graph) {
  std::int64_t const rows = source.global_rows();
  SetupStage const stage("looking at the rows", rows);
  RowPanel panel;
  graph.first.push_back(0);
  for (std::int64_t row = 0; row < rows; row += panel_rows) {
    std::int64_t const count = std::min(panel_rows, rows - row);
    source.pattern(row, count, panel);
    setup_step(count);
    for (std::int64_t k = 0; k < count; ++k) {
      auto const begin = panel.offset[static_cast<std::size_t>(k)];
      auto const end = panel.offset[static_cast<std::size_t>(k + 1)];
      for (auto at = begin; at < end; ++at)
        if (std::int64_t const column = panel.column[static_cast<std::size_t>(at)]; column != row + k)
          graph.other.push_back(static_cast<std::int32_t>(column));
      graph.first.push_back(static_cast<std::int64_t>(graph.other.size()));
      graph.row_entries.push_back(static_cast<std::int32_t>(end - begin));
    }
  }
}

/// As a solve on one rank lays the rows out, without doing it.
void count_stored(Group& group, RowSource const& source, MatrixGraph& graph) {
  Assembly const assembly(group, source, {}, [&] { return scan_rows(source, true, 1, false); });
  auto const rows = assembly.rows_of(group, source);
  SetupStage const stage("counting what is stored", graph.rows());
  FormatRequest request;
  auto const* const read = dynamic_cast<StoredRows const*>(&source);
  if (read != nullptr && read->only_rounded()) request.half_reach = 0;  // only equal entries are left out
  StorageCount const stored = count_storage(*rows, assembly.tiling(), request);
  double const entries = std::accumulate(graph.row_entries.begin(), graph.row_entries.end(), 0.0);
  auto const beside = static_cast<double>(graph.other.size());
  double const left_out = 8 * static_cast<double>(stored.left_out);
  if (entries > 0)
    graph.contiguous.entry = (static_cast<double>(stored.bytes_per_sweep) + left_out) / entries;
  if (beside > 0) graph.contiguous.left_out = left_out / beside;
  graph.metis = graph.contiguous;
  constexpr double listed_entry = 10;  // its value, and a column of 16 bits
  if (stored.format == Format::sell && stored.left_out > 0) graph.metis = {listed_entry, 0};
}

}  // namespace

char const* name(Dealing dealing) {
  constexpr std::array names = {"boxes", "contiguous", "metis"};
  return names[static_cast<std::size_t>(dealing)];
}

bool is_lattice(ProblemOptions const& problem) {
  constexpr std::array kinds = {"poisson1d", "poisson2d", "poisson7", "poisson27", "monodomain"};
  return std::find(kinds.begin(), kinds.end(), problem.kind) != kinds.end();
}

ProblemOptions grown(ProblemOptions problem, int times) {
  int const axes = axes_of(problem.kind);
  std::array<std::int64_t*, 3> const sides = {&problem.nx, &problem.ny, &problem.nz};
  for (int axis = 0; times > 1; times /= 2, axis = (axis + 1) % axes) {
    if (times % 2 != 0)
      throw Error(ErrorCode::usage,
                  "weak scaling to numbers of ranks that are no power of two times the first "
                  "(sides are doubled in turn). Give --nodes 1..1024, or others so.");
    *sides[static_cast<std::size_t>(axis)] *= 2;
    problem_rows(problem);  // which refuses what is too large
  }
  return problem;
}

SolvedShare share_of_lattice(ProblemOptions const& problem, NodeMap const& nodes) {
  Grid const grid = grid_of(problem);
  std::array<int, 3> radius{};
  std::array<std::int64_t, 3> depth{};
  for (std::size_t axis = 0; axis < 3; ++axis)
    radius[axis] = static_cast<int>(depth[axis] = grid.extent[axis] > 1);
  BoxPartition const boxes{grid, least_surface(grid, radius, nodes.ranks())};
  SolvedShare share;
  share.rows = static_cast<double>(problem_rows(problem));
  auto const couplings = couplings_of(problem.kind, radius);
  share.entries = entries_of({{0, 0, 0}, grid.extent}, grid, couplings);
  for (Rank rank = 0; rank < nodes.ranks(); ++rank) {
    Box const box = boxes.box(rank);
    share.work.rows = std::max(share.work.rows, static_cast<double>(box.cells()));
    double const entries = entries_of(box, grid, couplings);
    share.work.entries = std::max(share.work.entries, entries);
    share.work.stored_bytes = std::max(
        share.work.stored_bytes, lattice_sweep_bytes({box.extent(0), box.extent(1), box.extent(2)}, couplings,
                                                     entries, choose_slices(box.cells(), 0)));
    share.work.border_rows = std::max(share.work.border_rows, border_of(box, grid));
  }
  if (nodes.ranks() == 1) return share;
  share.counts = count_strips(box_strips(boxes, depth, couplings), nodes);
  return share;
}

MatrixGraph graph_of(InputOptions const& input, Symmetry symmetry, double symmetry_tolerance,
                     MemoryKind memory) {
  MatrixGraph graph;
  SetupShown shown(true);
  run_on_threads(1, [&](Group& group) {
    auto const source = input.open(group, nullptr, 0, symmetry, symmetry_tolerance);
    std::int64_t const rows = source->global_rows();
    if (rows > std::numeric_limits<std::int32_t>::max())
      throw Error(ErrorCode::usage, fmt::format("{} (at most 2^31 - 1 are dealt to ranks; lattices are "
                                                "counted without).",
                                                counted(rows, "row")));
    add_rows(*source, graph);
    if (memory == MemoryKind::host) count_stored(group, *source, graph);
  });
  shown.end();
  return graph;
}

SolvedShare share_of_matrix(MatrixGraph const& graph, NodeMap const& nodes, int seed) {
  if (nodes.ranks() > graph.rows())
    throw Error(ErrorCode::usage, fmt::format("{} for {} (each has one at least). Use fewer nodes.",
                                              counted(nodes.ranks(), "rank"), counted(graph.rows(), "row")));
  SolvedShare share;
  SetupShown shown(true);
  run_on_threads(1, [&](Group&) {
    Dealt const rows = dealt(graph, nodes.ranks(), seed);
    share.dealing = rows.dealing;
    share.rows = static_cast<double>(graph.rows());
    share.entries = std::accumulate(graph.row_entries.begin(), graph.row_entries.end(), 0.0);
    share.work = work_of(graph, rows, nodes.ranks());
    if (nodes.ranks() == 1) return;
    auto const patterns = patterns_of(rows, nodes.ranks());
    for (Route route : all_routes) share.counts.push_back(count_exchange(route, patterns, nodes));
  });
  shown.end();
  return share;
}

}  // namespace hostless
