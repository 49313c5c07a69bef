#pragma once
// A paused solve on disk: State, residual history, and every rank's share of the method's fields, in one
// file.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hostless/plan/halo_plan.hpp"
#include "hostless/run/state.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

/// What a checkpoint belongs to; a resume with anything else is refused.
struct CheckpointIdentity {
  std::uint64_t plan = 0;    ///< fingerprint of the plan of all ranks
  std::uint64_t matrix = 0;  ///< checksum of A u for a fixed u: the values, in whatever format
  std::uint64_t rhs = 0;     ///< checksum of b
  std::int64_t rows = 0;
  std::int32_t ranks = 0, method = 0, preconditioner = 0;
  std::int32_t degree = 0, inner = 0;  ///< of a Chebyshev polynomial, else 0
  std::int32_t precision = 0;          ///< of the matrix in iterations
  double ratio = 0, upper = 0;
};

/// A checksum of a distributed vector, local shares in rank order. Collective.
std::uint64_t checksum(Group& group, std::span<double const> mine);

/// Collective. Writes `path` + ".partial" and renames it: an older checkpoint is only ever replaced by a
/// complete one. Errors  environment  the file cannot be written (the older checkpoint is kept)
void write_checkpoint(Group& group, std::string const& path, CheckpointIdentity const& identity,
                      State const& state, std::span<double const> history,
                      std::vector<std::span<double const>> const& fields);

/// Collective. Fills the fields and returns the state; the first state.iteration + 1 entries of `history`
/// too. Errors  bad_input  not a checkpoint, cut short, damaged (checksum), or of another matrix, plan,
/// method, preconditioner or right-hand side; usage  there is no such file; environment  it cannot be read
State read_checkpoint(Group& group, std::string const& path, CheckpointIdentity const& identity,
                      std::span<double> history, std::vector<std::span<double>> const& fields);

}  // namespace hostless
