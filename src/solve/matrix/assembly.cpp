#include "solve/matrix/assembly.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/counted.hpp"
#include "base/hash.hpp"
#include "base/setup_watch.hpp"
#include "files/content/same_content.hpp"
#include "hostless/plan/partition.hpp"
#include "solve/matrix/migrated_rows.hpp"

namespace hostless {
namespace {

using Partition = MatrixOptions::Partition;

constexpr int default_slices = 264;
constexpr std::int64_t most_slices_anyhow = 65536;  // empty ones cost little up to here
constexpr std::int64_t block_rows_worth_a_slice = 64;

void check_rows_a_rank(Group& group, std::int64_t rows) {
  group.together([&] {
    if (rows <= std::numeric_limits<std::int32_t>::max() - 1) return;
    throw Error(
        ErrorCode::environment,
        fmt::format("{} on one rank (local numbers have 31 bits). Use more ranks.", counted(rows, "row")));
  });
}

}  // namespace

int choose_slices(std::int64_t block_rows, int wanted) {
  if (wanted > std::max(block_rows, most_slices_anyhow))
    throw Error(ErrorCode::usage, fmt::format("{} for {} of a rank (a slice has one at least, or nothing "
                                              "to do). Use at most as many, or 0 for automatic.",
                                              counted(wanted, "slice"), counted(block_rows, "block row")));
  if (wanted > 0) return wanted;
  return static_cast<int>(std::clamp<std::int64_t>(block_rows / block_rows_worth_a_slice, 1, default_slices));
}

Assembly::Assembly(Group& group, RowSource const& source, MatrixOptions const& options, Look const& look)
    : rank_(group.rank()),
      ranks_(group.size()),
      global_rows_(source.global_rows()),
      source_first_(source.first_row()),
      source_last_(source.last_row()) {
  gather_statistics(group, look);
  choose_block_row(group, options.block);
  choose_partition(group, source, options);
  SetupStage const stage("numbering", natural_ ? 0 : 2 * (source_last_ - source_first_));
  number_owned(group, source);
  number_ghosts(group, source);
  choose_tiling(group, options);
}

void Assembly::gather_statistics(Group& group, Look const& look) {
  struct Range {
    std::int64_t first, last, rows;
  };
  auto const ranges = group.all_gather(Range{source_first_, source_last_, global_rows_});
  group.together([&] {
    std::int64_t expected = 0;
    for (Range const& r : ranges) {
      if (r.first != expected || r.last < r.first || r.rows != global_rows_) {
        throw Error(
            ErrorCode::usage,
            fmt::format(
                "the ranks' rows do not follow each other: [{}, {}) of {} after row {} (every row has "
                "one owner). Give rank r the rows after those of rank r - 1.",
                r.first, r.last, r.rows, expected));
      }
      expected = r.last;
    }
    if (expected != global_rows_ || global_rows_ < 1) {
      throw Error(
          ErrorCode::usage,
          fmt::format("the ranks have {} together, and the matrix has {} (a square one has as "
                      "many rows, each with one owner). Correct the ranks' rows, or the size of the matrix.",
                      counted(expected, "row"), counted(global_rows_, "column")));
    }
  });
  check_rows_a_rank(group,
                    (global_rows_ + ranks_ - 1) / ranks_);  // one rank has as many, however they are dealt
  for (Range const& r : ranges) {
    if (r.first != global_rows_) cuts_ = std::gcd(cuts_, r.first);
    range_.push_back(r.first);
  }
  range_.push_back(global_rows_);

  group.together([&] {
    ScannedRows seen = look();
    statistics_ = seen.statistics;
    outside_ = std::move(seen.outside);
  });
  BlockStatistics all;
  for (BlockStatistics const& s : group.all_gather(statistics_)) all += s;
  statistics_ = all;
}

void Assembly::choose_block_row(Group& group, int wanted) {
  group.together([&] {
    if (wanted == 0) {
      block_ = choose_block(statistics_, cuts_);
      why_block_ = explain_block(statistics_, cuts_);
      if (int const cut = cut_block(statistics_, cuts_); cut > 0) {
        lost_blocks_ =
            fmt::format("the ranks' rows start inside blocks of {}: cut at multiples of {}", cut, cut);
        why_block_ = fmt::format("{}: {}", block_, lost_blocks_);
      }
      return;
    }
    if (wanted != 1 && std::find(BlockStatistics::sizes.begin(), BlockStatistics::sizes.end(), wanted) ==
                           BlockStatistics::sizes.end()) {
      throw Error(ErrorCode::usage,
                  fmt::format("block size {} (there are kernels for 1, 2, 3, 4, 6).", wanted));
    }
    for (std::int64_t first : range_) {
      if (first % wanted != 0) {
        throw Error(
            ErrorCode::usage,
            fmt::format(
                "block size {} does not divide row {} where a rank's rows start or end (a block would "
                "have two owners). Use another block size or other ranges.",
                wanted, first));
      }
    }
    block_ = wanted;
    why_block_ = fmt::format("{}: asked for", wanted);
  });
  for (std::int64_t& first : range_) first /= block_;
  for (std::int64_t& column : outside_) column /= block_;
  keep_distinct(outside_);
}

template <class Visit>
void Assembly::for_each_block_row_column(RowSource const& source, Visit const& visit) const {
  RowPanel panel;
  std::vector<std::int64_t> columns;
  for (std::int64_t row = source_first_; row < source_last_; row += panel_rows) {
    std::int64_t const count = std::min(panel_rows, source_last_ - row);
    source.pattern(row, count, panel);
    setup_step(count);
    for (std::int64_t first = 0; first < count; first += block_) {
      columns.clear();
      auto const begin = panel.offset[static_cast<std::size_t>(first)];
      auto const end = panel.offset[static_cast<std::size_t>(first + block_)];
      for (auto k = begin; k < end; ++k)
        columns.push_back(panel.column[static_cast<std::size_t>(k)] / block_);
      if (block_ > 1) {
        std::sort(columns.begin(), columns.end());
        columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
      }
      visit((row + first) / block_, columns);
    }
  }
}

// Every rank has read all of the partition's file, maybe a copy on a disk of its own.
void Assembly::require_same_parts(Group& group, std::string const& path) const {
  Hash mine;
  mine.add(part_);
  auto const all = group.all_gather(mine.value());
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r] != all[0])
      throw Error(
          ErrorCode::bad_input,
          fmt::format("{}: rank {} reads another partition than rank 0 (rows would have two owners or none). "
                      "Give all ranks the same file.",
                      files::path_of(group, path, static_cast<int>(r)), r));
  }
}

void Assembly::choose_partition(Group& group, RowSource const& source, MatrixOptions const& options) {
  Partition kind = options.partition;
  if (ranks_ == 1) {  // its file is looked at all the same
    if (kind == Partition::file)
      static_cast<void>(read_partition(options.partition_file, global_rows_, ranks_));
    kind = Partition::contiguous;
  }
  why_partition_ = kind == Partition::contiguous ? "contiguous"
                   : kind == Partition::metis    ? "metis"
                                                 : "from a file";
  if (kind == Partition::automatic) {
    // The halo of the contiguous partition decides: METIS costs seconds and a whole graph on one rank.
    std::int64_t const worst = group.max(static_cast<std::int64_t>(outside_.size()));
    double const share = static_cast<double>(worst) * ranks_ / static_cast<double>(range_.back());
    kind = share <= most_ghosts ? Partition::contiguous : Partition::metis;
    why_partition_ =
        fmt::format("{}: contiguous rows would need {:.1f} % of a share as ghosts (limit {:.0f} %)",
                    kind == Partition::contiguous ? "contiguous" : "metis", 100 * share, 100 * most_ghosts);
  }
  natural_ = kind == Partition::contiguous;
  if (!natural_) outside_ = {};
  if (kind == Partition::metis) partition_by_metis(group, source, options.seed);
  if (kind == Partition::file) {
    group.together([&] {
      auto const rows = read_partition(options.partition_file, global_rows_, ranks_);
      part_.resize(static_cast<std::size_t>(global_rows_ / block_));
      for (std::size_t block_row = 0; block_row < part_.size(); ++block_row) {
        for (int j = 0; j < block_; ++j) {
          auto const row = block_row * static_cast<std::size_t>(block_) + static_cast<std::size_t>(j);
          if (j == 0) part_[block_row] = rows[row];
          if (rows[row] != part_[block_row]) {
            throw Error(
                ErrorCode::bad_input,
                fmt::format("{}:{}: row {} goes to part {}, but its block of {} to part {} (a block has "
                            "one owner). Keep blocks together, or use block size 1 (--block-size 1).",
                            options.partition_file, row + 1, row + 1, rows[row], counted(block_, "row"),
                            part_[block_row]));
          }
        }
      }
    });
    require_same_parts(group, options.partition_file);
  }
}

// METIS is serial: rank 0 holds the graph of block rows (no values), 4 bytes an edge.
void Assembly::partition_by_metis(Group& group, RowSource const& source, int seed) {
  SetupStage const stage("partitioning");
  std::vector<std::int64_t> counts;
  std::vector<std::int32_t> neighbours;
  group.together([&] {
    if (range_.back() > std::numeric_limits<std::int32_t>::max()) {
      throw Error(ErrorCode::usage, "METIS partitions fewer than 2^31 blocks. Use the contiguous partition.");
    }
    for_each_block_row_column(source, [&](std::int64_t block_row, std::vector<std::int64_t> const& columns) {
      std::int64_t n = 0;
      for (std::int64_t c : columns) {
        if (c == block_row) continue;
        neighbours.push_back(static_cast<std::int32_t>(c));
        ++n;
      }
      counts.push_back(n);
    });
  });
  std::vector<std::vector<std::int64_t>> to_counts(static_cast<std::size_t>(ranks_));
  std::vector<std::vector<std::int32_t>> to_neighbours(static_cast<std::size_t>(ranks_));
  to_counts[0] = std::move(counts);
  to_neighbours[0] = std::move(neighbours);
  auto const all_counts = group.exchange_values(to_counts);
  auto const all_neighbours = group.exchange_values(to_neighbours);
  Bytes parts;
  group.together([&] {
    if (rank_ != 0) return;
    std::vector<std::int64_t> first{0};
    std::vector<std::int32_t> graph;
    for (auto const& c : all_counts) {
      for (std::int64_t n : c) first.push_back(first.back() + n);
    }
    for (auto const& n : all_neighbours) graph.insert(graph.end(), n.begin(), n.end());
    auto const part = partition_graph(first, graph, ranks_, seed);
    parts.resize(part.size() * sizeof(std::int32_t));
    std::memcpy(parts.data(), part.data(), parts.size());
  });
  parts = group.broadcast(parts, 0);
  part_.resize(parts.size() / sizeof(std::int32_t));
  std::memcpy(part_.data(), parts.data(), parts.size());
}

int Assembly::owner_of(std::int64_t block_row) const {
  if (!natural_) return part_[static_cast<std::size_t>(block_row)];
  auto const after = std::upper_bound(range_.begin(), range_.end(), block_row);
  return static_cast<int>(after - range_.begin()) - 1;
}

// Contiguous: as they come. Otherwise interior block rows first, then those with neighbours elsewhere, each
// in rising global order, so that most slices need no ghosts.
void Assembly::number_owned(Group& group, RowSource const& source) {
  auto const me = static_cast<std::size_t>(rank_);
  if (natural_) {
    block_rows_ = range_[me + 1] - range_[me];
    return;
  }
  struct Coming {
    std::int64_t block_row;
    std::int32_t boundary;
    std::int32_t source;
  };
  std::vector<std::vector<Coming>> to(static_cast<std::size_t>(ranks_));
  to_owner_.resize(static_cast<std::size_t>(ranks_));
  group.together([&] {
    for_each_block_row_column(source, [&](std::int64_t block_row, std::vector<std::int64_t> const& columns) {
      int const owner = owner_of(block_row);
      bool const boundary =
          std::any_of(columns.begin(), columns.end(), [&](std::int64_t c) { return owner_of(c) != owner; });
      to[static_cast<std::size_t>(owner)].push_back({block_row, boundary ? 1 : 0, rank_});
      to_owner_[static_cast<std::size_t>(owner)].push_back(static_cast<std::int32_t>(block_row - range_[me]));
    });
  });
  auto const from = group.exchange_values(to);
  group.together([&] {
    std::vector<Coming> mine;
    for (auto const& f : from) mine.insert(mine.end(), f.begin(), f.end());
    std::stable_sort(mine.begin(), mine.end(), [](Coming const& a, Coming const& b) {
      return a.boundary != b.boundary ? a.boundary < b.boundary : a.block_row < b.block_row;
    });
    block_rows_ = static_cast<std::int64_t>(mine.size());
    known_block_row_.assign(part_.size(), -1);
    for (Coming const& c : mine) {
      known_block_row_[static_cast<std::size_t>(c.block_row)] =
          static_cast<std::int32_t>(owned_block_row_.size());
      owned_block_row_.push_back(c.block_row);
    }
    for (auto const& f : from) {
      arriving_.emplace_back();
      for (Coming const& c : f)
        arriving_.back().push_back(known_block_row_[static_cast<std::size_t>(c.block_row)]);
    }
  });
}

std::int32_t Assembly::local_block_row(std::int64_t block_row) const {
  if (!natural_) return known_block_row_[static_cast<std::size_t>(block_row)];
  std::int64_t const inside = block_row - range_[static_cast<std::size_t>(rank_)];
  if (inside >= 0 && inside < block_rows_) return static_cast<std::int32_t>(inside);
  auto const at = std::lower_bound(ghost_block_row_.begin(), ghost_block_row_.end(), block_row);
  if (at == ghost_block_row_.end() || *at != block_row) return -1;
  return static_cast<std::int32_t>(block_rows_ + (at - ghost_block_row_.begin()));
}

std::int32_t Assembly::local_column(std::int64_t column) const {
  std::int64_t const block_row = local_block_row(column / block_);
  if (block_row < 0) return INT32_MAX;  // LocalMatrix refuses it
  return static_cast<std::int32_t>(vector_offset_of(block_row, block_rows_, block_rows_below_) * block_ +
                                   column % block_);
}

// The rank that reads a block row's rows tells the block row's owner which other block rows it will need.
std::vector<std::int64_t> Assembly::learn_needs(Group& group, RowSource const& source) const {
  std::vector<std::vector<std::int64_t>> tell(static_cast<std::size_t>(ranks_));
  group.together([&] {
    std::vector<Distinct> needs(tell.size());
    for_each_block_row_column(source, [&](std::int64_t block_row, std::vector<std::int64_t> const& columns) {
      int const owner = owner_of(block_row);
      for (std::int64_t c : columns)
        if (owner_of(c) != owner) needs[static_cast<std::size_t>(owner)].add(c);
    });
    for (std::size_t rank = 0; rank < tell.size(); ++rank) tell[rank] = needs[rank].take();
  });
  auto const told = group.exchange_values(tell);
  std::vector<std::int64_t> all;
  group.together([&] {
    for (auto const& list : told) all.insert(all.end(), list.begin(), list.end());
    keep_distinct(all);
  });
  return all;
}

// Ghosts are asked of their owners, who answer with their local numbers and learn who needs what.
void Assembly::number_ghosts(Group& group, RowSource const& source) {
  check_rows_a_rank(group, block_rows_ * block_);
  std::vector<std::int64_t> const needed =
      natural_ ? std::exchange(outside_, {}) : learn_needs(group, source);
  std::vector<std::vector<std::int64_t>> ask(static_cast<std::size_t>(ranks_));
  group.together([&] {
    for (std::int64_t block_row : needed)
      ask[static_cast<std::size_t>(owner_of(block_row))].push_back(block_row);
  });
  auto const asked = group.exchange_values(ask);
  std::vector<std::vector<std::int32_t>> answer(static_cast<std::size_t>(ranks_));
  for (std::size_t r = 0; r < asked.size(); ++r) {
    for (std::int64_t block_row : asked[r]) answer[r].push_back(local_block_row(block_row));
  }
  auto const items = group.exchange_values(answer);
  group.together([&] {
    for (std::size_t r = 0; r < ask.size(); ++r) {
      std::vector<std::pair<std::int32_t, std::int64_t>> ordered;
      for (std::size_t k = 0; k < ask[r].size(); ++k) ordered.emplace_back(items[r][k], ask[r][k]);
      std::sort(ordered.begin(), ordered.end());
      for (auto const& [item, block_row] : ordered) {
        if (!natural_) {
          known_block_row_[static_cast<std::size_t>(block_row)] =
              static_cast<std::int32_t>(block_rows_ + static_cast<std::int64_t>(ghost_block_row_.size()));
        }
        ghost_block_row_.push_back(block_row);
      }
      if (static_cast<int>(r) < rank_) block_rows_below_ = static_cast<std::int64_t>(ghost_block_row_.size());
    }
  });
  build_patterns(group, answer);
}

// Every rank learns all patterns: node-aware routes need those of the other ranks of its node and of the
// others.
void Assembly::build_patterns(Group& group, std::vector<std::vector<std::int32_t>> const& asked) {
  std::vector<std::pair<std::int32_t, Rank>> reads;
  for (std::size_t r = 0; r < asked.size(); ++r) {
    for (std::int32_t block_row : asked[r]) reads.emplace_back(block_row, static_cast<Rank>(r));
  }
  std::sort(reads.begin(), reads.end());
  std::vector<std::int64_t> mine{owned()};  // owned, then (block row, receiver) pairs
  for (auto const& [block_row, rank] : reads) {
    mine.push_back(block_row);
    mine.push_back(rank);
  }
  Bytes raw(mine.size() * sizeof(std::int64_t));
  std::memcpy(raw.data(), mine.data(), raw.size());
  for (Bytes const& other : group.all_gather_bytes(raw)) {
    std::vector<std::int64_t> v(other.size() / sizeof(std::int64_t));
    std::memcpy(v.data(), other.data(), other.size());
    Pattern pattern;
    pattern.owned = v[0];
    pattern.first.push_back(0);
    for (std::size_t k = 1; k < v.size();) {
      std::size_t end = k;
      while (end < v.size() && v[end] == v[k]) end += 2;
      for (int j = 0; j < block_; ++j) {  // all rows of a block row travel together
        pattern.item.push_back(static_cast<std::int32_t>(v[k] * block_ + j));
        for (std::size_t i = k; i < end; i += 2) pattern.receiver.push_back(static_cast<Rank>(v[i + 1]));
        pattern.first.push_back(static_cast<std::int64_t>(pattern.receiver.size()));
      }
      k = end;
    }
    patterns_.push_back(std::move(pattern));
  }
}

void Assembly::choose_tiling(Group& group, MatrixOptions const& options) {
  std::int64_t const most = group.max(block_rows_);
  group.together([&] {
    if (Tiling::has_threads_per_row(options.threads_per_row)) return;
    throw Error(
        ErrorCode::usage,
        fmt::format("{} row lanes (a row's accumulators are halved until one is left). Use 1, 2, 4, 8, "
                    "16 or 32.",
                    options.threads_per_row));
  });
  tiling_.block_rows = block_rows_;
  tiling_.block = block_;
  tiling_.threads_per_row = options.threads_per_row;
  tiling_.slices = choose_slices(most, options.slices);
}

std::unique_ptr<LocalRows> Assembly::rows_of(Group& group, RowSource const& source) const {
  group.together([&] {
    if (source.first_row() != source_first_ || source.last_row() != source_last_) {
      throw Error(ErrorCode::usage,
                  fmt::format("rows [{}, {}) where [{}, {}) were planned (the same pattern is needed). "
                              "Build a new matrix.",
                              source.first_row(), source.last_row(), source_first_, source_last_));
    }
  });
  if (natural_) return std::make_unique<NaturalRows>(*this, source);
  return std::make_unique<MigratedRows>(*this, group, source);
}

void Assembly::to_local(Group& group, std::span<double const> source, std::span<double> local) const {
  if (natural_) {
    std::copy(source.begin(), source.end(), local.begin());
    return;
  }
  auto const b = static_cast<std::size_t>(block_);
  std::vector<std::vector<double>> to(to_owner_.size());
  for (std::size_t r = 0; r < to.size(); ++r) {
    for (std::int32_t block_row : to_owner_[r]) {
      auto const at = source.begin() + static_cast<std::ptrdiff_t>(block_row) * block_;
      to[r].insert(to[r].end(), at, at + block_);
    }
  }
  auto const from = group.exchange_values(to);
  for (std::size_t r = 0; r < from.size(); ++r) {
    for (std::size_t k = 0; k < arriving_[r].size(); ++k) {
      std::copy_n(from[r].begin() + static_cast<std::ptrdiff_t>(k * b), b,
                  local.begin() + static_cast<std::ptrdiff_t>(arriving_[r][k]) * block_);
    }
  }
}

void Assembly::from_local(Group& group, std::span<double const> local, std::span<double> source) const {
  if (natural_) {
    std::copy(local.begin(), local.end(), source.begin());
    return;
  }
  auto const b = static_cast<std::size_t>(block_);
  std::vector<std::vector<double>> to(arriving_.size());
  for (std::size_t r = 0; r < to.size(); ++r) {
    for (std::int32_t block_row : arriving_[r]) {
      auto const at = local.begin() + static_cast<std::ptrdiff_t>(block_row) * block_;
      to[r].insert(to[r].end(), at, at + block_);
    }
  }
  auto const from = group.exchange_values(to);
  for (std::size_t r = 0; r < from.size(); ++r) {
    for (std::size_t k = 0; k < to_owner_[r].size(); ++k) {
      std::copy_n(from[r].begin() + static_cast<std::ptrdiff_t>(k * b), b,
                  source.begin() + static_cast<std::ptrdiff_t>(to_owner_[r][k]) * block_);
    }
  }
}

}  // namespace hostless
