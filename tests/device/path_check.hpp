#pragma once
// Judges what `prove_paths` says of the paths between GPUs, against what the driver says of them. It needs no
// GPU, so that its judging is tested without one (tests/unit/solve/path_check_test.cpp).

#include <sstream>
#include <string>
#include <vector>

#include "solve/gpu_solver/gpu_library.hpp"

namespace hostless::test {

/// Whether GPU `from` reaches the memory of GPU `to`, as `nvidia-smi topo -p2p r` prints it (OK, or why not);
/// empty where that said nothing.
using LinkTable = std::vector<std::vector<std::string>>;

inline LinkTable read_reach(std::string const& printed) {
  LinkTable reach;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> row;
    std::string name, word;
    words >> name;
    while (words >> word) row.push_back(word);
    // Rows begin with the GPU they are of; the first line has names alone, and a legend follows.
    if (name == "GPU" + std::to_string(reach.size()) && !row.empty() && row[0].rfind("GPU", 0) != 0)
      reach.push_back(row);
  }
  for (auto& row : reach) row.resize(reach.size());
  return reach;
}

/// What is wrong, a line each. A path may be missing only where the driver says that these two do not reach
/// each other, or, where nobody could be asked, with that reason both ways.
inline std::vector<std::string> path_complaints(std::vector<gpu::PathFacts> const& paths, int devices,
                                                LinkTable const& reach) {
  std::vector<std::string> all;
  if (paths.size() != static_cast<std::size_t>(devices) * static_cast<std::size_t>(devices - 1))
    return {std::to_string(paths.size()) + " paths between " + std::to_string(devices) + " GPUs"};
  auto const at = [&](int from, int to) -> gpu::PathFacts const& {
    return paths[static_cast<std::size_t>(from * (devices - 1) + to - (to > from ? 1 : 0))];
  };
  for (int from = 0; from < devices; ++from) {
    for (int to = 0; to < devices; ++to) {
      if (from == to) continue;
      gpu::PathFacts const& path = at(from, to);
      std::string const name = "GPU " + std::to_string(from) + " to " + std::to_string(to) + ": ";
      auto const complain = [&](std::string const& what) { all.push_back(name + what); };
      if (path.from != from || path.to != to) complain("another path stands in its place");
      bool const asked = reach.size() == static_cast<std::size_t>(devices);
      std::string const driver =
          asked ? reach[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)] : std::string();
      if (!path.problem.empty()) {
        if (path.problem.find(" cannot reach the memory of GPU ") == std::string::npos)
          complain(path.problem);
        else if (driver == "OK")
          complain("the driver says that it is there: " + path.problem);
        else if (at(to, from).problem.empty())
          complain("there is a way back: " + path.problem);
        continue;
      }
      if (asked && driver != "OK") complain("proven, and the driver says " + driver);
      // Measured: 0.67 to 0.83 us and 354 to 359 GB/s over NVLink. A bus takes some microseconds and moves
      // more than 4 GB/s; no link is as fast as the memory behind it.
      if (!(path.flagged_word_s > 2e-7 && path.flagged_word_s < 2e-5))
        complain(std::to_string(1e6 * path.flagged_word_s) + " us a word");
      if (!(path.bytes_per_s > 4e9 && path.bytes_per_s < 2e12))
        complain(std::to_string(1e-9 * path.bytes_per_s) + " GB/s");
      if (at(to, from).problem.empty() && path.bytes_per_s > 3 * at(to, from).bytes_per_s)
        complain("three times as fast as the way back");
    }
  }
  return all;
}

}  // namespace hostless::test
