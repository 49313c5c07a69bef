#include "papers_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "base/counted.hpp"
#include "base/nearest.hpp"
#include "hostless/base/error.hpp"
#include "lists.hpp"

namespace hostless::papers {
namespace {

namespace fs = std::filesystem;

constexpr std::array<Table, 4> tables{
    {{"000-1", 0, 1e-6, 3}, {"000-2", 0, 1e-6, 3}, {"000-3", 0, 1e-6, 3}, {"001-1", 5000, 0, 5}}};

constexpr std::array<PaperMatrix, 21> matrices{{
    {"Queen_4147", "queen", "000-1,000-2,001-1"},
    {"Bump_2911", "bump", "000-1,000-2,001-1"},
    {"Cube_Coup_dt6", "cube_coup", "000-1,000-2"},
    {"Flan_1565", "flan", "000-1,000-2,001-1"},
    {"audikw_1", "audikw", "000-1,000-2,001-1"},
    {"Serena", "serena", "000-1,000-2,001-1"},
    {"poisson1d", "poisson1d_large", "000-1,000-3"},
    {"heart15", "heart15", "000-1,000-3"},
    {"Geo_1438", "geo", "001-1"},
    {"Hook_1498", "hook", "001-1"},
    {"ldoor", "ldoor", "001-1"},
    {"StocF-1465", "stocf", "001-1"},
    {"crankseg_2", "crankseg_2", "001-1"},
    {"hood", "hood", "001-1"},
    {"bmwcra_1", "bmwcra", "001-1"},
    {"crankseg_1", "crankseg_1", "001-1"},
    {"G3_circuit", "g3_circuit", "001-1"},
    {"consph", "consph", "001-1"},
    {"tmt_sym", "tmt_sym", "001-1"},
    {"ecology2", "ecology2", "001-1"},
    {"thermomech_dM", "thermomech", "001-1"},
}};

using Ranks = Variant::Ranks;
constexpr HostWaits no_wait = HostWaits::when_needed, one_wait = HostWaits::every_iteration,
                    two_waits = HostWaits::every_sum;
constexpr char const* all_000 = "000-1,000-2,000-3";
constexpr char const* large_000 = "000-1,000-3";

constexpr std::array<Variant, 14> variants{{
    {"single-standard", "Single GPU Standard", "001-1", Method::cg, RunKind::stream, RunKind::host, no_wait,
     "", Ranks::one},
    {"cpu-controlled-standard", "CPU-Controlled Standard CG", "001-1", Method::cg, RunKind::stream,
     RunKind::host, no_wait, "", Ranks::several},
    {"cpu-controlled-pipelined", "CPU-Controlled Pipelined CG", "001-1", Method::pipelined_cg,
     RunKind::stream, RunKind::host, no_wait, "", Ranks::several},
    {"cpu-free-standard", "CPU-Free Standard CG", "001-1", Method::cg, RunKind::persistent,
     RunKind::persistent, no_wait, "peer", Ranks::any},
    {"cpu-free-pipelined", "CPU-Free Pipelined CG", "001-1", Method::pipelined_cg, RunKind::persistent,
     RunKind::persistent, no_wait, "peer", Ranks::any},
    {"two-waits", "listing 1 (PETSc's CG)", all_000, Method::cg, RunKind::stream, RunKind::stream, two_waits,
     "", Ranks::any},
    {"acg-standard", "aCG (standard)", all_000, Method::cg, RunKind::stream, RunKind::host, one_wait, "",
     Ranks::one},
    {"acg-monolithic", "aCG (monolithic)", all_000, Method::cg, RunKind::persistent, RunKind::persistent,
     no_wait, "peer", Ranks::one},
    {"acg-mpi", "aCG (MPI)", large_000, Method::cg, RunKind::stream, RunKind::host, one_wait, "mpi",
     Ranks::several},
    {"acg-nccl", "aCG (NCCL)", large_000, Method::cg, RunKind::stream, RunKind::graph, one_wait, "nccl",
     Ranks::several},
    {"acg-nvshmem", "aCG (NVSHMEM)", large_000, Method::cg, RunKind::persistent, RunKind::persistent, no_wait,
     "nvshmem", Ranks::several},
    {"acg-mpi-pipelined", "aCG (MPI), pipelined", large_000, Method::pipelined_cg, RunKind::stream,
     RunKind::host, one_wait, "mpi", Ranks::several},
    {"acg-nccl-pipelined", "aCG (NCCL), pipelined", large_000, Method::pipelined_cg, RunKind::stream,
     RunKind::graph, one_wait, "nccl", Ranks::several},
    {"acg-nvshmem-pipelined", "aCG (NVSHMEM), pipelined", large_000, Method::pipelined_cg,
     RunKind::persistent, RunKind::persistent, no_wait, "nvshmem", Ranks::several},
}};

template <class List>
std::vector<std::string> names_of(List const& list) {
  std::vector<std::string> names;
  for (auto const& one : list) names.emplace_back(one.name);
  return names;
}

// Those of the table that `names` has, or all. what: of the list, in words.
template <class List>
auto those_of(List const& list, Table const& table, std::string const& names, char const* what) {
  std::vector<typename List::value_type> all;
  for (auto const& one : list) {
    auto const in = words_in(one.tables);
    if (std::find(in.begin(), in.end(), table.name) != in.end()) all.push_back(one);
  }
  if (names.empty()) return all;
  std::vector<typename List::value_type> wanted;
  auto const words = words_in(names);
  for (std::string const& word : words)
    if (auto const known = names_of(all); std::find(known.begin(), known.end(), word) == known.end())
      throw Error(ErrorCode::usage,
                  fmt::format("there is no {} '{}' in table {} (nothing to measure).{} Use "
                              "some of: {}.",
                              what, word, table.name, did_you_mean(word, known), fmt::join(known, ", ")));
  for (auto const& one : all)
    if (std::find(words.begin(), words.end(), one.name) != words.end()) wanted.push_back(one);
  return wanted;
}

// What `folder` holds by that name, in these letters or else in others (of several the first one); empty:
// nothing, or no folder was named. `is_wanted` tells files from folders.
std::string path_in(std::string const& folder, std::string const& name, bool (*is_wanted)(fs::path const&)) {
  if (folder.empty()) return {};
  if (fs::path const path = fs::path(folder) / name; is_wanted(path)) return path;
  std::string found;
  std::error_code problem;
  for (fs::directory_iterator one(folder, problem), end; !problem && one != end; one.increment(problem))
    if (std::string const path = one->path(); is_same_word(one->path().filename().string(), name) &&
                                              is_wanted(path) && (found.empty() || path < found))
      found = path;
  return found;
}
bool is_folder(fs::path const& path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown);
}
bool is_no_folder(fs::path const& path) {
  std::error_code unknown;
  return fs::exists(path, unknown) && !is_folder(path);
}
// A link to nothing too, and what nobody may look at.
bool is_anything(fs::path const& path) {
  std::error_code unknown;
  return fs::symlink_status(path, unknown).type() != fs::file_type::not_found;
}

}  // namespace

std::vector<std::string> table_names() { return names_of(tables); }

Table const& table_of(std::string const& name) {
  auto const found =
      std::find_if(tables.begin(), tables.end(), [&](Table const& t) { return name == t.name; });
  if (found == tables.end())
    throw Error(ErrorCode::usage,
                fmt::format("there is no table '{}' (it names matrices and ways).{} Use one "
                            "of: {}.",
                            name, did_you_mean(name, table_names()), fmt::join(table_names(), ", ")));
  return *found;
}

std::vector<PaperMatrix> matrices_of(Table const& table, std::string const& names) {
  return those_of(matrices, table, names, "matrix");
}

std::vector<Variant> variants_of(Table const& table, std::string const& names, int ranks, bool on_gpus) {
  auto all = those_of(variants, table, names, "variant");
  if (names.empty())
    std::erase_if(all, [&](Variant const& v) { return !obstacle(v, ranks, on_gpus).empty(); });
  return all;
}

std::string obstacle(Variant const& variant, int ranks, bool on_gpus) {
  if (variant.ranks == Ranks::one && ranks > 1)
    return fmt::format("{} with {} (it is of one). Use --ranks 1 or --gpus 1", variant.name,
                       counted(ranks, "rank"));
  if (variant.ranks == Ranks::several && ranks == 1)
    return fmt::format("{} with one rank (there is nothing to exchange). Use --ranks 2 or --gpus 2",
                       variant.name);
  if (!on_gpus && variant.on_processor == RunKind::stream)
    return fmt::format("{} on the processor (no host waits for a GPU there). Use --gpus", variant.name);
  return {};
}

void check_folder(std::string const& folder) {
  if (!is_folder(folder))
    throw Error(
        ErrorCode::bad_input,
        fmt::format("--matrices '{}': no folder is there (every matrix would be stood in for). Name the "
                    "folder, or drop it.",
                    folder));
}

std::string file_of(std::string const& folder, std::string const& name) {
  for (auto const is_wanted : {is_no_folder, is_anything})
    for (std::string const& where : {folder, path_in(folder, name, is_folder)})
      for (char const* const ending : {".mtx", ".mtx.gz", ".petsc", ".bin", ".npz"})
        if (std::string path = path_in(where, name + ending, is_wanted); !path.empty()) return path;
  return {};
}

Work work_of(Method method, std::int64_t rows, std::int64_t entries, std::int64_t iterations) {
  bool const pipelined = method == Method::pipelined_cg;
  auto const m = static_cast<double>(rows), n = static_cast<double>(entries),
             k = static_cast<double>(iterations);
  double const products = k + (pipelined ? 2 : 1), dots = k, norms = k + (pipelined ? 0 : 1),
               axpys = k * (pipelined ? 6 : 3);
  return {products * 2 * n + (dots + norms + axpys) * 2 * m,
          products * 20 * (n + m) + axpys * 24 * m + dots * 16 * m + norms * 8 * m};
}

}  // namespace hostless::papers
