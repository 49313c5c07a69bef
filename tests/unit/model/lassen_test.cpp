// What the model makes of the measurements behind tables 2 to 4 of Lockhart et al. 2022
// (tests/data/measurements/summarise.py says what was kept of them): fitted on ping-pongs, copies and half of
// the injection's, the rest is predicted.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "hostless/model/fit.hpp"

namespace hostless {
namespace {

enum Series { ping_pong, maxrate, mult_pong };

void read(char const* name, Measurements& into) {
  std::string const path = fmt::format("{}/{}", HOSTLESS_MEASUREMENTS, name);
  std::ifstream file(path);  // bounded: a regular file of the checkout
  std::stringstream text;
  text << file.rdbuf();
  read_measurements(text.str(), path, into);
}

Measurements const& lassen_data() {
  static Measurements const all = [] {
    Measurements read_in;
    read("lassen_messages.csv", read_in);
    read("lassen_copies.csv", read_in);
    return read_in;
  }();
  return all;
}

// Every second of the injection's measurements, as on a chess board of sizes and ranks.
bool is_kept_out(MessageSample const& sample) {
  int const size = static_cast<int>(std::lround(std::log2(sample.pattern.bytes)));
  return sample.series == mult_pong ||
         (sample.series == maxrate && (size + sample.pattern.active_ranks) % 2 != 0);
}

Fit const& fitted() {
  static Fit const fit = [] {
    Measurements half;
    half.copies = lassen_data().copies;
    for (MessageSample const& sample : lassen_data().messages)
      if (!is_kept_out(sample)) half.messages.push_back(sample);
    FitOptions options;
    options.node = load_machine("lassen").node;
    return fit_machine(half, options);
  }();
  return fit;
}

ModelErrors predicted(Series series, MemoryKind memory) {
  std::vector<MessageSample> samples;
  for (MessageSample const& sample : lassen_data().messages)
    if (is_kept_out(sample) && sample.series == series && sample.pattern.memory == memory)
      samples.push_back(sample);
  ModelErrors const errors = errors_of(fitted().tables, load_machine("lassen").node, samples);
  fmt::print(
      "{} {}: {} predictions, {:.1f} % off in the median, {:.1f} % at the 90th percentile, bias {:+.1f} %\n",
      series == maxrate ? "maxrate, other half" : "mult_pong", name(memory), errors.samples,
      100 * errors.median, 100 * errors.tenth_worst, 100 * errors.bias);
  return errors;
}

TEST(Lassen, PredictsWhatItHasNotSeen) {
  for (MemoryKind memory : all_memory_kinds)
    for (Series series : {maxrate, mult_pong}) {
      ModelErrors const errors = predicted(series, memory);
      EXPECT_EQ(errors.samples,
                memory == MemoryKind::host ? (series == maxrate ? 360 : 720) : (series == maxrate ? 36 : 72));
      EXPECT_LE(errors.median, 0.15);
      EXPECT_LE(errors.tenth_worst, 0.40);
    }
}

// The postal model of table 2 alone, several messages one behind the other: what queues and overlap are
// worth.
TEST(Lassen, ThePublishedTablesAloneDoNotPredictIt) {
  std::vector<MessageSample> samples;
  for (MessageSample const& sample : lassen_data().messages)
    if (sample.series == mult_pong && sample.pattern.memory == MemoryKind::host) samples.push_back(sample);
  MachineModel const machine = load_machine("lassen");
  std::vector<double> off;
  for (MessageSample sample : samples) {
    int const messages = sample.pattern.messages;
    sample.pattern.messages = 1;
    off.push_back(std::abs(
        messages * price(*machine.published, machine.node, sample.pattern).seconds / sample.seconds - 1));
  }
  std::sort(off.begin(), off.end());
  EXPECT_GT(off[off.size() / 2], 0.4);
}

TEST(Lassen, ShippedCostsFitEverythingThatWasPublished) {
  MachineModel const machine = load_machine("lassen");
  ModelErrors const errors = errors_of(machine.costs, machine.node, lassen_data().messages);
  EXPECT_LE(errors.median, 0.05);
  EXPECT_LE(errors.tenth_worst, 0.25);
}

struct TableEntry {
  MessageSpan span;
  MemoryKind memory;
  double from, up_to;  // bytes
  Line printed;
  bool alpha, beta;  // found again within 20 %
};

// Table 2 by the paper's own method, one least-squares line a protocol over one message's times. Entries that
// are not found are not of these data: the figures say so.
TEST(Lassen, TableTwoIsFoundAgainWhereItIsOfTheseData) {
  using enum MessageSpan;
  using enum MemoryKind;
  TableEntry const entries[] = {{on_socket, host, 1, 128, {3.67e-07, 1.32e-10}, true, false},
                                {on_socket, host, 256, 8192, {4.61e-07, 7.12e-11}, true, true},
                                {on_socket, host, 16384, 1e9, {3.15e-06, 3.40e-11}, true, true},
                                {on_node, host, 1, 128, {9.25e-07, 1.19e-09}, true, true},
                                {on_node, host, 256, 8192, {1.17e-06, 2.18e-10}, true, true},
                                {on_node, host, 16384, 1e9, {6.77e-06, 1.49e-10}, true, true},
                                {off_node, host, 1, 128, {1.89e-06, 6.88e-10}, false, false},
                                {off_node, host, 256, 8192, {2.44e-06, 3.79e-10}, false, false},
                                {off_node, host, 16384, 1e9, {7.76e-06, 7.97e-11}, true, true},
                                {on_socket, gpu, 1, 8192, {1.87e-05, 5.79e-11}, true, false},
                                {on_socket, gpu, 16384, 1e9, {1.82e-05, 1.46e-11}, true, true},
                                {on_node, gpu, 1, 8192, {2.02e-05, 2.15e-10}, true, false},
                                {on_node, gpu, 16384, 1e9, {1.93e-05, 2.39e-11}, true, true},
                                {off_node, gpu, 1, 8192, {8.95e-06, 1.72e-10}, false, true},
                                {off_node, gpu, 16384, 1e9, {1.10e-05, 1.72e-10}, false, false}};
  for (TableEntry const& entry : entries) {
    std::vector<MessageSample> samples;
    for (MessageSample const& s : lassen_data().messages)
      if (s.series == ping_pong && s.pattern.span == entry.span && s.pattern.memory == entry.memory &&
          s.pattern.bytes >= entry.from && s.pattern.bytes <= entry.up_to)
        samples.push_back(s);
    Line const line = least_squares(samples);
    bool const alpha = std::abs(line.alpha / entry.printed.alpha - 1) <= 0.2,
               beta = std::abs(line.beta / entry.printed.beta - 1) <= 0.2;
    std::string const words =
        fmt::format("{:<9} {:<4} from {:>5.0f}: alpha {:.3g} printed {:.3g}, beta {:.3g} printed {:.3g}",
                    name(entry.span), name(entry.memory), entry.from, line.alpha, entry.printed.alpha,
                    line.beta, entry.printed.beta);
    fmt::print("{}{}{}\n", words, alpha ? "" : "  alpha is not of these data",
               beta ? "" : "  beta is not of these data");
    EXPECT_EQ(alpha, entry.alpha) << words;
    EXPECT_EQ(beta, entry.beta) << words;
  }
}

TEST(Lassen, TablesThreeAndFourAreFoundAgain) {
  Fit const& fit = fitted();
  Line const in = fit.tables.find(CopyDirection::host_to_device, 1)->line,
             out = fit.tables.find(CopyDirection::device_to_host, 1)->line;
  EXPECT_NEAR(in.alpha / 1.30e-05, 1, 0.2);
  EXPECT_NEAR(in.beta / 1.85e-11, 1, 0.2);
  EXPECT_NEAR(out.alpha / 1.27e-05, 1, 0.2);
  EXPECT_NEAR(out.beta / 1.96e-11, 1, 0.2);
  for (InjectionLimit const& limit : fit.tables.find(MemoryKind::host)->limits)
    EXPECT_NEAR(limit.seconds_per_byte / 4.19e-11, 1, 0.2);
}

}  // namespace
}  // namespace hostless
