#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/counted.hpp"
#include "base/plugin_file.hpp"
#include "commands.hpp"
#include "gpu_transports.hpp"
#include "hostless/machine/report.hpp"
#include "hostless/transport/mpi.hpp"
#include "hostless/transport/ofi.hpp"
#include "numbers.hpp"
#include "solve/gpu_solver/gpu_loader.hpp"
#include "solve/gpu_solver/tuning_cache.hpp"
#include "standard_output.hpp"
#include "transport/host_transport.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

// What can be told without opening it; of an MPI its plugin is told.
std::vector<Capabilities> known_capabilities() {
  std::vector<Capabilities> known;
  for (HostTransport const& transport : host_transports())
    if (transport.capabilities) known.push_back(*transport.capabilities);
  return known;
}

void print_capabilities(Capabilities const& c) {
  print("  {:<10} {:<9} {:<9} {:<9} {:<11} {:<11} {:<9} {:<11}\n", c.transport, name(c.host), name(c.stream),
        name(c.graph), name(c.graph_while), name(c.kernel), name(c.gather), name(c.all_reduce));
  if (!c.note.empty()) print("             {}\n", c.note);
}

// HIP is compiled with every commit, but nobody has seen it run on such a GPU yet.
Support support_of(gpu::Found const& found) {
  if (found.library == nullptr) return Support::absent;
  return found.vendor == "hip" ? Support::unproven : Support::native;
}

struct Gpu {
  gpu::DeviceFacts facts;
  std::string problem;  ///< empty: the facts are known
};

std::vector<Gpu> gpus_of(gpu::Found const& found) {
  std::vector<Gpu> all;
  int const count = found.library == nullptr ? 0 : found.library->devices();
  for (int device = 0; device < count; ++device) {
    Gpu& gpu = all.emplace_back();
    try {
      gpu.facts = found.library->facts(device);
    } catch (Error const& error) {
      gpu.problem = error.what();
    }
  }
  return all;
}

void print_gpus(gpu::Found const& found) {
  if (found.problem.empty()) {
    print("  gpu        {}: {}\n             {}\n", found.vendor, found.library->describe(), found.path);
  } else {
    print("  gpu        missing: {}: {}\n", found.vendor, found.problem);
  }
  if (support_of(found) == Support::unproven)
    print("             unproven: compiled, never seen running on such a GPU\n");
  int device = 0;
  for (Gpu const& gpu : gpus_of(found)) {
    constexpr double mib = 1 << 20, gib = 1 << 30;
    gpu::DeviceFacts const& f = gpu.facts;
    print("             {}: {}\n", device++,
          gpu.problem.empty()
              ? fmt::format("{}, {:.1f} GiB ({:.1f} free), {}, L2 {:.1f} MiB, up to {} KiB of "
                            "shared memory a block",
                            f.name, static_cast<double>(f.memory_bytes) / gib,
                            static_cast<double>(f.free_bytes) / gib,
                            counted(f.multiprocessors, "multiprocessor"),
                            static_cast<double>(f.l2_bytes) / mib, f.shared_bytes_a_block / 1024)
              : gpu.problem);
  }
}

nlohmann::ordered_json json_of(gpu::Found const& found) {
  nlohmann::ordered_json j = {
      {"vendor", found.vendor},   {"support", name(support_of(found))},
      {"path", found.path},       {"library", found.library == nullptr ? "" : found.library->describe()},
      {"problem", found.problem}, {"gpus", nlohmann::ordered_json::array()}};
  for (Gpu const& gpu : gpus_of(found)) {
    gpu::DeviceFacts const& f = gpu.facts;
    j["gpus"].push_back({{"name", f.name},
                         {"memory_bytes", f.memory_bytes},
                         {"free_bytes", f.free_bytes},
                         {"multiprocessors", f.multiprocessors},
                         {"l2_bytes", f.l2_bytes},
                         {"shared_bytes_a_block", f.shared_bytes_a_block},
                         {"problem", gpu.problem}});
  }
  return j;
}

nlohmann::ordered_json json_of(Capabilities const& c) {
  return {{"host", name(c.host)},
          {"stream", name(c.stream)},
          {"graph", name(c.graph)},
          {"graph_while", name(c.graph_while)},
          {"persistent", name(c.kernel)},
          {"gather", name(c.gather)},
          {"all_reduce", name(c.all_reduce)},
          {"note", c.note}};
}

/// What kernels of each GPU do to the memory of each other one: moved, timed and looked at.
struct Paths {
  std::string vendor;
  int gpus = 0;
  std::vector<gpu::PathFacts> all;
};

std::vector<Paths> prove_paths() {
  std::vector<Paths> found;
  for (gpu::Found const& library : gpu::libraries())
    if (library.problem.empty())
      found.push_back({library.vendor, library.library->devices(), library.library->prove_paths()});
  return found;
}

void print_matrix(Paths const& paths, char const* what, std::string (*cell)(gpu::PathFacts const&)) {
  print("  paths      {}: {}; a line for the GPU that stores\n             {:>5}", paths.vendor, what, "");
  for (int to = 0; to < paths.gpus; ++to) print(" {:>8}", fmt::format("to {}", to));
  auto at = paths.all.begin();  // rising by `from`, then by `to`
  for (int from = 0; from < paths.gpus; ++from) {
    print("\n             {:>5}", from);
    for (int to = 0; to < paths.gpus; ++to) {
      if (to == from) {
        print(" {:>8}", "");
        continue;
      }
      print(" {:>8}", at->problem.empty() ? cell(*at) : "absent");
      ++at;
    }
  }
  print("\n");
}

void print_paths(std::vector<Paths> const& found) {
  if (found.empty()) print("  paths      nothing to prove: no GPU is visible\n");
  for (Paths const& paths : found) {
    if (paths.gpus < 2) {
      print("  paths      {}: nothing to prove: fewer than two GPUs\n", paths.vendor);
      continue;
    }
    print_matrix(paths, "microseconds until a word is seen there",
                 [](gpu::PathFacts const& path) { return fmt::format("{:.2f}", 1e6 * path.flagged_word_s); });
    print_matrix(paths, "GB/s of stores, all of which arrived",
                 [](gpu::PathFacts const& path) { return fmt::format("{:.0f}", 1e-9 * path.bytes_per_s); });
    for (gpu::PathFacts const& path : paths.all)
      if (!path.problem.empty())
        print("             {} to {}: absent: {}\n", path.from, path.to, path.problem);
  }
}

nlohmann::ordered_json json_of(std::vector<Paths> const& found) {
  auto all = nlohmann::ordered_json::array();
  for (Paths const& paths : found) {
    for (gpu::PathFacts const& path : paths.all) {
      auto& j = all.emplace_back(
          nlohmann::ordered_json{{"vendor", paths.vendor},
                                 {"from", path.from},
                                 {"to", path.to},
                                 {"support", name(path.problem.empty() ? Support::native : Support::absent)},
                                 {"problem", path.problem}});
      if (!path.problem.empty()) continue;
      j["word_us"] = 1e6 * path.flagged_word_s;
      j["bytes_per_second"] = path.bytes_per_s;
    }
  }
  return all;
}

// What is put in front of an MPI by LD_PRELOAD; empty: it is not there.
std::string preloaded_for(MpiPlugin const& plugin) {
  auto const files = find_plugin_files(std::string("libhostless_preload_") + name(plugin.vendor) + ".so");
  return files.paths.empty() ? "" : files.paths.front().string();
}

void print_fabric(OfiPlugin const& fabric) {
  if (fabric.problem.empty()) {
    print("  ofi        found: {} (queues of the type ofi)\n             {}\n", fabric.library, fabric.path);
  } else {
    print("  ofi        missing: {}\n", fabric.problem);
  }
}

// Asked in a child of this command: an MPI library is loaded there, not here.
int doctor(double seconds, bool prove, std::string const& json) {
  MachineReport const machine = report_machine(seconds);
  auto const plugins = mpi_plugins();
  // In processes of their own, before this one has a GPU.
  auto const transports = look_at_gpu_transports(gpu::libraries(), plugins, prove);
  std::vector<Paths> const paths = prove ? prove_paths() : std::vector<Paths>{};
  std::vector<Capabilities> const here = known_capabilities();
  OfiPlugin const fabric = find_ofi_plugin();
  if (json != "-") {
    print("hostless {}\n{}\n", HOSTLESS_VERSION, to_text(machine));
    print("transports   host      stream    graph     graph WHILE persistent  gather    all-reduce\n");
    for (Capabilities const& c : here) print_capabilities(c);
    for (MpiPlugin const& p : plugins) {
      if (p.problem.empty()) {
        print("  mpi        found: {} ({})\n             {}\n", name(p.vendor), p.library, p.path);
      } else {
        print("  mpi        missing: {}: {}\n", name(p.vendor), p.problem);
      }
    }
    print_fabric(fabric);
    for (MpiPlugin const& p : plugins)
      if (std::string const file = preloaded_for(p); !file.empty())
        print("  preload    {}: {}\n", name(p.vendor), file);
    print("devices\n");
    for (gpu::Found const& found : gpu::libraries()) print_gpus(found);
    print_gpu_transports(transports);
    if (prove) print_paths(paths);
    std::string const kept = gpu::TuningCache(gpu::TuningCache::default_folder()).file();
    print("  measured   {}\n",
          kept.empty() ? "runs are not kept: set HOSTLESS_CACHE_DIR" : "runs are kept in " + kept);
  }
  if (!json.empty()) {
    nlohmann::ordered_json j;
    j["version"] = 1;
    j["program"] = "hostless " HOSTLESS_VERSION;
    j["machine"] = nlohmann::ordered_json::parse(to_json(machine));
    for (Capabilities const& c : here) j["transports"][c.transport] = json_of(c);
    for (MpiPlugin const& p : plugins) {
      j["mpi"].push_back(
          {{"vendor", name(p.vendor)}, {"path", p.path}, {"library", p.library}, {"problem", p.problem}});
    }
    j["ofi"] = {{"path", fabric.path}, {"library", fabric.library}, {"problem", fabric.problem}};
    for (MpiPlugin const& p : plugins)
      if (std::string const file = preloaded_for(p); !file.empty())
        j["preload"].push_back({{"vendor", name(p.vendor)}, {"path", file}});
    for (gpu::Found const& found : gpu::libraries()) j["gpu_libraries"].push_back(json_of(found));
    j["gpu_carriers"] = json_of(transports);
    if (prove) j["gpu_paths"] = json_of(paths);
    write_text(json, json_text(j));
  }
  return 0;
}

}  // namespace

void add_doctor(CLI::App& app, std::function<int()>& work) {
  auto seconds = std::make_shared<double>(0.5);
  auto prove = std::make_shared<bool>(false);
  auto json = std::make_shared<std::string>();
  CLI::App* c = app.add_subcommand(
      "doctor", "Describe this machine: cores, bandwidth, transports, GPUs, and what is missing");
  c->add_option("--seconds", *seconds, "Time of each bandwidth measurement")
      ->capture_default_str()
      ->check(real_number(false));
  c->add_flag(
      "--prove", *prove,
      "Move data between every two GPUs, look at it there, and time it (a tenth of a second a pair); solve "
      "on two GPUs by each library that carries (some seconds each)");
  c->add_option("--json", *json, "Write it as JSON; - for standard output");
  c->callback([=, &work] { work = [=] { return doctor(*seconds, *prove, *json); }; });
}

}  // namespace hostless
