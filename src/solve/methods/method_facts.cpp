#include "solve/methods/method_facts.hpp"

#include <stdexcept>
#include <vector>

#include "base/nearest.hpp"
#include "hostless/base/error.hpp"
#include "hostless/solve/symmetry.hpp"
#include "solve/methods/methods.hpp"

namespace hostless {
namespace {

template <class... All>
std::vector<MethodFacts> table_of(MethodList<All...>) {
  return {{All::method, All::name, All::title, All::fields, All::offers, All::demands,
           All::makes_lanczos_steps, All::square_in_m, All::curvature, All::breakdown, All::steadier,
           All::divergence_limit, &All::traffic, &run_on_host<All>}...};
}

}  // namespace

std::span<MethodFacts const> method_table() {
  static std::vector<MethodFacts> const table = table_of(Methods{});
  return table;
}

MethodFacts const& facts_of(Method method) {
  auto const at = static_cast<std::size_t>(method);
  if (at >= method_table().size())
    throw std::logic_error("a method without a line in the list of methods.hpp");
  return method_table()[at];
}

std::string names_of_methods(std::function<bool(MethodFacts const&)> const& has, char const* before_last) {
  std::vector<std::string> names;
  for (MethodFacts const& one : method_table())
    if (has(one)) names.emplace_back(one.name);
  std::string text;
  for (std::size_t k = 0; k < names.size(); ++k)
    text += (k == 0 ? "" : k + 1 < names.size() ? ", " : before_last) + names[k];
  return text;
}

void run_method(host::Engine& engine, RunKind kind, Method method, Variant variant,
                MethodInput<AnyPreconditioner> const& input) {
  facts_of(method).run(engine, kind, variant, input);
}

char const* name(Method method) { return facts_of(method).name; }

Method method_from(char const* text) {
  std::vector<std::string> names;
  for (MethodFacts const& one : method_table()) {
    if (one.name == std::string_view(text)) return one.method;
    names.emplace_back(one.name);
  }
  throw Error(ErrorCode::usage, std::string("unknown method '") + text + "'." + did_you_mean(text, names) +
                                    " Use " + method_names() + ".");
}

Symmetry symmetry_for(Method method) {
  return facts_of(method).needs_symmetric() ? Symmetry::required : Symmetry::any;
}

std::span<Method const> methods() {
  static std::vector<Method> const all = [] {
    std::vector<Method> listed;
    for (MethodFacts const& one : method_table()) listed.push_back(one.method);
    return listed;
  }();
  return all;
}

std::string method_names(char const* before_last) {
  return names_of_methods([](MethodFacts const&) { return true; }, before_last);
}

}  // namespace hostless
