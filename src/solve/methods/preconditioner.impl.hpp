#pragma once
// Preconditioners that a block row can apply by itself: z = M r needs only the rows of the block row. They
// are applied wherever z is needed instead of storing it: recomputing costs 8 bytes a row (24 for 3x3
// blocks), storing and loading 16. How texts name these and all others: preconditioners.hpp.

#include <cstdint>

#include "hostless/base/host_device.hpp"
#include "hostless/run/views.hpp"

namespace hostless {

/// M = identity.
struct NoPreconditioner {
  static constexpr int coupled = 1;
  template <int B, class R>
  HOSTLESS_HOST_DEVICE void apply(BlockRow<B> block_row, R const& r, double* z) const {
    for (int j = 0; j < B; ++j) z[j] = r(block_row, j);
  }
};

/// M = inverse of the diagonal. 8 bytes a row.
struct Jacobi {
  static constexpr int coupled = 1;
  double const* preconditioner_data;
  template <int B, class R>
  HOSTLESS_HOST_DEVICE void apply(BlockRow<B> block_row, R const& r, double* z) const {
    for (int j = 0; j < B; ++j) z[j] = preconditioner_data[block_row.row + j] * r(block_row, j);
  }
};

/// M = inverse of the matrix's own B x B diagonal blocks, row-major, symmetric bit for bit. 8 B bytes a row.
template <int B>
struct BlockJacobi {
  static constexpr int coupled = B;
  double const* preconditioner_data;
  template <class R>
  HOSTLESS_HOST_DEVICE void apply(BlockRow<B> block_row, R const& r, double* z) const {
    double const* m = preconditioner_data + block_row.row * B;
    for (int j = 0; j < B; ++j) {
      double sum = 0.0;
      for (int i = 0; i < B; ++i) sum = __builtin_fma(m[j * B + i], r(block_row, i), sum);
      z[j] = sum;
    }
  }
};

/// M is applied apart from the rows, which find z in memory.
struct Apart {
  static constexpr int coupled = 1;
  double const* ready;
  template <int B, class R>
  HOSTLESS_HOST_DEVICE void apply(BlockRow<B> block_row, R const&, double* z) const {
    for (int j = 0; j < B; ++j) z[j] = ready[block_row.row + j];
  }
};

/// Chosen at run time, made concrete once a phase: a body holds one of these as `m`.
struct AnyPreconditioner {
  enum class Kind : std::uint8_t { none, jacobi, block_jacobi };
  Kind kind = Kind::none;
  int block = 1;
  double const* data = nullptr;

  template <class Use>
  void choose(Use const& use) const {
    switch (kind) {
      case Kind::none:
        return use(NoPreconditioner{});
      case Kind::jacobi:
        return use(Jacobi{data});
      case Kind::block_jacobi:
        break;
    }
    switch (block) {
      case 2:
        return use(BlockJacobi<2>{data});
      case 3:
        return use(BlockJacobi<3>{data});
      case 4:
        return use(BlockJacobi<4>{data});
      case 6:
        return use(BlockJacobi<6>{data});
      default:
        return use(Jacobi{data});
    }
  }
};

/// Any of them, told apart where it is applied: for the kernel of a whole text, where a branch that all
/// threads take alike costs less than an instance of the text for each kind. Kernels of one phase choose, and
/// all they load is in flight together.
template <int B>
struct BlockRowPreconditioner {
  static constexpr int coupled = B;
  AnyPreconditioner::Kind kind;
  double const* data;
  template <class R>
  HOSTLESS_HOST_DEVICE void apply(BlockRow<B> block_row, R const& r, double* z) const {
    switch (kind) {
      case AnyPreconditioner::Kind::none:
        return NoPreconditioner{}.apply(block_row, r, z);
      case AnyPreconditioner::Kind::jacobi:
        return Jacobi{data}.apply(block_row, r, z);
      default:
        return BlockJacobi<B>{data}.apply(block_row, r, z);
    }
  }
  template <class Use>
  HOSTLESS_HOST_DEVICE void choose(Use const& use) const {
    switch (kind) {
      case AnyPreconditioner::Kind::none:
        return use(NoPreconditioner{});
      case AnyPreconditioner::Kind::jacobi:
        return use(Jacobi{data});
      default:
        return use(BlockJacobi<B>{data});
    }
  }
};

/// What a body with a preconditioner inherits: made concrete once a phase.
template <template <class> class Body, class M>
struct Preconditioned {
  static constexpr int coupled = M::coupled;
};
template <template <class> class Body, class M>
struct ChosenOncePerPhase {
  template <class Use>
  HOSTLESS_HOST_DEVICE void choose(Use const& use) const {
    auto const& self = static_cast<Body<M> const&>(*this);
    self.m.choose([&](auto m) { use(Body<decltype(m)>(self, m)); });
  }
};
template <template <class> class Body>
struct Preconditioned<Body, AnyPreconditioner> : ChosenOncePerPhase<Body, AnyPreconditioner> {};
template <template <class> class Body, int B>
struct Preconditioned<Body, BlockRowPreconditioner<B>> : ChosenOncePerPhase<Body, BlockRowPreconditioner<B>> {
  static constexpr int coupled = B;
};

}  // namespace hostless
