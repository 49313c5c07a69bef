// NumPy's array files: numpy/lib/format.py describes versions 1, 2 and 3; only the width of the header's
// length and the encoding of names (of which plain arrays have none) differ.
#include "files/npy.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

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

[[noreturn]] void refuse(File const& file, std::string const& why) {
  throw Error(ErrorCode::bad_input, fmt::format("{}: {}", file.path(), why));
}

void check(File const& file, Described const& described, std::int64_t n) {
  if (*described.kind != "<f8") {
    refuse(
        file,
        fmt::format("the entries are of type \"{}\" (needed is \"<f8\": little-endian float64). Convert with "
                    "astype(\"<f8\").",
                    described.kind->substr(0, 24)));
  }
  if (*described.fortran_order) {
    refuse(
        file,
        "the array is in Fortran order (vectors are read in C order). Save numpy.ascontiguousarray of it.");
  }
  auto const& shape = *described.shape;
  if (shape.empty() || shape.size() > 2 || (shape.size() == 2 && shape[1] != 1)) {
    refuse(file, fmt::format("the array has shape ({}) (a vector is (n,) or (n, 1)). Save one column.",
                             fmt::join(shape, ", ")));
  }
  if (shape[0] != n) {
    refuse(file,
           fmt::format(
               "the vector has {} entries but the matrix has {} rows (they must agree). Give the vector of "
               "this matrix.",
               shape[0], n));
  }
}

}  // namespace

std::int64_t npy_data(File const& file, std::int64_t n) {
  std::array<unsigned char, 12> start{};
  auto const got = file.read_at(0, std::as_writable_bytes(std::span(start)));
  std::int64_t const fixed = start[6] == 1 ? 10 : 12;
  if (static_cast<std::int64_t>(got) < fixed)
    refuse(file, "ends inside its header (it was cut short). Save it again.");
  if (start[6] < 1 || start[6] > 3 || start[7] != 0) {
    refuse(file,
           fmt::format("has .npy version {}.{} (known are 1.0, 2.0 and 3.0). Save it with another NumPy.",
                       start[6], start[7]));
  }
  std::int64_t length = start[8] + 256 * start[9];
  if (start[6] > 1) length += (std::int64_t{start[10]} << 16) + (std::int64_t{start[11]} << 24);
  constexpr std::int64_t longest = 65536;
  if (length > longest || fixed + length > file.size()) {
    refuse(
        file,
        fmt::format(
            "its header claims {} bytes (the file has {}, and no vector needs more than {}). Save it again.",
            length, file.size(), longest));
  }
  std::string header(static_cast<std::size_t>(length), '\0');
  file.read_at(fixed, std::as_writable_bytes(std::span(header)));
  auto const described = read_dictionary(header);
  if (!described) {
    refuse(file,
           "its header is not a dictionary of descr, fortran_order and shape (it is damaged or not NumPy's). "
           "Save it "
           "again.");
  }
  check(file, *described, n);
  // n agrees with the matrix, but the product is compared as a quotient all the same: it comes from a file.
  std::int64_t const bytes = file.size() - fixed - length;
  if (bytes % 8 != 0 || bytes / 8 != n) {
    refuse(
        file,
        fmt::format(
            "holds {} bytes of data but {} entries take 8 each (it was cut short or has too much). Save it "
            "again.",
            bytes, n));
  }
  return fixed + length;
}

std::string npy_header(std::int64_t n) {
  std::string text = fmt::format("{{'descr': '<f8', 'fortran_order': False, 'shape': ({},), }}", n);
  constexpr std::size_t fixed = 10, alignment = 64;
  text.resize((fixed + text.size() + 1 + alignment - 1) / alignment * alignment - fixed - 1, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 255u);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace hostless::files
