#include "hostless/plan/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

#include "base/counted.hpp"
#include "base/file.hpp"
#include "base/setup_watch.hpp"
#include "base/whole_file.hpp"
#include "hostless/base/error.hpp"
#include "plan/metis.hpp"

namespace hostless {
namespace {

void require_graph(std::span<std::int64_t const> first, std::span<std::int32_t const> neighbour, int parts) {
  if (parts < 1)
    throw Error(ErrorCode::usage,
                fmt::format("{} parts (there must be at least one). Ask for 1 or more", parts));
  auto const vertices = static_cast<std::int64_t>(first.size()) - 1;
  bool good = vertices >= 0 && first.front() == 0 &&
              first.back() == static_cast<std::int64_t>(neighbour.size()) &&
              std::is_sorted(first.begin(), first.end());
  for (std::int32_t u : neighbour) good = good && u >= 0 && u < vertices;
  if (!good)
    throw Error(
        ErrorCode::usage,
        fmt::format("a graph of {} and {} is not well formed (offsets must rise from 0 to "
                    "the number of neighbours, which must be vertices). Pass the pattern of a square matrix",
                    counted(vertices, "vertex", "vertices"), counted(neighbour.size(), "neighbour")));
}

/// The union of the graph and its transpose, without loops and repeats.
MetisGraph symmetric(std::span<std::int64_t const> first, std::span<std::int32_t const> neighbour) {
  std::size_t const vertices = first.size() - 1;
  std::vector<std::int64_t> offset(vertices + 1, 0);
  constexpr std::size_t between_steps = 1 << 14;
  auto each_edge = [&](auto&& visit) {
    for (std::size_t v = 0; v < vertices; ++v) {
      if (v % between_steps == 0) setup_step();
      for (std::int64_t k = first[v]; k < first[v + 1]; ++k)
        if (auto const u = static_cast<std::size_t>(neighbour[static_cast<std::size_t>(k)]); u != v)
          visit(v, u);
    }
  };
  each_edge([&](std::size_t v, std::size_t u) { ++offset[v + 1], ++offset[u + 1]; });
  std::partial_sum(offset.begin(), offset.end(), offset.begin());
  MetisGraph graph;
  graph.neighbour.resize(static_cast<std::size_t>(offset[vertices]));
  std::vector<std::int64_t> next(offset.begin(), offset.end() - 1);
  each_edge([&](std::size_t v, std::size_t u) {
    graph.neighbour[static_cast<std::size_t>(next[v]++)] = static_cast<idx_t>(u);
    graph.neighbour[static_cast<std::size_t>(next[u]++)] = static_cast<idx_t>(v);
  });
  auto end = graph.neighbour.begin();
  graph.first.push_back(0);
  for (std::size_t v = 0; v < vertices; ++v) {
    if (v % between_steps == 0) setup_step();
    auto const low = graph.neighbour.begin() + offset[v], high = graph.neighbour.begin() + offset[v + 1];
    std::sort(low, high);
    end = std::copy(low, std::unique(low, high), end);  // never in front of `low`: moves down only
    graph.first.push_back(static_cast<idx_t>(end - graph.neighbour.begin()));
  }
  graph.neighbour.erase(end, graph.neighbour.end());
  return graph;
}

void fill_empty_parts(std::vector<std::int32_t>& part, int parts) {
  std::vector<std::int64_t> size(static_cast<std::size_t>(parts), 0);
  for (std::int32_t p : part) ++size[static_cast<std::size_t>(p)];
  for (std::size_t empty = 0; empty < size.size(); ++empty) {
    if (size[empty] > 0) continue;
    auto const largest = std::max_element(size.begin(), size.end());
    auto const from = static_cast<std::int32_t>(largest - size.begin());
    *std::find(part.rbegin(), part.rend(), from) = static_cast<std::int32_t>(empty);
    --*largest;
    ++size[empty];
  }
}

// What to show of a user's text: short, printable.
std::string shown(std::string_view text) {
  std::string words(text.substr(0, 40));
  for (char& c : words) c = c >= ' ' && c <= '~' ? c : '?';
  return words;
}

std::int32_t part_on_line(std::string_view line, std::string const& path, std::int64_t number, int parts) {
  constexpr std::string_view blanks = " \t\r";
  std::size_t const low = std::min(line.find_first_not_of(blanks), line.size());
  std::string_view const text = line.substr(low, line.find_last_not_of(blanks) + 1 - low);
  std::int32_t part = -1;
  auto const [end, problem] = std::from_chars(text.data(), text.data() + text.size(), part);
  if (problem != std::errc() || end != text.data() + text.size() || part < 0 || part >= parts)
    throw Error(
        ErrorCode::bad_input,
        fmt::format("{}:{}: '{}' is not a part (parts are 0 to {}). Write one part number on each line.",
                    path, number, shown(text), parts - 1));
  return part;
}

// The lines of a file one after the other, without their ends; holds one block of it.
class Lines {
 public:
  explicit Lines(std::string const& path) : file_(File::to_read(path)) {}
  // Nothing at the end of the file. A line is cut where no number goes on, whatever the file claims to be.
  std::optional<std::string_view> next() {
    auto end = rest_.find('\n');
    if (end == std::string_view::npos && rest_.size() < longest) {
      refill();
      end = rest_.find('\n');
    }
    if (rest_.empty()) return std::nullopt;
    auto const line = rest_.substr(0, std::min(end, longest));
    rest_.remove_prefix(std::min(line.size() + 1, rest_.size()));
    return line;
  }

 private:
  static constexpr std::size_t longest = 4096, block = 64 << 10;
  void refill() {
    std::size_t const kept = rest_.size();
    std::copy(rest_.begin(), rest_.end(), buffer_.begin());
    auto const room = std::span(buffer_).subspan(kept);
    std::size_t const got = file_.read_at(at_, std::as_writable_bytes(room));
    at_ += static_cast<std::int64_t>(got);
    rest_ = std::string_view(buffer_.data(), kept + got);
  }
  File file_;
  std::vector<char> buffer_ = std::vector<char>(block);
  std::string_view rest_;
  std::int64_t at_ = 0;
};

}  // namespace

std::vector<std::int32_t> partition_graph(std::span<std::int64_t const> first,
                                          std::span<std::int32_t const> neighbour, int parts, int seed) {
  require_graph(first, neighbour, parts);
  std::size_t const vertices = first.size() - 1;
  std::vector<std::int32_t> part(vertices, 0);
  if (parts == 1) return part;
  if (static_cast<std::size_t>(parts) >= vertices) {
    std::iota(part.begin(), part.end(), 0);
    return part;
  }
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<idx_t>::max());
  if (neighbour.size() > most / 2)
    throw Error(
        ErrorCode::environment,
        fmt::format("a graph of {} edge ends is too large for METIS (built with {}-bit integers here). Use a "
                    "contiguous partition or one from a file",
                    neighbour.size(), IDXTYPEWIDTH));
  part = run_metis(symmetric(first, neighbour), parts, seed);
  fill_empty_parts(part, parts);
  return part;
}

std::vector<std::int32_t> read_partition(std::string const& path, std::int64_t vertices, int parts) {
  Lines lines(path);
  std::vector<std::int32_t> part;
  while (auto const line = lines.next()) {
    auto const number = static_cast<std::int64_t>(part.size()) + 1;
    if (number > vertices)
      throw Error(
          ErrorCode::bad_input,
          fmt::format("{}:{}: more than {} lines (one part number a row). Use the partition of this matrix.",
                      path, number, vertices));
    part.push_back(part_on_line(*line, path, number, parts));
  }
  if (static_cast<std::int64_t>(part.size()) != vertices)
    throw Error(
        ErrorCode::bad_input,
        fmt::format("{}:{}: the file ends after {} of {} (one part number a row). Use the partition of "
                    "this matrix.",
                    path, part.size(), part.size(), counted(vertices, "line")));
  return part;
}

void write_partition(std::string const& path, std::span<std::int32_t const> part) {
  std::string text;
  for (std::int32_t p : part) text += std::to_string(p) + "\n";
  write_whole_file(path, text);
}

}  // namespace hostless
