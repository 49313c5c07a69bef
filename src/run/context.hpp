#pragma once
// A context: the operators and gathered fields that a text works on beside the method's own matrix and
// vector. Each gathered field has a plan and an exchange of its own; each operator has the rows of one
// numbering and multiplies a field of the same or of another one. Texts without a context are compiled
// without it.

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "hostless/exchange/exchange.hpp"
#include "hostless/operate/local_matrix.hpp"
#include "hostless/operate/tiling.hpp"
#include "hostless/plan/routes.hpp"
#include "hostless/run/views.hpp"
#include "operate/rectangular.hpp"

namespace hostless::host {

/// A vector that other rows and ranks read, by an exchange of its own. What it holds outlives a solve, which
/// may end before an exchange has.
class GatheredField {
 public:
  /// Collective. tiling: of the owned entries. plan: without sums between two exchanges (answer or credit).
  /// Errors  as Exchange
  GatheredField(Transport& transport, ExchangePlan plan, Tiling const& tiling, WaitLimits limits)
      : tiling_(tiling),
        plan_(std::move(plan)),
        memory_(std::make_shared<std::vector<double>>(static_cast<std::size_t>(plan_.owned + plan_.ghosts))),
        exchange_(transport, plan_, {Field::around(values(), sizeof(double))}, {limits, memory_, {}}) {}

  double* values() { return memory_->data() + plan_.ghosts_below; }  ///< [owned], ghosts around it
  Tiling const& tiling() const { return tiling_; }
  ExchangePlan const& plan() const { return plan_; }
  ColumnSpace columns() const { return {plan_.owned, plan_.ghosts, plan_.ghosts_below}; }
  Exchange& exchange() { return exchange_; }

  /// Of a rank's threads: which exchange the next sweep reads, and which has arrived.
  std::uint32_t wanted = 0;  ///< changed only inside the barrier
  std::atomic<std::uint32_t> ready{0};

 private:
  Tiling tiling_;
  ExchangePlan plan_;
  std::shared_ptr<std::vector<double>> memory_;
  Exchange exchange_;
};

/// What each slice of some rows awaits of an exchange: the stages that write the ghosts which it reads.
/// Errors  usage  a ghost that the plan has not
std::vector<std::vector<StageId>> stages_of_slices(ExchangePlan const& plan, GhostReads const& reads);

/// Rows times a gathered field. Matrix: LocalMatrix, whose rows are numbered as the field is, or
/// RectangularMatrix. Both outlive it.
template <class Matrix>
struct Operator {
  Matrix const* matrix;
  GatheredField* field;
  Tiling tiling;                            ///< of the rows
  std::vector<std::vector<StageId>> needs;  ///< of each slice

  Operator(Matrix const& of, GatheredField& multiplied, Tiling const& rows)
      : matrix(&of),
        field(&multiplied),
        tiling(rows),
        needs(stages_of_slices(multiplied.plan(), of.ghost_reads())) {}
};

/// Names in a sweep which operator multiplies; the operator knows which field.
template <class Matrix>
struct By {
  Operator<Matrix> const* with;
};
template <class Matrix>
By<Matrix> by(Operator<Matrix> const& one) {
  return {&one};
}

/// A gathered field of the context, in verbs.
struct InContext {
  GatheredField* field;
};
/// Its owned entries, as a view of a body.
inline InMemory own(InContext gathered) { return {gathered.field->values()}; }

/// What a body is handed in place of its own rows of the field, where rows and field are numbered apart.
struct NoOwnRows {};

}  // namespace hostless::host
