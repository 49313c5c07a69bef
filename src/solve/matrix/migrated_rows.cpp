#include "solve/matrix/migrated_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/setup_watch.hpp"

namespace hostless {
namespace {

constexpr std::int64_t round_entries = 1 << 19;  // 8 MiB a rank and round
constexpr std::int64_t round_rows = 12 * 64;

// Appends a row with global columns, those in rising local columns.
template <class Local>
void append(RowPanel const& from, std::size_t row, Local const& local_column, LocalPanel& out,
            std::vector<std::pair<std::int32_t, double>>& entries) {
  entries.clear();
  for (auto k = from.offset[row]; k < from.offset[row + 1]; ++k) {
    auto const i = static_cast<std::size_t>(k);
    entries.emplace_back(local_column(from.column[i]), from.value[i]);
  }
  auto const less = [](auto const& a, auto const& b) { return a.first < b.first; };
  if (!std::is_sorted(entries.begin(), entries.end(), less)) std::sort(entries.begin(), entries.end(), less);
  for (auto const& [column, value] : entries) {
    out.column.push_back(column);
    out.value.push_back(value);
  }
  out.offset.push_back(static_cast<std::int64_t>(out.column.size()));
}

}  // namespace

void NaturalRows::panel(std::int64_t first, std::int64_t count, LocalPanel& out) const {
  RowPanel rows;
  {
    std::lock_guard const hold(mutex_);
    if (!idle_.empty()) {
      rows = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  std::int64_t const begin = assembly_.source_first(), owned = assembly_.owned();
  source_.panel(begin + first, count, rows);
  out.offset.swap(rows.offset);
  out.value.swap(rows.value);
  out.column.resize(rows.column.size());
  for (std::size_t k = 0; k < out.column.size(); ++k) {
    std::int64_t const inside = rows.column[k] - begin;
    bool const is_owned = inside >= 0 && inside < owned;
    out.column[k] = is_owned ? static_cast<std::int32_t>(inside) : assembly_.local_column(rows.column[k]);
  }
  std::lock_guard const hold(mutex_);
  idle_.push_back(std::move(rows));
}

MigratedRows::MigratedRows(Assembly const& assembly, Group& group, RowSource const& source)
    : assembly_(assembly) {
  SetupStage const stage("sending rows to their owners", source.last_row() - source.first_row());
  struct Header {
    std::int64_t row, entries;
  };
  auto const ranks = static_cast<std::size_t>(group.size());
  arrival_.assign(static_cast<std::size_t>(assembly.owned()), -1);
  int const b = assembly.block();
  std::int64_t next = source.first_row();
  bool more = true;
  while (more) {
    std::vector<std::vector<Header>> headers(ranks);
    std::vector<std::vector<std::int64_t>> columns(ranks);
    std::vector<std::vector<double>> values(ranks);
    group.together([&] {
      RowPanel panel;
      for (std::int64_t sent = 0; next < source.last_row() && sent < round_entries;) {
        std::int64_t const count = std::min(round_rows, source.last_row() - next);
        source.panel(next, count, panel);
        setup_step(count);
        for (std::int64_t i = 0; i < count; ++i) {
          auto const to = static_cast<std::size_t>(assembly.owner_of((next + i) / b));
          auto const begin = panel.offset[static_cast<std::size_t>(i)],
                     end = panel.offset[static_cast<std::size_t>(i) + 1];
          headers[to].push_back({next + i, end - begin});
          columns[to].insert(columns[to].end(), panel.column.begin() + begin, panel.column.begin() + end);
          values[to].insert(values[to].end(), panel.value.begin() + begin, panel.value.begin() + end);
        }
        sent += panel.offset.back();
        next += count;
      }
    });
    auto const new_headers = group.exchange_values(headers);
    auto const new_columns = group.exchange_values(columns);
    auto const new_values = group.exchange_values(values);
    group.together([&] {
      for (std::size_t r = 0; r < ranks; ++r) {
        for (Header const& h : new_headers[r]) {
          std::int64_t const block_row = assembly.local_block_row(h.row / b);
          arrival_[static_cast<std::size_t>(block_row * b + h.row % b)] =
              static_cast<std::int64_t>(offset_.size()) - 1;
          offset_.push_back(offset_.back() + h.entries);
        }
        column_.insert(column_.end(), new_columns[r].begin(), new_columns[r].end());
        value_.insert(value_.end(), new_values[r].begin(), new_values[r].end());
      }
    });
    more = group.any(next < source.last_row());
  }
}

void MigratedRows::panel(std::int64_t first, std::int64_t count, LocalPanel& out) const {
  out.clear();
  std::vector<std::pair<std::int32_t, double>> entries;
  RowPanel row;
  auto const local = [&](std::int64_t column) { return assembly_.local_column(column); };
  for (std::int64_t i = first; i < first + count; ++i) {
    auto const at = static_cast<std::size_t>(arrival_[static_cast<std::size_t>(i)]);
    row.offset = {0, offset_[at + 1] - offset_[at]};
    row.column.assign(column_.begin() + offset_[at], column_.begin() + offset_[at + 1]);
    row.value.assign(value_.begin() + offset_[at], value_.begin() + offset_[at + 1]);
    append(row, 0, local, out, entries);
  }
}

}  // namespace hostless
