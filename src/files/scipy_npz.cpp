// scipy/sparse/_matrix_io.py: which arrays an archive has follows from the format of the matrix.
#include "hostless/files/scipy_npz.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/counted.hpp"
#include "base/setup_watch.hpp"
#include "files/finished_rows.hpp"
#include "files/npy.hpp"
#include "files/shared_output.hpp"
#include "files/zip.hpp"

namespace hostless {
namespace files {
namespace {

// One array of the archive.
struct Member {
  std::unique_ptr<ByteSource> source;
  NpyArray array;
  ElementReader elements(std::int64_t first, std::int64_t count) const {
    return ElementReader(*source, array.type, array.data, first, count);
  }
};

class Archive {
 public:
  explicit Archive(std::string const& path) : file_(File::to_read(path)), members_(zip_members(file_)) {}
  std::string const& path() const { return file_.path(); }
  // The members' checksums, shared out among the ranks.
  void verify_some(int rank, int size) const {
    for (std::size_t k = 0; k < members_.size(); ++k) {
      if (static_cast<int>(k % static_cast<std::size_t>(size)) == rank) verify(file_, members_[k]);
    }
  }
  bool has(std::string const& name) const { return find(name) != nullptr; }
  Member open(std::string const& name, std::size_t indices, bool text = false) const {
    ZipMember const* const found = find(name);
    if (found == nullptr) {
      std::vector<std::string> names;
      for (auto const& m : members_) names.push_back(m.name.substr(0, 24));
      if (names.size() > 10) names.resize(10);
      refuse(path(),
             fmt::format("has no {}.npy but {} (it is not a sparse matrix of scipy's). Write the matrix with "
                         "scipy.sparse.save_npz.",
                         name, fmt::join(names, ", ")));
    }
    Member member{zip_member(file_, *found), {}};
    member.array = npy_array(*member.source, text);
    if (member.array.shape.size() != indices) {
      refuse(member.source->name(),
             fmt::format("has {} indices where {} are needed (it is not scipy's). Write the "
                         "matrix with scipy.sparse.save_npz.",
                         member.array.shape.size(), indices));
    }
    return member;
  }
  // Numbers in an array of any shape.
  std::int64_t entries(std::string const& name) const {
    ZipMember const* const found = find(name);
    if (found == nullptr) open(name, 1);
    return npy_array(*zip_member(file_, *found)).count;
  }
  // An array of whole numbers.
  Member indices(std::string const& name, std::size_t extents = 1) const {
    Member member = open(name, extents);
    if (member.array.type.kind == ElementType::Kind::real)
      refuse(member.source->name(), "holds no whole numbers (they are indices). Write the matrix again.");
    return member;
  }

 private:
  ZipMember const* find(std::string const& name) const {
    for (ZipMember const& member : members_) {
      if (member.name == name + ".npy") return &member;
    }
    return nullptr;
  }
  File file_;
  std::vector<ZipMember> members_;
};

// Entries [first, last) of the rows of a matrix, one after the other.
struct Range {
  std::int64_t rows, first, last;
};

[[noreturn]] void outside(Member const& member, char const* what, std::int64_t index, std::int64_t count) {
  refuse(member.source->name(),
         fmt::format("{} {} is outside the matrix (they run from 0 to {}). The file is damaged: "
                     "write it again.",
                     what, index, count - 1));
}

void same_length(Member const& a, Member const& b) {
  if (a.array.shape[0] == b.array.shape[0]) return;
  refuse(a.source->name(),
         fmt::format("has {} entries but {} has {} (they must agree). The file is damaged: write it "
                     "again.",
                     a.array.shape[0], b.source->name(), b.array.shape[0]));
}

// csr and bsr, whose blocks have `height` rows and `width` columns.
template <class Visit>
void each_of_blocks(Archive const& archive, Range const& range, bool blocks, Visit&& visit) {
  Member const offsets = archive.indices("indptr"), columns = archive.indices("indices");
  Member const data = archive.open("data", blocks ? 3 : 1);
  std::int64_t const height = blocks ? data.array.shape[1] : 1, width = blocks ? data.array.shape[2] : 1;
  same_length(columns, data);
  if (blocks && data.array.fortran_order)
    refuse(data.source->name(),
           "is in Fortran order (blocks are read in C order). Write the matrix as csr, with "
           "A.tocsr().");
  if (height < 1 || width < 1 || range.rows % height != 0 || range.rows % width != 0) {
    refuse(data.source->name(),
           fmt::format("has blocks of {} by {} in {} rows (they do not divide them). The file is "
                       "damaged: write it again.",
                       height, width, range.rows));
  }
  std::int64_t const block_rows = range.rows / height, stored = columns.array.count;
  if (offsets.array.count != block_rows + 1) {
    refuse(offsets.source->name(),
           fmt::format("has {} entries where {} are needed. The file is damaged: write it "
                       "again.",
                       offsets.array.count, block_rows + 1));
  }
  if (range.first == range.last) return;
  std::int64_t const first = range.first / height, last = (range.last + height - 1) / height;
  auto bounds = offsets.elements(first, last + 1 - first);
  std::int64_t begin = bounds.whole();
  auto const check = [&](std::int64_t from, std::int64_t to) {
    if (from < 0 || to < from || to > stored) {
      refuse(offsets.source->name(),
             fmt::format("entries {} to {} of {} in one row (offsets rise). The file is damaged: "
                         "write it again.",
                         from, to, stored));
    }
  };
  auto const whole = [&](char const* which, std::int64_t offset, std::int64_t needed) {
    if (offset == needed) return;
    refuse(offsets.source->name(),
           fmt::format("has {} as its {} offset where {} is needed. The file is damaged: write "
                       "it again.",
                       offset, which, needed));
  };
  check(begin, begin);
  if (first == 0) whole("first", begin, 0);
  auto columns_of = columns.elements(begin, stored - begin);
  auto values_of = data.elements(begin * height * width, (stored - begin) * height * width);
  for (std::int64_t block_row = first; block_row < last; ++block_row) {
    std::int64_t const end = bounds.whole();
    check(begin, end);
    for (std::int64_t k = begin; k < end; ++k) {
      std::int64_t const column = columns_of.whole();
      if (column < 0 || column >= range.rows / width)
        outside(columns, "column index", column, range.rows / width);
      for (std::int64_t i = 0; i < height; ++i) {
        for (std::int64_t j = 0; j < width; ++j) {
          visit(block_row * height + i, column * width + j, values_of.real());
        }
      }
    }
    begin = end;
  }
  if (last == block_rows) whole("last", begin, stored);
}

template <class Visit>
void each_of_coordinates(Archive const& archive, Range const& range, Visit&& visit) {
  bool const together = archive.has("coords");
  Member const rows = archive.indices(together ? "coords" : "row", together ? 2 : 1);
  Member const columns = together ? archive.indices("coords", 2) : archive.indices("col");
  Member const data = archive.open("data", 1);
  std::int64_t const stored = data.array.count;
  if (together && (rows.array.shape[0] != 2 || rows.array.shape[1] != stored || rows.array.fortran_order)) {
    refuse(rows.source->name(),
           "is not two rows of indices in C order. Write the matrix as csr, with A.tocsr().");
  }
  if (!together) {
    same_length(rows, data);
    same_length(columns, data);
  }
  auto row_of = rows.elements(0, stored);
  auto column_of = columns.elements(together ? stored : 0, stored);
  auto value_of = data.elements(0, stored);
  for (std::int64_t k = 0; k < stored; ++k) {
    std::int64_t const row = row_of.whole(), column = column_of.whole();
    if (row < 0 || row >= range.rows) outside(rows, "row index", row, range.rows);
    if (column < 0 || column >= range.rows) outside(columns, "column index", column, range.rows);
    visit(row, column, value_of.real());
  }
}

// data[k, j] is entry (j - offsets[k], j); those that are 0 are not stored, as in scipy.
template <class Visit>
void each_of_diagonals(Archive const& archive, Range const& range, Visit&& visit) {
  Member const offsets = archive.indices("offsets"), data = archive.open("data", 2);
  if (data.array.fortran_order)
    refuse(data.source->name(),
           "is in Fortran order (diagonals are read in C order). Write the matrix as csr, with "
           "A.tocsr().");
  same_length(offsets, data);
  std::int64_t const length = data.array.shape[1];
  auto offset_of = offsets.elements(0, offsets.array.count);
  for (std::int64_t k = 0; k < offsets.array.count; ++k) {
    std::int64_t const offset = offset_of.whole();
    if (offset <= -range.rows || offset >= range.rows)
      continue;  // a diagonal outside the matrix, as scipy takes it
    std::int64_t const first = std::max<std::int64_t>(0, range.first + offset);
    std::int64_t const last = std::min({range.rows, length, range.last + offset});
    if (first >= last) continue;
    auto values = data.elements(k * length + first, last - first);
    for (std::int64_t column = first; column < last; ++column) {
      double const value = values.real();
      if (value != 0) visit(column - offset, column, value);
    }
  }
}

// Calls visit(row, column, value) for the entries of rows [range.first, range.last), and maybe of others. csc
// is csr of the transpose, which is the same matrix where it must be symmetric; else all columns are read.
template <class Visit>
void each_entry(Archive const& archive, std::string const& format, Range const& range, Symmetry symmetry,
                Visit&& visit) {
  if (format == "csc" && symmetry == Symmetry::any) {
    return each_of_blocks(
        archive, {range.rows, 0, range.rows}, false,
        [&](std::int64_t column, std::int64_t row, double value) { visit(row, column, value); });
  }
  if (format == "csr" || format == "csc") return each_of_blocks(archive, range, false, visit);
  if (format == "bsr") return each_of_blocks(archive, range, true, visit);
  if (format == "coo") return each_of_coordinates(archive, range, visit);
  if (format == "dia") return each_of_diagonals(archive, range, visit);
  refuse(archive.path(),
         fmt::format("its format is \"{}\" (known are csr, csc, bsr, coo and dia). Write the matrix with "
                     "scipy.sparse.save_npz.",
                     format));
}

std::string format_of(Archive const& archive) {
  Member const member = archive.open("format", 0, true);
  NpyArray const& array = member.array;
  std::string text;
  if (array.text) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(array.width));
    member.source->read_at(array.data, bytes);
    for (std::byte const byte : bytes) {  // of 32-bit characters the others are 0
      char const c = static_cast<char>(byte);
      if (c != '\0') text += c >= ' ' && c <= '~' ? c : '?';
    }
  }
  return text;
}

// The order of the matrix, which must be possible for so many stored numbers before anything is allocated for
// it.
std::int64_t rows_of(Archive const& archive) {
  Member const shape = archive.indices("shape");
  if (shape.array.count != 2)
    refuse(shape.source->name(),
           fmt::format("has {} extents (a matrix has two). Write a matrix.", shape.array.count));
  auto extents = shape.elements(0, 2);
  std::int64_t const rows = extents.whole(), columns = extents.whole();
  if (rows != columns || rows < 1) {
    refuse(archive.path(),
           fmt::format("{} and {} (the matrix must be square and not empty). Give another matrix.",
                       counted(rows, "row"), counted(columns, "column")));
  }
  std::int64_t const stored = archive.entries("data");
  constexpr std::int64_t small = 1024;
  if ((rows - small) / 2 > stored) {
    refuse(archive.path(), fmt::format("{} rows with only {} entries (beyond {} rows there must be one for "
                                       "every two, else most are empty). Write it again.",
                                       rows, stored, small));
  }
  return rows;
}

// What one rank holds of it.
class NpzReader {
 public:
  NpzReader(std::string const& path, int rank, int size, Symmetry symmetry)
      : archive_(path), symmetry_(symmetry) {
    archive_.verify_some(rank, size);
  }
  MatrixSizes sizes() const {
    constexpr std::int64_t entry_bytes = 8;
    // Of diagonals nobody knows how many of their numbers are 0.
    bool const known = format_of(archive_) != "dia";
    return {rows_of(archive_), known ? archive_.entries("data") : 0, entry_bytes};
  }
  void start(int rank, int size) {
    format_ = format_of(archive_);
    rows_ = std::make_unique<StoredRows>(rows_of(archive_), size, rank);
    each([&](std::int64_t row, std::int64_t column, double value) {
      if (!std::isfinite(value)) {
        refuse(archive_.path(),
               fmt::format("the value in row {}, column {} is {} (one such value spoils every result). "
                           "Correct it.",
                           row + 1, column + 1, value));
      }
      rows_->count(row);
      exact_ = exact_ && static_cast<double>(static_cast<float>(value)) == value;
    });
  }
  bool exact() const { return exact_; }
  bool by_columns() const { return format_ == "csc"; }
  std::unique_ptr<StoredRows> fill(bool narrow) {
    rows_->start(narrow ? StoredValue::single_width : StoredValue::double_width);
    bool announced = true;
    each([&](std::int64_t row, std::int64_t column, double value) {
      announced = announced && rows_->put(row, column, value);
    });
    if (!announced) {
      refuse(archive_.path(),
             "the file changed while it was read (its second reading differs from the first). Try again "
             "when nobody writes it.");
    }
    finish_rows(archive_.path(), *rows_);
    return std::move(rows_);
  }

 private:
  template <class Visit>
  void each(Visit&& visit) {
    std::int64_t const first = rows_->first_row(), last = rows_->last_row();
    each_entry(archive_, format_, {rows_->global_rows(), first, last}, symmetry_,
               [&](std::int64_t row, std::int64_t column, double value) {
                 if (row >= first && row < last) visit(row, column, value);
               });
  }
  Archive archive_;
  Symmetry symmetry_;
  std::string format_;
  std::unique_ptr<StoredRows> rows_;
  bool exact_ = true;
};

}  // namespace
}  // namespace files

std::unique_ptr<StoredRows> read_scipy_npz(Group& group, std::string const& path, SizesKnown const& known,
                                           Symmetry symmetry, double symmetry_tolerance) {
  using namespace files;
  return memory_checked(path, [&] {
    std::unique_ptr<NpzReader> reader;
    std::unique_ptr<StoredRows> rows;
    SetupStage const stage("reading");
    MatrixSizes sizes{};
    group.together([&] {
      reader = std::make_unique<NpzReader>(path, group.rank(), group.size(), symmetry);
      sizes = reader->sizes();
    });
    if (known) known(sizes);
    group.together([&] { reader->start(group.rank(), group.size()); });
    bool const narrow = !group.any(!reader->exact());
    group.together([&] { rows = reader->fill(narrow); });
    if (symmetry == Symmetry::required)
      require_symmetry(group, path, *rows, symmetry_tolerance, reader->by_columns());
    return rows;
  });
}

}  // namespace hostless
