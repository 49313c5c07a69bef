#include "hostless/machine/memory.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

namespace hostless {
namespace {

namespace fs = std::filesystem;

// The number behind `key` in lines of "key number" or "key: number kB"; what is not there is nothing.
double number_of(fs::path const& file, std::string const& key) {
  // bounded: the kernel answers
  std::ifstream lines(file);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string name, unit;
    double number = 0;
    if (!(words >> name >> number) || (name != key && name != key + ":")) continue;
    words >> unit;
    return unit == "kB" ? 1024 * number : number;
  }
  return 0;
}

// Empty where there is no such file, or "max", or what v1 writes for no limit: the largest number of pages.
std::optional<double> limit_in(fs::path const& file) {
  constexpr double no_limit = 4.0e18;
  // bounded: the kernel answers
  std::ifstream text(file);
  double bytes = 0;
  if (!(text >> bytes) || bytes >= no_limit) return {};
  return bytes;
}

// "memory,cpu" as ",memory,cpu,".
std::string fenced(std::string const& words) {
  std::string text(1, ',');
  text.append(words).push_back(',');
  return text;
}

struct Names {
  char const *limit, *used, *inactive, *active, *reclaimable;
};
constexpr Names v1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
                   "total_active_file", ""};
constexpr Names v2{"memory.max", "memory.current", "inactive_file", "active_file", "slab_reclaimable"};

void keep_less(MemoryRoom& kept, double bytes, std::string const& limit) {
  if (bytes >= kept.bytes) return;
  kept = {std::max(0.0, bytes), limit};
}

// Of a group and all above it; in a container the path may begin outside of what is mounted.
void look_at_groups(fs::path const& mount, fs::path const& group, Names const& names, double swap,
                    MemoryRoom& kept) {
  for (fs::path at = group.relative_path();; at = at.parent_path()) {
    fs::path const folder = at.empty() ? mount : mount / at;
    if (auto const limit = limit_in(folder / names.limit)) {
      fs::path const stat = folder / "memory.stat";
      double const caches = number_of(stat, names.inactive) + number_of(stat, names.active) +
                            number_of(stat, names.reclaimable);
      double const used = limit_in(folder / names.used).value_or(0);
      keep_less(kept, *limit - std::max(0.0, used - caches) + swap,
                std::string("the control group's ") + names.limit);
    }
    if (at.empty()) return;
  }
}

}  // namespace

MemoryRoom machine_memory_room(fs::path const& root) {
  MemoryRoom room;
  fs::path const meminfo = root / "proc/meminfo";
  double const free = number_of(meminfo, "MemAvailable"), swap = number_of(meminfo, "SwapFree");
  if (free > 0) keep_less(room, free + swap, swap > 0 ? "MemAvailable and SwapFree" : "MemAvailable");
  // bounded: the kernel answers
  std::ifstream groups(root / "proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {  // number:controllers:path
    auto const first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    std::string const controllers = fenced(line.substr(first + 1, second - first - 1));
    fs::path const path = line.substr(second + 1), all = root / "sys/fs/cgroup";
    if (controllers == ",,") {
      look_at_groups(all, path, v2, swap, room);
      look_at_groups(all / "unified", path, v2, swap, room);
    }
    if (controllers.find(",memory,") != controllers.npos)
      look_at_groups(all / "memory", path, v1, swap, room);
  }
  return room;
}

MemoryRoom process_memory_room() {
  MemoryRoom room;
  struct {
    decltype(RLIMIT_AS) which;
    char const *key, *name;
  } const all[] = {{RLIMIT_AS, "VmSize", "RLIMIT_AS (ulimit -v)"},
                   {RLIMIT_DATA, "VmData", "RLIMIT_DATA (ulimit -d)"}};
  for (auto const& one : all) {
    rlimit limit{};
    if (getrlimit(one.which, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) continue;
    keep_less(room, static_cast<double>(limit.rlim_cur) - number_of("/proc/self/status", one.key), one.name);
  }
  return room;
}

}  // namespace hostless
