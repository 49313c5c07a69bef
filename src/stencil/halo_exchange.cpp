#include "stencil/halo_exchange.hpp"

#include <cstring>

#include "hostless/plan/routes.hpp"

namespace hostless {

namespace {

void copy_out(GridArray const& array, HaloStrip const& strip, std::byte* packed) {
  std::size_t const bytes = static_cast<std::size_t>(strip.cells.extent(2) * array.value_bytes());
  std::byte* to = packed + strip.first * array.value_bytes();
  each_row(array, strip.cells, [&](std::byte const* row, std::int64_t, std::int64_t) {
    std::memcpy(to, row, bytes);
    to += bytes;
  });
}

void copy_in(GridArray const& array, HaloStrip const& strip, std::byte const* packed) {
  std::size_t const bytes = static_cast<std::size_t>(strip.cells.extent(2) * array.value_bytes());
  std::byte const* from = packed + strip.first * array.value_bytes();
  each_row(array, strip.cells, [&](std::byte* row, std::int64_t, std::int64_t) {
    std::memcpy(row, from, bytes);
    from += bytes;
  });
}

}  // namespace

HaloExchange::HaloExchange(Transport& transport, BoxPartition const& partition, HaloShape const& shape,
                           Route route, NodeMap const& nodes, ExchangeOptions const& options) {
  Rank const rank = transport.group().rank();
  halo_ = box_halo(partition, rank, shape.depth, shape.faces_only);
  auto const bytes = [&](std::int64_t items) {
    return std::vector<std::byte>(static_cast<std::size_t>(items) * shape.value_bytes);
  };
  for (int k = 0; k < shape.arrays; ++k) {
    out_.push_back(bytes(halo_.items_out));
    in_.push_back(bytes(halo_.items_in));
  }
  std::vector<Field> fields;
  for (std::size_t k = 0; k < out_.size(); ++k)
    fields.push_back(Field::apart(out_[k].data(), in_[k].data(), shape.value_bytes));
  PlanOptions plan_options;
  plan_options.reuse_guarantee = ReuseGuarantee::answer;
  plan_options.apart = true;
  auto const patterns = box_patterns(partition, shape.depth, shape.faces_only);
  exchange_ = std::make_unique<Exchange>(transport, make_plan(route, patterns, nodes, rank, plan_options),
                                         fields, options);
}

void HaloExchange::start(std::vector<GridArray const*> const& arrays) {
  for (std::size_t k = 0; k < arrays.size(); ++k)
    for (HaloStrip const& strip : halo_.out) copy_out(*arrays[k], strip, out_[k].data());
  exchange_->start();
}

bool HaloExchange::finish(std::vector<GridArray const*> const& arrays) {
  if (!exchange_->wait()) return false;
  for (std::size_t k = 0; k < arrays.size(); ++k)
    for (HaloStrip const& strip : halo_.in) copy_in(*arrays[k], strip, in_[k].data());
  return true;
}

}  // namespace hostless
