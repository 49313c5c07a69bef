// Lines of Matrix Market text. The numbers are read by fast_matrix_market's field parsers. Its loop over
// lines is not used: it needs every line to end in a newline, ignores what follows the last number and stops
// at NUL bytes.
#include "files/matrix_market/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fast_matrix_market/fast_matrix_market.hpp>
#include <string>

#include "base/nearest.hpp"

namespace hostless::files {
namespace {

namespace fmm = fast_matrix_market;

bool is_blank(char c) { return c == ' ' || c == '\t'; }

char const* skip_blanks(char const* at, char const* end) {
  while (at != end && is_blank(*at)) ++at;
  return at;
}

char const* word_end(char const* at, char const* end) {
  while (at != end && !is_blank(*at)) ++at;
  return at;
}

// What to show of a user's text: short, printable.
std::string shown(char const* begin, char const* end) {
  constexpr std::ptrdiff_t most = 24;
  std::string text(begin, begin + std::min<std::ptrdiff_t>(end - begin, most));
  for (char& c : text) c = c >= ' ' && c <= '~' ? c : '?';
  return end - begin > most ? text + "..." : text;
}

std::string shown_word(char const* at, char const* end) { return shown(at, word_end(at, end)); }

// One line without its end.
struct Line {
  char const* at;
  char const* end;
};

Line first_line(std::string_view text) {
  auto const newline = std::min(text.find('\n'), text.size());
  char const* end = text.data() + newline;
  if (newline != 0 && end[-1] == '\r') --end;
  return {text.data(), end};
}

// Reads one whole number and the blank behind it.
std::int64_t whole_number(Line& line, char const* what) {
  line.at = skip_blanks(line.at, line.end);
  char const* const begin = line.at;
  if (begin == line.end) {
    throw Problem(
        0, fmt::format("the {} is missing (the line ends too early). Write all numbers of it on one line.",
                       what));
  }
  std::int64_t number = 0;
  try {
    line.at = fmm::read_int(begin, line.end, number);
  } catch (fmm::out_of_range const&) {
    throw Problem(0, fmt::format("the {} {} does not fit into 64 bits (no matrix is that large). Correct it.",
                                 what, shown_word(begin, line.end)));
  } catch (fmm::fmm_error const&) {
    line.at = begin;
  }
  if (line.at == begin || (line.at != line.end && !is_blank(*line.at))) {
    throw Problem(
        0,
        fmt::format("\"{}\" is not {} {} (a whole number in digits is needed). Correct or remove the line.",
                    shown_word(begin, line.end), *what == 'i' ? "an" : "a", what));
  }
  return number;
}

// The end of the number that begins at `at`, or `at` where there is none. Fortran writes exponents of doubles
// with a D, which no parser of numbers knows.
char const* read_real(char const* at, char const* end, double& value) {
  char const* const stop = fmm::read_float(at, end, value, fmm::BestMatch);
  if (stop == at || stop == end || (*stop != 'D' && *stop != 'd')) return stop;
  std::array<char, longest_line> word;
  auto const length = std::min<std::ptrdiff_t>(word_end(at, end) - at, longest_line);
  std::copy_n(at, length, word.data());
  word[static_cast<std::size_t>(stop - at)] = 'e';
  char const* const through = fmm::read_float(word.data(), word.data() + length, value, fmm::BestMatch);
  return at + (through - word.data());
}

// Whether the number that is written there has no digit but 0 before its exponent.
bool is_written_as_zero(char const* at, char const* end) {
  for (; at != end && *at != 'e' && *at != 'E' && *at != 'd' && *at != 'D'; ++at)
    if (*at >= '1' && *at <= '9') return false;
  return true;
}

double real_number(Line& line) {
  line.at = skip_blanks(line.at, line.end);
  char const* const begin = line.at;
  if (begin == line.end) {
    throw Problem(0,
                  "the value is missing (the header says that each line has one). Add it, or say `pattern`.");
  }
  // Fortran's signs: the parser knows no leading plus.
  if (*line.at == '+' && line.end - line.at > 1 && line.at[1] != '-' && line.at[1] != '+') ++line.at;
  double value = 0.0;
  try {
    line.at = read_real(line.at, line.end, value);
  } catch (fmm::fmm_error const&) {
    line.at = begin;
  }
  if (line.at == begin || (line.at != line.end && !is_blank(*line.at))) {
    throw Problem(
        0, fmt::format("\"{}\" is not a number (values look like -1.5e-3; exponents begin with e or, as "
                       "Fortran's, d). Correct it.",
                       shown_word(begin, line.end)));
  }
  if (!std::isfinite(value)) {
    throw Problem(0,
                  fmt::format("the value {} is not finite (one such value spoils every result). Correct it.",
                              shown_word(begin, line.end)));
  }
  if (value == 0 && !is_written_as_zero(begin, line.at)) {
    throw Problem(0, fmt::format("the value {} is not 0, but would be read as 0 (doubles end at 4.9e-324). "
                                 "Scale the values, or write 0.",
                                 shown_word(begin, line.end)));
  }
  return value;
}

double value_of(Line& line, Field field) {
  if (field == Field::real) return real_number(line);
  if (field == Field::pattern) return 1.0;
  constexpr std::int64_t exact = std::int64_t{1} << 53;
  char const* const begin = skip_blanks(line.at, line.end);
  std::int64_t const number = whole_number(line, "integer value");
  if (number > exact || number < -exact) {
    throw Problem(
        0,
        fmt::format("the integer {} is beyond 2^53 (a double cannot hold it exactly). Scale the matrix, or "
                    "say `real`.",
                    shown_word(begin, line.end)));
  }
  return static_cast<double>(number);
}

void line_ends(Line line) {
  line.at = skip_blanks(line.at, line.end);
  if (line.at == line.end) return;
  throw Problem(
      0,
      fmt::format("\"{}\" follows the last number of the line (the header says nothing of it). Remove it, or "
                  "correct the header.",
                  shown(line.at, line.end)));
}

std::int64_t index_below(std::int64_t index, std::int64_t count, char const* what) {
  if (index >= 1 && index <= count) return index - 1;
  throw Problem(
      0, fmt::format("{} {} is outside the matrix (they run from 1 to {}). Correct it, or the sizes in the "
                     "header.",
                     what, index, count));
}

Entry entry_of(Line line, MarketHeader const& header) {
  Entry entry{};
  entry.row = index_below(whole_number(line, "row index"), header.rows, "row index");
  entry.column = index_below(whole_number(line, "column index"), header.columns, "column index");
  entry.value = value_of(line, header.field);
  line_ends(line);
  return entry;
}

// Calls read(line) for every line that is not blank; a Problem gets the byte of its line.
template <class Read>
void each_line(std::string_view lines, std::int64_t offset, std::vector<std::int64_t>* begins, Read&& read) {
  std::size_t at = 0;
  while (at < lines.size()) {
    std::string_view const rest = lines.substr(at);
    Line const line = first_line(rest);
    std::int64_t const begin = offset + static_cast<std::int64_t>(at);
    std::size_t const length = std::min(rest.find('\n'), rest.size());
    at += length + 1;
    char const* const word = skip_blanks(line.at, line.end);
    if (word == line.end && length <= longest_line) continue;
    try {
      if (length > longest_line) throw too_long(begin);
      if (*word == '%') {
        throw Problem(0,
                      "a comment among the numbers (comments belong before the line of sizes). Move it up.");
      }
      read(line);
    } catch (Problem& problem) {
      problem.offset = begin;
      throw;
    }
    if (begins != nullptr) begins->push_back(begin);
  }
}

// The header's lines one by one, whatever their number.
class HeaderLines {
 public:
  explicit HeaderLines(Text& text) : text_(text), buffer_(static_cast<std::size_t>(longest) + 1) {
    // Editors of one system put UTF-8's byte-order mark in front.
    constexpr std::string_view mark = "\xef\xbb\xbf";
    std::array<char, mark.size()> start{};
    if (text.read(0, start) == mark.size() && std::string_view(start.data(), start.size()) == mark)
      end_ = loaded_ = static_cast<std::int64_t>(mark.size());
  }
  // The next line; `begin` is its byte.
  Line next() {
    begin = end_;
    auto rest = buffered();
    auto newline = rest.find('\n');
    if (newline == std::string_view::npos) {
      loaded_ = begin;
      filled_ = static_cast<std::int64_t>(text_.read(begin, buffer_));
      rest = buffered();
      newline = rest.find('\n');
    }
    if (newline == std::string_view::npos) {
      if (text_.damage()) throw *text_.damage();
      if (rest.empty())
        throw Problem(begin, "the file ends before its line of sizes (nothing to read). Write it again.");
      if (rest.size() > longest) {
        throw Problem(
            begin,
            "a header line of more than 32768 characters (no such line is that long). Check that this is "
            "a Matrix Market file.");
      }
    }
    end_ = begin + static_cast<std::int64_t>(std::min(newline, rest.size() - 1)) + 1;
    return first_line(rest);
  }
  std::int64_t begin = 0;
  std::int64_t end() const { return end_; }

 private:
  static constexpr std::int64_t longest = 32768;
  std::string_view buffered() const {
    return {buffer_.data() + (begin - loaded_), static_cast<std::size_t>(loaded_ + filled_ - begin)};
  }
  Text& text_;
  std::vector<char> buffer_;
  std::int64_t loaded_ = 0, filled_ = 0, end_ = 0;
};

// In any case of letters, as the keywords.
bool is_banner(std::string_view word) { return is_same_word(word, fmm::kMatrixMarketBanner); }

// fast_matrix_market knows the keywords; which of them hostless takes is said here.
void read_banner(Line line, MarketHeader& header) {
  std::array<std::string, 5> word;
  char const* at = line.at;
  for (std::string& w : word) {
    at = skip_blanks(at, line.end);
    char const* const end = word_end(at, line.end);
    w.assign(at, end);
    at = end;
  }
  if (!is_banner(word[0])) {
    throw Problem(0, fmt::format("the first line begins with \"{}\" (known are %%MatrixMarket, PETSc binary "
                                 "and NumPy's npy and npz). Check that this is the right file.",
                                 shown_word(line.at, line.end)));
  }
  fmm::matrix_market_header said;
  try {
    said.object = fmm::parse_header_enum(word[1], fmm::object_map, 1);
    said.format = fmm::parse_header_enum(word[2], fmm::format_map, 1);
    said.field = fmm::parse_header_enum(word[3], fmm::field_map, 1);
    said.symmetry = fmm::parse_header_enum(word[4], fmm::symmetry_map, 1);
  } catch (fmm::fmm_error const&) {
    if (std::find(line.at, line.end, '\r') != line.end)
      throw Problem(0,
                    "lines end with a carriage return alone (the whole file reads as few lines, or one). "
                    "Write them with line feeds: tr '\\r' '\\n'.");
    throw Problem(
        0,
        fmt::format("the header \"{}\" has an unknown or missing word (it says how to read the rest). Write "
                    "`%%MatrixMarket matrix coordinate real symmetric` or the like.",
                    shown(line.at, line.end)));
  }
  line_ends({at, line.end});
  if (said.object != fmm::matrix) {
    throw Problem(
        0, "the header says `vector` (a dialect with several meanings). Write `matrix array real general`.");
  }
  header.array = said.format == fmm::array;
  if (said.field == fmm::complex || said.field == fmm::unsigned_integer) {
    throw Problem(
        0,
        fmt::format("the values are {} (hostless computes with real numbers). Give a real matrix.", word[3]));
  }
  header.field = said.field == fmm::integer   ? Field::integer
                 : said.field == fmm::pattern ? Field::pattern
                                              : Field::real;
  if (said.symmetry == fmm::skew_symmetric || said.symmetry == fmm::hermitian) {
    throw Problem(
        0, fmt::format(
               "the matrix is {} (symmetric and general ones are read). Write both triangles, as general.",
               word[4]));
  }
  header.symmetric = said.symmetry == fmm::symmetric;
  if (header.array && header.field == Field::pattern) {
    throw Problem(
        0,
        "an array that is pattern (a vector has no pattern). Write `matrix array real general` for a "
        "vector, `matrix coordinate` for a matrix.");
  }
}

void read_sizes(Line line, MarketHeader& header) {
  header.rows = whole_number(line, "number of rows");
  header.columns = whole_number(line, "number of columns");
  if (!header.array) header.entries = whole_number(line, "number of entries");
  line_ends(line);
  if (header.rows < 1 || header.columns < 1 || header.entries < 0) {
    throw Problem(
        0, fmt::format("sizes {} by {} with {} entries (nothing can be solved with it). Correct the sizes.",
                       header.rows, header.columns, header.entries));
  }
}

}  // namespace

MarketHeader read_market_header(Text& text) {
  HeaderLines lines(text);
  MarketHeader header;
  try {
    read_banner(lines.next(), header);
    for (;;) {
      Line const line = lines.next();
      char const* const word = skip_blanks(line.at, line.end);
      if (word == line.end || *word == '%') continue;
      read_sizes(line, header);
      break;
    }
  } catch (Problem& problem) {
    if (!text.damage() || problem.offset != text.damage()->offset) problem.offset = lines.begin;
    throw;
  }
  header.size_line = lines.begin;
  header.body = lines.end();
  return header;
}

void parse_entries(std::string_view lines, std::int64_t offset, MarketHeader const& header,
                   std::vector<Entry>& entries, std::vector<std::int64_t>* begins) {
  each_line(lines, offset, begins, [&](Line const& line) { entries.push_back(entry_of(line, header)); });
}

void parse_values(std::string_view lines, std::int64_t offset, MarketHeader const& header,
                  std::vector<double>& values, std::vector<std::int64_t>* begins) {
  each_line(lines, offset, begins, [&](Line line) {
    double const value = value_of(line, header.field);
    line_ends(line);
    values.push_back(value);
  });
}

}  // namespace hostless::files
