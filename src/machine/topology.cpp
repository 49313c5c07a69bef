#include "hostless/machine/topology.hpp"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "hostless/base/error.hpp"
#include "hostless/machine/nodes.hpp"

namespace hostless {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology* t) const { hwloc_topology_destroy(t); }
};
using Tree = std::unique_ptr<hwloc_topology, DestroyTopology>;

// HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED: the machine is to be described whole, also from inside a container
// that may use two of its cores; the allowed set is counted apart.
Tree load() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) {
    throw Error(
        ErrorCode::environment,
        std::string("hwloc cannot start: ") + std::strerror(errno) +
            " (the machine's cores and caches stay unknown). Check that the process may allocate memory.");
  }
  Tree tree(raw);
  // Without these folders (a container without /sys) that part of hwloc only complains, on standard error.
  if (access("/sys/devices/system/cpu", R_OK) != 0 && access("/sys/bus/cpu/devices", R_OK) != 0)
    hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "linux");
  if (hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
      hwloc_topology_load(raw) != 0) {
    throw Error(
        ErrorCode::environment,
        std::string("hwloc cannot read the topology: ") + std::strerror(errno) +
            " (the machine's cores and caches stay unknown). Check that /sys and /proc are readable.");
  }
  return tree;
}

// At least one of everything a process cannot run without, even where the system hides it.
int count(hwloc_topology* tree, hwloc_obj_type_t type) {
  return std::max(1, hwloc_get_nbobjs_by_type(tree, type));
}

std::vector<CacheLevel> caches_of(hwloc_topology* tree) {
  constexpr std::array types = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE};
  std::vector<CacheLevel> levels;
  for (std::size_t level = 0; level < types.size(); ++level) {
    CacheLevel found{static_cast<int>(level) + 1, 0, 0};
    for (hwloc_obj_t cache = nullptr; (cache = hwloc_get_next_obj_by_type(tree, types[level], cache));) {
      found.bytes = std::max(found.bytes, static_cast<std::int64_t>(cache->attr->cache.size));
      ++found.count;
    }
    if (found.count > 0 && found.bytes > 0) levels.push_back(found);
  }
  return levels;
}

std::string host_name() {
  std::array<char, 256> text{};
  return gethostname(text.data(), text.size() - 1) == 0 ? std::string(text.data()) : std::string("localhost");
}

// From the kernel, not from hwloc: the sum over NUMA nodes misses memory that a virtual machine was given
// later.
std::int64_t physical_memory() {
  std::int64_t const pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? pages * page : 0;
}

}  // namespace

std::int64_t Topology::last_level_bytes() const {
  return caches.empty() ? 0 : caches.back().bytes * caches.back().count;
}

int socket_of_thread() {
  Tree const tree = load();
  auto const mask =
      std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)>(hwloc_bitmap_alloc(), &hwloc_bitmap_free);
  if (!mask || hwloc_get_cpubind(tree.get(), mask.get(), HWLOC_CPUBIND_THREAD) != 0) return -1;
  int const sockets = count(tree.get(), HWLOC_OBJ_PACKAGE);
  if (sockets == 1) return 0;
  for (int k = 0; k < sockets; ++k) {
    hwloc_obj_t const package =
        hwloc_get_obj_by_type(tree.get(), HWLOC_OBJ_PACKAGE, static_cast<unsigned>(k));
    if (package != nullptr && hwloc_bitmap_isincluded(mask.get(), package->cpuset)) return k;
  }
  return -1;
}

Topology find_topology() {
  Tree const tree = load();
  Topology t;
  t.host = host_name();
  hwloc_obj_t const machine = hwloc_get_root_obj(tree.get());
  hwloc_obj_t const package = hwloc_get_obj_by_type(tree.get(), HWLOC_OBJ_PACKAGE, 0);
  for (hwloc_obj_t object : {package, machine}) {
    char const* const model = object ? hwloc_obj_get_info_by_name(object, "CPUModel") : nullptr;
    if (t.processor.empty() && model != nullptr) t.processor = model;
  }
  t.sockets = count(tree.get(), HWLOC_OBJ_PACKAGE);
  t.numa_nodes = count(tree.get(), HWLOC_OBJ_NUMANODE);
  t.hardware_threads = count(tree.get(), HWLOC_OBJ_PU);
  t.cores = count(tree.get(), HWLOC_OBJ_CORE);
  t.usable_threads = std::max(1, hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(tree.get())));
  auto const mask =
      std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)>(hwloc_bitmap_alloc(), &hwloc_bitmap_free);
  if (mask && hwloc_get_cpubind(tree.get(), mask.get(), HWLOC_CPUBIND_PROCESS) == 0) {
    int const bound = hwloc_bitmap_weight(mask.get());
    if (bound > 0) t.usable_threads = std::min(t.usable_threads, bound);
  }
  t.memory_bytes = physical_memory();
  t.caches = caches_of(tree.get());
  return t;
}

Topology const& known_topology() {
  static Topology const known = [] {
    try {
      return find_topology();
    } catch (Error const&) {
      return Topology{};
    }
  }();
  return known;
}

}  // namespace hostless
