#pragma once
// The steps of fit_machine.

#include <optional>
#include <vector>

#include "hostless/model/fit.hpp"
#include "model/robust_line.hpp"

namespace hostless {

/// The samples of one span and memory.
std::vector<MessageSample> samples_of(std::vector<MessageSample> const& all, MessageSpan span,
                                      MemoryKind memory);

/// The medians by size and series of what a rank needs for one message, of samples in which the cards need
/// less than a third of that for the bytes of all ranks together, at `s_per_byte` of the card (0: one active
/// rank alone).
std::vector<FitPoint> lone_points(std::vector<MessageSample> const& samples, double s_per_byte);

/// What the cards seem to take for a byte: the median over the largest messages of the most ranks. 0: nobody
/// knows.
double rough_injection(std::vector<MessageSample> const& samples);

/// Thresholds of the protocols between the sizes of lone messages of host memory, where times jump most: of
/// two that are a factor of 4 apart the smaller one is that of short messages, one alone that of eager ones.
/// What is given stays, and the other is looked for on its side of it.
struct Thresholds {
  std::optional<double> short_up_to, eager_up_to;
};
Thresholds find_thresholds(std::vector<MessageSample> const& all, Thresholds const& given);

/// Up to which size the limit holds for a node; above for each socket. Absent: it holds for the node at all
/// sizes.
std::optional<double> find_socket_limit(std::vector<MessageSample> const& samples, NodeShape const& node);

/// R_N of each class and the sharpness, for samples of one message by several ranks. `lone`: pieces of one
/// rank's.
InjectionCosts fit_injection(std::vector<MessageSample> const& samples, MessageCosts const& lone,
                             NodeShape const& node, std::optional<double> node_up_to);

/// What follows: the slope over the messages of one rank, at each size, and the search of the queue for all
/// of them.
struct FollowingFit {
  std::vector<FittedPiece> pieces;  ///< empty: nothing was measured
  double queue_search = 0.0;
};
FollowingFit fit_following(std::vector<MessageSample> const& samples, std::vector<double> const& cuts,
                           int least_sizes);

}  // namespace hostless
