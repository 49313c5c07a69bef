#pragma once

#include <string>

#include "hostless/machine/topology.hpp"

namespace hostless {

/// What `hostless doctor` says about the machine: found and measured, never assumed.
struct MachineReport {
  static constexpr int current_version = 1;
  Topology topology;
  std::string instruction_set;   ///< the one the kernels run with
  int bandwidth_threads = 0;     ///< threads of the two measurements
  double read_bandwidth = 0.0;   ///< bytes a second
  double triad_bandwidth = 0.0;  ///< bytes a second
};

/// Finds the topology and measures both bandwidths with all usable threads, `seconds` each.
///
/// Local. Errors as find_topology and measure_read_bandwidth.
MachineReport report_machine(double seconds = 0.5);

/// One JSON object with a `version`; bytes and bytes per second as numbers.
std::string to_json(MachineReport const& report);

/// The same for people: a few lines, each ending in a newline.
std::string to_text(MachineReport const& report);

}  // namespace hostless
