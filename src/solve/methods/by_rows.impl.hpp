#pragma once
// A preconditioner that every block row applies by itself, as texts name it (preconditioners.hpp): all of it
// is inside the bodies.

#include "solve/methods/bodies.impl.hpp"
#include "solve/methods/cg_values.hpp"
#include "solve/methods/descriptor.hpp"

namespace hostless {

/// p = M r + beta p.
template <class M>
struct Direction : Preconditioned<Direction, M> {
  M m;
  template <class Other>
  HOSTLESS_HOST_DEVICE Direction(Direction<Other> const&, M preconditioner) : m(preconditioner) {}
  HOSTLESS_HOST_DEVICE explicit Direction(M preconditioner) : m(preconditioner) {}
  template <class L, class Sums, class P, class R>
  HOSTLESS_HOST_DEVICE void operator()(State const& s, L block_row, Sums const&, P const& p,
                                       R const& r) const {
    double z[L::rows];
    m.apply(block_row, r, z);
    for (int j = 0; j < L::rows; ++j)
      p(block_row, j) = s.fresh ? z[j] : __builtin_fma(s.value[cg::beta], p(block_row, j), z[j]);
  }
};

/// `Before`, which tells by `result` what of its fields M is applied to; then g = M of that.
template <class Before>
struct Applied {
  template <class M>
  struct Body : Preconditioned<Body, M> {
    M m;
    template <class Other>
    HOSTLESS_HOST_DEVICE Body(Body<Other> const&, M preconditioner) : m(preconditioner) {}
    HOSTLESS_HOST_DEVICE explicit Body(M preconditioner) : m(preconditioner) {}
    template <class L, class Sums, class G, class... Fields>
    HOSTLESS_HOST_DEVICE void operator()(State const& s, L block_row, Sums const& sum, G const& g,
                                         Fields const&... fields) const {
      Before{}(s, block_row, sum, g, fields...);
      double z[L::rows];
      m.apply(block_row, Before::result(fields...), z);
      for (int j = 0; j < L::rows; ++j) g(block_row, j) = z[j];
    }
  };
};

template <class M = AnyPreconditioner>
struct ByRows {
  M rows;

  template <class Run>
  HOSTLESS_TEXT ByRows const& begin(Run&) const {
    return *this;
  }
  template <class Run>
  HOSTLESS_TEXT void end(Run&) const {}
  template <class Run, class P, class R, class Work>
  HOSTLESS_TEXT auto direction(Run&, P& p, R& r, Work&) const {
    return fused_update(p, Direction<M>{rows}, reads(r));
  }
  template <class Run, class Field, class Decision>
  HOSTLESS_TEXT void square(Run&, Field&, Into<1>, Decision const&) const {}
  template <class Run, class G, class From, class Before, class... Views>
  HOSTLESS_TEXT void publish(Run& run, G& g, From&, Before const&, Views... views) const {
    run.publish(g, typename Applied<Before>::template Body<M>{rows}, views...);
  }
};

/// What preconditioners.hpp lists of it.
struct ByRowsPreconditioner {
  static constexpr bool is_of(Variant variant) {
    return variant == Variant::plain || variant == Variant::rounded;
  }
  template <class Method>
  static constexpr bool serves = true;
  template <class M>
  static ByRows<M> of(MethodInput<M> const& in) {
    return {in.m};
  }
};

}  // namespace hostless
