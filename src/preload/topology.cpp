#include "preload/topology.hpp"

#include <algorithm>

namespace hostless::preload {
namespace {

bool repeats_one(std::vector<int> list) {
  std::sort(list.begin(), list.end());
  list.erase(std::remove(list.begin(), list.end(), MPI_PROC_NULL), list.end());
  return std::adjacent_find(list.begin(), list.end()) != list.end();
}

/// With room for one more, because MPI wants an address of a list without entries too.
std::vector<int> room_for(int entries) { return std::vector<int>(static_cast<std::size_t>(entries) + 1); }

Neighbours of_distributed_graph(MPI_Comm comm) {
  int in = 0, out = 0, is_weighted = 0;
  PMPI_Dist_graph_neighbors_count(comm, &in, &out, &is_weighted);
  Neighbours made{room_for(in), room_for(out)};
  std::vector<int> from_weights = room_for(in), to_weights = room_for(out);
  PMPI_Dist_graph_neighbors(comm, in, made.sources.data(), from_weights.data(), out, made.destinations.data(),
                            to_weights.data());
  made.sources.pop_back();
  made.destinations.pop_back();
  return made;
}

Neighbours of_graph(MPI_Comm comm) {
  int rank = 0, count = 0;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Graph_neighbors_count(comm, rank, &count);
  std::vector<int> list = room_for(count);
  PMPI_Graph_neighbors(comm, rank, count, list.data());
  list.pop_back();
  return {list, list};
}

Neighbours of_grid(MPI_Comm comm) {
  int dimensions = 0;
  PMPI_Cartdim_get(comm, &dimensions);
  std::vector<int> list;
  for (int d = 0; d < dimensions; ++d) {
    int before = MPI_PROC_NULL, after = MPI_PROC_NULL;
    PMPI_Cart_shift(comm, d, 1, &before, &after);
    list.push_back(before);
    list.push_back(after);
  }
  return {list, list};
}

}  // namespace

bool Neighbours::repeats() const { return repeats_one(sources) || repeats_one(destinations); }

std::optional<Neighbours> neighbours_of(MPI_Comm comm) {
  int is_between = 0, kind = MPI_UNDEFINED;
  if (PMPI_Comm_test_inter(comm, &is_between) != MPI_SUCCESS || is_between != 0 ||
      PMPI_Topo_test(comm, &kind) != MPI_SUCCESS)
    return {};
  if (kind == MPI_DIST_GRAPH) return of_distributed_graph(comm);
  if (kind == MPI_GRAPH) return of_graph(comm);
  if (kind == MPI_CART) return of_grid(comm);
  return {};
}

}  // namespace hostless::preload
