// How much memory a rank needs to read its rows of a file. bench/memory.py runs this and prints the table.
//
//   mpirun -n 2 read_memory A.mtx

#include <fmt/format.h>
#include <sys/resource.h>

#include <filesystem>

#include "hostless/base/error.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/files/matrix_file.hpp"
#include "hostless/transport/mpi.hpp"

int main(int count, char** words) {
  using namespace hostless;
  if (count != 2) {
    fmt::print(stderr, "read_memory FILE\n");
    return 2;
  }
  try {
    auto const vendor = mpi_vendor_of_this_process();
    if (!vendor)
      throw Error(ErrorCode::environment, "not started by an MPI. Use mpirun -n 2 read_memory FILE");
    auto const transport = open_mpi_transport(*vendor);
    auto const begin = Clock::now();
    auto const rows = read_matrix(transport->group(), words[1]);
    double const seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    double const peak = transport->group().max(static_cast<double>(usage.ru_maxrss) * 1024.0);
    double const share =
        static_cast<double>(std::filesystem::file_size(words[1])) / transport->group().size();
    if (transport->group().rank() == 0) {
      fmt::print("{{\"ranks\": {}, \"share_bytes\": {:.0f}, \"peak_bytes\": {:.0f}, \"seconds\": {:.3f}}}\n",
                 transport->group().size(), share, peak, seconds);
    }
  } catch (Error const& error) {
    fmt::print(stderr, "read_memory: {}\n", error.what());
    return 4;
  }
  return 0;
}
