#pragma once
// The list of methods at run time, for code that need not see their texts.

#include <functional>
#include <span>
#include <string>

#include "hostless/run/run_options.hpp"
#include "solve/methods/descriptor.hpp"
#include "solve/methods/preconditioner.impl.hpp"

namespace hostless::host {
class Engine;
}

namespace hostless {

/// A descriptor, member by member.
struct MethodFacts {
  Method method;
  char const *name, *title;
  std::span<FieldFacts const> fields;
  Offers offers;
  Demands demands;
  bool makes_lanczos_steps;
  int square_in_m;
  CurvatureSum curvature;
  Breakdown breakdown;
  Method steadier;
  double divergence_limit;
  IterationTraffic (*traffic)(Variant variant, TrafficRequest const& request);
  void (*run)(host::Engine& engine, RunKind kind, Variant variant,
              MethodInput<AnyPreconditioner> const& input);

  bool needs_symmetric() const { return demands != Demands::nothing; }
};

/// In the order of the list.
std::span<MethodFacts const> method_table();
MethodFacts const& facts_of(Method method);
/// "cg or pipelined-cg": the names of those that `has` is true of.
std::string names_of_methods(std::function<bool(MethodFacts const&)> const& has,
                             char const* before_last = " or ");

/// Executes a text on the processor; returns when it has ended or paused (state.status).
void run_method(host::Engine& engine, RunKind kind, Method method, Variant variant,
                MethodInput<AnyPreconditioner> const& input);

/// MethodFacts::run; each method's is compiled by itself.
template <class Descriptor>
void run_on_host(host::Engine& engine, RunKind kind, Variant variant,
                 MethodInput<AnyPreconditioner> const& input);

}  // namespace hostless
