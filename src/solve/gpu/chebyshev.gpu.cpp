// Compiled once for every block size, HOSTLESS_BLOCK. Conjugate gradients with a polynomial are kernels of
// their own, so that those without one keep their registers.
#include "solve/gpu/instance.gpu.hpp"

namespace hostless::gpu {
namespace {

struct Traits {
  template <int B>
  using Data = ConjugateGradient<LeafPreconditioner<B>, Chebyshev<LeafPreconditioner<B>>>;
  static constexpr int fields = 5;
  template <int B>
  static Data<B> make(Arguments const& a, LeafPreconditioner<B> inner) {
    LeafPreconditioner<B> const none{AnyPreconditioner::Kind::none, nullptr};
    return {none,       nullptr,    a.rhs,
            a.field[0], a.field[1], a.field[2],
            a.field[4], nullptr,    {a.polynomial, inner},
            a.field[3]};
  }
};

}  // namespace

template <>
Instance const& instance_of<TextKind::chebyshev_cg, HOSTLESS_BLOCK>() {
  return MethodInstance<Traits, HOSTLESS_BLOCK>::instance;
}

}  // namespace hostless::gpu
