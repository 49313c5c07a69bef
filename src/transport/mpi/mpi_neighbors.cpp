#include <fmt/format.h>
#include <mpi.h>

#include <climits>
#include <exception>
#include <string>
#include <type_traits>
#include <vector>

#include "hostless/base/error.hpp"
#include "transport/mpi/library_neighbors.hpp"

namespace hostless::mpi {
namespace {

std::string words_of(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return fmt::format("error {}", code);
  return {text, static_cast<std::size_t>(length)};
}

void require_done(int code, char const* call) {
  if (code != MPI_SUCCESS)
    throw Error(ErrorCode::environment,
                fmt::format("{} failed: {} (MPI cannot do it here). Measure other ways, "
                            "or take another MPI.",
                            call, words_of(code)));
}

/// Of nothing too: MPICH refuses null beside a count, though no neighbour sends so many.
template <class T>
T* address(std::span<T> items) {
  static std::remove_const_t<T> none{};
  return items.empty() ? &none : items.data();
}

/// A list that has an address without entries too.
std::vector<int> listed(std::span<int const> ranks) {
  std::vector<int> list(ranks.begin(), ranks.end());
  list.push_back(0);
  return list;
}

class Neighbors final : public LibraryNeighbors {
 public:
  Neighbors(std::span<int const> sources, std::span<int const> destinations) {
    auto const from = listed(sources), to = listed(destinations);
    require_done(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(sources.size()), from.data(),
                                                MPI_UNWEIGHTED, static_cast<int>(destinations.size()),
                                                to.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph_),
                 "MPI_Dist_graph_create_adjacent");
  }
  Neighbors(Neighbors const&) = delete;
  Neighbors& operator=(Neighbors const&) = delete;
  ~Neighbors() override {
    if (std::uncaught_exceptions() == 0)
      MPI_Comm_free(&graph_);  // while one passes by, others may be elsewhere
  }

  void allgather(std::span<std::byte const> send, std::span<std::byte> receive) override {
    if (send.size() > std::size_t{INT_MAX})
      throw Error(
          ErrorCode::usage,
          fmt::format("a block of {} bytes (MPI counts up to {}). Use a shorter one.", send.size(), INT_MAX));
    int const bytes = static_cast<int>(send.size());
    require_done(
        MPI_Neighbor_allgather(address(send), bytes, MPI_BYTE, address(receive), bytes, MPI_BYTE, graph_),
        "MPI_Neighbor_allgather");
  }

  void allgatherv(std::span<double const> send, std::span<double> receive, std::span<int const> counts,
                  std::span<int const> displacements) override {
    if (send.size() > std::size_t{INT_MAX})
      throw Error(ErrorCode::usage,
                  fmt::format("a block of {} values (MPI counts up to {}). Use a shorter one.", send.size(),
                              INT_MAX));
    require_done(
        MPI_Neighbor_allgatherv(address(send), static_cast<int>(send.size()), MPI_DOUBLE, address(receive),
                                address(counts), address(displacements), MPI_DOUBLE, graph_),
        "MPI_Neighbor_allgatherv");
  }

  void alltoallv(Blocks const& send, Blocks const& receive) override {
    require_done(MPI_Neighbor_alltoallv(send.memory, send.counts.data(), send.displacements.data(), MPI_BYTE,
                                        receive.memory, receive.counts.data(), receive.displacements.data(),
                                        MPI_BYTE, graph_),
                 "MPI_Neighbor_alltoallv");
  }

 private:
  MPI_Comm graph_ = MPI_COMM_NULL;
};

}  // namespace
}  // namespace hostless::mpi

extern "C" __attribute__((visibility("default"))) hostless::LibraryNeighbors* hostless_mpi_neighbors(
    int const* sources, int source_count, int const* destinations, int destination_count) {
  return new hostless::mpi::Neighbors({sources, static_cast<std::size_t>(source_count)},
                                      {destinations, static_cast<std::size_t>(destination_count)});
}
