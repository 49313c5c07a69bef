#pragma once
// The matrix that a subcommand works on, and how it is laid out: options that several subcommands share.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "file_names.hpp"
#include "hostless/base/rows.hpp"
#include "hostless/files/stored_rows.hpp"
#include "hostless/problems/problems.hpp"
#include "hostless/transport/group.hpp"
#include "options/taken_options.hpp"

namespace CLI {
class App;
}

namespace hostless {

/// A file, or a generated problem.
struct InputOptions {
  std::string file;
  std::string generate, preset_name;
  std::vector<std::int64_t> size;
  // Not given: the kind's own.
  std::optional<double> scale, contrast, long_edges, time_step;
  std::string boundary;
  std::uint64_t seed = 1;

  void add_problem(CLI::App& command);
  bool generated() const { return !generate.empty() || !preset_name.empty(); }
  /// or_else  what else the subcommand could have been given, for the text
  /// Errors  usage  neither or both of a file and a generated problem; those of `check`
  void check_given(char const* or_else = "") const;
  /// Errors  usage  an option that would be ignored: one of generated problems with a file, one of presets
  ///                with a kind, one of another kind; values out of range
  void check() const;
  /// Errors  usage  sizes that the kind has not, and all that the library refuses
  ProblemOptions problem() const;
  /// Collective. layout, vectors: what the rows are for, so many vectors of a row each; null: they are only
  /// looked at. symmetry: what files may hold, and how far from it they may be (what is, is told on stderr);
  /// generated problems are symmetric.
  /// Errors  environment  what they are for does not fit into memory (require_memory); those of the reader
  std::unique_ptr<RowSource> open(Group& group, MatrixOptions const* layout, int vectors, Symmetry symmetry,
                                  double symmetry_tolerance = symmetry_rounding) const;
  std::string describe() const;
};

/// Block, storage, and how ranks share the rows. A subcommand takes those that it has a use for.
struct LayoutOptions {
  TakenOptions taken;

  void add_block(CLI::App& command) { taken.add(command, OptionGroup::block); }
  void add_storage(CLI::App& command) { taken.add(command, OptionGroup::storage); }
  void add_shares(CLI::App& command) { taken.add(command, OptionGroup::shares); }
  /// seed, gpus  as LayoutWords::parse has them
  /// Errors  usage  unknown words, or words that contradict each other
  MatrixOptions parse(std::uint64_t seed, int gpus = 0) const;
};

/// --symmetry-tolerance, for commands that compare the entries of files with their mirrors.
void add_symmetry_tolerance(CLI::App& command, TakenOptions& taken);
inline double symmetry_tolerance(TakenOptions const& taken) { return taken.real("symmetry_tolerance"); }
/// methods  as they were asked for, where none of them needs symmetry; else empty
/// Errors  usage  it was given, and nobody compares anything: matrices are generated, or no method needs it
void check_symmetry_tolerance(TakenOptions const& taken, bool generated, std::string const& methods = "");

/// The matrix and the partition, where they are files.
std::vector<NamedFile> files_read(InputOptions const& input, LayoutOptions const& layout);

}  // namespace hostless
