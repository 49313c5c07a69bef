#pragma once

#include "hostless/model/machine_model.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hostless {

/// The word --memory: where the items lie.
CLI::Option* add_memory(CLI::App& command, MemoryKind& memory);

}  // namespace hostless
