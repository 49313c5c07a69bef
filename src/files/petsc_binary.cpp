#include "hostless/files/petsc_binary.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "files/binary.hpp"
#include "files/petsc_header.hpp"

namespace hostless {
namespace files {

std::int64_t petsc_sizes(File const& file, std::int32_t id, std::span<std::int32_t> sizes) {
  std::array<std::int32_t, 4> words{};
  auto const wanted = std::as_writable_bytes(std::span(words).first(sizes.size() + 1));
  auto const got = file.read_at(0, wanted);
  for (auto& word : words) word = big_endian(word);
  auto const refuse = [&](std::string const& why) {
    throw Error(ErrorCode::bad_input, file.path() + ": " + why);
  };
  char const* const name = id == petsc_matrix_id ? "a matrix (Mat, 1211216)" : "a vector (Vec, 1211214)";
  if (got >= sizeof(std::int32_t) && words[0] != id) {
    refuse(fmt::format("the PETSc class id is {} (needed is {}). Give the file of the right object.",
                       words[0], name));
  }
  if (got != wanted.size()) refuse("ends inside its header (it was cut short). Copy it again.");
  for (std::size_t k = 0; k < sizes.size(); ++k) sizes[k] = words[k + 1];
  return static_cast<std::int64_t>(wanted.size());
}

void refuse_wide_indices(std::string const& path) {
  throw Error(
      ErrorCode::bad_input,
      path +
          ": was written by a PETSc with 64-bit indices (only 32-bit files are read). Write it with a PETSc "
          "configured without --with-64-bit-indices, or as Matrix Market.");
}

namespace {

[[noreturn]] void refuse(std::string const& path, std::string const& why) {
  throw Error(ErrorCode::bad_input, path + ": " + why);
}

struct Layout {
  std::int64_t rows, entries;
  std::int64_t lengths() const { return 16; }
  std::int64_t columns() const { return 16 + 4 * rows; }
  std::int64_t values() const { return 16 + 4 * rows + 4 * entries; }
  std::int64_t end() const { return 16 + 4 * rows + 12 * entries; }
};

Layout layout_of(File const& file) {
  std::array<std::int32_t, 3> size{};
  petsc_sizes(file, petsc_matrix_id, size);
  auto const [rows, columns, entries] = size;
  if (rows != columns || rows < 1) {
    refuse(file.path(),
           fmt::format("{} rows and {} columns (the matrix must be square and not empty). Give another "
                       "matrix.",
                       rows, columns));
  }
  if (entries < 0) {
    refuse(file.path(),
           fmt::format("{} entries (a dense matrix, or a damaged header). Write an AIJ matrix.", entries));
  }
  Layout const layout{rows, entries};
  if (layout.end() > file.size()) {
    refuse(file.path(),
           fmt::format("{} rows and {} entries take {} bytes but there are {} (it was cut short). Copy it "
                       "again.",
                       rows, entries, layout.end(), file.size()));
  }
  return layout;
}

// The lengths of this rank's rows.
void count_rows(File const& file, Layout const& layout, StoredRows& rows) {
  std::int64_t const first = rows.first_row(), last = rows.last_row();
  NumberReader<std::int32_t> lengths(file, layout.lengths() + 4 * first, last - first);
  for (std::int64_t row = first; row < last; ++row) {
    std::int32_t const length = big_endian(lengths.next());
    if (length < 0 || length > layout.rows) {
      refuse(file.path(),
             fmt::format("row {} has {} entries (at most {} fit). The file is damaged: write it again.",
                         row + 1, length, layout.rows));
    }
    rows.count(row, length);
  }
}

void fill_rows(File const& file, Layout const& layout, std::int64_t first_entry, StoredRows& rows) {
  std::int64_t const count = rows.entries();
  NumberReader<std::int32_t> columns(file, layout.columns() + 4 * first_entry, count);
  NumberReader<double> values(file, layout.values() + 8 * first_entry, count);
  for (std::int64_t row = rows.first_row(); row < rows.last_row(); ++row) {
    // Rows are filled in their order, so the next one's cursor still says where this one ends.
    std::int64_t const length = rows.row_begin(row + 1) - rows.row_begin(row);
    for (std::int64_t k = 0; k < length; ++k) {
      std::int64_t const column = big_endian(columns.next());
      double const value = big_endian(values.next());
      if (column < 0 || column >= layout.rows) {
        refuse(
            file.path(),
            fmt::format("row {} has column index {} (they run from 0 to {}). The file is damaged: write it "
                        "again.",
                        row + 1, column, layout.rows - 1));
      }
      if (!std::isfinite(value)) {
        refuse(
            file.path(),
            fmt::format("the value in row {}, column {} is {} (one such value spoils every result). Correct "
                        "it.",
                        row + 1, column + 1, value));
      }
      rows.put(row, column, value);
    }
  }
  rows.finish();
  if (auto const twice = rows.duplicate()) {
    refuse(file.path(),
           fmt::format("row {} has column {} twice (it is not clear which one holds). Assemble it before "
                       "writing.",
                       twice->row + 1, twice->column + 1));
  }
}

}  // namespace
}  // namespace files

std::unique_ptr<StoredRows> read_petsc_matrix(Group& group, std::string const& path) {
  using namespace files;
  return memory_checked(path, [&] {
    if (content_of(group, path) == Content::petsc_wide) refuse_wide_indices(path);
    std::unique_ptr<File> file;
    std::unique_ptr<StoredRows> rows;
    Layout layout{};
    group.together([&] {
      file = std::make_unique<File>(File::to_read(path));
      layout = layout_of(*file);
      rows = std::make_unique<StoredRows>(layout.rows, group.size(), group.rank());
    });
    group.together([&] { count_rows(*file, layout, *rows); });
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
    group.together([&, first = first_entry] {
      rows->start(StoredValue::double_width);
      fill_rows(*file, layout, first, *rows);
    });
    if (auto const found = check_symmetry(group, *rows)) {
      refuse(path, fmt::format(
                       "entry ({}, {}) is {} but ({}, {}) {} (conjugate gradients need a symmetric matrix). "
                       "Correct it.",
                       found->row + 1, found->column + 1, found->value, found->column + 1, found->row + 1,
                       found->missing ? "is missing" : fmt::format("is {}", found->mirror)));
    }
    return rows;
  });
}

void write_petsc_matrix(Group& group, std::string const& path, RowSource const& rows) {
  using namespace files;
  memory_checked(path, [&] {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
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
