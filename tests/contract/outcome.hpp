#pragma once
// What two solves of one plan must have in common, bit for bit.

#include <cstdint>
#include <string>
#include <vector>

#include "hostless/solve/solver.hpp"
#include "hostless/transport/group.hpp"

namespace hostless::contract {

/// How a solve ended, with x in global order.
struct Outcome {
  Status status = Status::running;
  std::int64_t iterations = 0, restarts = 0;
  double true_residual = 0;
  std::vector<double> history, x;

  static Outcome of(Result const& result, std::vector<double> x);
  Bytes bytes() const;
  static Outcome from(Bytes const& bytes);
  /// The first difference in words, or nothing.
  std::string difference(Outcome const& other) const;
};

}  // namespace hostless::contract
