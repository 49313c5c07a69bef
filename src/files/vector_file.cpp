#include "hostless/files/vector_file.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

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
};

BinaryVector binary_vector(ByteSource& source, Content content) {
  if (content == Content::npy) {
    NpyArray const array = npy_vector(source);
    return {array.type, array.data, array.count};
  }
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
                  fmt::format("{}: entry {} is {} (one such value spoils every result). Correct it.",
                              source.name(), k + 1, value));
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

// This rank's share_first entries.
std::vector<double> read_share(Group& group, std::string const& path, std::int64_t n) {
  Content const content = content_of(group, path);
  if (content == Content::zip) refuse_archive(path);
  if (content == Content::text) return read_market_vector(group, path, n);
  std::vector<double> mine;
  group.together([&] {
    File const file = File::to_read(path);
    FileSource source(file);
    BinaryVector const vector = binary_vector(source, content);
    if (vector.entries != n) {
      throw Error(
          ErrorCode::bad_input,
          fmt::format("{}: the vector has {} entries but the matrix has {} rows (they must agree). Give the "
                      "vector of this matrix.",
                      path, vector.entries, n));
    }
    mine = read_binary_share(source, vector, share_first(n, group.size(), group.rank()),
                             share_first(n, group.size(), group.rank() + 1));
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

Form form_of(std::string const& path) {
  auto const ends = [&](std::string_view with) {
    return path.size() > with.size() && std::string_view(path).substr(path.size() - with.size()) == with;
  };
  if (ends(".npy")) return Form::npy;
  if (ends(".mtx")) return Form::market;
  if (ends(".petsc")) return Form::petsc;
  throw Error(ErrorCode::usage,
              path +
                  ": has no known ending (it says how the vector is written). Name it .npy, .mtx or "
                  ".petsc.");
}

std::string header_of(Form form, std::int64_t n) {
  if (form == Form::npy) return npy_header(n);
  if (form == Form::market) return fmt::format("%%MatrixMarket matrix array real general\n{} 1\n", n);
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

std::optional<std::int64_t> vector_entries(Group& group, std::string const& path) {
  using namespace files;
  return memory_checked(path, [&]() -> std::optional<std::int64_t> {
    Content const content = content_of(group, path);
    if (content == Content::zip) return {};
    if (content == Content::text) return market_vector_entries(group, path);
    std::int64_t entries = -1;
    group.together([&] {
      File const file = File::to_read(path);
      FileSource source(file);
      if (content == Content::petsc && !is_petsc_vector(source)) return;
      entries = binary_vector(source, content).entries;
    });
    return entries < 0 ? std::nullopt : std::optional(entries);
  });
}

std::vector<double> read_vector(Group& group, std::string const& path, std::int64_t n,
                                std::span<IndexRange const> ranges) {
  return files::memory_checked(path, [&] {
    group.together([&] { files::check_ranges(path, n, ranges); });
    auto const share = files::read_share(group, path, n);
    return files::hand_out(group, n, share, ranges);
  });
}

std::vector<double> read_vector_share(Group& group, std::string const& path, std::int64_t n,
                                      std::int64_t first, std::int64_t last) {
  IndexRange const range{first, last};
  return read_vector(group, path, n, std::span(&range, 1));
}

void write_vector(Group& group, std::string const& path, std::int64_t n, std::int64_t first,
                  std::span<double const> mine) {
  using namespace files;
  memory_checked(path, [&] {
    Form const form = form_of(path);
    if (form == Form::petsc && n > std::numeric_limits<std::int32_t>::max()) {
      throw Error(ErrorCode::usage,
                  fmt::format("{}: {} entries (32-bit indices cannot count them). Write .npy.", path, n));
    }
    check_parts(group, path, n, first, static_cast<std::int64_t>(mine.size()));
    SharedOutput output(group, path);
    group.together([&] {
      auto const header = header_of(form, n);
      std::int64_t const bytes = form == Form::market ? static_cast<std::int64_t>(value_line_bytes) : 8;
      ByteWriter writer(output, static_cast<std::int64_t>(header.size()) + bytes * first);
      for (double const value : mine) put_value(writer, form, value);
      writer.flush();
      if (group.rank() != 0) return;
      ByteWriter head(output, 0);
      head.put_text(header);
      head.flush();
    });
    output.commit();
  });
}

void check_vector_ending(std::string const& path) { files::form_of(path); }

}  // namespace hostless
