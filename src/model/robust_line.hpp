#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "hostless/model/machine_model.hpp"

namespace hostless {

struct FitPoint {
  double x = 0.0, y = 0.0;  ///< y above 0
  double weight = 1.0;
};

struct FittedLine {
  Line line;
  Line half_width;    ///< of the 95 % intervals
  double cost = 0.0;  ///< weighted sum of Huber's losses of relative residuals
};

/// Residuals up to here count by their square, larger ones by their size.
constexpr double huber_limit = 0.03;
double huber_loss(double relative_residual);

/// alpha + beta x with alpha, beta >= 0, by iterated weighted least squares of relative residuals.
/// points  at least one
FittedLine robust_line(std::span<FitPoint const> points);

/// A run of sizes and its line.
struct FittedPiece {
  double from = 0.0, up_to = 0.0;  ///< the smallest and the largest size of it
  FittedLine fitted;
  std::vector<FitPoint> points;
};

/// Cuts points into pieces of at least `least_sizes` sizes so that costs and what pieces are worth are least
/// in sum. No piece crosses one of `cuts` (the largest sizes of what is before), unless too few sizes would
/// be left.
std::vector<FittedPiece> fit_pieces(std::vector<FitPoint> points, std::vector<double> const& cuts,
                                    int least_sizes);

double median_of(std::vector<double> values);

}  // namespace hostless
