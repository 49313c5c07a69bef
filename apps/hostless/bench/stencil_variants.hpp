#pragma once
// `hostless bench stencil --variants`: the ways to step a stencil that Ismayilov et al. measure (2023,
// sections 3.3, 4.1 and 5.1), by their names, and ours.

#include <string>
#include <vector>

#include "bench.hpp"
#include "ranks.hpp"
#include "rivals/rivals.hpp"
#include "stencil/grid_options.hpp"

namespace hostless {

struct StencilVariant {
  char const* name;                ///< on the command line
  char const* label;               ///< in the paper; ours
  char const* obstacle;            ///< why ranks of the processor have it not; empty: they have
  int depth = 1, block_steps = 1;  ///< of StencilOptions; 0: as the command says, or chosen
  bool overlap = false;
};
std::vector<StencilVariant> const& stencil_variants();
/// Those named, between commas, in the order of the list; `all`: all.
/// Errors  usage  a name that is none of theirs
std::vector<StencilVariant> stencil_variants_of(std::string const& names);

struct VariantsWish {
  GridWords const* grid = nullptr;
  DealtOptions const* dealt = nullptr;
  MeasureOptions const* measure = nullptr;
  std::vector<StencilVariant> variants;
  bool no_compute = false;   ///< exchanges alone are timed
  bool overlap = false;      ///< and which share of them lay beside computing
  double latency_us = 0;     ///< of an emulated network
  Rivals* rivals = nullptr;  ///< of GPUs: that take turns with them
  /// Of ranks: where the first one leaves it, to be told when all have ended; nullptr: it tells it itself.
  nlohmann::ordered_json* report = nullptr;
  Provenance provenance;

  std::size_t value_bytes() const { return grid->type == "fp32" ? 4 : 8; }
  int axes() const { return static_cast<int>(grid->size.size()); }
};

/// Times them by turns on the ranks of a transport; 1: their bits differ. Collective.
int time_stencil_variants(VariantsWish const& wish, Transport& transport);

/// The table of a report.
void tell_variants(VariantsWish const& wish, nlohmann::ordered_json const& report);
/// Median seconds a step of `blocked` among the rows of a report; 0: it was not timed.
double blocked_s(nlohmann::ordered_json const& rows);

}  // namespace hostless
