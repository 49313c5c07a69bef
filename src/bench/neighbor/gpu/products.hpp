#pragma once
// Y = A B with rows of B gathered from the neighbours' GPUs and multiplied by a kernel.

#include "bench/neighbor/gathered_rows.hpp"
#include "bench/neighbor/gpu/blocks.hpp"

namespace hostless::bench {

class GpuProduct final : public GpuCollective {
 public:
  /// Takes memory of the bench, which stays as long as that. what, bench: outlive it.
  /// Errors  environment  there is not so much
  GpuProduct(RowProduct const& what, int ranks, int rank, bool needed_rows, gpu::Workbench& bench);

  std::int64_t gathered_bytes() const;
  NeighborCollective plan(Transport& transport) const override;
  void by_library(LibraryNeighbors& library) const override;
  void require_parts() const override;
  void require_counted() const override { rows_.require_counted(); }
  bool is_followed() const override { return true; }
  void queue_what_follows(gpu::Workbench& bench) const override { bench.queue_product(product_); }
  void fill(gpu::Workbench& bench, std::uint64_t number) const override;
  std::string first_wrong(gpu::Workbench& bench, std::uint64_t number) const override;

 private:
  std::string first_wrong_gathered(gpu::Workbench& bench, std::uint64_t number) const;

  RowProduct const& what_;
  int rank_, ranks_;
  bool needs_rows_;
  GatheredRows rows_;
  double *b_ = nullptr, *y_ = nullptr;
  gpu::SparseProduct product_;
};

}  // namespace hostless::bench
