#pragma once
// Where the values of a part of an array lie in a file: runs of them, as long as they follow each other
// there.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/file.hpp"
#include "base/setup_watch.hpp"
#include "files/shared_output.hpp"
#include "hostless/files/array_file.hpp"

namespace hostless::files {

/// Calls visit(number of the first value among those of the array, the same among those of the part, values)
/// for each run, the last axis fastest.
template <class Visit>
void each_run(std::vector<std::int64_t> const& shape, ArrayPart const& part, Visit&& visit) {
  auto const extent = [&](std::size_t axis) { return part.high[axis] - part.low[axis]; };
  std::size_t const axes = shape.size();
  for (std::size_t a = 0; a < axes; ++a)
    if (extent(a) <= 0) return;
  std::size_t first = axes - 1;  // of the axes that one run goes along
  while (first > 0 && extent(first) == shape[first]) --first;
  std::int64_t values = 1;
  for (std::size_t a = first; a < axes; ++a) values *= extent(a);
  std::vector<std::int64_t> index(part.low.begin(), part.low.begin() + static_cast<std::ptrdiff_t>(first));
  for (std::int64_t mine = 0;; mine += values) {
    std::int64_t at = 0;
    for (std::size_t a = 0; a < axes; ++a) at = at * shape[a] + (a < first ? index[a] : part.low[a]);
    visit(at, mine, values);
    std::size_t a = first;
    while (a > 0 && ++index[a - 1] == part.high[a - 1]) --a, index[a] = part.low[a];
    if (a == 0) return;
  }
}

constexpr std::size_t most_bytes_at_once = std::size_t{4} << 20;

/// Reads a part of an array that begins at byte `data`. Returns false where the file ends before.
inline bool read_runs(File const& file, std::int64_t data, ArrayForm const& form, ArrayPart const& part,
                      std::span<std::byte> to) {
  bool whole = true;
  each_run(form.shape, part, [&](std::int64_t at, std::int64_t mine, std::int64_t values) {
    std::span<std::byte> left = to.subspan(static_cast<std::size_t>(mine * form.value_bytes),
                                           static_cast<std::size_t>(values * form.value_bytes));
    for (std::int64_t offset = data + at * form.value_bytes; !left.empty() && whole;) {
      auto const some = left.first(std::min(left.size(), most_bytes_at_once));
      whole = file.read_at(offset, some) == some.size();
      setup_step(static_cast<std::int64_t>(some.size()));
      offset += static_cast<std::int64_t>(some.size());
      left = left.subspan(some.size());
    }
  });
  return whole;
}

/// Writes a part of an array that begins at byte `data`; inside Group::together.
inline void write_runs(SharedOutput const& file, std::int64_t data, ArrayForm const& form,
                       ArrayPart const& part, std::span<std::byte const> from) {
  each_run(form.shape, part, [&](std::int64_t at, std::int64_t mine, std::int64_t values) {
    std::span<std::byte const> left = from.subspan(static_cast<std::size_t>(mine * form.value_bytes),
                                                   static_cast<std::size_t>(values * form.value_bytes));
    for (std::int64_t offset = data + at * form.value_bytes; !left.empty();) {
      auto const some = left.first(std::min(left.size(), most_bytes_at_once));
      file.write_at(offset, some);
      offset += static_cast<std::int64_t>(some.size());
      left = left.subspan(some.size());
    }
  });
}

}  // namespace hostless::files
