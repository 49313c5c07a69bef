#include "solve/gpu/instance.gpu.hpp"

namespace hostless::gpu {
namespace {

struct Traits {
  template <int B>
  using Data = Pipelined<LeafPreconditioner<B>>;
  static constexpr int fields = 8;
  template <int B>
  static Data<B> make(Arguments const& a, LeafPreconditioner<B> m) {
    return {m,          a.rhs,      a.field[0], a.field[1], a.field[2],
            a.field[3], a.field[4], a.field[5], a.field[6], a.field[7]};
  }
};

}  // namespace

Instance const& pipelined_instance(int block) { return instance_for<Traits>(block); }

}  // namespace hostless::gpu
