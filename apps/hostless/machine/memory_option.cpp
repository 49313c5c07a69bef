#include "machine/memory_option.hpp"

#include <CLI/CLI.hpp>

#include "lists.hpp"

namespace hostless {

CLI::Option* add_memory(CLI::App& command, MemoryKind& memory) {
  return command
      .add_option_function<std::string>(
          "--memory",
          [&memory](std::string const& text) { memory = text == "gpu" ? MemoryKind::gpu : MemoryKind::host; },
          "Where the items lie: host, or gpu, from where they are sent as they lie or by the host (default "
          "host)")
      ->check(one_of({"host", "gpu"}));
}

}  // namespace hostless
