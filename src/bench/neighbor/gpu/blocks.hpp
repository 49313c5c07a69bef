#pragma once
// Blocks in the memory of a GPU that ranks send to their neighbours: how long they are, where they lie, and what is
// in them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/neighbor/neighbors.hpp"
#include "exchange/gpu/grouped_sends.hpp"
#include "exchange/gpu/workbench.hpp"
#include "hostless/exchange/neighborhood.hpp"
#include "transport/mpi/library_neighbors.hpp"

namespace hostless::bench {

enum class Collective { allgather, alltoallv };
char const* name(Collective collective);

/// One collective of one size. All ranks know the same.
struct BlockSizes {
  Collective collective = Collective::allgather;
  std::size_t bytes = 1;   ///< of alltoallv about the mean
  std::uint64_t seed = 0;  ///< of alltoallv: which edges have more
  /// Of the block from one rank to another: of alltoallv from half of `bytes` to half as much again, and a
  /// multiple of a power of two that is about a sixteenth of it.
  std::size_t of(int source, int target) const;
};

/// Where a rank's blocks lie on its GPU: [destinations] one behind the other, of allgather one for all;
/// [sources] one behind the other.
struct BlockMemory {
  std::byte *send = nullptr, *receive = nullptr;
};

/// What all ranks move between their GPUs in one collective, and what follows it on each of them.
class GpuCollective {
 public:
  virtual ~GpuCollective() = default;
  /// Collective. Errors: those of Neighborhood
  virtual NeighborCollective plan(Transport& transport) const = 0;
  /// As parts of a group; and by MPI's own collective.
  std::vector<gpu::GroupedPart> const& out() const { return out_; }
  std::vector<gpu::GroupedPart> const& in() const { return in_; }
  virtual void by_library(LibraryNeighbors& library) const = 0;
  /// Errors  usage  libraries cannot move it as it lies
  virtual void require_parts() const {}
  /// Errors  usage  a count or a displacement of MPI's own collective is more than MPI counts
  virtual void require_counted() const = 0;
  /// A kernel that needs what has come.
  virtual bool is_followed() const { return false; }
  virtual void queue_what_follows(gpu::Workbench&) const {}

  /// What is sent is of this number, and no byte that is received is what must come.
  virtual void fill(gpu::Workbench& bench, std::uint64_t number) const = 0;
  /// The first that did not come as it was sent, in words: rank, neighbour and offset. Empty: all came.
  virtual std::string first_wrong(gpu::Workbench& bench, std::uint64_t number) const = 0;

 protected:
  std::vector<gpu::GroupedPart> out_, in_;
};

class GpuBlocks final : public GpuCollective {
 public:
  /// mine  outlives it
  GpuBlocks(BlockSizes const& sizes, Neighbors const& mine, int rank, BlockMemory const& memory);

  NeighborCollective plan(Transport& transport) const override;
  void by_library(LibraryNeighbors& library) const override;
  void require_counted() const override;
  void fill(gpu::Workbench& bench, std::uint64_t number) const override;
  std::string first_wrong(gpu::Workbench& bench, std::uint64_t number) const override;

 private:
  std::uint64_t seed_of(std::uint64_t number, int source, int target) const;

  BlockSizes sizes_;
  Neighbors const* mine_;
  int rank_;
  BlockMemory memory_;
  /// [neighbours] bytes of each block, and in front of it, as MPI counts them.
  struct Counts {
    std::vector<int> bytes, before;
    void add(std::size_t block, std::size_t first);
  };
  Counts out_counts_, in_counts_;
  std::size_t sent_bytes_ = 0, received_bytes_ = 0;
};

}  // namespace hostless::bench
