#pragma once
// Preconditioners that are applied apart from the rows: a sub-text leaves z = M r in memory, where bodies
// find it, and (r, z) has a sum of its own.

#include <functional>

#include "solve/methods/by_rows.impl.hpp"

namespace hostless {

/// beta, from an (r, z) that comes after its iteration (State::apart); this is where that can be left.
struct ApartRatio {
  HOSTLESS_HOST_DEVICE void operator()(State& s) const {
    double const rz = s.value[cg::rz];
    if (!is_finite(rz)) {
      s.status = Status::not_finite;
    } else if (rz < 0 || (s.fresh && rz == 0)) {
      s.status = Status::indefinite_preconditioner;
    } else if (rz == 0) {
      ask_for_true_residual(s);
    } else {
      s.value[cg::beta] = s.fresh ? 0.0 : rz / s.value[cg::rz_before];
      pause_where_wanted(s);  // goes on by applying M again
    }
  }
};

/// The verbs of a preconditioner with `z` [owned] and a sub-text `apply(run, from, to)`.
template <class Self>
struct AppliedApart {
  double* z;
  Apart rows;
  explicit AppliedApart(double* memory) : z(memory), rows{memory} {}

  template <class Run>
  HOSTLESS_TEXT Self const& begin(Run&) const {
    return self();
  }
  template <class Run>
  HOSTLESS_TEXT void end(Run&) const {}
  template <class Run, class P, class R, class Work>
  HOSTLESS_TEXT auto direction(Run& run, P& p, R& r, Work&) const {
    square(run, r, into(cg::rz), ApartRatio{});
    return fused_update(p, Direction<Apart>{rows}, reads(r));
  }
  template <class Run, class Field, class Decision>
  HOSTLESS_TEXT void square(Run& run, Field& r, Into<1> to, Decision const& decide) const {
    auto made = run.scratch(z);
    self().apply(run, r, made);
    run.rows(to, Dot{}, decide, reads(r), reads(made));
  }
  template <class Run, class G, class From, class Before, class... Views>
  HOSTLESS_TEXT void publish(Run& run, G& g, From& from, Before const& before, Views... views) const {
    auto made = run.scratch(z);
    run.rows(nothing(), before, NoDecision{}, reads(g), views...);
    self().apply(run, from, made);
    run.publish(g, Copy{}, reads(made));
  }

 private:
  Self const& self() const { return static_cast<Self const&>(*this); }
};

/// A function of the user.
struct OfUser : AppliedApart<OfUser> {
  std::function<void(double const*, double*)> const* function;
  OfUser(double* memory, std::function<void(double const*, double*)> const* of_user)
      : AppliedApart(memory), function(of_user) {}
  template <class Run, class Field>
  HOSTLESS_TEXT void apply(Run& run, Field& from, Field& to) const {
    run.apply(*function, from, to);
  }
};

struct OfUserPreconditioner {
  static constexpr bool is_of(Variant variant) { return variant == Variant::function; }
  template <class Method>
  static constexpr bool serves = Method::offers.apart;
  template <class M>
  static OfUser of(MethodInput<M> const& in) {
    return {in.apart, in.function};
  }
};

}  // namespace hostless
