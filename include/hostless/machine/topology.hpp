#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hostless {

/// One level of the data caches, as the operating system shows it.
struct CacheLevel {
  int level = 0;           ///< 1 is nearest to the core
  std::int64_t bytes = 0;  ///< of one cache (the largest, where they differ)
  int count = 0;           ///< caches of this level in the machine
};

/// What the machine under this process is made of.
struct Topology {
  std::string host;       ///< its own name
  std::string processor;  ///< model name, empty where the system hides it
  int sockets = 1;
  int numa_nodes = 1;
  int cores = 1;
  int hardware_threads = 1;
  int usable_threads = 1;          ///< hardware threads this process may run on (affinity mask, container)
  std::int64_t memory_bytes = 0;   ///< physical; 0 where the system hides it
  std::vector<CacheLevel> caches;  ///< rising level; empty where the system hides them

  /// Bytes of all caches of the farthest level together: data must be larger than this to come from memory.
  std::int64_t last_level_bytes() const;
};

/// Reads the topology of this machine; local, some milliseconds.
///
/// Errors  environment  hwloc cannot be initialised
Topology find_topology();
/// The same, read once a process, for what can do without it: empty where it cannot be found.
Topology const& known_topology();

}  // namespace hostless
