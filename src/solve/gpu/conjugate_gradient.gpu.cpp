// Compiled once for every block size, HOSTLESS_BLOCK.
#include "solve/gpu/instance.gpu.hpp"

namespace hostless::gpu {
namespace {

struct Traits {
  template <int B>
  using Data = ConjugateGradient<LeafPreconditioner<B>, NoChebyshev>;
  static constexpr int fields = 4;
  template <int B>
  static Data<B> make(Arguments const& a, LeafPreconditioner<B> m) {
    return {m, nullptr, a.rhs, a.field[0], a.field[1], a.field[2], a.field[3], nullptr, {}, nullptr};
  }
};

}  // namespace

template <>
Instance const& instance_of<TextKind::cg, HOSTLESS_BLOCK>() {
  return MethodInstance<Traits, HOSTLESS_BLOCK>::instance;
}

}  // namespace hostless::gpu
