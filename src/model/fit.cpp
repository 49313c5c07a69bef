#include "hostless/model/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hostless/base/error.hpp"
#include "model/fit_parts.hpp"
#include "model/json_file.hpp"
#include "model/names.hpp"

namespace hostless {
namespace {

PieceFit told(std::string what, FittedPiece const& piece) {
  PieceFit fit{std::move(what),
               piece.from,
               piece.up_to,
               piece.fitted.line,
               piece.fitted.half_width,
               static_cast<int>(piece.points.size()),
               0.0,
               0.0};
  std::vector<double> residuals;
  for (FitPoint const& point : piece.points)
    residuals.push_back(std::abs(piece.fitted.line.at(point.x) / point.y - 1));
  fit.median_residual = median_of(residuals);
  fit.worst_residual = *std::max_element(residuals.begin(), residuals.end());
  return fit;
}

Protocol protocol_of(double bytes, MemoryKind memory, Fit const& fit) {
  if (memory == MemoryKind::host && fit.short_up_to && bytes <= *fit.short_up_to)
    return Protocol::short_message;
  return !fit.eager_up_to || bytes <= *fit.eager_up_to ? Protocol::eager : Protocol::rendezvous;
}

// A card reaches a GPU's memory itself: nothing is copied. Host messages behind the handshake are copied
// where all ranks of the node share one limit while larger ones have one for each socket.
Transfer transfer_of(Protocol protocol, double bytes, MemoryKind memory, std::optional<double> node_up_to) {
  if (memory == MemoryKind::gpu) return Transfer::direct;
  if (protocol == Protocol::short_message) return Transfer::inlined;
  bool const copied = protocol == Protocol::eager || (node_up_to && bytes <= *node_up_to);
  return copied ? Transfer::buffered : Transfer::direct;
}

/// Fits the messages of one span and memory into a Fit.
class MessageFit {
 public:
  MessageFit(std::vector<MessageSample> samples, FitOptions const& options, Fit& fit)
      : samples_(std::move(samples)), options_(options), fit_(fit) {}

  void run() {
    MessagePattern const& pattern = samples_.front().pattern;
    costs_.span = pattern.span;
    costs_.memory = pattern.memory;
    costs_.source = options_.source;
    bool const network = pattern.span == MessageSpan::off_node;
    if (network && pattern.memory == MemoryKind::host)
      node_up_to_ = find_socket_limit(samples_, options_.node);
    fit_pieces_of_one();
    fit_what_follows();
    if (network && rough_injection(samples_) > 0) {
      InjectionCosts injection = fit_injection(samples_, costs_, options_.node, node_up_to_);
      injection.source = options_.source;
      fit_.tables.injection.push_back(std::move(injection));
    }
    fit_.tables.messages.push_back(std::move(costs_));
  }

 private:
  std::string words() const { return fmt::format("{} {}", name(costs_.span), name(costs_.memory)); }

  std::vector<double> cuts() const {
    std::vector<double> all;
    if (costs_.memory == MemoryKind::host && fit_.short_up_to) all.push_back(*fit_.short_up_to);
    if (fit_.eager_up_to) all.push_back(*fit_.eager_up_to);
    if (node_up_to_) all.push_back(*node_up_to_);
    std::sort(all.begin(), all.end());
    return all;
  }

  void fit_pieces_of_one() {
    auto const points =
        lone_points(samples_, costs_.span == MessageSpan::off_node ? rough_injection(samples_) : 0.0);
    if (points.empty() || points.front().x == points.back().x)
      throw Error(ErrorCode::bad_input,
                  fmt::format("{} messages were measured at fewer than two sizes (no line can be fitted). "
                              "Measure more sizes, or leave them out.",
                              words()));
    auto const pieces = fit_pieces(points, cuts(), options_.least_sizes);
    for (FittedPiece const& piece : pieces) {
      Protocol const protocol = protocol_of(piece.up_to, costs_.memory, fit_);
      double const up_to = &piece == &pieces.back() ? endless : piece.up_to;
      costs_.pieces.push_back({protocol, transfer_of(protocol, piece.up_to, costs_.memory, node_up_to_),
                               up_to, piece.fitted.line});
      fit_.pieces.push_back(told(fmt::format("{} {}", words(), name(protocol)), piece));
    }
  }

  void fit_what_follows() {
    FollowingFit const following = fit_following(samples_, cuts(), options_.least_sizes);
    costs_.queue_search = following.queue_search;
    for (FittedPiece const& piece : following.pieces) {
      costs_.following.push_back(
          {&piece == &following.pieces.back() ? endless : piece.up_to, piece.fitted.line});
      fit_.pieces.push_back(told(words() + " following", piece));
    }
  }

  std::vector<MessageSample> samples_;
  FitOptions const& options_;
  Fit& fit_;
  MessageCosts costs_;
  std::optional<double> node_up_to_;
};

void fit_copies(std::vector<CopySample> const& all, FitOptions const& options, Fit& fit) {
  std::vector<std::pair<CopyDirection, int>> kinds;
  for (CopySample const& s : all) kinds.emplace_back(s.direction, s.processes);
  std::sort(kinds.begin(), kinds.end());
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  for (auto const& [direction, processes] : kinds) {
    std::vector<FitPoint> points;
    for (CopySample const& s : all)
      if (s.direction == direction && s.processes == processes) points.push_back({s.bytes, s.seconds, 1.0});
    auto const pieces = fit_pieces(points, {}, static_cast<int>(points.size()));  // one line
    fit.tables.copies.push_back({direction, processes, pieces.front().fitted.line, options.source});
    fit.pieces.push_back(
        told(fmt::format("copy {}, {} processes", name(direction), processes), pieces.front()));
  }
}

// Less than the smallest values of a machine's file, which hold no measured time: none.
void drop_what_is_nothing(CostTables& tables) {
  auto const of = [](Unit const& unit, double& value) {
    if (value < unit.least) value = 0;
  };
  auto const of_line = [&](Line& line) {
    of(units::seconds, line.alpha), of(units::seconds_per_byte, line.beta);
  };
  for (MessageCosts& costs : tables.messages) {
    for (MessagePiece& piece : costs.pieces) of_line(piece.line);
    for (FollowingPiece& piece : costs.following) of_line(piece.line);
    of(units::seconds, costs.queue_search);
  }
  for (InjectionCosts& costs : tables.injection)
    for (InjectionLimit& limit : costs.limits) of(units::seconds_per_byte, limit.seconds_per_byte);
  for (CopyCosts& costs : tables.copies) of_line(costs.line);
}

}  // namespace

Fit fit_machine(Measurements const& measurements, FitOptions const& options) {
  Fit fit;
  if (options.short_up_to && options.eager_up_to && *options.short_up_to >= *options.eager_up_to)
    throw Error(
        ErrorCode::usage,
        fmt::format("short messages up to {:g} bytes and eager ones up to {:g} (no message would be eager). "
                    "Give a larger size of eager messages, or leave one out.",
                    *options.short_up_to, *options.eager_up_to));
  Thresholds const found = find_thresholds(measurements.messages, {options.short_up_to, options.eager_up_to});
  fit.short_up_to = found.short_up_to;
  fit.eager_up_to = found.eager_up_to;
  for (MemoryKind memory : all_memory_kinds)
    for (MessageSpan span : all_spans)
      if (auto samples = samples_of(measurements.messages, span, memory); !samples.empty())
        MessageFit(std::move(samples), options, fit).run();
  fit_copies(measurements.copies, options, fit);
  drop_what_is_nothing(fit.tables);
  return fit;
}

ModelErrors errors_of(CostTables const& tables, NodeShape const& node,
                      std::vector<MessageSample> const& samples) {
  std::vector<double> off, sizes;
  for (MessageSample const& s : samples) {
    off.push_back(price(tables, node, s.pattern).seconds / s.seconds - 1);
    sizes.push_back(std::abs(off.back()));
  }
  if (off.empty()) return {};
  std::sort(sizes.begin(), sizes.end());
  auto const last = static_cast<double>(sizes.size() - 1);
  return {static_cast<int>(sizes.size()), median_of(sizes),
          sizes[static_cast<std::size_t>(std::ceil(0.9 * last))], sizes.back(), median_of(off)};
}

Line least_squares(std::vector<MessageSample> const& samples) {
  double n = 0, x = 0, xx = 0, y = 0, xy = 0;
  for (MessageSample const& s : samples) {
    double const bytes = s.pattern.bytes;
    n += 1, x += bytes, xx += bytes * bytes, y += s.seconds, xy += bytes * s.seconds;
  }
  double const beta = (n * xy - x * y) / (n * xx - x * x);
  return {(y - beta * x) / n, beta};
}

}  // namespace hostless
