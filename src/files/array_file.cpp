#include "hostless/files/array_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "files/array_runs.hpp"
#include "files/content/same_content.hpp"
#include "files/npy.hpp"
#include "hostless/base/error.hpp"

namespace hostless {
namespace files {
namespace {

constexpr std::size_t most_axes = 8;

ArrayForm form_of(NpyArray const& array, std::string const& path) {
  using Kind = ElementType::Kind;
  int const bytes = array.type.bytes;
  if (array.type.kind != Kind::real)
    refuse(path, fmt::format("holds {} (cells are fp32 or fp64, and which of them is not to be guessed). "
                             "Save it with astype(\"f4\") or astype(\"f8\").",
                             array.type.kind == Kind::boolean ? "booleans" : "integers"));
  if (bytes != 4 && bytes != 8)
    refuse(path, fmt::format("holds numbers of {} bytes (cells are fp32 or fp64). Save it with "
                             "astype(\"f4\") or astype(\"f8\").",
                             bytes));
  if (array.shape.empty() || array.shape.size() > most_axes)
    refuse(path, fmt::format("is an array of {} axes (1 to {} are read). Reshape it.", array.shape.size(),
                             most_axes));
  return {array.shape, bytes};
}

template <class Bits>
void reverse_bytes(std::span<std::byte> values) {
  for (std::size_t k = 0; k < values.size(); k += sizeof(Bits))
    std::reverse(values.begin() + static_cast<std::ptrdiff_t>(k),
                 values.begin() + static_cast<std::ptrdiff_t>(k + sizeof(Bits)));
}

// The number of a value of the part, as its indices in the array.
std::vector<std::int64_t> indices_of(ArrayPart const& part, std::int64_t number) {
  std::vector<std::int64_t> index = part.low;
  for (std::size_t a = index.size(); a-- > 0;) {
    std::int64_t const extent = part.high[a] - part.low[a];
    index[a] += number % extent;
    number /= extent;
  }
  return index;
}

template <class T>
void check_finite(std::string const& path, ArrayPart const& part, std::span<std::byte const> values) {
  for (std::size_t k = 0; k < values.size(); k += sizeof(T)) {
    T value;
    std::memcpy(&value, values.data() + k, sizeof value);
    if (std::isfinite(value)) continue;
    refuse(path,
           fmt::format("the value at [{}] is {} (one such value spoils all that it comes near). "
                       "Correct it.",
                       fmt::join(indices_of(part, static_cast<std::int64_t>(k / sizeof(T))), ", "), value));
  }
}

// The part with the last axis fastest, of one with the first axis fastest.
void turn(ArrayPart const& part, std::size_t bytes, std::span<std::byte const> from,
          std::span<std::byte> to) {
  std::size_t const axes = part.low.size();
  std::vector<std::int64_t> index(axes, 0), stride(axes, 1);
  for (std::size_t a = 1; a < axes; ++a) stride[a] = stride[a - 1] * (part.high[a - 1] - part.low[a - 1]);
  for (std::size_t at = 0; at < to.size(); at += bytes) {
    std::int64_t source = 0;
    for (std::size_t a = 0; a < axes; ++a) source += index[a] * stride[a];
    std::memcpy(to.data() + at, from.data() + static_cast<std::size_t>(source) * bytes, bytes);
    for (std::size_t a = axes; a-- > 0;) {
      if (++index[a] < part.high[a] - part.low[a]) break;
      index[a] = 0;
    }
  }
}

void read_part(File const& file, NpyArray const& array, ArrayPart const& part, std::span<std::byte> to) {
  ArrayForm form{array.shape, array.type.bytes};
  ArrayPart lying = part;
  std::vector<std::byte> turned;
  if (array.fortran_order) {
    std::reverse(form.shape.begin(), form.shape.end());
    std::reverse(lying.low.begin(), lying.low.end());
    std::reverse(lying.high.begin(), lying.high.end());
    turned.resize(to.size());
  }
  if (!read_runs(file, array.data, form, lying, array.fortran_order ? std::span(turned) : to))
    refuse(file.path(), "ends before its data (it was cut short). Copy it again.");
  if (array.fortran_order) turn(part, static_cast<std::size_t>(array.type.bytes), turned, to);
  bool const reversed = array.type.big_endian != (std::endian::native == std::endian::big);
  if (reversed && array.type.bytes == 4) reverse_bytes<float>(to);
  if (reversed && array.type.bytes == 8) reverse_bytes<double>(to);
}

void check_part(std::string const& path, ArrayForm const& form, ArrayPart const& part, std::size_t bytes) {
  bool fits = part.low.size() == form.shape.size() && part.high.size() == form.shape.size();
  std::int64_t values = 1;
  for (std::size_t a = 0; fits && a < form.shape.size(); ++a) {
    fits = part.low[a] >= 0 && part.low[a] <= part.high[a] && part.high[a] <= form.shape[a];
    values *= part.high[a] - part.low[a];
  }
  if (fits && bytes == static_cast<std::size_t>(values * form.value_bytes)) return;
  throw Error(
      ErrorCode::usage,
      fmt::format("{}: the part from [{}] to [{}] in {} bytes, of an array of shape ({}) (it is no part "
                  "of it). Pass one that lies inside, and as many bytes as it has.",
                  path, fmt::join(part.low, ", "), fmt::join(part.high, ", "), bytes,
                  fmt::join(form.shape, ", ")));
}

}  // namespace
}  // namespace files

ArrayForm array_form(Group& group, std::string const& path) {
  ArrayForm form;
  files::ContentMark mark;
  group.together([&] {
    File const file = File::to_read(path);
    files::FileSource source(file);
    form = files::form_of(files::npy_array(source), path);
    if (group.size() > 1) mark = files::mark_of(file);
  });
  files::require_same_content(group, path, mark);
  return form;
}

void read_array(Group& group, std::string const& path, ArrayForm const& form, ArrayPart const& part,
                std::span<std::byte> to) {
  group.together([&] {
    files::check_part(path, form, part, to.size());
    SetupStage const stage("reading an array", static_cast<std::int64_t>(to.size()));
    File const file = File::to_read(path);
    files::FileSource source(file);
    files::NpyArray const array = files::npy_array(source);
    if (files::form_of(array, path) != form)
      files::refuse(path, "has another shape or type than a moment ago (somebody writes it). Start again.");
    files::read_part(file, array, part, to);
    if (form.value_bytes == 4) files::check_finite<float>(path, part, to);
    if (form.value_bytes == 8) files::check_finite<double>(path, part, to);
  });
}

void write_array(Group& group, std::string const& path, ArrayForm const& form, ArrayPart const& part,
                 std::span<std::byte const> from) {
  static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");
  files::memory_checked(path, [&] {
    group.together([&] { files::check_part(path, form, part, from.size()); });
    files::SharedOutput output(group, path);
    group.together([&] {
      std::string const header = files::npy_array_header(form.shape, form.value_bytes, false);
      if (group.rank() == 0) output.write_at(0, std::as_bytes(std::span(header)));
      files::write_runs(output, static_cast<std::int64_t>(header.size()), form, part, from);
    });
    output.commit();
  });
}

}  // namespace hostless
