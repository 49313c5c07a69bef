#pragma once
// What a solver with a Chebyshev polynomial as preconditioner needs before its first iteration.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hostless/exchange/exchange.hpp"
#include "hostless/run/state.hpp"
#include "hostless/solve/solver.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

/// Errors  usage  options that make no polynomial, or that nobody will read
void check_chebyshev(SolveOptions const& options);

/// Between two exchanges of the polynomial lies no sum, so that landing places are free only because every
/// rank waits for those it sends to: who is read must read, at least one value, whatever the route.
/// Collective; one exchange, which overwrites the vector bound to `exchange`, whose first owned entry is
/// `gathered`.
///
/// Errors  bad_input  a rank that reads another one which does not read it
///         peer_lost
void require_mutual_neighbours(Group& group, Exchange& exchange, ExchangePlan const& plan, double* gathered);

/// Upper bound of the eigenvalues of M A, and where it comes from.
struct ChebyshevBound {
  double upper = 0;
  double found = 0;  ///< by the Lanczos run; 0: given by the user
};
constexpr double chebyshev_safety = 1.1;

/// Entries of Result::choices. `state`: at the end of a solve.
void describe_chebyshev(ChebyshevOptions const& options, ChebyshevBound const& bound, State const& state,
                        std::vector<std::pair<std::string, std::string>>& choices);

}  // namespace hostless
