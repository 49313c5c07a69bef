#include <fmt/format.h>

#include <algorithm>

#include "base/counted.hpp"
#include "base/setup_watch.hpp"
#include "files/finished_rows.hpp"
#include "files/matrix_market/text.hpp"
#include "files/owners.hpp"
#include "files/progress.hpp"
#include "files/shared_output.hpp"
#include "hostless/files/matrix_market.hpp"

namespace hostless {
namespace files {
namespace {

// The sizes of the header must be possible for so much text before anything is allocated for them. Rank 0
// only.
void check_sizes(Text& text, MarketHeader const& header) {
  auto const refuse = [&](std::string const& why) { throw Problem(header.size_line, why); };
  if (header.array) {
    refuse("the matrix is an array (a sparse matrix is needed, as coordinates). Write `matrix coordinate`.");
  }
  if (header.rows != header.columns) {
    refuse(fmt::format("{} and {} (the matrix must be square). Correct the sizes.",
                       counted(header.rows, "row"), counted(header.columns, "column")));
  }
  // The shortest line is "1 1\n". Small files are let through: counting their lines makes a clearer message.
  constexpr std::int64_t shortest = 4, small = 1024;
  auto const possible = [&](std::int64_t bytes) { return header.entries <= small + bytes / shortest; };
  if (!possible(text.file_bytes()) && !(text.compressed() && possible(text.text_bytes()))) {
    if (text.damage()) throw *text.damage();
    refuse(fmt::format(
        "{} entries in {} bytes of text (each takes at least {}). The file was cut short, or correct the "
        "sizes.",
        header.entries, text.text_bytes(), shortest));
  }
  // Before anything is laid out for so many rows; some room for small matrices that a solver then refuses.
  if (header.rows > small + 2 * header.entries) {
    refuse(fmt::format(
        "{} rows with only {} entries (beyond {} rows there must be one for every two, else most are "
        "empty). Correct the sizes.",
        header.rows, header.entries, small));
  }
}

// A file of one triangle has no more entries on the diagonal than rows.
MatrixSizes sizes_of(MarketHeader const& header) {
  constexpr std::int64_t column_bytes = 4, least_value_bytes = 4;
  std::int64_t const both = header.symmetric ? 2 * header.entries - header.rows : header.entries;
  return {header.rows, std::max(header.entries, both),
          column_bytes + (header.field == Field::pattern ? 0 : least_value_bytes)};
}

class MarketReader {
 public:
  MarketReader(Group& group, Text& text, MarketHeader const& header, MatrixMarketOptions const& options)
      : group_(group),
        text_(text),
        header_(header),
        options_(options),
        owners_(header.rows, group.size()),
        to_(static_cast<std::size_t>(group.size())) {}

  std::unique_ptr<StoredRows> read(Symmetry symmetry, double symmetry_tolerance) {
    constexpr std::int64_t passes = 2;
    SetupStage const stage("reading", text_.compressed() ? 0 : passes * text_.file_bytes() / group_.size());
    std::unique_ptr<StoredRows> rows;
    group_.together([&] { rows = std::make_unique<StoredRows>(header_.rows, group_.size(), group_.rank()); });
    bool exact = true;
    stream([&](Entry const& e) {
      rows->count(e.row);
      exact = exact && static_cast<double>(static_cast<float>(e.value)) == e.value;
      return true;
    });
    check_count(group_.sum(lines_));
    bool const narrow = !group_.any(!exact);
    group_.together([&] {
      rows->start(header_.field == Field::pattern ? StoredValue::one
                  : narrow                        ? StoredValue::single_width
                                                  : StoredValue::double_width);
    });
    stream([&](Entry const& e) { return rows->put(e.row, e.column, e.value); });
    group_.together([&] {
      if (!rows->finish()) throw Error(ErrorCode::bad_input, text_.path() + ": " + changed);
    });
    check_duplicates(*rows);
    if (!header_.symmetric && symmetry == Symmetry::required) check_mirrors(*rows, symmetry_tolerance);
    return rows;
  }

 private:
  static constexpr char const* changed =
      "the file changed while it was read (its second reading differs from the first). Try again when nobody "
      "writes it.";

  // Large blocks mean few rounds; a few of them must stay small beside the rank's share.
  std::int64_t block_bytes() const {
    if (options_.block_bytes != 0) return options_.block_bytes;
    constexpr std::int64_t least = 64 << 10, most = 2 << 20, blocks_of_a_share = 64;
    return std::clamp(text_.file_bytes() / group_.size() / blocks_of_a_share, least, most);
  }

  Blocks blocks() const {
    int const rank = group_.rank(), size = group_.size();
    return Blocks(text_, text_.compressed()
                             ? dealt_blocks(header_.body, rank, size, block_bytes())
                             : contiguous_blocks(text_, header_.body, rank, size, block_bytes()));
  }

  // Reads all lines once and gives every entry, and its mirror if the file leaves it out, to `sink` on its
  // owner.
  template <class Sink>
  void stream(Sink&& sink) {
    Blocks mine = blocks();
    std::optional<Problem> problem;
    std::vector<Entry> entries;
    bool finished = false;
    lines_ = 0;
    auto const take = [&](Entry const& e) {
      if (!sink(e)) throw Problem(-1, text_.path() + ": " + changed);
    };
    for (;;) {
      for (auto& t : to_) t.clear();
      keep_problem(problem, [&] {
        if (problem || finished) return;
        entries.clear();
        finished = !mine.next();
        if (finished) return;
        parse_entries(mine.lines(), mine.offset(), header_, entries);
        lines_ += static_cast<std::int64_t>(entries.size());
        for (Entry const& e : entries) route(e, take);
      });
      std::int64_t outgoing = 0;
      for (auto const& t : to_) outgoing += static_cast<std::int64_t>(t.size());
      auto const all = share_progress(group_, text_, problem, mine.position(), finished, outgoing);
      if (std::all_of(all.begin(), all.end(), [](Progress const& p) { return p.finished; })) return;
      // Most blocks of a matrix in row order only have entries of the rank that read them.
      if (std::all_of(all.begin(), all.end(), [](Progress const& p) { return p.count == 0; })) continue;
      for (auto const& from : group_.exchange_values(to_)) {
        keep_problem(problem, [&] {
          for (Entry const& e : from) take(e);
        });
      }
    }
  }

  template <class Take>
  void route(Entry const& e, Take const& take) {
    send(e, take);
    if (header_.symmetric && e.row != e.column) send({e.column, e.row, e.value}, take);
  }
  template <class Take>
  void send(Entry const& e, Take const& take) {
    int const owner = owners_.of(e.row);
    if (owner == group_.rank()) {
      take(e);
    } else {
      to_[static_cast<std::size_t>(owner)].push_back(e);
    }
  }

  // Rank 0 walks over the file again for the byte of the first line for which found(entry, index) is true.
  template <class Found>
  std::int64_t find_line(Found&& found) {
    Blocks all(text_, dealt_blocks(header_.body, 0, 1, block_bytes()));
    std::vector<Entry> entries;
    std::vector<std::int64_t> begins;
    for (std::int64_t index = 0; all.next();) {
      entries.clear();
      begins.clear();
      parse_entries(all.lines(), all.offset(), header_, entries, &begins);
      for (std::size_t k = 0; k < entries.size(); ++k) {
        if (found(entries[k], index++)) return begins[k];
      }
    }
    return text_.text_bytes();
  }
  // Throws the Error for a line that rank 0 looks for.
  template <class Found>
  void refuse_line(Found const& found, std::string const& why) {
    on_first_rank<int>(group_, text_, [&]() -> int { throw Problem(find_line(found), why); });
  }

  void check_count(std::int64_t lines) {
    if (lines == header_.entries) return;
    if (lines > header_.entries) {
      refuse_line(
          [&](Entry const&, std::int64_t index) { return index == header_.entries; },
          fmt::format(
              "one more than the {} entries that the header says (it has {} lines of them). Correct the "
              "header or remove lines.",
              header_.entries, lines));
    }
    refuse_line(
        [](Entry const&, std::int64_t) { return false; },
        fmt::format(
            "the file ends after {} of {} entries (it was cut short, or the header is wrong). Copy it "
            "again, or correct the header.",
            lines, header_.entries));
  }

  void check_duplicates(StoredRows const& rows) {
    struct Finding {
      bool any;
      StoredRows::Position position;
    };
    auto const mine = rows.duplicate();
    for (Finding const& f :
         group_.all_gather(Finding{mine.has_value(), mine.value_or(StoredRows::Position{})})) {
      if (!f.any) continue;  // the ranks' rows rise: the first finding is the lowest
      auto const [row, column] = f.position;
      int seen = 0;
      refuse_line(
          [&, row = row, column = column](Entry const& e, std::int64_t) {
            bool const same = e.row == row && e.column == column;
            bool const mirror = header_.symmetric && e.row == column && e.column == row;
            return (same || mirror) && ++seen == 2;
          },
          fmt::format(
              "entry ({}, {}){} is given a second time (it is not clear which one holds). Remove one, or add "
              "them up.",
              row + 1, column + 1, header_.symmetric ? " or its mirror" : ""));
    }
  }

  void check_mirrors(StoredRows& rows, double tolerance) {
    auto const compared = check_symmetry(group_, rows, tolerance);
    rows.set_only_rounded(compared.furthest);
    auto const& found = compared.refused;
    if (!found) return;
    refuse_line(
        [&](Entry const& e, std::int64_t) { return e.row == found->row && e.column == found->column; },
        fmt::format("{} (the method needs a symmetric matrix). Correct it, or use a method for others{}; if "
                    "only one triangle is given, say `symmetric` in the header.",
                    asymmetry_text(*found), tolerance_text(*found, tolerance)));
  }

  Group& group_;
  Text& text_;
  MarketHeader header_;
  MatrixMarketOptions options_;
  Owners owners_;
  std::vector<std::vector<Entry>> to_;
  std::int64_t lines_ = 0;
};

}  // namespace
}  // namespace files

std::unique_ptr<StoredRows> read_matrix_market(Group& group, std::string const& path,
                                               MatrixMarketOptions const& options, SizesKnown const& known,
                                               Symmetry symmetry, double symmetry_tolerance) {
  using namespace files;
  if (options.block_bytes < 0) {
    throw Error(
        ErrorCode::usage,
        fmt::format("block_bytes is {} (a block holds something). Give at least 1, or 0 for a good size.",
                    options.block_bytes));
  }
  return memory_checked(path, [&] {
    auto const text = open_text(group, path);
    auto const header = on_first_rank<MarketHeader>(group, *text, [&] {
      MarketHeader const said = read_market_header(*text);
      check_sizes(*text, said);
      return said;
    });
    if (known) known(sizes_of(header));
    return MarketReader(group, *text, header, options).read(symmetry, symmetry_tolerance);
  });
}

}  // namespace hostless
