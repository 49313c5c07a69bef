// Neighbourhood collectives made up at random, beside those of the MPI library that this program is linked
// with: started by its mpiexec as PROGRAM <collectives>.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

#include "hostless/transport/mpi.hpp"
#include "random_neighborhoods.hpp"

namespace hostless::testing {
namespace {

/// With one more, because MPI wants an address of a list without entries too.
std::vector<int> ints(std::vector<std::int64_t> const& numbers) {
  std::vector<int> all(numbers.begin(), numbers.end());
  all.push_back(0);
  return all;
}

#ifdef MPICH_VERSION
/// MPICH 4's alltoall (not its alltoallv) takes equal edges in reverse order, Open MPI's in that of the
/// lists.
constexpr bool reverses = true;
#else
constexpr bool reverses = false;
#endif

/// What MPI makes of a collective, over a distributed graph of its own.
bool by_mpi(Collective const& collective, std::vector<std::byte> const& sent,
            std::vector<std::byte>& received) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Lists const& mine = collective.lists[at(rank)];
  MPI_Comm graph = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(mine.sources.size()), mine.sources.data(),
                                 MPI_UNWEIGHTED, static_cast<int>(mine.destinations.size()),
                                 mine.destinations.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  MPI_Datatype item = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(static_cast<int>(collective.item_bytes), MPI_BYTE, &item);
  MPI_Type_commit(&item);
  auto const out = ints(mine.sent), out_first = ints(mine.sent_from);
  auto const in = ints(mine.received), in_first = ints(mine.received_to);
  int const one = mine.sent.empty() ? in[0] : out[0];  // of those whose blocks are equal
  auto const kind = reverses && collective.kind == Collective::Kind::alltoall && collective.repeats_an_edge()
                        ? Collective::Kind::alltoallv
                        : collective.kind;
  switch (kind) {
    case Collective::Kind::allgather:
      MPI_Neighbor_allgather(sent.data(), one, item, received.data(), one, item, graph);
      break;
    case Collective::Kind::allgatherv:
      MPI_Neighbor_allgatherv(sent.data(), one, item, received.data(), in.data(), in_first.data(), item,
                              graph);
      break;
    case Collective::Kind::alltoall:
      MPI_Neighbor_alltoall(sent.data(), one, item, received.data(), one, item, graph);
      break;
    case Collective::Kind::alltoallv:
      MPI_Neighbor_alltoallv(sent.data(), out.data(), out_first.data(), item, received.data(), in.data(),
                             in_first.data(), item, graph);
      break;
  }
  MPI_Type_free(&item);
  MPI_Comm_free(&graph);
  return true;
}

int run(int collectives) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  auto const transport = open_mpi_transport(MpiVendor::HOSTLESS_TEST_VENDOR, MPI_Comm_c2f(MPI_COMM_WORLD));
  std::string const text = try_collectives(*transport, collectives, by_mpi);
  std::printf("%s%s", text.c_str(), text.empty() ? "kept neighborhood;\n" : "");
  return text.empty() ? 0 : 1;
}

}  // namespace
}  // namespace hostless::testing

int main(int count, char** words) {
  MPI_Init(&count, &words);
  int code = 1;
  try {
    code = hostless::testing::run(count > 1 ? std::atoi(words[1]) : 1);
  } catch (std::exception const& e) {
    std::printf("%s\n", e.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return code;
}
