#include "hostless/files/vector_file.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "base/counted.hpp"
#include "files/binary.hpp"
#include "files/matrix_market/vector.hpp"
#include "files/npy.hpp"
#include "files/owners.hpp"
#include "files/petsc_header.hpp"

namespace hostless {
namespace files {
namespace {

struct BinaryVector {
  ElementType type;
  std::int64_t data, entries;
  bool by_rows = false;  ///< of several columns: those of a row follow each other
  int columns = 1;
};

// Of the k-th number, from 0.
std::string words_of(BinaryVector const& vector, std::int64_t k) {
  if (vector.columns == 1) return fmt::format("entry {}", k + 1);
  std::int64_t const rows = vector.entries / vector.columns;
  auto const [row, column] =
      vector.by_rows ? std::pair(k / vector.columns, k % vector.columns) : std::pair(k % rows, k / rows);
  return fmt::format("row {} of column {}", row + 1, column + 1);
}

BinaryVector binary_vector(ByteSource& source, Content content, int columns = 1) {
  if (content == Content::npy) {
    NpyArray const array = npy_vector(source, columns);
    return {array.type, array.data, array.count, columns > 1 && !array.fortran_order, columns};
  }
  if (columns > 1)
    refuse(source.name(), fmt::format("one vector of PETSc's, and {} right-hand sides are solved for at once "
                                      "(nothing in it says where a column ends). Write .npy or a Matrix "
                                      "Market array.",
                                      columns));
  std::array<std::int64_t, 1> size{};
  ElementType const index = petsc_sizes(source, petsc_vector_id, size);
  std::int64_t const data = 2 * index.bytes;
  if (size[0] < 0) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: a vector of {} entries (its header is damaged). Write it again.",
                            source.name(), size[0]));
  }
  return {petsc_values(source, index, data, size[0]), data, size[0]};
}

std::vector<double> read_binary_share(ByteSource& source, BinaryVector const& vector, std::int64_t first,
                                      std::int64_t last) {
  std::vector<double> mine;
  mine.reserve(static_cast<std::size_t>(last - first));
  ElementReader numbers(source, vector.type, vector.data, first, last - first);
  for (std::int64_t k = first; k < last; ++k) {
    double const value = numbers.real();
    if (!std::isfinite(value)) {
      throw Error(ErrorCode::bad_input,
                  fmt::format("{}: {} is {} (one such value spoils every result). Correct it.", source.name(),
                              words_of(vector, k), value));
    }
    mine.push_back(value);
  }
  return mine;
}

[[noreturn]] void refuse_archive(std::string const& path) {
  throw Error(
      ErrorCode::bad_input,
      path + ": is an archive (.npz, .zip; one vector is needed). Save the vector alone, with numpy.save.");
}

/// This rank's share_first entries of all in the file, in its order.
struct Share {
  std::vector<double> entries;
  bool by_rows = false;
};

Share read_share(Group& group, std::string const& path, std::int64_t n, int columns) {
  Content const content = content_of(group, path);
  if (content == Content::zip) refuse_archive(path);
  if (content == Content::text) return {read_market_vector(group, path, n, columns)};
  Share mine;
  std::int64_t const all = n * columns;
  group.together([&] {
    File const file = File::to_read(path);
    FileSource source(file);
    BinaryVector const vector = binary_vector(source, content, columns);
    mine.by_rows = vector.by_rows;
    if (vector.entries != all) {
      throw Error(
          ErrorCode::bad_input,
          fmt::format(
              "{}: the vector has {} but the matrix has {} (they must agree). Give the vector of this "
              "matrix.",
              path, counted(vector.entries / columns, "entry", "entries"), counted(n, "row")));
    }
    mine.entries = read_binary_share(source, vector, share_first(all, group.size(), group.rank()),
                                     share_first(all, group.size(), group.rank() + 1));
  });
  return mine;
}

void check_ranges(std::string const& path, std::int64_t n, std::span<IndexRange const> ranges) {
  for (auto const [first, last] : ranges) {
    if (first < 0 || last < first || last > n) {
      throw Error(ErrorCode::usage,
                  fmt::format("{}: entries [{}, {}) of {} are asked for (they do not exist). Ask for a "
                              "part of [0, {}).",
                              path, first, last, n, n));
    }
  }
}

// Calls visit(owner, part) for the parts of `ranges` that lie with one owner each, in order.
template <class Visit>
void each_part(Owners const& owners, std::span<IndexRange const> ranges, Visit&& visit) {
  for (auto [first, last] : ranges) {
    while (first < last) {
      int const owner = owners.of(first);
      std::int64_t const end = std::min(last, owners.first(owner + 1));
      visit(static_cast<std::size_t>(owner), IndexRange{first, end});
      first = end;
    }
  }
}

// From contiguous shares to what everybody asked for.
std::vector<double> hand_out(Group& group, std::int64_t n, std::span<double const> share,
                             std::span<IndexRange const> ranges) {
  Owners const owners(n, group.size());
  auto const ranks = static_cast<std::size_t>(group.size());
  std::vector<std::vector<IndexRange>> ask(ranks);
  each_part(owners, ranges, [&](std::size_t owner, IndexRange part) { ask[owner].push_back(part); });
  auto const asked = group.exchange_values(ask);
  std::vector<std::vector<double>> give(ranks);
  std::int64_t const mine = owners.first(group.rank());
  for (std::size_t r = 0; r < ranks; ++r) {
    for (auto const [first, last] : asked[r]) {
      give[r].insert(give[r].end(), share.begin() + (first - mine), share.begin() + (last - mine));
    }
  }
  auto const given = group.exchange_values(give);
  std::vector<double> result;
  // Collective, so that no rank goes on with its part when another has no memory for its own.
  group.together([&] {
    std::vector<std::size_t> next(ranks, 0);
    each_part(owners, ranges, [&](std::size_t owner, IndexRange part) {
      auto const from = given[owner].begin() + static_cast<std::ptrdiff_t>(next[owner]);
      result.insert(result.end(), from, from + (part.last - part.first));
      next[owner] += static_cast<std::size_t>(part.last - part.first);
    });
  });
  return result;
}

constexpr std::size_t value_line_bytes = 25;

// All lines are equally long, so every rank knows its place without a look at the others' digits.
void put_value_line(ByteWriter& writer, double value) {
  constexpr int digits_behind_point = 16;
  std::array<char, value_line_bytes> text{};
  char* const end = std::to_chars(text.data(), text.data() + text.size(), value,
                                  std::chars_format::scientific, digits_behind_point)
                        .ptr;
  std::array<char, value_line_bytes> line{};
  line.fill(' ');
  line.back() = '\n';
  std::copy(text.data(), end, line.data() + (line.size() - 1) - (end - text.data()));
  writer.put(line);
}

enum class Form { npy, market, petsc };

Form form_of(std::string const& path, int columns) {
  auto const ends = [&](std::string_view with) {
    return path.size() > with.size() && std::string_view(path).substr(path.size() - with.size()) == with;
  };
  if (ends(".npy")) return Form::npy;
  if (ends(".mtx")) return Form::market;
  if (ends(".petsc") && columns > 1)
    throw Error(ErrorCode::usage, fmt::format("{}: {} columns (a vector of PETSc's has one). Name it .npy or "
                                              ".mtx.",
                                              path, columns));
  if (ends(".petsc")) return Form::petsc;
  throw Error(ErrorCode::usage,
              path +
                  ": has no known ending (it says how the vector is written). Name it .npy, .mtx or "
                  ".petsc.");
}

std::string header_of(Form form, std::int64_t n, int columns) {
  if (form == Form::npy) return npy_header(n, columns);
  if (form == Form::market)
    return fmt::format("%%MatrixMarket matrix array real general\n{} {}\n", n, columns);
  std::array<std::int32_t, 2> const words{big_endian(petsc_vector_id),
                                          big_endian(static_cast<std::int32_t>(n))};
  return {reinterpret_cast<char const*>(words.data()), sizeof(words)};
}

void put_value(ByteWriter& writer, Form form, double value) {
  if (form == Form::npy) writer.put(little_endian(value));
  if (form == Form::petsc) writer.put(big_endian(value));
  if (form == Form::market) put_value_line(writer, value);
}

void check_parts(Group& group, std::string const& path, std::int64_t n, std::int64_t first,
                 std::int64_t count) {
  auto const [below, total] = before(group, count);
  group.together([&, below = below, total = total] {
    if (first == below && total == n) return;
    throw Error(ErrorCode::usage,
                fmt::format("{}: rank {} has entries [{}, {}) but the ranks below have {} and all have {} "
                            "of {} (the parts must follow each other). Pass contiguous parts.",
                            path, group.rank(), first, first + count, below, total, n));
  });
}

}  // namespace
}  // namespace files

std::optional<RowsAndColumns> vector_shape(Group& group, std::string const& path) {
  using namespace files;
  return memory_checked(path, [&]() -> std::optional<RowsAndColumns> {
    Content const content = content_of(group, path);
    if (content == Content::zip) return {};
    if (content == Content::text) return market_vector_shape(group, path);
    std::optional<RowsAndColumns> shape;
    group.together([&] {
      File const file = File::to_read(path);
      FileSource source(file);
      if (content == Content::petsc && !is_petsc_vector(source)) return;
      int columns = 1;
      if (content == Content::npy)
        if (auto const extents = npy_array(source).shape; extents.size() == 2)
          columns = shape_of_vectors(extents[0], extents[1]).columns;
      shape = {binary_vector(source, content, columns).entries / columns, columns};
    });
    return shape;
  });
}

std::vector<double> read_vector(Group& group, std::string const& path, std::int64_t n,
                                std::span<IndexRange const> ranges) {
  return files::memory_checked(path, [&] {
    group.together([&] { files::check_ranges(path, n, ranges); });
    auto const share = files::read_share(group, path, n, 1);
    return files::hand_out(group, n, share.entries, ranges);
  });
}

std::vector<double> read_columns_share(Group& group, std::string const& path, RowsAndColumns shape,
                                       std::int64_t first, std::int64_t last) {
  auto const [n, columns] = shape;
  if (columns == 1) return read_vector_share(group, path, n, first, last);
  return files::memory_checked(path, [&, n = n, columns = columns] {
    IndexRange const rows{first, last};
    group.together([&] { files::check_ranges(path, n, std::span(&rows, 1)); });
    auto const share = files::read_share(group, path, n, columns);
    std::vector<IndexRange> ranges;
    if (share.by_rows) {
      ranges.push_back({first * columns, last * columns});
    } else {
      for (int c = 0; c < columns; ++c) ranges.push_back({c * n + first, c * n + last});
    }
    std::vector<double> given = files::hand_out(group, n * columns, share.entries, ranges);
    if (!share.by_rows) return given;
    std::vector<double> mine;
    group.together([&] {
      mine.reserve(given.size());
      for (auto c = 0; c < columns; ++c)
        for (auto k = static_cast<std::size_t>(c); k < given.size(); k += static_cast<std::size_t>(columns))
          mine.push_back(given[k]);
    });
    return mine;
  });
}

std::vector<double> read_vector_share(Group& group, std::string const& path, std::int64_t n,
                                      std::int64_t first, std::int64_t last) {
  IndexRange const range{first, last};
  return read_vector(group, path, n, std::span(&range, 1));
}

void write_vector(Group& group, std::string const& path, std::int64_t n, std::int64_t first,
                  std::span<double const> mine) {
  write_columns(group, path, {n, 1}, first, mine);
}

void write_columns(Group& group, std::string const& path, RowsAndColumns shape, std::int64_t first,
                   std::span<double const> mine) {
  using namespace files;
  auto const [n, columns] = shape;
  memory_checked(path, [&, n = n, columns = columns] {
    Form const form = form_of(path, columns);
    if (form == Form::market && n == 0)
      throw Error(ErrorCode::usage, path + ": no entries (no reader takes such an array). Write .npy.");
    if (form == Form::petsc && n > std::numeric_limits<std::int32_t>::max()) {
      throw Error(ErrorCode::usage,
                  fmt::format("{}: {} entries (32-bit indices cannot count them). Write .npy.", path, n));
    }
    auto const rows = mine.size() / static_cast<std::size_t>(columns);
    check_parts(group, path, n, first, static_cast<std::int64_t>(rows));
    SharedOutput output(group, path);
    group.together([&] {
      auto const header = header_of(form, n, columns);
      std::int64_t const bytes = form == Form::market ? static_cast<std::int64_t>(value_line_bytes) : 8;
      for (int c = 0; c < columns; ++c) {
        ByteWriter writer(output, static_cast<std::int64_t>(header.size()) + bytes * (c * n + first));
        for (double const value : mine.subspan(static_cast<std::size_t>(c) * rows, rows))
          put_value(writer, form, value);
        writer.flush();
      }
      if (group.rank() != 0) return;
      ByteWriter head(output, 0);
      head.put_text(header);
      head.flush();
    });
    output.commit();
  });
}

void check_vector_ending(std::string const& path, int columns) { files::form_of(path, columns); }

}  // namespace hostless
