#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hostless/transport/transport.hpp"

namespace hostless {

/// MPI lives in a shared library of its own, one for each vendor, loaded when asked for: this library never
/// links MPI, so one build runs on a laptop without MPI and under either vendor's mpirun.
enum class MpiVendor : std::uint8_t { openmpi, mpich };
char const* name(MpiVendor vendor);

/// True when the environment says that mpirun, mpiexec or srun started this process as a rank.
bool started_by_mpi();

/// The MPI that this process belongs to: HOSTLESS_MPI (openmpi or mpich) if set, else the library that the
/// program has already loaded, else what the launcher's environment variables say. Empty: none of them.
/// Errors  usage  HOSTLESS_MPI holds something else
std::optional<MpiVendor> mpi_vendor_of_this_process();

/// The same. Errors  environment  none of them
MpiVendor require_mpi_vendor();
/// That vendor, or else the first whose plugin can be used here.
/// Errors  environment  there is none; the text says what each lacks
MpiVendor usable_mpi_vendor();

/// What the MPI library says of itself that this process has loaded, in one line; empty: it has none.
std::string mpi_library_of_this_process();

/// Loads the plugin, calls MPI_Init_thread(MPI_THREAD_SERIALIZED) unless the program has done so, and opens
/// the transport over all ranks (a duplicate of MPI_COMM_WORLD).
///
/// If hostless initialised MPI, it also finalises it, when the process exits and every rank has ended in
/// order. After an abnormal end (`peer_lost`) MPI is never called again and MPI_Finalize, which would wait
/// for the lost rank, is left out: end with `leave_process`. mpirun then ends the other ranks.
///
/// Collective over all ranks of the MPI job.
/// Errors  environment  the plugin or its MPI is not installed (the text names the package);
///         peer_lost    a rank did not arrive before the deadline
std::unique_ptr<Transport> open_mpi_transport(MpiVendor vendor);

/// As above over a communicator of a program that has called MPI_Init itself, given by its Fortran handle
/// (MPI_Comm_c2f), which is the one form both vendors share. The communicator is duplicated; the program
/// keeps it, and finalises MPI itself, after the transport is gone. Errors  usage  there is no such one
std::unique_ptr<Transport> open_mpi_transport(MpiVendor vendor, int fortran_communicator);

/// A plugin as found on this machine.
struct MpiPlugin {
  MpiVendor vendor;
  std::string path;     ///< empty: not found
  std::string library;  ///< what its MPI says of itself; empty when it cannot be loaded
  std::string problem;  ///< empty when usable; else why not, and the package that helps
};

/// What `doctor` prints. Each plugin is loaded in a child process, because two MPI libraries cannot live in
/// one.
std::vector<MpiPlugin> mpi_plugins();

/// The command line that runs `command` as `ranks` ranks of this machine.
/// Errors  environment  the vendor's mpirun is not installed (the text names the package);
///         usage        ranks below 1 or an empty command
std::vector<std::string> mpirun_command(MpiVendor vendor, int ranks, std::vector<std::string> const& command);

/// Runs such a command line and waits until it has ended, however long its solve takes; its standard input is
/// nothing where it would be a terminal. SIGINT, SIGTERM, SIGHUP, SIGTSTP and SIGCONT are passed on, what
/// repeats within a second once. Dies this process, mpirun gets SIGTERM.
///
/// Returns the code of mpirun; 4 after a signal that ends was passed on, where mpirun is ended by one, and
/// for codes above 4, which no rank ends with. Errors  environment  no process can be started
int run_mpirun(std::vector<std::string> const& command);

/// Flushes the standard streams and ends the process at once, without MPI_Finalize, exit handlers or
/// destructors: the way out after `peer_lost`, when some of them would wait for a rank that is gone.
[[noreturn]] void leave_process(int code);

}  // namespace hostless
