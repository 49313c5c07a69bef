// A program that uses MPI itself and lends hostless a communicator. Prints "kept lent;" on each rank.
#include <mpi.h>

#include <cstdio>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include "hostless/transport/mpi.hpp"
#include "transport_contract.hpp"

namespace {

void expect(bool holds, char const* what) {
  if (!holds) throw std::runtime_error(what);
}

// What is no communicator is the caller's mistake, and ends neither the program nor its MPI.
void lend_none(char const* says, std::initializer_list<int> handles) {
  for (int const handle : handles) {
    std::string said = "accepted";
    try {
      hostless::open_mpi_transport(hostless::require_mpi_vendor(), handle);
    } catch (hostless::Error const& e) {
      said = (e.code() == hostless::ErrorCode::usage ? "usage: " : "another code: ") + std::string(e.what());
    }
    if (said.find("usage: ") != 0 || said.find(says) == std::string::npos)
      throw std::runtime_error("handle " + std::to_string(handle) + ": " + said);
  }
}

void lend() {
  int rank = 0, size = 0, flag = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  // The ranks in reverse order: only a transport that uses what it was lent numbers them so.
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed);
  auto const vendor = hostless::mpi_vendor_of_this_process();
  expect(vendor.has_value() && hostless::name(*vendor) == std::string(HOSTLESS_TEST_VENDOR),
         "the loaded MPI is recognised");
  for (int round = 0; round < 2; ++round) {
    auto const transport = hostless::open_mpi_transport(*vendor, static_cast<int>(MPI_Comm_c2f(reversed)));
    expect(transport->group().rank() == size - 1 - rank, "the ranks of the communicator");
    for (char const* name : {"group", "delays", "rebind"})
      hostless::contract::find_case(name).run(*transport);
  }
  MPI_Finalized(&flag);
  expect(flag == 0, "MPI is left to its owner");
  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, reversed);
  expect(sum == size * (size - 1) / 2, "the communicator is left whole");
  MPI_Comm_free(&reversed);
}

}  // namespace

int main(int count, char** words) {
  lend_none("before MPI_Init", {0});
  MPI_Init(&count, &words);
  try {
    lend_none("there is none", {static_cast<int>(MPI_Comm_c2f(MPI_COMM_NULL)), 123456, -7});
    lend();
  } catch (std::exception const& e) {
    std::printf("%s\n", e.what());
    std::fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  int const world = static_cast<int>(MPI_Comm_c2f(MPI_COMM_WORLD));
  MPI_Finalize();
  lend_none("finalised already", {world});
  std::printf("kept lent;\n");
  return 0;
}
