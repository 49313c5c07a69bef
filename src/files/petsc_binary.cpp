#include "hostless/files/petsc_binary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/counted.hpp"
#include "base/setup_watch.hpp"
#include "files/binary.hpp"
#include "files/finished_rows.hpp"
#include "files/petsc_header.hpp"

namespace hostless {
namespace files {

namespace {

constexpr ElementType narrow_index{ElementType::Kind::integer, 4, true};
constexpr ElementType wide_index{ElementType::Kind::integer, 8, true};

// Whether an object of PETSc's begins at a byte: their class ids are 1211211 and a few more.
bool goes_on(ByteSource& source, ElementType index, std::int64_t at) {
  if (at >= source.size()) return false;
  std::array<unsigned char, 8> bytes{};
  auto const width = static_cast<std::size_t>(index.bytes);
  if (source.read_at(at, std::as_writable_bytes(std::span(bytes).first(width))) != width) return false;
  bool const high = std::all_of(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(width - 4),
                                [](unsigned char b) { return b == 0; });
  return high && bytes[width - 4] == 0x00 && bytes[width - 3] == 0x12 && bytes[width - 2] == 0x7b;
}

}  // namespace

ElementType petsc_sizes(ByteSource& source, std::int32_t id, std::span<std::int64_t> sizes) {
  std::array<unsigned char, 8> start{};
  auto const got = source.read_at(0, std::as_writable_bytes(std::span(start)));
  // A class id is below 2^31: eight bytes that begin with four of zero are one of 64 bits.
  bool const wide = got == start.size() && start[0] == 0 && start[1] == 0 && start[2] == 0 && start[3] == 0;
  ElementType const index = wide ? wide_index : narrow_index;
  auto const words = static_cast<std::int64_t>(sizes.size()) + 1;
  std::int64_t const there = std::min(words, source.size() / index.bytes);
  ElementReader reader(source, index, 0, 0, there);
  char const* const name = id == petsc_matrix_id ? "a matrix (Mat, 1211216)" : "a vector (Vec, 1211214)";
  if (there > 0) {
    std::int64_t const said = reader.whole();
    if (said != id)
      refuse(source.name(),
             fmt::format("the PETSc class id is {} (needed is {}). Give the file of the right object.", said,
                         name));
  }
  if (there < words) refuse(source.name(), "ends inside its header (it was cut short). Copy it again.");
  for (std::int64_t& size : sizes) size = reader.whole();
  return index;
}

bool is_petsc_vector(ByteSource& source) {
  std::array<std::byte, 8> start{};
  source.read_at(0, start);
  std::size_t const last = start[0] == std::byte{0} && start[1] == std::byte{0} ? 7 : 3;
  return start[last] == static_cast<std::byte>(petsc_vector_id & 255);
}

ElementType petsc_values(ByteSource& source, ElementType index, std::int64_t begin, std::int64_t count) {
  constexpr int single = 4, exact = 8, complex = 16;
  auto const end = [&](int bytes) { return begin + bytes * count; };
  // How many there can be is compared as a quotient: the count comes from the file.
  if (count > (source.size() - begin) / single) {
    refuse(source.name(),
           fmt::format("{} entries of at least {} bytes each from byte {} on, but there are {} (it was "
                       "cut short). Copy it again.",
                       count, single, begin, source.size()));
  }
  // That another object begins behind them is no accident; that the file ends there may be one.
  std::array<int, 3> const widths = {exact, single, complex};
  auto found = std::find_if(widths.begin(), widths.end(),
                            [&](int bytes) { return goes_on(source, index, end(bytes)); });
  if (found == widths.end())
    found =
        std::find_if(widths.begin(), widths.end(), [&](int bytes) { return end(bytes) == source.size(); });
  if (found != widths.end()) {
    int const bytes = *found;
    if (bytes == complex && count > 0) {
      refuse(source.name(),
             fmt::format(
                 "its {} values take 16 bytes each: they are complex (hostless computes with real numbers). "
                 "Write it with a PETSc of real scalars.",
                 count));
    }
    return {ElementType::Kind::real, bytes == single ? single : exact, true};
  }
  if (end(exact) > source.size()) {
    refuse(source.name(),
           fmt::format("{} entries take {} bytes but there are {} (it was cut short). Copy it again.", count,
                       end(exact), source.size()));
  }
  return {ElementType::Kind::real, exact, true};
}

namespace {

// Where the parts of a matrix lie.
struct Layout {
  std::int64_t rows, entries;
  ElementType index = narrow_index, value = {ElementType::Kind::real, 8, true};
  std::int64_t lengths() const { return 4 * index.bytes; }
  std::int64_t columns() const { return lengths() + index.bytes * rows; }
  std::int64_t values() const { return columns() + index.bytes * entries; }
  std::int64_t end() const { return values() + value.bytes * entries; }
};

Layout layout_of(ByteSource& source) {
  std::array<std::int64_t, 3> size{};
  Layout layout{0, 0};
  layout.index = petsc_sizes(source, petsc_matrix_id, size);
  auto const [rows, columns, entries] = size;
  if (rows != columns || rows < 1) {
    refuse(source.name(),
           fmt::format("{} and {} (the matrix must be square and not empty). Give another matrix.",
                       counted(rows, "row"), counted(columns, "column")));
  }
  if (entries < 0) {
    refuse(source.name(),
           fmt::format("{} entries (a dense matrix, or a damaged header). Write an AIJ matrix.", entries));
  }
  std::int64_t const most = source.size() / layout.index.bytes;
  layout.rows = rows;
  layout.entries = entries;
  if (rows > most || entries > most || layout.values() > source.size()) {
    refuse(
        source.name(),
        fmt::format(
            "{} rows and {} entries take more than the {} bytes that there are (it was cut short). Copy it "
            "again.",
            rows, entries, source.size()));
  }
  layout.value = petsc_values(source, layout.index, layout.values(), entries);
  return layout;
}

// The lengths of this rank's rows.
void count_rows(ByteSource& source, Layout const& layout, StoredRows& rows) {
  std::int64_t const first = rows.first_row(), last = rows.last_row();
  ElementReader lengths(source, layout.index, layout.lengths(), first, last - first);
  for (std::int64_t row = first; row < last; ++row) {
    std::int64_t const length = lengths.whole();
    if (length < 0 || length > layout.rows) {
      refuse(source.name(),
             fmt::format("row {} has {} entries (at most {} fit). The file is damaged: write it again.",
                         row + 1, length, layout.rows));
    }
    rows.count(row, length);
  }
}

void fill_rows(ByteSource& source, Layout const& layout, std::int64_t first_entry, StoredRows& rows) {
  std::int64_t const count = rows.entries();
  ElementReader columns(source, layout.index, layout.columns(), first_entry, count);
  ElementReader values(source, layout.value, layout.values(), first_entry, count);
  for (std::int64_t row = rows.first_row(); row < rows.last_row(); ++row) {
    // Rows are filled in their order, so the next one's cursor still says where this one ends.
    std::int64_t const length = rows.row_begin(row + 1) - rows.row_begin(row);
    for (std::int64_t k = 0; k < length; ++k) {
      std::int64_t const column = columns.whole();
      double const value = values.real();
      if (column < 0 || column >= layout.rows) {
        refuse(
            source.name(),
            fmt::format("row {} has column index {} (they run from 0 to {}). The file is damaged: write it "
                        "again.",
                        row + 1, column, layout.rows - 1));
      }
      if (!std::isfinite(value)) {
        refuse(
            source.name(),
            fmt::format("the value in row {}, column {} is {} (one such value spoils every result). Correct "
                        "it.",
                        row + 1, column + 1, value));
      }
      rows.put(row, column, value);
    }
  }
  finish_rows(source.name(), rows);
}

}  // namespace
}  // namespace files

std::unique_ptr<StoredRows> read_petsc_matrix(Group& group, std::string const& path, SizesKnown const& known,
                                              Symmetry symmetry, double symmetry_tolerance) {
  using namespace files;
  return memory_checked(path, [&] {
    std::unique_ptr<File> file;
    std::unique_ptr<StoredRows> rows;
    Layout layout{};
    group.together([&] {
      file = std::make_unique<File>(File::to_read(path));
      FileSource source(*file);
      layout = layout_of(source);
    });
    std::int64_t const entry_bytes = 4 + layout.value.bytes;
    if (known) known({layout.rows, layout.entries, entry_bytes});
    group.together([&] { rows = std::make_unique<StoredRows>(layout.rows, group.size(), group.rank()); });
    SetupStage const stage("reading", (layout.end() - layout.lengths()) / group.size());
    FileSource source(*file);
    group.together([&] { count_rows(source, layout, *rows); });
    // What the header says is only believed once the rows add up to it, so no rank allocates more than is in
    // the file.
    auto const [first_entry, total] = before(group, rows->counted());
    if (total != layout.entries) {
      refuse(path,
             fmt::format(
                 "its rows have {} entries but the header says {} (they must agree). The file is damaged: "
                 "write it again.",
                 total, layout.entries));
    }
    bool const narrow = layout.value.bytes == 4;
    group.together([&, first = first_entry] {
      rows->start(narrow ? StoredValue::single_width : StoredValue::double_width);
      fill_rows(source, layout, first, *rows);
    });
    if (symmetry == Symmetry::required) require_symmetry(group, path, *rows, symmetry_tolerance);
    return rows;
  });
}

void write_petsc_matrix(Group& group, std::string const& path, RowSource const& rows) {
  using namespace files;
  memory_checked(path, [&] {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    constexpr std::int64_t passes = 2;
    SetupStage const stage("generating and writing", passes * (rows.last_row() - rows.first_row()));
    std::int64_t mine = 0;
    group.together([&] {
      each_row(rows, [&](std::int64_t, RowPanel const& panel, std::size_t k) {
        mine += panel.offset[k + 1] - panel.offset[k];
      });
    });
    auto const [below, entries] = before(group, mine);
    Layout const layout{rows.global_rows(), entries};
    if (layout.rows > most || layout.entries > most) {
      throw Error(ErrorCode::usage,
                  fmt::format("{}: {} rows and {} entries (32-bit indices count to {}). Write Matrix "
                              "Market.",
                              path, layout.rows, layout.entries, most));
    }
    SharedOutput output(group, path);
    group.together([&, first = below] {
      ByteWriter lengths(output, layout.lengths() + 4 * rows.first_row());
      ByteWriter columns(output, layout.columns() + 4 * first), values(output, layout.values() + 8 * first);
      each_row(rows, [&](std::int64_t, RowPanel const& panel, std::size_t k) {
        auto const begin = static_cast<std::size_t>(panel.offset[k]),
                   end = static_cast<std::size_t>(panel.offset[k + 1]);
        lengths.put(big_endian(static_cast<std::int32_t>(end - begin)));
        for (std::size_t e = begin; e < end; ++e) {
          columns.put(big_endian(static_cast<std::int32_t>(panel.column[e])));
          values.put(big_endian(panel.value[e]));
        }
      });
      for (ByteWriter* writer : {&lengths, &columns, &values}) writer->flush();
      if (group.rank() != 0) return;
      ByteWriter header(output, 0);
      for (std::int64_t const word :
           {std::int64_t{petsc_matrix_id}, layout.rows, layout.rows, layout.entries}) {
        header.put(big_endian(static_cast<std::int32_t>(word)));
      }
      header.flush();
    });
    output.commit();
  });
}

}  // namespace hostless
