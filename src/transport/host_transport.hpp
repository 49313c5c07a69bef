#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hostless/transport/gpu_transport.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless {

/// What a host transport is called, what it can do, and how its ranks come about. Each defines a function
/// `HostTransport NAME_transport()` in its own folder; cmake/Transports.cmake is the list of them.
struct HostTransport {
  std::string name;
  /// Empty: only its library knows, once it has been opened.
  std::optional<Capabilities> capabilities;
  /// Ranks are threads of this process: runs body(transport) on each, and returns when all have left, or
  /// throws what was the cause. Null: ranks are processes, and
  void (*run)(int ranks, std::function<void(Transport&)> const& body) = nullptr;
  /// starts `command` as so many ranks, waits for them, and returns their exit code;
  int (*start)(int ranks, std::vector<std::string> const& command) = nullptr;
  /// each of which opens its transport. Collective.
  std::unique_ptr<Transport> (*open)() = nullptr;
  /// Why no rank can be started on this machine, and what helps; empty: one can. Null: always.
  std::string (*missing)() = nullptr;
  /// By what name records say what the library of others says of itself, and what it does if this process
  /// has loaded it (else nothing).
  char const* library_name = nullptr;
  std::string (*library)() = nullptr;
  bool library_of_others = false;  ///< in its ranks, with its own leaks, and not built for sanitizers
  bool spins = false;  ///< a wait never gives its core away: ranks that share one cost each other time slices
};

/// Those of the library.
std::vector<HostTransport> const& host_transports();
/// What is known of the stream faces of the library, and what tests add to it before they ask for anything.
std::vector<GpuTransportFacts> const& gpu_host_transports();
void add_gpu_transports(std::vector<GpuTransportFacts> const& more);

}  // namespace hostless
