// Reads any text as a partition; what is accepted must be one part number a row, and be written and read
// again.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "hostless/base/error.hpp"
#include "hostless/plan/partition.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace hostless;
  constexpr std::int64_t vertices = 5;
  constexpr int parts = 3;
  static int const file = ::memfd_create("fuzz", 0);
  static std::string const path = "/proc/self/fd/" + std::to_string(file);
  static std::string const again =
      (std::filesystem::temp_directory_path() / ("hostless-fuzz-" + std::to_string(::getpid()))).string();
  if (file < 0 || ::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size))
    std::abort();
  std::vector<std::int32_t> part;
  try {
    part = read_partition(path, vertices, parts);
  } catch (Error const& error) {
    if (error.code() != ErrorCode::bad_input) std::abort();
    for (char const* c = error.what(); *c != '\0'; ++c) {
      if (*c < ' ' || *c > '~') std::abort();  // nothing of the file reaches a terminal as it is
    }
    return 0;
  }
  if (part.size() != vertices) std::abort();
  for (auto const p : part) {
    if (p < 0 || p >= parts) std::abort();
  }
  static int accepted = 0;
  if (accepted++ % 64 == 0) {  // writing reaches the disk
    write_partition(again, part);
    if (read_partition(again, vertices, parts) != part) std::abort();
    std::filesystem::remove(again);
  }
  return 0;
}
