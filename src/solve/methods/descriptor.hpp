#pragma once
// What a method says of itself. Beside its text stands a struct, its descriptor, that has
//
// method, name, title     its number, its word, and what it is in a few words
// fields                  its vectors: x, r, other owned ones, the gathered one (FieldFacts)
// values                  how much of State::value is its own
// offers                  what it can be asked for (Offers)
// demands                 what A must be (Demands)
// makes_lanczos_steps     the alpha and beta that it logs tell the condition of the matrix
// square_in_m             the scalar index of (r, M r); ScalarIndex::none: it need not be positive
// curvature               what it finds an indefinite matrix by (CurvatureSum)
// breakdown               what is zero where its first step breaks down (Breakdown)
// steadier                what to try where it loses digits; itself where there is nothing
// divergence_limit        how many times the first one its true residuals may be where nobody says
// Late                    the decision of its text's `finish`; NoDecision without one
// traffic(variant, ...)   what an iteration costs (IterationTraffic)
// bind(input, m)          its data, of MethodInput and a preconditioner (preconditioners.hpp), whose type
//                         names the descriptor, as `Descriptor`
// text(run, data)         itself
//
// The list of all of them, methods.hpp, is what everything else follows from.

#include <cstdint>
#include <functional>

#include "hostless/run/state.hpp"
#include "hostless/solve/method.hpp"
#include "solve/methods/chebyshev_numbers.hpp"

namespace hostless {

/// What else a text is made of: each has data, and kernels, of its own.
enum class Variant : std::uint8_t {
  plain,
  rounded,     ///< iterations multiply with the matrix in fp32
  polynomial,  ///< a Chebyshev polynomial is the preconditioner
  function     ///< a function of the user is
};

enum class FieldUse : std::uint8_t {
  kept,     ///< only its owner reads it
  scratch,  ///< dead between iterations
  gathered  ///< other rows and ranks read it: one a method, the last of its list
};
/// A vector of a method.
struct FieldFacts {
  char const* name;
  FieldUse use;
  bool only_with_polynomial = false;
  constexpr bool is_of(Variant variant) const {
    return !only_with_polynomial || variant == Variant::polynomial;
  }
};
constexpr FieldFacts kept(char const* name) { return {name, FieldUse::kept}; }
constexpr FieldFacts scratch(char const* name) { return {name, FieldUse::scratch}; }
constexpr FieldFacts gathered(char const* name) { return {name, FieldUse::gathered}; }
constexpr FieldFacts with_polynomial(FieldFacts field) { return {field.name, field.use, true}; }

/// What a method can be asked for. Preconditioners that every row can apply by itself go with all of them.
struct Offers {
  bool apart = false;       ///< one that leaves M r in memory: Variant::function
  bool polynomial = false;  ///< Variant::polynomial
  bool rounded = false;     ///< Variant::rounded
  bool spans_ranks =
      false;            ///< one kernel for the whole solve on several GPUs: a second one, of Variant::plain
  bool fuses = false;   ///< the text says `fused_update`, but for Variant::polynomial
  bool begins = false;  ///< the text says `begun`
};

/// What a matrix must be. Symmetry is looked at when a solver is made, the rest shows while it solves.
enum class Demands : std::uint8_t { nothing, symmetric, positive_definite };

/// The sum whose sign tells that A is not positive definite.
struct CurvatureSum {
  int value = ScalarIndex::none;  ///< its scalar index; none: it never ends as `indefinite_matrix`
  char const* name = "";          ///< "p'A p"
  char const* doubt = "";         ///< what else than A may have turned its sign
};

/// For people, where a true residual is followed by no step.
struct Breakdown {
  char const* what;  ///< "p'A p = 0"
  char const* why;   ///< "where p is not 0 (...)"
};

/// Divergence limit of methods for symmetric matrices. In exact arithmetic their residuals grow by no more than
/// the square root of A's condition: it ends what no fp64 could solve.
constexpr double symmetric_divergence_limit = 1e10;

/// What IterationTraffic depends on.
struct TrafficRequest {
  int degree = 0;                         ///< of the polynomial
  std::int64_t preconditioner_bytes = 0;  ///< per row and use
};
/// What an iteration moves and waits for.
struct IterationTraffic {
  std::int64_t vector_bytes = 0;  ///< per row
  int products = 1, exchanges = 1, sums = 1;
  int kernels = 1;                       ///< where each phase is one
  int barriers = 1, fused_barriers = 1;  ///< of the persistent kernel; where neighbours' values are formed
                                         ///< where they are read, or come with the sum
};

/// What a text is bound to: one rank's share, in the order of the plan.
template <class M>
struct MethodInput {
  M m;                          ///< with a polynomial the preconditioner under it
  double const* b;              ///< [owned]
  double* const* field;         ///< [owned] each: those of the variant in the order of `fields`
  ChebyshevNumbers polynomial;  ///< of Variant::polynomial
  int fields = 0;               ///< how many they are
  std::function<void(double const*, double*)> const* function =
      nullptr;              ///< a user's preconditioner, or null
  double* apart = nullptr;  ///< [owned] where preconditioners leave z that are applied apart
  double* gathered() const { return field[fields - 1]; }
  double* kept_by_polynomial() const { return field[fields - 2]; }
};

/// Vectors of a method in a variant, with the gathered one.
template <class Descriptor>
constexpr int fields_in(Variant variant) {
  int count = 0;
  for (FieldFacts const& field : Descriptor::fields) count += field.is_of(variant) ? 1 : 0;
  return count;
}

}  // namespace hostless
