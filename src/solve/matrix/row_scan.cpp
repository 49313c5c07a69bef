#include "solve/matrix/row_scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/counted.hpp"
#include "base/setup_watch.hpp"
#include "base/thread_team.hpp"

namespace hostless {
namespace {

RowFault fault_of(RowPanel const& panel, std::int64_t first, std::int64_t rows) {
  for (std::size_t i = 0; i + 1 < panel.offset.size(); ++i) {
    std::int64_t before = -1;
    for (auto k = panel.offset[i]; k < panel.offset[i + 1]; ++k) {
      std::int64_t const column = panel.column[static_cast<std::size_t>(k)];
      auto const row = first + static_cast<std::int64_t>(i);
      if (column < 0 || column >= rows) return {RowFault::Kind::column, row, column, before};
      if (column <= before) return {RowFault::Kind::order, row, column, before};
      before = column;
    }
  }
  return {};
}

// Some of a rank's panels: their rows in blocks, and which columns lie outside its range. Rows rise: those
// stand at either end of each.
struct Seen {
  BlockStatistics statistics;
  Distinct outside;
  std::uint64_t pattern = 0;

  void add(RowSource const& source, std::int64_t begin, std::int64_t end, bool in_blocks, bool with_pattern) {
    RowPanel panel;
    for (std::int64_t row = begin, count = 0; row < end; row += count) {
      count = std::min(panel_rows - row % row_alignment, end - row);
      source.pattern(row, count, panel);
      setup_step(count);
      RowFault const fault = fault_of(panel, row, source.global_rows());
      if (fault.kind != RowFault::Kind::none) throw error_of(fault, source.global_rows());
      if (in_blocks) {
        statistics.add(panel, row);
      } else {
        statistics.rows += count;
        statistics.entries += panel.offset.back();
      }
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        auto first = panel.column.begin() + panel.offset[i],
             last = panel.column.begin() + panel.offset[i + 1];
        if (with_pattern)
          pattern += pattern_word(row + static_cast<std::int64_t>(i), panel.offset[i], panel.offset[i + 1],
                                  [&](std::int64_t k) { return panel.column[static_cast<std::size_t>(k)]; });
        for (; first != last && *first < source.first_row(); ++first) outside.add(*first);
        for (; first != last && *(last - 1) >= source.last_row(); --last) outside.add(*(last - 1));
      }
    }
  }
};

}  // namespace

void keep_distinct(std::vector<std::int64_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

ScannedRows scan_rows(RowSource const& source, bool in_blocks, int threads, bool with_pattern) {
  std::int64_t const begin = source.first_row(), end = source.last_row(),
                     base = begin - begin % row_alignment,  // panels part where no block is cut
      panels = (end - base + panel_rows - 1) / panel_rows;
  SetupStage const stage("looking at the rows", end - begin);
  int const parts = parts_for(threads, panels);
  std::vector<Seen> seen(static_cast<std::size_t>(parts));
  share_out(threads, parts, [&](int part) {
    auto const first_of = [&](int k) {
      return std::clamp(base + piece(k, parts, panels) * panel_rows, begin, end);
    };
    seen[static_cast<std::size_t>(part)].add(source, first_of(part), first_of(part + 1), in_blocks,
                                             with_pattern);
  });
  ScannedRows all;
  for (Seen& one : seen) {
    all.statistics += one.statistics;
    all.pattern += one.pattern;
    auto const outside = one.outside.take();
    all.outside.insert(all.outside.end(), outside.begin(), outside.end());
  }
  keep_distinct(all.outside);
  return all;
}

void check_gpu_rows(GpuRows const& rows) {
  using Number = GpuArray::Number;
  auto const is_whole = [](GpuArray const& array) {
    return array.number == Number::int32 || array.number == Number::int64;
  };
  if (!is_whole(rows.offsets) || !is_whole(rows.columns) || is_whole(rows.values))
    throw Error(
        ErrorCode::usage,
        "rows on a GPU with other numbers than int32 or int64 for offsets and columns, and fp64 or fp32 for "
        "values. Convert them.");
  if (rows.rows < 1) throw Error(ErrorCode::usage, "a matrix without rows. Pass one with some.");
  if (rows.offsets.size <= rows.rows)
    throw Error(ErrorCode::usage,
                fmt::format("{} of {} (n rows have n + 1). Pass whole arrays.",
                            counted(rows.offsets.size, "offset"), counted(rows.rows, "row")));
  for (GpuArray const* array : {&rows.columns, &rows.values}) {
    if (array->size == 0 || array->device == rows.offsets.device) continue;
    throw Error(ErrorCode::usage,
                fmt::format("a matrix on GPUs {} and {} (one GPU looks at all of it). Put it on one.",
                            rows.offsets.device, array->device));
  }
}

Error error_of(RowFault const& fault, std::int64_t rows) {
  std::string what;
  switch (fault.kind) {
    case RowFault::Kind::none:
    case RowFault::Kind::offsets:
      what = fmt::format("it begins at entry {} and ends at {}", fault.before, fault.number);
      break;
    case RowFault::Kind::column:
      what = fmt::format("column {} of {}", fault.number, counted(rows, "row"));
      break;
    case RowFault::Kind::order:
      what = fmt::format("column {} after column {}", fault.number, fault.before);
      break;
  }
  return Error(
      ErrorCode::bad_input,
      fmt::format("row {}: {} (the matrix cannot be used). Give every row its columns once, rising, in "
                  "[0, rows), and offsets that start at 0 and end within columns and values.",
                  fault.row, what));
}

}  // namespace hostless
