// The `mpi` transport: a shared library of its own, compiled once against Open MPI and once against MPICH.
// Its three C entries are all that the loader (mpi_loader.cpp) knows of it.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/variable.hpp"
#include "hostless/base/wait.hpp"
#include "transport/binding.hpp"
#include "transport/mpi/mpi_plugin.hpp"
#include "transport/mpi/mpi_world.hpp"

namespace hostless::mpi {
namespace {

// Whether this process called MPI_Init through us, and whether it may still end in order. One a process.
struct Process {
  bool initialised_here = false;
  bool in_order = true;
};
Process process;

void finalise_at_exit() {
  int finalised = 0;
  MPI_Finalized(&finalised);
  if (process.initialised_here && process.in_order && finalised == 0) MPI_Finalize();
}

/// While it is there, MPI is started, which waits for all ranks: some libraries wait for ever for one that has ended
/// before. Nothing but the end of the process stops that, so it ends when the limit has passed.
class StartLimit {
 public:
  StartLimit() {
    try {
      watch_ = std::thread([this] { watch(); });
    } catch (std::system_error const&) {
      throw Error(
          ErrorCode::environment,
          "no thread can be started that watches over MPI's start (which may wait for ever). Raise the "
          "limit of processes (ulimit -u) or of memory (ulimit -v).");
    }
  }
  StartLimit(StartLimit const&) = delete;
  StartLimit& operator=(StartLimit const&) = delete;
  ~StartLimit() {
    {
      std::lock_guard const lock(mutex_);
      is_over_ = true;
    }
    over_.notify_one();
    watch_.join();  // bounded: the thread has been told that it is over
  }

 private:
  void watch() {
    // Waits of the first of a transport: processes of a large job come one after the other. And however short those
    // are made, libraries take seconds to start where processors are shared.
    constexpr double waits = 5, least_s = 10;
    double const limit_s = std::max(waits * WaitLimits::from_environment().first_s, least_s);
    constexpr auto look = std::chrono::seconds(1);  // a clock that is set meanwhile does not count
    Countdown countdown(Deadline::after(limit_s));
    std::unique_lock lock(mutex_);
    while (!is_over_ && !countdown.is_over()) over_.wait_until(lock, std::chrono::system_clock::now() + look);
    if (is_over_) return;
    std::fprintf(
        stderr,
        "hostless: MPI_Init_thread has not returned for %.0f s (a rank has ended before it, or was never "
        "started). Look for the first message of another rank; HOSTLESS_DEADLINE_SCALE lengthens the "
        "limit.\n",
        limit_s);
    std::_Exit(static_cast<int>(ErrorCode::environment));
  }
  std::mutex mutex_;
  std::condition_variable over_;  // bounded: it is waited for until the limit
  bool is_over_ = false;
  std::thread watch_;
};

void refuse_finalised() {
  if (!World::finalised()) return;
  throw Error(ErrorCode::usage,
              "MPI was finalised already (it can be used once a process). Open the transport earlier.");
}

int initialise() {
  refuse_finalised();
  int level = MPI_THREAD_SINGLE, flag = 0;
  MPI_Initialized(&flag);
  if (flag != 0) {
    MPI_Query_thread(&level);
    return level;
  }
  // Threads that progress queues call it beside the program's.
  int const wanted =
      is_word("HOSTLESS_QUEUE_PROGRESS", "thread") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED;
  int const code = [&] {
    StartLimit const limit;
    return MPI_Init_thread(nullptr, nullptr, wanted, &level);
  }();
  if (code != MPI_SUCCESS) {
    throw Error(ErrorCode::environment,
                "MPI_Init_thread failed (no rank can be reached). Start the program with mpirun or mpiexec.");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  process.initialised_here = true;
  std::atexit(finalise_at_exit);
  return level;
}

// A communicator of the program, of its MPI. A wrong one is its caller's mistake: looked at before calls whose errors are those
// of lost ranks, and where no handler of errors ends the program.
MPI_Comm lent(int handle) {
  int is_ready = 0, rank = 0, kind = MPI_SUCCESS;
  MPI_Initialized(&is_ready);
  if (is_ready == 0)
    throw Error(ErrorCode::usage, "a communicator before MPI_Init (there is none yet). Call it first.");
  refuse_finalised();
  MPI_Comm const communicator = MPI_Comm_f2c(handle);
  MPI_Errhandler before = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int const code = communicator == MPI_COMM_NULL ? MPI_ERR_COMM : MPI_Comm_rank(communicator, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
  MPI_Errhandler_free(&before);
  MPI_Error_class(code, &kind);
  if (kind == MPI_ERR_COMM)
    throw Error(ErrorCode::usage, "a communicator with the Fortran handle " + std::to_string(handle) +
                                      " (there is none). Pass MPI_Comm_c2f of one that was not freed.");
  return communicator;
}

class MpiTransport final : public Transport {
 public:
  MpiTransport(MPI_Comm parent, int level)
      : world_(std::make_shared<World>(parent, level)),
        group_(make_group(world_)),
        unwinding_(std::uncaught_exceptions()) {}

  // While an exception passes by, the other ranks may be anywhere: they come here soon if the error is
  // everybody's, and must be told at once if it is not.
  ~MpiTransport() override {
    constexpr double at_once_s = 1.0;
    bool const failing = std::uncaught_exceptions() > unwinding_;
    double const patience = failing ? at_once_s : WaitLimits::from_environment().first_s;
    if (!world_->end_in_order(patience)) process.in_order = false;
  }

  Capabilities capabilities() const override {
    Capabilities c;
    c.transport = "mpi";
    c.host = c.gather = c.all_reduce = c.host_callback = Support::native;
    c.graph = Support::adapted;
    c.kernel = world_->thread_level >= MPI_THREAD_SERIALIZED ? Support::adapted : Support::absent;
    c.processes_as_ranks = c.bounded_waits = c.late_access = true;
    c.note =
        "graph replays persistent requests on the host; kernel: one thread at a time calls MPI "
        "(MPI_THREAD_SERIALIZED); a killed rank usually makes mpirun end the others";
    return c;
  }
  Group& group() override { return *group_; }
  std::unique_ptr<Endpoint> bind(Binding const& binding) override {
    check_binding(*group_, binding);
    return make_endpoint(world_, *group_, binding);
  }
  std::unique_ptr<PointToPoint> point_to_point() override { return make_point_to_point(world_); }

 private:
  std::shared_ptr<World> world_;
  std::unique_ptr<Group> group_;
  int unwinding_;
};

}  // namespace
}  // namespace hostless::mpi

#define HOSTLESS_ENTRY extern "C" __attribute__((visibility("default")))

HOSTLESS_ENTRY int hostless_mpi_interface_version() { return hostless::mpi_plugin::interface_version; }

HOSTLESS_ENTRY void hostless_mpi_library_version(char* text, int capacity) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  std::string const first_line = std::string(version).substr(0, std::string(version).find('\n'));
  auto const copied = first_line.copy(text, static_cast<std::size_t>(capacity) - 1);
  text[copied] = '\0';
}

HOSTLESS_ENTRY hostless::Transport* hostless_mpi_open(int const* fortran_communicator) {
  MPI_Comm parent = MPI_COMM_NULL;
  if (fortran_communicator != nullptr) parent = hostless::mpi::lent(*fortran_communicator);
  int const level = hostless::mpi::initialise();
  if (fortran_communicator == nullptr) parent = MPI_COMM_WORLD;
  return new hostless::mpi::MpiTransport(parent, level);
}
