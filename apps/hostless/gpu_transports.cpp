#include "gpu_transports.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "child_command.hpp"
#include "hostless/base/error.hpp"
#include "standard_output.hpp"

namespace hostless {
namespace {

namespace fs = std::filesystem;

// A folder that goes with it.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "hostless-doctor-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw Error(ErrorCode::environment, name + " cannot be made (proofs write there). Set TMPDIR.");
    path = name;
  }
  Folder(Folder const&) = delete;
  Folder& operator=(Folder const&) = delete;
  ~Folder() {
    std::error_code none;
    fs::remove_all(path, none);
  }
  fs::path path;
};

// The command that carries by it, and the processor for comparison.
std::vector<std::string> proof_of(TransportProof const& proof, std::string const& report,
                                  std::vector<MpiPlugin> const& plugins) {
  std::vector<std::string> command = {
      this_program(), "bench",     "solve", "--generate",       "poisson2d", "--size",
      "96",           "--gpus",    "2",     "--ranks",          "2",         "--runs",
      "host,stream",  "--methods", "cg",    "--gpu-transports", proof.name,  "--iterations",
      "100",          "--repeat",  "1",     "--json",           report};
  if (proof.name == "nvshmem") command.insert(command.end(), {"--transport", "processes"});
  if (proof.name != "mpi") return command;
  for (MpiPlugin const& plugin : plugins)
    if (plugin.problem.empty()) return mpirun_command(plugin.vendor, 2, command);
  return command;
}

void prove(TransportProof& proof, std::vector<MpiPlugin> const& plugins) {
  proof.tried = true;
  Folder const folder;
  fs::path const report = folder.path / "report.json";
  try {
    ChildCommand command;  // two minutes: libraries take seconds to connect
    command.words = proof_of(proof, report.string(), plugins);
    proof.problem = run_quietly(command).problem;
    if (!proof.problem.empty()) return;
    std::ifstream file(report);  // bounded: a file of this program's folder
    auto const solves = nlohmann::json::parse(file).at("solves");
    auto const& there = solves.at(1);
    if (there.contains("error")) {
      proof.problem = there.at("error").get<std::string>();
    } else if (there.at("bits") != "equal") {
      proof.problem = "its bits are not the processor's: " + there.at("bits").get<std::string>();
    } else {
      proof.proven = true;
      proof.iteration_us = there.at("best_us").get<double>();
    }
  } catch (Error const& error) {
    proof.problem = error.what();
  } catch (nlohmann::json::exception const&) {
    proof.problem = "it wrote no result";
  }
}

void add_mpi(std::vector<TransportProof>& all, std::string const& vendor,
             std::vector<MpiPlugin> const& plugins) {
  TransportProof mpi;
  mpi.vendor = vendor;
  mpi.name = "mpi";
  for (MpiPlugin const& plugin : plugins) {
    if (plugin.problem.empty() && mpi.library.empty()) mpi.library = plugin.library;
    if (mpi.problem.empty()) mpi.problem = plugin.problem;
  }
  if (!mpi.library.empty()) mpi.problem.clear();
  all.push_back(mpi);
}

std::string state_of(TransportProof const& c) {
  if (c.proven)
    return fmt::format("proven: {}; {:.1f} us an iteration of a small matrix on two GPUs", c.library,
                       c.iteration_us);
  if (c.library.empty()) return "absent: " + c.problem;
  if (!c.problem.empty()) return fmt::format("unproven: {}: {}", c.library, c.problem);
  return fmt::format("unproven: {} is there; --prove tries it{}", c.library,
                     c.name == "mpi" ? ", and whether it takes device memory" : "");
}

}  // namespace

std::vector<TransportProof> look_at_gpu_transports(std::vector<gpu::Found> const& libraries,
                                                   std::vector<MpiPlugin> const& plugins, bool is_proving) {
  std::vector<TransportProof> all;
  for (gpu::Found const& found : libraries) {
    if (found.library == nullptr) continue;
    std::size_t const first = all.size();
    for (gpu::TransportFacts const& facts : found.library->transports())
      all.push_back({found.vendor, facts.name, facts.library, facts.detail, facts.problem});
    add_mpi(all, found.vendor, plugins);
    if (!is_proving) continue;
    int const gpus = found.problem.empty() ? found.library->devices() : 0;
    for (std::size_t k = first; k < all.size(); ++k) {
      if (all[k].library.empty()) continue;
      if (gpus < 2) {
        all[k].problem = "nothing to prove: fewer than two GPUs";
      } else {
        prove(all[k], plugins);
      }
    }
  }
  return all;
}

void print_gpu_transports(std::vector<TransportProof> const& all) {
  if (all.empty()) print("  carriers   none: no GPU library can be loaded\n");
  for (TransportProof const& c : all) {
    print("  carriers   {}: {}: {}\n", c.vendor, c.name, state_of(c));
    if (!c.detail.empty()) print("             {}\n", c.detail);
  }
}

nlohmann::ordered_json json_of(std::vector<TransportProof> const& all) {
  auto list = nlohmann::ordered_json::array();
  for (TransportProof const& c : all) {
    auto& j = list.emplace_back(nlohmann::ordered_json{{"vendor", c.vendor},
                                                       {"name", c.name},
                                                       {"support", c.proven            ? "proven"
                                                                   : c.library.empty() ? "absent"
                                                                                       : "unproven"},
                                                       {"tried", c.tried},
                                                       {"library", c.library},
                                                       {"detail", c.detail},
                                                       {"problem", c.problem}});
    if (c.proven) j["iteration_us"] = c.iteration_us;
  }
  return list;
}

}  // namespace hostless
