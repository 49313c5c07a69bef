#include "files/matrix_market/vector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/counted.hpp"
#include "files/columns_text.hpp"
#include "files/matrix_market/text.hpp"
#include "files/owners.hpp"
#include "files/progress.hpp"

namespace hostless::files {
namespace {

constexpr std::int64_t block_bytes = 256 << 10;

// Where a column of a lower triangle of n rows begins, column after column.
std::int64_t triangle_begin(std::int64_t n, std::int64_t column) {
  return column * n - column * (column - 1) / 2;
}

// With the values of all columns as the rows of one.
MarketHeader checked_header(Text& text, std::int64_t n, int columns) {
  MarketHeader header = read_market_header(text);
  if (!header.array) {
    throw Problem(0,
                  "the vector is given as coordinates (its entries are needed in their order). Write `matrix "
                  "array real "
                  "general`.");
  }
  if (columns == 1 && header.rows == 1) std::swap(header.rows, header.columns);  // a vector may lie as a row
  if (header.rows != n || (header.columns != columns && columns == 1 && header.columns < 2)) {
    throw Problem(header.size_line,
                  fmt::format("{} and {} (the matrix has {} and needs {}). Give the vector of this matrix.",
                              counted(header.rows, "row"), counted(header.columns, "column"),
                              counted(n, "row"), columns == 1 ? "one column" : counted(columns, "column")));
  }
  if (header.columns != columns) throw Problem(header.size_line, other_columns(header.columns, columns));
  if (header.symmetric && n != columns) {
    throw Problem(header.size_line,
                  fmt::format("a symmetric array of {} and {} (it must be square). Correct the sizes.",
                              counted(n, "row"), counted(columns, "column")));
  }
  header.rows = header.symmetric ? triangle_begin(n, n) : n * columns;
  header.columns = 1;
  return header;
}

// Blocks are dealt in turns, so that the values of a round follow each other in rank order and need no index.
class VectorReader {
 public:
  VectorReader(Group& group, Text& text, MarketHeader const& header)
      : group_(group), text_(text), header_(header), owners_(header.rows, group.size()) {}

  std::vector<double> read() {
    std::int64_t const first = owners_.first(group_.rank()), last = owners_.first(group_.rank() + 1);
    group_.together([&] { mine_.resize(static_cast<std::size_t>(last - first)); });
    Blocks blocks(text_, dealt_blocks(header_.body, group_.rank(), group_.size(), block_bytes));
    std::optional<Problem> problem;
    bool finished = false;
    for (std::int64_t done = 0;;) {
      begins_.clear();
      values_.clear();
      keep_problem(problem, [&] {
        if (problem || finished) return;
        finished = !blocks.next();
        parse_values(blocks.lines(), blocks.offset(), header_, values_, &begins_);
      });
      // A round's values only count when every rank before this one read its own without a problem.
      auto const all = share_progress(group_, text_, problem, blocks.position(), finished,
                                      static_cast<std::int64_t>(values_.size()));
      if (std::all_of(all.begin(), all.end(), [](Progress const& p) { return p.finished; })) {
        check_end(done);
        return std::move(mine_);
      }
      done = pass_on(all, done, problem);
    }
  }

 private:
  void check_end(std::int64_t done) {
    if (done == header_.rows) return;
    on_first_rank<int>(group_, text_, [&]() -> int {
      throw Problem(text_.text_bytes(),
                    fmt::format("the file ends after {} of {} values (it was cut short, or the header "
                                "is wrong). Copy it again, or correct the header.",
                                done, header_.rows));
    });
  }

  // Sends this round's values to their owners; returns how many were read in all.
  std::int64_t pass_on(std::vector<Progress> const& all, std::int64_t done, std::optional<Problem>& problem) {
    std::vector<std::int64_t> begin{done};
    for (Progress const& p : all) begin.push_back(begin.back() + p.count);
    auto const rank = static_cast<std::size_t>(group_.rank());
    if (!problem && begin[rank + 1] > header_.rows && begin[rank] <= header_.rows && !values_.empty() &&
        header_.rows - begin[rank] < static_cast<std::int64_t>(values_.size())) {
      problem.emplace(
          begins_[static_cast<std::size_t>(header_.rows - begin[rank])],
          fmt::format("one more than the {} values that the header says. Correct the header or remove lines.",
                      header_.rows));
    }
    std::vector<std::vector<double>> to(all.size());
    for (std::size_t r = 0; r < to.size(); ++r) {
      auto const [low, high] = overlap(begin[rank], begin[rank + 1], r);
      if (low < high)
        to[r].assign(values_.begin() + (low - begin[rank]), values_.begin() + (high - begin[rank]));
    }
    auto const from = group_.exchange_values(to);
    for (std::size_t r = 0; r < from.size(); ++r) {
      auto const [low, high] = overlap(begin[r], begin[r + 1], rank);
      if (low < high)
        std::copy(from[r].begin(), from[r].end(), mine_.begin() + (low - owners_.first(group_.rank())));
    }
    return begin.back();
  }

  // The part of [low, high) that `owner` holds.
  std::pair<std::int64_t, std::int64_t> overlap(std::int64_t low, std::int64_t high,
                                                std::size_t owner) const {
    return {std::max(low, owners_.first(static_cast<int>(owner))),
            std::min(high, owners_.first(static_cast<int>(owner) + 1))};
  }

  Group& group_;
  Text& text_;
  MarketHeader header_;
  Owners owners_;
  std::vector<double> mine_, values_;
  std::vector<std::int64_t> begins_;
};

// This rank's share of all n columns, from the ranks' shares of the lower triangle: scipy's mmwrite leaves out the
// other one where a square array happens to be symmetric.
std::vector<double> both_triangles(Group& group, std::int64_t n, std::vector<double> const& triangle) {
  Owners const of_triangle(triangle_begin(n, n), group.size()), of_all(n * n, group.size());
  auto const rank = group.rank();
  std::vector<std::vector<std::int64_t>> ask(static_cast<std::size_t>(group.size()));
  std::vector<std::size_t> owner;
  group.together([&] {
    for (std::int64_t k = of_all.first(rank); k < of_all.first(rank + 1); ++k) {
      auto const [column, row] = std::minmax({k / n, k % n});
      std::int64_t const at = triangle_begin(n, column) + row - column;
      owner.push_back(static_cast<std::size_t>(of_triangle.of(at)));
      ask[owner.back()].push_back(at - of_triangle.first(of_triangle.of(at)));
    }
  });
  std::vector<std::vector<double>> give(ask.size());
  auto const asked = group.exchange_values(ask);
  for (std::size_t r = 0; r < asked.size(); ++r)
    for (std::int64_t const k : asked[r]) give[r].push_back(triangle[static_cast<std::size_t>(k)]);
  auto const given = group.exchange_values(give);
  std::vector<std::size_t> next(ask.size(), 0);
  std::vector<double> mine;
  group.together([&] {
    for (std::size_t const from : owner) mine.push_back(given[from][next[from]++]);
  });
  return mine;
}

}  // namespace

std::optional<RowsAndColumns> market_vector_shape(Group& group, std::string const& path) {
  auto const text = open_text(group, path);
  auto const header = on_first_rank<MarketHeader>(group, *text, [&] { return read_market_header(*text); });
  if (!header.array) return {};
  return shape_of_vectors(header.rows, header.columns);
}

std::vector<double> read_market_vector(Group& group, std::string const& path, std::int64_t n, int columns) {
  auto const text = open_text(group, path);
  auto const header =
      on_first_rank<MarketHeader>(group, *text, [&] { return checked_header(*text, n, columns); });
  std::vector<double> mine = VectorReader(group, *text, header).read();
  return header.symmetric ? both_triangles(group, n, mine) : mine;
}

}  // namespace hostless::files
