#pragma once
// What the runs need to know of each method: its data, from the pointers of a bound solve.

#include "solve/gpu/instance.hpp"
#include "solve/methods/conjugate_gradient.impl.hpp"
#include "solve/methods/one_reduction.impl.hpp"

namespace hostless {

template <class Run, class M, class Polynomial>
HOSTLESS_TEXT void run_text(Run& run, ConjugateGradient<M, Polynomial> const& data) {
  conjugate_gradient(run, data);
}
template <class Run, class M>
HOSTLESS_TEXT void run_text(Run& run, SingleReduction<M> const& data) {
  single_reduction_cg(run, data);
}
template <class Run, class M>
HOSTLESS_TEXT void run_text(Run& run, Pipelined<M> const& data) {
  pipelined_cg(run, data);
}

}  // namespace hostless

namespace hostless::gpu {

struct ConjugateGradientTraits {
  template <int B>
  using Data = ConjugateGradient<BlockRowPreconditioner<B>, NoChebyshev>;
  using Late = NoDecision;                   ///< the decision of the text's `finish`
  using Inner = double;                      ///< how the matrix is stored that iterations multiply with
  static constexpr bool spans_ranks = true;  ///< a second persistent kernel, for several ranks
  static constexpr bool fuses = true;        ///< the text says `fused_update`
  static constexpr bool begins = false;      ///< the text says `begun`
  static constexpr int fields = 4;
  template <int B>
  static Data<B> make(Arguments const& a, BlockRowPreconditioner<B> m) {
    return {m, nullptr, a.rhs, a.field[0], a.field[1], a.field[2], a.field[3], nullptr, {}, nullptr};
  }
};

/// Kernels of their own, so that those without a second matrix keep their registers.
struct RoundedGradientTraits : ConjugateGradientTraits {
  using Inner = float;
  static constexpr bool spans_ranks = false;
};

/// Kernels of their own, so that those without a polynomial keep their registers.
struct ChebyshevTraits {
  template <int B>
  using Data = ConjugateGradient<BlockRowPreconditioner<B>, Chebyshev<BlockRowPreconditioner<B>>>;
  using Late = NoDecision;
  using Inner = double;
  static constexpr bool spans_ranks = false, fuses = false, begins = false;
  static constexpr int fields = 5;
  template <int B>
  static Data<B> make(Arguments const& a, BlockRowPreconditioner<B> inner) {
    BlockRowPreconditioner<B> const none{AnyPreconditioner::Kind::none, nullptr};
    return {none,       nullptr,    a.rhs,
            a.field[0], a.field[1], a.field[2],
            a.field[4], nullptr,    {a.polynomial, inner},
            a.field[3]};
  }
};

struct SingleReductionTraits {
  template <int B>
  using Data = SingleReduction<BlockRowPreconditioner<B>>;
  using Late = NoDecision;
  using Inner = double;
  static constexpr bool spans_ranks = false, fuses = false, begins = false;
  static constexpr int fields = 6;
  template <int B>
  static Data<B> make(Arguments const& a, BlockRowPreconditioner<B> m) {
    return {m, a.rhs, a.field[0], a.field[1], a.field[2], a.field[3], a.field[4], a.field[5]};
  }
};

struct PipelinedTraits {
  template <int B>
  using Data = Pipelined<BlockRowPreconditioner<B>>;
  using Late = OneReduction;
  using Inner = double;
  static constexpr bool spans_ranks = true, fuses = false, begins = true;
  static constexpr int fields = 8;
  template <int B>
  static Data<B> make(Arguments const& a, BlockRowPreconditioner<B> m) {
    return {m,          a.rhs,      a.field[0], a.field[1], a.field[2],
            a.field[3], a.field[4], a.field[5], a.field[6], a.field[7]};
  }
};

template <class Traits, int B>
typename Traits::template Data<B> data_of(Arguments const& a) {
  using Kind = AnyPreconditioner::Kind;
  Kind const kind = a.preconditioner_data_kind == PreconditionerData::none     ? Kind::none
                    : a.preconditioner_data_kind == PreconditionerData::jacobi ? Kind::jacobi
                                                                               : Kind::block_jacobi;
  return Traits::template make<B>(a, {kind, a.preconditioner_data});
}

}  // namespace hostless::gpu
