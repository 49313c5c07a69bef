#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "hostless/exchange/exchange.hpp"
#include "stencil/grid_array.hpp"

namespace hostless {

/// What a halo is made of.
struct HaloShape {
  std::array<std::int64_t, 3> depth{};  ///< cells along each axis
  bool faces_only = false;              ///< no edges and corners
  int arrays = 1;                       ///< that are exchanged at once
  std::size_t value_bytes = 8;
};

/// Fills the halos of some arrays of one box from its neighbours: strips are packed, travel in one message a
/// neighbour, and are unpacked. A rank that borders on itself, on an axis that wraps, copies.
class HaloExchange {
 public:
  /// Collective. Errors  usage  as box_halo and Exchange
  HaloExchange(Transport& transport, BoxPartition const& partition, HaloShape const& shape, Route route,
               NodeMap const& nodes, ExchangeOptions const& options);

  /// arrays: as many as it was made for, or none: then messages travel that say nothing, to be timed. False:
  /// a peer is lost.
  [[nodiscard]] bool run(std::vector<GridArray const*> const& arrays) {
    start(arrays);
    return finish(arrays);
  }
  /// The two halves of it: what lies between must leave the arrays as they are.
  void start(std::vector<GridArray const*> const& arrays);
  [[nodiscard]] bool finish(std::vector<GridArray const*> const& arrays);
  Exchange& exchange() { return *exchange_; }

 private:
  BoxHalo halo_;
  std::vector<std::vector<std::byte>> out_, in_;  ///< [arrays]
  std::unique_ptr<Exchange> exchange_;
};

}  // namespace hostless
