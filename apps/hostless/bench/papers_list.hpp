#pragma once
// What the papers measure, by name: matrices, ways of solving, and how often (Trotter et al. 2025, tables 1
// to 3; Ismayilov et al. 2023, table 1).

#include <cstdint>
#include <string>
#include <vector>

#include "hostless/run/run_options.hpp"
#include "hostless/solve/method.hpp"

namespace hostless::papers {

struct PaperMatrix {
  char const* name;    ///< in the collection and in the tables
  char const* preset;  ///< that stands in for it
  char const* tables;  ///< those that it is in, between commas
};

/// One way of solving, as a paper names it, and what it is here.
struct Variant {
  char const* name;   ///< on the command line
  char const* label;  ///< in the paper
  char const* tables;
  Method method;
  RunKind on_gpus;
  RunKind on_processor;   ///< stream: there is no such variant
  HostWaits waits;        ///< on GPUs
  char const* transport;  ///< between several GPUs; "" is what --by-cpu says
  enum class Ranks : std::uint8_t { any, one, several } ranks;
};

struct Table {
  char const* name;
  std::int64_t iterations;  ///< of every solve; 0: until rtol
  double rtol;
  int repeat;
};

std::vector<std::string> table_names();
/// Errors  usage  unknown names
Table const& table_of(std::string const& name);
/// Of the table; those named, in the order of the table, or all where none is.
/// Errors  usage  a name that is none of the table's
std::vector<PaperMatrix> matrices_of(Table const& table, std::string const& names);
/// The same; without names those that so many ranks, with or without GPUs, have.
std::vector<Variant> variants_of(Table const& table, std::string const& names, int ranks, bool on_gpus);
/// Why so many ranks, with or without GPUs, have no such variant; empty: they have.
std::string obstacle(Variant const& variant, int ranks, bool on_gpus);

/// Errors  bad_input  `folder` is none
void check_folder(std::string const& folder);

/// The file of that matrix in a folder, or empty: NAME with an ending that some format usually has, there or
/// in a folder of its own, as the collection packs it; in small and capital letters as the collection has
/// them, or else in any. Where all that is there cannot be read (a link to nothing, a folder of a file's name) it is
/// named too: reading it says why, and no preset is measured in its place.
std::string file_of(std::string const& folder, std::string const& name);

/// What a solve has computed and moved, by the count of Trotter et al. (section 4.1.4).
struct Work {
  double flops = 0, bytes = 0;
};
Work work_of(Method method, std::int64_t rows, std::int64_t entries, std::int64_t iterations);

}  // namespace hostless::papers
