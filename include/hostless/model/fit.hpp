#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hostless/model/machine_model.hpp"
#include "hostless/model/price.hpp"

namespace hostless {

/// One measured time of messages.
struct MessageSample {
  MessagePattern pattern;
  double seconds = 0.0;
  int series = 0;  ///< which run it is of: runs count alike, however often they repeat
};

/// One measured time of a copy of `bytes` by each of `processes`.
struct CopySample {
  CopyDirection direction = CopyDirection::host_to_device;
  int processes = 1;
  double bytes = 0.0;
  double seconds = 0.0;
};

/// What fits are made of.
struct Measurements {
  std::vector<MessageSample> messages;
  std::vector<CopySample> copies;
};

/// Reads measurements as comma-separated values with one head line:
/// `series,memory,locality,bytes,messages,active_ranks,seconds`, or `direction,processes,bytes,seconds`.
///
/// Errors  bad_input  `file:line: ...`: another head, a field too many or too few, a value that is none
void read_measurements(std::string_view text, std::string const& file, Measurements& into);
/// As the text that read_measurements reads.
std::string messages_csv(std::vector<MessageSample> const& samples, std::vector<std::string> const& series);

/// What a fit is told beside the measurements.
struct FitOptions {
  NodeShape node;                     ///< whose ranks share a socket
  std::string source = "fitted";      ///< of the values
  std::optional<double> short_up_to;  ///< bytes of the largest short message; else found
  std::optional<double> eager_up_to;
  int least_sizes = 3;  ///< of a piece
};

/// How well one piece was fitted.
struct PieceFit {
  std::string what;  ///< "off_node host eager", "off_node host following", "copy host_to_device, 1 processes"
  double from = 0.0, up_to = 0.0;  ///< bytes, of the measured sizes
  Line line;
  Line half_width;  ///< of the 95 % intervals
  int samples = 0;
  double median_residual = 0.0;  ///< |fitted / measured - 1|
  double worst_residual = 0.0;
};

/// What was found, and how well.
struct Fit {
  CostTables tables;
  std::vector<PieceFit> pieces;
  std::optional<double> short_up_to, eager_up_to;  ///< given or found
};

/// Finds alpha, beta, thresholds, R_N and what follows from measurements.
///
/// Lines are fitted to the medians of each size and series by weighted least squares of relative residuals
/// with Huber's weights (3 %), so that no outlier and no large message decides. Thresholds between protocols
/// are where times jump most: of two jumps the one at smaller sizes ends short messages, one alone eager
/// ones; inside a protocol pieces are cut where that lowers the residuals by more than a piece is worth
/// (dynamic programming). R_N, its classes and the sharpness are found by searches over the same residuals.
/// Local, deterministic, below a second for thousands of samples. Errors  bad_input  fewer than two sizes of
/// anything that is to be fitted; usage  short messages that are given up
///         to no less than eager ones
Fit fit_machine(Measurements const& measurements, FitOptions const& options);

/// Relative errors of a machine's prices of samples.
struct ModelErrors {
  int samples = 0;
  double median = 0.0, tenth_worst = 0.0, worst = 0.0;  ///< |price / measured - 1|; the 90th percentile
  double bias = 0.0;                                    ///< median of price / measured - 1
};
ModelErrors errors_of(CostTables const& tables, NodeShape const& node,
                      std::vector<MessageSample> const& samples);

/// The ordinary least-squares line of one protocol's sizes, as 004 fits its table 2: absolute residuals, so
/// large messages decide.
Line least_squares(std::vector<MessageSample> const& samples);

}  // namespace hostless
