#pragma once

#include <filesystem>
#include <limits>
#include <string>

namespace hostless {

/// Bytes that can still be had, and who says so; infinite where nobody does.
struct MemoryRoom {
  double bytes = std::numeric_limits<double>::infinity();
  std::string limit;
};

/// For all processes of the machine that share this process' limits: the kernel's MemAvailable with free
/// swap, or less where a control group (v1 or v2, or one above it) allows less. File caches count as free.
/// root  of the file system whose /proc and /sys are read
MemoryRoom machine_memory_room(std::filesystem::path const& root = "/");

/// For this process alone: RLIMIT_AS and RLIMIT_DATA less what it has.
MemoryRoom process_memory_room();

}  // namespace hostless
