#include "solve/setup/chebyshev_setup.hpp"

#include <fmt/format.h>

#include <cmath>

#include "solve/methods/cg_values.hpp"
#include "solve/methods/method_facts.hpp"

namespace hostless {
namespace {

[[noreturn]] void refuse_polynomial(std::string const& text) { throw Error(ErrorCode::usage, text); }

}  // namespace

void check_chebyshev(SolveOptions const& options) {
  ChebyshevOptions const& c = options.chebyshev;
  if (options.preconditioner != PreconditionerKind::chebyshev) {
    if (c != ChebyshevOptions{})
      refuse_polynomial(fmt::format(
          "options of a Chebyshev polynomial with preconditioner {} are refused (nobody would read them). "
          "Use preconditioner chebyshev.",
          name(options.preconditioner)));
    return;
  }
  if (!facts_of(options.method).offers.polynomial) {
    MethodFacts const& mine = facts_of(options.method);
    std::string const theirs = names_of_methods([](auto const& one) { return one.offers.polynomial; });
    if (mine.demands == Demands::positive_definite)
      refuse_polynomial(fmt::format(
          "{} needs a preconditioner that every row can apply by itself (it forms M r on the fly; a "
          "polynomial multiplies with A). Use method {}.",
          mine.name, theirs));
    refuse_polynomial(
        fmt::format("{} with a Chebyshev polynomial is refused (its bounds are those of positive "
                    "eigenvalues). Use preconditioner "
                    "jacobi or block-jacobi{}; where A is symmetric positive definite, method {}.",
                    mine.name, mine.offers.apart ? ", or a function of your own" : "", theirs));
  }
  if (c.degree < 1 || c.degree > most_chebyshev_degree)
    refuse_polynomial(fmt::format("Chebyshev degree {} (it is the number of products with A). Use 1 to {}.",
                                  c.degree, most_chebyshev_degree));
  if (!(c.ratio > 1) || !std::isfinite(c.ratio))
    refuse_polynomial(fmt::format(
        "Chebyshev ratio {} (the bounds are upper / ratio and upper). Use more than 1.", c.ratio));
  if (!(c.upper >= 0) || !std::isfinite(c.upper))
    refuse_polynomial(
        fmt::format("Chebyshev upper bound {} (eigenvalues are positive). Use a positive number, or 0 to "
                    "have it estimated.",
                    c.upper));
  if (c.inner != PreconditionerKind::none && c.inner != PreconditionerKind::jacobi &&
      c.inner != PreconditionerKind::block_jacobi)
    refuse_polynomial(fmt::format(
        "a Chebyshev polynomial over {} is refused (it needs a preconditioner that every row can apply by "
        "itself). Use none, jacobi or block-jacobi.",
        name(c.inner)));
}

void require_mutual_neighbours(Group& group, Exchange& exchange, ExchangePlan const& plan, double* gathered) {
  std::fill_n(gathered, plan.owned, static_cast<double>(group.rank()));
  group.barrier();
  exchange.start();
  if (!exchange.wait()) throw Error(ErrorCode::peer_lost, "a rank was lost while neighbours were compared.");
  group.barrier();
  std::vector<std::vector<std::uint8_t>> reads(static_cast<std::size_t>(group.size()));
  for (std::int64_t item = plan.owned; item < plan.owned + plan.ghosts; ++item)
    reads[static_cast<std::size_t>(gathered[plan.vector_offset(item)])] = {1};
  auto const read_by = group.exchange_values(reads);
  group.together([&] {
    for (std::size_t r = 0; r < reads.size(); ++r) {
      if (reads[r].empty() || !read_by[r].empty()) continue;
      throw Error(
          ErrorCode::bad_input,
          fmt::format("rank {} reads values of rank {}, which reads none of its (entries of the matrix "
                      "stand in one triangle only, and a Chebyshev polynomial's exchanges rely on "
                      "both). Store the same entries in both triangles, zeros too.",
                      group.rank(), r));
    }
  });
}

void describe_chebyshev(ChebyshevOptions const& options, ChebyshevBound const& bound, State const& state,
                        std::vector<std::pair<std::string, std::string>>& choices) {
  choices.emplace_back("chebyshev_degree", std::to_string(options.degree));
  choices.emplace_back("chebyshev_inner", name(options.inner));
  double const reached = state.value[chebyshev::upper], upper = reached > 0 ? reached : bound.upper;
  choices.emplace_back("chebyshev_lower", fmt::format("{}", upper / options.ratio));
  choices.emplace_back("chebyshev_upper", fmt::format("{}", upper));
  choices.emplace_back("chebyshev_upper_why",
                       options.upper > 0 ? "as given"
                                         : fmt::format("{} x {}, the largest eigenvalue that a short Lanczos "
                                                       "run found",
                                                       chebyshev_safety, bound.found));
  choices.emplace_back("chebyshev_raises", std::to_string(state.raises));
}

}  // namespace hostless
