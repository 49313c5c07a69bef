#pragma once
// The matrix that a subcommand works on, and how it is laid out: options that several subcommands share.

#include <memory>
#include <string>

#include "hostless/base/rows.hpp"
#include "hostless/problems/problems.hpp"
#include "hostless/solve/matrix.hpp"
#include "hostless/transport/group.hpp"

namespace CLI {
class App;
}

namespace hostless {

/// A file, or a generated problem.
struct InputOptions {
  std::string file;
  std::string generate, preset_name;
  std::vector<std::int64_t> size;
  double scale = 1.0;
  double contrast = 0;  ///< 0: the kind's own
  std::string boundary;
  std::uint64_t seed = 1;

  void add_problem(CLI::App& command);
  bool generated() const { return !generate.empty() || !preset_name.empty(); }
  /// Errors  usage  neither a file nor a problem, or both; sizes that the kind has not
  ProblemOptions problem() const;
  /// Collective.
  std::unique_ptr<RowSource> open(Group& group) const;
  std::string describe() const;
};

/// Partition, block, format, route.
struct LayoutOptions {
  std::string partition = "auto", format = "auto", columns = "auto", route = "auto";
  int block = 0, slices = 0, ranks_per_node = 0;

  void add(CLI::App& command);
  /// Errors  usage  unknown words
  MatrixOptions parse() const;
};

}  // namespace hostless
