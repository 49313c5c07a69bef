#pragma once

#include <cstdint>
#include <memory>

#include "hostless/base/rows.hpp"
#include "hostless/problems/problems.hpp"
#include "problems/lattice.hpp"

namespace hostless::problems {

/// One rank's contiguous share of the rows; every kind derives from it.
class SharedRows : public RowSource {
 public:
  SharedRows(std::int64_t rows, int size, int rank)
      : rows_(rows), first_(share_first(rows, size, rank)), last_(share_first(rows, size, rank + 1)) {}
  std::int64_t global_rows() const final { return rows_; }
  std::int64_t first_row() const final { return first_; }
  std::int64_t last_row() const final { return last_; }
  /// Checks the range, then calls fill(). Errors  usage  rows outside this rank's range
  void panel(std::int64_t first, std::int64_t count, RowPanel& out) const final;
  bool is_concurrent() const final { return true; }

 protected:
  /// Replaces the panel by rows [first, last), at least one. It comes as the caller last had it: growing what
  /// is there instead of clearing first saves filling the arrays with zeros, a seventh of the time.
  virtual void fill(std::int64_t first, std::int64_t last, RowPanel& out) const = 0;

 private:
  std::int64_t rows_, first_, last_;
};

/// The choices of a checked ProblemOptions, defaults filled in, that the sources below read.
struct Choices {
  Lattice lattice;
  double contrast;
  std::uint64_t seed;
  bool held;          ///< Dirichlet, clamped or grounded, as against Neumann
  double long_edges;  ///< circuit
  double time_step;   ///< monodomain
  int size, rank;     ///< whose share of the rows
};

std::unique_ptr<RowSource> make_poisson1d(Choices const& choices);
std::unique_ptr<RowSource> make_poisson2d(Choices const& choices);
std::unique_ptr<RowSource> make_poisson7(Choices const& choices);
std::unique_ptr<RowSource> make_poisson27(Choices const& choices);
std::unique_ptr<RowSource> make_poisson2d_triangles(Choices const& choices);
std::unique_ptr<RowSource> make_elasticity_hexahedra(Choices const& choices);
std::unique_ptr<RowSource> make_elasticity_tetrahedra(Choices const& choices);
std::unique_ptr<RowSource> make_monodomain(Choices const& choices);
std::unique_ptr<RowSource> make_circuit(Choices const& choices);
std::unique_ptr<RowSource> make_springs_triangles(Choices const& choices);
std::unique_ptr<RowSource> make_springs_tetrahedra(Choices const& choices);
std::unique_ptr<RowSource> make_springs_hubs(Choices const& choices);

}  // namespace hostless::problems
