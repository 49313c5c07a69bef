#pragma once
// What a GPU library (loaded at run time) offers to stencils. The same compiler builds both sides; the
// version of transport/stream/gpu_files.hpp changes with every change of this file.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hostless/stencil/gpu_stencil.hpp"
#include "stencil/gpu/shapes.hpp"

namespace hostless::gpu {

/// One of the stencils that a library has kernels of.
struct StencilText {
  std::string name;
  int axes = 2;
  std::size_t value_bytes = 8;
  bool operator==(StencilText const&) const = default;
};

struct StencilDevice {
  std::string name;
  int multiprocessors = 0;
  std::int64_t shared_bytes = 0;  ///< that a block may have
};

struct StencilProblem {
  int multiprocessors = 1;  ///< of a GPU, for one of its parts
  StencilText text;
  Grid grid;
  std::vector<std::byte> parameters;
  StencilWay way;
  double deadline_s = 10;
  double longest_launch_s = 0.5;
};

/// A stencil bound to memory of the GPUs of its parts. Arrays: fields, then coefficients.
class BoundStencil {
 public:
  virtual ~BoundStencil() = default;
  /// Errors  usage  memory of another GPU
  virtual void put(int array, CellArray const& cells) = 0;
  virtual void get(int field, CellArray const& cells) const = 0;
  /// Takes so many steps. False: blocks waited in vain, and `taken` says how many were.
  virtual bool advance(std::int64_t steps, std::int64_t& taken) = 0;
  /// One step whose change can be asked for until the next.
  virtual void advance_alone() = 0;
  /// As change::largest of that step.
  virtual double largest(int field) const = 0;
  /// As change::squares, in digits of 20 bits which are sums over cells: sum[k] 2^(20 k).
  virtual std::array<std::uint64_t, 3> squares(int field, double top) const = 0;
  virtual bool is_finite(int field) const = 0;
  virtual std::string describe() const = 0;
  virtual std::int64_t device_bytes() const = 0;
  /// For tests: kernels of this part that others wait for are launched no more; -1: all are.
  virtual void silence(int part) = 0;
};

class StencilLibrary {
 public:
  virtual ~StencilLibrary() = default;
  virtual int devices() const = 0;
  virtual StencilDevice device(int device) const = 0;
  /// Null: it has no such kernels.
  virtual StencilShapes const* shapes(StencilText const& text) const = 0;
  /// Errors  environment  not enough memory; GPUs that cannot reach each other's
  virtual std::unique_ptr<BoundStencil> bind(StencilProblem const& problem) const = 0;
};

using OpenStencils = StencilLibrary*();
constexpr char const* open_stencils_name = "hostless_gpu_stencils";

/// The first library that sees a GPU.
/// Errors  environment  none does, and why
StencilLibrary& stencil_library();

}  // namespace hostless::gpu
