#include "hostless/base/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <string>
#include <string_view>

#include "base/deadline_scale.hpp"
#include "base/nearest.hpp"
#include "base/variable.hpp"
#include "hostless/base/error.hpp"
#include "hostless/base/isa.hpp"

namespace hostless {
namespace {

// Null where it is not set, or empty.
char const* variable(char const* name) {
  char const* const text = std::getenv(name);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

constexpr std::string_view prefix = "HOSTLESS_";

// All that a program or a library of hostless asks for, without the prefix.
std::vector<std::string> const& asked_for() {
  static std::vector<std::string> const names = {"CACHE_DIR",
                                                 "COMPOSITE_RANKS_PER_NODE",
                                                 "DEADLINE_SCALE",
                                                 "GPU_AWAIT_APART",
                                                 "GPU_GUARD",
                                                 "GPU_HOST_WAITS",
                                                 "GPU_OVERLAP",
                                                 "GPU_WHILE",
                                                 "ISA",
                                                 "MPI",
                                                 "MPIS_GPUS",
                                                 "MPIS_RANKS",
                                                 "MPI_DEVICE_BYTES",
                                                 "PLUGIN_DIR",
                                                 "PRELOAD_AFTER",
                                                 "PRELOAD_COUNTS",
                                                 "PRELOAD_RANKS_PER_NODE",
                                                 "PRELOAD_REPORT",
                                                 "PRELOAD_ROUTE",
                                                 "PROGRESS",
                                                 "PYTHON",
                                                 "QUEUE_PROGRESS",
                                                 "QUEUE_SMALL_BYTES",
                                                 "QUEUE_STARTS",
                                                 "MPI_DEVICE_MEMORY",
                                                 "SIZE_CHECK"};
  return names;
}

// Of them, those that are on (1) or off (0).
constexpr char const* switches[] = {"HOSTLESS_GPU_AWAIT_APART", "HOSTLESS_GPU_GUARD",
                                    "HOSTLESS_GPU_HOST_WAITS",  "HOSTLESS_GPU_OVERLAP",
                                    "HOSTLESS_GPU_WHILE",       "HOSTLESS_MPI_DEVICE_MEMORY",
                                    "HOSTLESS_PROGRESS",        "HOSTLESS_SIZE_CHECK"};

// Those by which launchers talk to ranks, and those of building and testing, which may be set around a
// program.
bool is_of_others(std::string const& name) {
  static char const* const names[] = {"RANK",        "SIZE",        "RENDEZVOUS",         "IS_TOLD",
                                      "COMMAND",     "SETUP",       "FMM_TARBALL",        "HANGS",
                                      "GPU",         "GPU_ALONE",   "GPU_QUICK",          "SANITIZE",
                                      "NVCC",        "HIPCC",       "CUDA_ARCHITECTURES", "HIP_ARCHITECTURES",
                                      "PLAYED_GPU",  "OF_TESTS",    "QUEUE_PROGRAMS",     "QUEUE_SEED",
                                      "QUEUE_HANGS", "QUEUE_KILLS", "TEST_PLUGINS",       "TEST_SAMPLE",
                                      "UNDER_A_TOOL"};
  return std::any_of(std::begin(names), std::end(names), [&](char const* one) { return name == one; });
}

/// A whole number, or none.
void require_count(char const* of, int least, char const* meaning, std::int64_t most = INT64_MAX) {
  char const* const number = variable(of);
  if (number == nullptr) return;
  std::int64_t const count = is_count(number) ? std::strtoll(number, nullptr, 10) : -1;
  if (count >= least && count <= most) return;
  throw Error(ErrorCode::usage, std::string(of) + "='" + number + "' (" + meaning +
                                    "). Set it to a whole number from " + std::to_string(least) +
                                    (most == INT64_MAX ? " on" : " to " + std::to_string(most)) +
                                    ", or drop it.");
}

}  // namespace

std::vector<std::string> unknown_variables() {
  std::vector<std::string> complaints;
  auto const& known = asked_for();
  for (char** at = environ; *at != nullptr; ++at) {
    std::string_view const text = *at;
    auto const equals = text.find('=');
    if (!text.starts_with(prefix) || equals == std::string_view::npos || equals + 1 == text.size()) continue;
    std::string const name(text.substr(prefix.size(), equals - prefix.size()));
    if (is_of_others(name) || std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string const meant = nearest(name, known), all(text.substr(0, equals));
    complaints.push_back(
        all + " is no variable of hostless (it changes nothing). " +
        (meant.empty() ? "Drop it." : "Did you mean '" + std::string(prefix) + meant + "'?"));
  }
  std::sort(complaints.begin(), complaints.end());
  return complaints;
}

namespace {
void check_queue_values() {
  require_count("HOSTLESS_QUEUE_SMALL_BYTES", 0, "messages of a queue up to so many bytes go through a slot",
                most_small_bytes);
  constexpr char const* progress = "HOSTLESS_QUEUE_PROGRESS";
  if (char const* who = variable(progress);
      who != nullptr && !is_word(progress, "thread") && !is_word(progress, "calls"))
    throw Error(ErrorCode::usage,
                std::string(progress) + "='" + who +
                    "' (who progresses queues over MPI). Set it to thread or calls, or drop it.");
  require_count("HOSTLESS_QUEUE_STARTS", 1, "so many started messages of the type ofi have room");
  require_count("HOSTLESS_MPIS_RANKS", 1, "so many threads are ranks");
  require_count("HOSTLESS_MPIS_GPUS", 1, "streams of so many GPUs do the work of MPIS_ queues");
}
}  // namespace

void check_queue_environment() {
  check_queue_values();
  for (std::string const& one : unknown_variables())
    if (one.starts_with("HOSTLESS_QUEUE_")) throw Error(ErrorCode::usage, one);
}

void tell_unknown_variables() noexcept {
  static std::atomic<bool> are_told{false};
  if (is_one(variables_are_told) || are_told.exchange(true)) return;
  try {
    for (std::string const& one : unknown_variables()) std::fprintf(stderr, "hostless: %s\n", one.c_str());
  } catch (std::bad_alloc const&) {  // whoever needs memory next says so
  }
}

void check_composite_environment() {
  require_count("HOSTLESS_COMPOSITE_RANKS_PER_NODE", 1,
                "nodes of the transport composite have so many ranks");
}

void check_environment() {
  if (char const* wanted = variable("HOSTLESS_ISA");
      wanted != nullptr && std::strcmp(wanted, name(active_isa())) != 0) {
    throw Error(ErrorCode::usage,
                "HOSTLESS_ISA='" + std::string(wanted) + "' (this processor runs " + name(active_isa()) +
                    " instead). Set it to baseline, v3 or v4, no higher than the processor has, or drop it.");
  }
  if (char const* scale = variable("HOSTLESS_DEADLINE_SCALE"); scale != nullptr && !deadline_scale(scale)) {
    throw Error(ErrorCode::usage,
                "HOSTLESS_DEADLINE_SCALE='" + std::string(scale) +
                    "' (it multiplies the deadlines). Set it to a number above 0, up to 1e6.");
  }
  check_queue_values();
  check_composite_environment();
  require_count("HOSTLESS_MPI_DEVICE_BYTES", 0, "rounds of fewer bytes go through pinned memory");
  for (char const* const one : switches) {
    if (variable(one) == nullptr || is_one(one) || is_zero(one)) continue;
    throw Error(ErrorCode::usage, std::string(one) + "='" + variable(one) +
                                      "' (a switch: 1 is on, 0 is off). Set it to one of these, or drop it.");
  }
}

}  // namespace hostless
