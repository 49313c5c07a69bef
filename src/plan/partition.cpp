#include "hostless/plan/partition.hpp"

#include <fmt/format.h>
#include <metis.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>
#include <mutex>
#include <numeric>

#include "base/file_error.hpp"
#include "hostless/base/error.hpp"

namespace hostless {
namespace {

struct Graph {
  std::vector<idx_t> first, neighbour;
};

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
        fmt::format(
            "a graph of {} vertices and {} neighbours is not well formed (offsets must rise from 0 to "
            "the number of neighbours, which must be vertices). Pass the pattern of a square matrix",
            vertices, neighbour.size()));
}

/// The union of the graph and its transpose, without loops and repeats.
Graph symmetric(std::span<std::int64_t const> first, std::span<std::int32_t const> neighbour) {
  std::size_t const vertices = first.size() - 1;
  std::vector<std::int64_t> offset(vertices + 1, 0);
  auto each_edge = [&](auto&& visit) {
    for (std::size_t v = 0; v < vertices; ++v)
      for (std::int64_t k = first[v]; k < first[v + 1]; ++k)
        if (auto const u = static_cast<std::size_t>(neighbour[static_cast<std::size_t>(k)]); u != v)
          visit(v, u);
  };
  each_edge([&](std::size_t v, std::size_t u) { ++offset[v + 1], ++offset[u + 1]; });
  std::partial_sum(offset.begin(), offset.end(), offset.begin());
  Graph graph;
  graph.neighbour.resize(static_cast<std::size_t>(offset[vertices]));
  std::vector<std::int64_t> next(offset.begin(), offset.end() - 1);
  each_edge([&](std::size_t v, std::size_t u) {
    graph.neighbour[static_cast<std::size_t>(next[v]++)] = static_cast<idx_t>(u);
    graph.neighbour[static_cast<std::size_t>(next[u]++)] = static_cast<idx_t>(v);
  });
  auto end = graph.neighbour.begin();
  graph.first.push_back(0);
  for (std::size_t v = 0; v < vertices; ++v) {
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

std::vector<std::int32_t> run_metis(Graph graph, int parts, int seed) {
  idx_t vertices = static_cast<idx_t>(graph.first.size() - 1), constraints = 1, count = parts, cut = 0;
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = seed;
  options[METIS_OPTION_NUMBERING] = 0;
  std::vector<idx_t> part(static_cast<std::size_t>(vertices), 0);
  // METIS draws from the process' random numbers and traps signals: two calls at once would disturb each
  // other.
  static std::mutex one_at_a_time;
  std::scoped_lock const lock(one_at_a_time);
  int const status =
      METIS_PartGraphKway(&vertices, &constraints, graph.first.data(), graph.neighbour.data(), nullptr,
                          nullptr, nullptr, &count, nullptr, nullptr, options, &cut, part.data());
  if (status != METIS_OK)
    throw Error(
        ErrorCode::environment,
        fmt::format("METIS could not split {} vertices into {} parts: {} (no partition, no plan). Use a "
                    "contiguous partition or one from a file",
                    vertices, parts,
                    status == METIS_ERROR_MEMORY ? "out of memory" : "it reported an error"));
  return {part.begin(), part.end()};
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
        fmt::format("{}:{}: '{}' is not a part (parts are 0 to {}). Write one part number on each line", path,
                    number, text.substr(0, 40), parts - 1));
  return part;
}

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
  std::ifstream file(path, std::ios::binary);
  if (!file) throw unreadable(path, "open the partition");
  std::vector<std::int32_t> part;
  std::string line;
  while (std::getline(file, line)) {
    auto const number = static_cast<std::int64_t>(part.size()) + 1;
    if (number > vertices)
      throw Error(
          ErrorCode::bad_input,
          fmt::format("{}:{}: more than {} lines (one part number a row). Use the partition of this matrix",
                      path, number, vertices));
    part.push_back(part_on_line(line, path, number, parts));
  }
  if (file.bad()) throw unreadable(path, "read the partition");
  if (static_cast<std::int64_t>(part.size()) != vertices)
    throw Error(
        ErrorCode::bad_input,
        fmt::format("{}:{}: the file ends after {} of {} lines (one part number a row). Use the partition of "
                    "this matrix",
                    path, part.size(), part.size(), vertices));
  return part;
}

void write_partition(std::string const& path, std::span<std::int32_t const> part) {
  std::ofstream file(path, std::ios::binary);
  if (!file) throw unwritable(path, "open the partition for writing");
  for (std::int32_t p : part) file << p << '\n';
  file.close();
  if (!file) throw unwritable(path, "write the partition");
}

}  // namespace hostless
