#pragma once
// What every test needs whose ranks are started by an MPI's mpirun: shared by the rings that do so.

#include <gtest/gtest.h>

#include <cstdlib>

#include "hostless/base/error.hpp"
#include "hostless/transport/mpi.hpp"

namespace hostless::test {

/// For SetUp. Skips the test, with the reason, where ranks of that MPI cannot be started; else prepares the
/// environment that they inherit.
inline void need_mpi(MpiVendor vendor) {
  for (MpiPlugin const& plugin : mpi_plugins()) {
    if (plugin.vendor == vendor && !plugin.problem.empty()) GTEST_SKIP() << plugin.problem;
  }
  try {
    mpirun_command(vendor, 1, {"true"});
  } catch (Error const& e) {
    GTEST_SKIP() << e.what();
  }
  // Containers often forbid one process to read another's memory; binding fights with tests that run beside.
  setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);
  setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
}

/// For SetUp, after need_mpi. What an MPI library keeps until the process ends is not ours to free. Options
/// that the caller of the test has set stay.
inline void overlook_leaks_of_mpi() { setenv("ASAN_OPTIONS", "detect_leaks=0", 0); }

}  // namespace hostless::test
