#pragma once
// A paused solve on disk: what of its State the rest depends on, history of steps, and every rank's share of
// the method's fields, in one file.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hostless/plan/exchange_plan.hpp"
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
  std::int32_t reduction = 0;
  std::int32_t null_space = 0;  ///< 1: the constant vector
  double ratio = 0, upper = 0;
  /// |M u| and w'M u for fixed u and w where M is a function of the user, else 0. They are compared up to
  /// rounding: a library's M may come out otherwise on another processor.
  double function_norm = 0, function_part = 0;
};

/// In words, what of the file's differs from this solve's and how; empty: nothing does.
std::string difference_of(CheckpointIdentity const& file, CheckpointIdentity const& mine);

/// Iterations whose steps are kept; a history has one entry more, that of the start.
constexpr std::int64_t most_history = 1'000'000;

/// Where in a checkpoint, in words of 8 bytes, what lies that others are told by. The head is everything
/// before the fields: these words, identity, state, history, and the checksums of every rank's every field.
struct CheckpointWords {
  static constexpr std::size_t magic = 0, version = 1, head = 2, checksum = 3, identity = 4;
};

/// Of whole words of 8 bytes: FNV-1a, with the high bits brought down.
std::uint64_t checksum(std::span<std::byte const> bytes);
/// A checksum of a distributed vector, local shares in rank order. Collective.
std::uint64_t checksum(Group& group, std::span<double const> mine);

/// Collective. The file gets its name when it is whole and on the disk: an older checkpoint is only ever
/// replaced by a complete one. Errors  environment  the file cannot be written (the older checkpoint is kept)
void write_checkpoint(Group& group, std::string const& path, CheckpointIdentity const& identity,
                      State const& state, std::span<StepRecord const> history,
                      std::vector<std::span<double const>> const& fields);

/// Collective. Fills the fields and the first entries of `history`; returns `fresh`, the state of the solve
/// that resumes, with what the checkpoint says of the paused one. Nothing of the file is used before a
/// checksum over it was right, and no number before it was found to be one that a paused solve can have.
/// Errors  bad_input  not a checkpoint, cut short, damaged (checksum), of another matrix, plan, method,
/// preconditioner, precision, reduction, null space or right-hand side, a state or a history that no solve
/// has, one with a rounded matrix where `fresh` has none, or a file that cannot be read
State read_checkpoint(Group& group, std::string const& path, CheckpointIdentity const& identity,
                      State const& fresh, std::span<StepRecord> history,
                      std::vector<std::span<double>> const& fields);

}  // namespace hostless
