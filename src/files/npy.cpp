// NumPy's array files: numpy/lib/format.py describes versions 1, 2 and 3; only the width of the header's
// length and the encoding of names (of which plain arrays have none) differ.
#include "files/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "files/columns_text.hpp"
#include "hostless/base/error.hpp"

namespace hostless::files {
namespace {

// A Python dictionary literal of the three keys that every header has.
class HeaderText {
 public:
  explicit HeaderText(std::string_view text) : rest_(text) {}
  bool take(char c) {
    skip_blanks();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take(std::string_view word) {
    skip_blanks();
    if (rest_.substr(0, word.size()) != word) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::string_view> quoted() {
    skip_blanks();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return std::nullopt;
    auto const end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    auto const text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::optional<std::int64_t> number() {
    skip_blanks();
    std::int64_t value = 0;
    auto const [end, code] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (code != std::errc() || value < 0) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  bool over() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n')) rest_.remove_prefix(1);
    return rest_.empty();
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

struct Described {
  std::optional<std::string_view> kind;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;
};

std::optional<std::vector<std::int64_t>> shape_of(HeaderText& text) {
  std::vector<std::int64_t> shape;
  if (!text.take('(')) return std::nullopt;
  while (!text.take(')')) {
    auto const extent = text.number();
    if (!extent || shape.size() == 32) return std::nullopt;
    shape.push_back(*extent);
    if (!text.take(',')) {
      if (shape.size() == 1 || !text.take(')')) return std::nullopt;  // one extent alone needs its comma
      break;
    }
  }
  return shape;
}

bool read_key(HeaderText& text, Described& described) {
  auto const key = text.quoted();
  if (!key || !text.take(':')) return false;
  if (*key == "descr" && !described.kind) {
    described.kind = text.quoted();
    return described.kind.has_value();
  }
  if (*key == "fortran_order" && !described.fortran_order) {
    if (text.take("True")) described.fortran_order = true;
    if (text.take("False")) described.fortran_order = false;
    return described.fortran_order.has_value();
  }
  if (*key == "shape" && !described.shape) {
    described.shape = shape_of(text);
    return described.shape.has_value();
  }
  return false;
}

std::optional<Described> read_dictionary(std::string_view header) {
  HeaderText text(header);
  Described described;
  if (!text.take('{')) return std::nullopt;
  while (!text.take('}')) {
    if (!read_key(text, described)) return std::nullopt;
    if (text.take(',')) continue;
    if (!text.take('}')) return std::nullopt;
    break;
  }
  if (!text.over() || !described.kind || !described.fortran_order || !described.shape) return std::nullopt;
  return described;
}

// '<f8' and the like: a byte order, a kind, and bytes ('U' counts characters of 4).
void read_type(ByteSource const& source, std::string_view said, bool text, NpyArray& array) {
  std::string_view rest = said;
  char const order = rest.empty() || std::string_view("<>=|").find(rest.front()) == std::string_view::npos
                         ? '='
                         : rest.front();
  if (!rest.empty() && rest.front() == order) rest.remove_prefix(1);
  char const kind = rest.empty() ? ' ' : rest.front();
  int bytes = 0;
  auto const* const end = rest.data() + rest.size();
  bool const sized = !rest.empty() &&
                     std::from_chars(rest.data() + 1, end, bytes) == std::from_chars_result{end, std::errc()};
  auto const shown = said.substr(0, 24);
  if (kind == 'c') {
    refuse(source.name(),
           fmt::format("the entries are complex (\"{}\"; hostless computes with real numbers). Save their "
                       "real part, if that is all.",
                       shown));
  }
  bool const powers = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
  bool const is_number = sized && ((kind == 'f' && powers && bytes > 1) || (kind == 'b' && bytes == 1) ||
                                   ((kind == 'i' || kind == 'u') && powers));
  array.text = text && sized && bytes > 0 && bytes <= 16 && (kind == 'S' || kind == 'U');
  if (!is_number && !array.text) {
    refuse(source.name(),
           fmt::format("the entries are of type \"{}\" (known are real numbers of 2, 4 and 8 bytes, "
                       "integers and booleans). Convert with astype(\"f8\").",
                       shown));
  }
  using Kind = ElementType::Kind;
  array.type.kind = kind == 'f'   ? Kind::real
                    : kind == 'b' ? Kind::boolean
                    : kind == 'i' ? Kind::integer
                                  : Kind::natural;
  array.type.bytes = array.text ? 1 : bytes;
  array.width = kind == 'U' ? 4 * std::int64_t{bytes} : bytes;
  array.type.big_endian =
      order == '>' || ((order == '=' || order == '|') && std::endian::native == std::endian::big);
}

// "9600, 8 each".
std::string bytes_asked(NpyArray const& array) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (std::find(array.shape.begin(), array.shape.end(), 0) != array.shape.end()) return "none";
  std::int64_t bytes = array.width;
  for (std::int64_t const extent : array.shape) {
    if (extent > most / bytes) return fmt::format("more than {}, {} each", most, array.width);
    bytes *= extent;
  }
  return fmt::format("{}, {} each", bytes, array.width);
}

// Extents of 0 hide others of any size; products are compared as quotients.
void check_bytes(ByteSource const& source, NpyArray& array) {
  std::int64_t const bytes = source.size() - array.data;
  std::int64_t const most = bytes / array.width;
  bool fits = true, empty = false;
  for (std::int64_t const extent : array.shape) empty = empty || extent == 0;
  for (std::int64_t const extent : array.shape) {
    fits = fits && !empty && extent <= most / array.count;
    if (fits) array.count *= extent;
  }
  if (empty) array.count = 0;
  if ((!fits && !empty) || array.count != most || bytes % array.width != 0) {
    refuse(source.name(),
           fmt::format("holds {} bytes of data but its shape ({}) asks for {} (it was cut short or has too "
                       "much). Save it again.",
                       bytes, fmt::join(array.shape, ", "), bytes_asked(array)));
  }
}

}  // namespace

NpyArray npy_array(ByteSource& source, bool text) {
  std::array<unsigned char, 12> start{};
  auto const got = source.read_at(0, std::as_writable_bytes(std::span(start)));
  std::int64_t const fixed = start[6] == 1 ? 10 : 12;
  constexpr std::array<unsigned char, 6> magic = {0x93, 'N', 'U', 'M', 'P', 'Y'};
  if (got >= magic.size() && !std::equal(magic.begin(), magic.end(), start.begin()))
    refuse(source.name(), "does not begin as a NumPy array (it is something else). Save it with numpy.save.");
  if (static_cast<std::int64_t>(got) < fixed)
    refuse(source.name(), "ends inside its header (it was cut short). Save it again.");
  if (start[6] < 1 || start[6] > 3 || start[7] != 0) {
    refuse(source.name(),
           fmt::format("has .npy version {}.{} (known are 1.0, 2.0 and 3.0). Save it with another NumPy.",
                       start[6], start[7]));
  }
  std::int64_t length = start[8] + 256 * start[9];
  if (start[6] > 1) length += (std::int64_t{start[10]} << 16) + (std::int64_t{start[11]} << 24);
  constexpr std::int64_t longest = 65536;
  if (length > longest || fixed + length > source.size()) {
    refuse(source.name(),
           fmt::format("its header claims {} bytes (the file has {}, and no array of numbers needs more "
                       "than {}). Save it again.",
                       length, source.size(), longest));
  }
  std::string header(static_cast<std::size_t>(length), '\0');
  source.read_at(fixed, std::as_writable_bytes(std::span(header)));
  auto const described = read_dictionary(header);
  if (!described) {
    refuse(source.name(),
           "its header is not a dictionary of descr, fortran_order and shape of plain numbers (it is "
           "damaged, or of "
           "records). Save it again.");
  }
  NpyArray array;
  read_type(source, *described->kind, text, array);
  array.fortran_order = *described->fortran_order;
  array.shape = *described->shape;
  array.data = fixed + length;
  check_bytes(source, array);
  return array;
}

NpyArray npy_vector(ByteSource& source, int columns) {
  NpyArray array = npy_array(source);
  auto const& shape = array.shape;
  if (columns > 1) {
    if (shape.size() == 2 && shape[1] == columns) return array;
    if (shape.size() == 1 || shape.size() == 2)
      refuse(source.name(), other_columns(shape.size() == 1 ? 1 : shape[1], columns));
  }
  bool const is_vector = shape.size() == 1 || (shape.size() == 2 && (shape[0] == 1 || shape[1] == 1));
  if (!is_vector) {
    if (shape.size() == 2) refuse(source.name(), other_columns(shape[1], 1));
    refuse(source.name(), fmt::format("the array has shape ({}) (a vector is (n,), (n, 1) or (1, n); several "
                                      "are (n, k)). Save one column.",
                                      fmt::join(shape, ", ")));
  }
  return array;
}

std::string npy_array_header(std::vector<std::int64_t> const& shape, int value_bytes, bool fortran_order) {
  std::string text =
      fmt::format("{{'descr': '<f{}', 'fortran_order': {}, 'shape': ({}{}), }}", value_bytes,
                  fortran_order ? "True" : "False", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  constexpr std::size_t fixed = 10, alignment = 64;
  text.resize((fixed + text.size() + 1 + alignment - 1) / alignment * alignment - fixed - 1, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 255u);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

std::string npy_header(std::int64_t n, int columns) {
  return columns > 1 ? npy_array_header({n, columns}, 8, true) : npy_array_header({n}, 8, false);
}

}  // namespace hostless::files
