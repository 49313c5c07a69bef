#pragma once
// `hostless bench stencil --variants`: the ways to step a stencil that Ismayilov et al. measure (2023,
// sections 3.3, 4.1 and 5.1), by their names, and ours.

#include <string>
#include <vector>

#include "bench.hpp"
#include "ranks.hpp"
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
  bool no_compute = false;  ///< exchanges alone are timed
  bool overlap = false;     ///< and which share of them lay beside computing
  double latency_us = 0;    ///< of an emulated network
  std::string rival;        ///< a command; empty: none
  Provenance provenance;

  std::size_t value_bytes() const { return grid->type == "fp32" ? 4 : 8; }
  int axes() const { return static_cast<int>(grid->size.size()); }
};

/// Times them by turns on the ranks of a transport; 1: their bits differ. Collective.
int time_stencil_variants(VariantsWish const& wish, Transport& transport);

/// A row of the command that a wish names as its rival, run here; `problem`: it could not be.
nlohmann::ordered_json row_of_rival(VariantsWish const& wish);
/// What a program of NVIDIA's multi-gpu-programming-models prints with -csv, in seconds a step: its name, nx,
/// ny, steps, ..., seconds of all steps, seconds on one GPU. Errors  bad_input  no such line
double rival_step_s(std::string const& output);

}  // namespace hostless
