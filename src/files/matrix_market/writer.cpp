#include <fmt/format.h>

#include <charconv>

#include "base/setup_watch.hpp"
#include "files/binary.hpp"
#include "hostless/files/matrix_market.hpp"

namespace hostless {
namespace files {
namespace {

// One line of the file. std::to_chars without a precision writes the fewest digits that read back as the same
// bits.
class EntryLine {
 public:
  std::string_view write(std::int64_t row, std::int64_t column, double value) {
    char* at = text_.data();
    at = std::to_chars(at, at + most_index, row + 1).ptr;
    *at++ = ' ';
    at = std::to_chars(at, at + most_index, column + 1).ptr;
    *at++ = ' ';
    at = std::to_chars(at, at + most_value, value).ptr;
    *at++ = '\n';
    return {text_.data(), static_cast<std::size_t>(at - text_.data())};
  }

 private:
  static constexpr std::ptrdiff_t most_index = 20, most_value = 32;
  std::array<char, 2 * most_index + most_value + 3> text_{};
};

template <class Visit>
void each_line(RowSource const& rows, Symmetry symmetry, Visit&& visit) {
  EntryLine line;
  each_row(rows, [&](std::int64_t row, RowPanel const& panel, std::size_t k) {
    for (auto e = static_cast<std::size_t>(panel.offset[k]);
         e < static_cast<std::size_t>(panel.offset[k + 1]); ++e) {
      if (panel.column[e] > row && symmetry == Symmetry::required) break;
      visit(line.write(row, panel.column[e], panel.value[e]));
    }
  });
}

}  // namespace
}  // namespace files

void write_matrix_market(Group& group, std::string const& path, RowSource const& rows, Symmetry symmetry) {
  using namespace files;
  memory_checked(path, [&] {
    constexpr std::int64_t passes = 2;
    SetupStage const stage("generating and writing", passes * (rows.last_row() - rows.first_row()));
    std::int64_t lines = 0, bytes = 0;
    group.together([&] {
      each_line(rows, symmetry, [&](std::string_view line) {
        ++lines;
        bytes += static_cast<std::int64_t>(line.size());
      });
    });
    auto const n = rows.global_rows();
    auto const header =
        fmt::format("%%MatrixMarket matrix coordinate real {}\n{} {} {}\n",
                    symmetry == Symmetry::required ? "symmetric" : "general", n, n, group.sum(lines));
    std::int64_t const begin = static_cast<std::int64_t>(header.size()) + before(group, bytes).below;
    SharedOutput output(group, path);
    group.together([&] {
      ByteWriter body(output, begin);
      each_line(rows, symmetry, [&](std::string_view line) { body.put_text(line); });
      body.flush();
      if (group.rank() != 0) return;
      ByteWriter head(output, 0);
      head.put_text(header);
      head.flush();
    });
    output.commit();
  });
}

}  // namespace hostless
