// Two ranks of a program that uses MPI itself. Rank 1 has no memory for what rank 0 sends it in a set-up collective:
// it says so, and rank 0 does not wait for it. Prints "kept memory;" on each rank.
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "hostless/transport/mpi.hpp"

using hostless::Bytes;
using hostless::ErrorCode;

namespace {

constexpr std::size_t large = std::size_t{1} << 20;
constexpr double most_s = 60;  // a set-up may take 600
std::atomic<bool> has_memory{true};
MPI_Comm of_transport = MPI_COMM_NULL;

}  // namespace

// These stand before the library's and the plugin's. Not inline: GCC 12 takes one without the other for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const memory = has_memory || bytes < large ? std::malloc(bytes) : nullptr;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::nothrow_t const&) noexcept {
  return std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" int MPI_Ialltoall(void const* from, int count, MPI_Datatype type, void* to, int count_to,
                             MPI_Datatype type_to, MPI_Comm communicator, MPI_Request* request) {
  of_transport = communicator;
  return PMPI_Ialltoall(from, count, type, to, count_to, type_to, communicator, request);
}

namespace {

std::string exchange(hostless::Group& group, std::vector<Bytes> to, ErrorCode expected) {
  try {
    group.exchange(std::move(to));
  } catch (hostless::Error const& e) {
    return e.code() == expected ? "" : std::string("another code: ") + e.what();
  } catch (std::exception const& e) {
    return std::string("another error: ") + e.what();
  }
  return "no error";
}

std::string run(int rank) {
  auto const transport = hostless::open_mpi_transport(hostless::require_mpi_vendor(),
                                                      static_cast<int>(MPI_Comm_c2f(MPI_COMM_WORLD)));
  std::vector<Bytes> to(2);
  if (rank == 0) to[1].resize(large);
  Bytes rest(large);
  auto const begin = std::chrono::steady_clock::now();
  has_memory = rank == 0;
  std::string said =
      exchange(transport->group(), std::move(to), rank == 0 ? ErrorCode::peer_lost : ErrorCode::environment);
  has_memory = true;
  // The transport is still there: it is not its end that lets the other rank go.
  MPI_Barrier(MPI_COMM_WORLD);
  if (std::chrono::steady_clock::now() - begin > std::chrono::duration<double>(most_s))
    said += " rank 0 has waited for it";
  // What rank 0 has sent, lest MPI's end waits for it.
  if (rank == 1)
    MPI_Recv(rest.data(), static_cast<int>(large), MPI_BYTE, 0, MPI_ANY_TAG, of_transport, MPI_STATUS_IGNORE);
  return said;
}

}  // namespace

int main(int count, char** words) {
  MPI_Init(&count, &words);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::string const said = run(rank);
  std::printf("%s\n", said.empty() ? "kept memory;" : said.c_str());
  std::fflush(stdout);
  MPI_Finalize();
  return said.empty() ? 0 : 1;
}
