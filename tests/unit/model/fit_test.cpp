#include "hostless/model/fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "hostless/base/error.hpp"

namespace hostless {
namespace {

constexpr double sizes[] = {4,    8,    16,   32,    64,    128,   256,    512,    1024,
                            2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288};

// A machine that is known, and its times with noise of 1 % and every tenth one three to six times too long.
double true_seconds(MessageSpan span, double bytes, int messages, int ranks) {
  double const nearness = span == MessageSpan::on_socket ? 0.4 : span == MessageSpan::on_node ? 0.7 : 1.0;
  double const alone = nearness * (bytes <= 128    ? 1.2e-6 + 1e-9 * bytes
                                   : bytes <= 8192 ? 2e-6 + 4e-10 * bytes
                                                   : 9e-6 + 8e-11 * bytes);
  double const follows = bytes <= 128 ? 3e-7 : bytes <= 8192 ? 1e-6 + 2e-10 * bytes : 5e-6 + 7e-11 * bytes;
  double const rank = alone + (messages - 1) * follows;
  return std::max(rank, ranks * messages * bytes * 4e-11);
}

Measurements noisy() {
  std::mt19937 generator(7);
  std::uniform_real_distribution<double> small(-0.01, 0.01), large(3, 6);
  std::uniform_int_distribution<int> tenth(0, 9);
  Measurements all;
  auto const add = [&](MessageSpan span, double bytes, int messages, int ranks, int series) {
    double const seconds = true_seconds(span, bytes, messages, ranks) * (1 + small(generator)) *
                           (tenth(generator) == 0 ? large(generator) : 1);
    all.messages.push_back({{span, MemoryKind::host, bytes, messages, ranks}, seconds, series});
  };
  for (double bytes : sizes) {
    for (MessageSpan span : all_spans)
      for (int repeat = 0; repeat < 9; ++repeat) add(span, bytes, 1, 1, 0);
    for (int ranks = 2; ranks <= 40; ranks += 2) add(MessageSpan::off_node, bytes, 1, ranks, 1);
    for (int messages = 1; messages <= 40; messages += 3) add(MessageSpan::off_node, bytes, messages, 1, 2);
  }
  for (double bytes : sizes)
    for (int repeat = 0; repeat < 5; ++repeat)
      all.copies.push_back(
          {CopyDirection::device_to_host, 1, bytes, (1.3e-5 + 2e-11 * bytes) * (repeat == 4 ? 3 : 1)});
  return all;
}

FitOptions of_node() {
  FitOptions options;
  options.node.sockets = 2;
  options.node.cores_per_socket = 20;
  return options;
}

// A link of 50 Mbit/s, as emulated machines have it.
TEST(Fit, FindsSlowLinks) {
  Measurements all;
  for (double bytes : sizes)
    for (int ranks : {1, 1, 1, 2, 3, 4}) {
      double const seconds = std::max(50e-6 + 1.6e-7 * bytes, 1.6e-7 * bytes * ranks);
      all.messages.push_back(
          {{MessageSpan::off_node, MemoryKind::host, bytes, 1, ranks}, seconds, ranks > 1});
    }
  Fit const fit = fit_machine(all, of_node());
  InjectionCosts const* const injection = fit.tables.find(MemoryKind::host);
  ASSERT_NE(injection, nullptr);
  ASSERT_EQ(injection->limits.size(), 1U);
  EXPECT_NEAR(injection->limits[0].seconds_per_byte / 1.6e-7, 1, 0.05);
}

TEST(Fit, FindsAKnownMachineUnderNoiseAndOutliers) {
  Fit const fit = fit_machine(noisy(), of_node());
  EXPECT_EQ(fit.short_up_to, 128);
  EXPECT_EQ(fit.eager_up_to, 8192);
  MessageCosts const* const costs = fit.tables.find(MessageSpan::off_node, MemoryKind::host);
  ASSERT_NE(costs, nullptr);
  for (double bytes : sizes) {
    double const expected = true_seconds(MessageSpan::off_node, bytes, 1, 1);
    EXPECT_NEAR(costs->piece(bytes).line.at(bytes) / expected, 1, 0.02) << bytes;
  }
  EXPECT_NEAR(costs->piece(1e6).line.beta / 8e-11, 1, 0.05);
  InjectionCosts const* const injection = fit.tables.find(MemoryKind::host);
  ASSERT_NE(injection, nullptr);
  ASSERT_EQ(injection->limits.size(), 1U) << "one limit for the node";
  EXPECT_NEAR(injection->limits[0].seconds_per_byte / 4e-11, 1, 0.05);
  EXPECT_GE(injection->sharpness, 8) << "a maximum";
  EXPECT_NEAR(
      price(fit.tables, of_node().node, {MessageSpan::off_node, MemoryKind::host, 1024, 30, 1}).seconds /
          true_seconds(MessageSpan::off_node, 1024, 30, 1),
      1, 0.03);
  ASSERT_EQ(fit.tables.copies.size(), 1U);
  EXPECT_NEAR(fit.tables.copies[0].line.alpha / 1.3e-5, 1, 0.01);
  EXPECT_NEAR(fit.tables.copies[0].line.beta / 2e-11, 1, 0.02);
}

TEST(Fit, IntervalsHoldWhatIsTrueAndResidualsAreThoseOfTheMedians) {
  Fit const fit = fit_machine(noisy(), of_node());
  bool seen = false;
  for (PieceFit const& piece : fit.pieces) {
    EXPECT_LE(piece.median_residual, piece.worst_residual);
    if (piece.what != "on_socket host rendezvous") continue;
    seen = true;
    EXPECT_NEAR(piece.line.alpha, 0.4 * 9e-6, piece.half_width.alpha + 0.03 * 0.4 * 9e-6);
    EXPECT_NEAR(piece.line.beta, 0.4 * 8e-11, piece.half_width.beta + 0.03 * 0.4 * 8e-11);
    EXPECT_LT(piece.median_residual, 0.02);
  }
  EXPECT_TRUE(seen);
}

TEST(Fit, FindsLimitsOfSockets) {
  Measurements all;
  for (double bytes : sizes)
    for (int ranks = 1; ranks <= 40; ++ranks) {
      int const counted = bytes > 65536 ? std::min(ranks, 20) : ranks;
      double const alone = true_seconds(MessageSpan::off_node, bytes, 1, 1);
      all.messages.push_back({{MessageSpan::off_node, MemoryKind::host, bytes, 1, ranks},
                              std::max(alone, counted * bytes * 4e-11),
                              0});
    }
  Fit const fit = fit_machine(all, of_node());
  InjectionCosts const* const injection = fit.tables.find(MemoryKind::host);
  ASSERT_EQ(injection->limits.size(), 2U);
  EXPECT_EQ(injection->limits[0].up_to, 65536);
  EXPECT_FALSE(injection->limits[0].per_socket);
  EXPECT_TRUE(injection->limits[1].per_socket);
  EXPECT_LT(errors_of(fit.tables, of_node().node, all.messages).worst, 0.05);
}

TEST(Fit, GivenThresholdsAreTaken) {
  FitOptions options = of_node();
  options.short_up_to = 512;
  options.eager_up_to = 4096;
  Fit const fit = fit_machine(noisy(), options);
  EXPECT_EQ(fit.tables.find(MessageSpan::on_node, MemoryKind::host)->piece(512).protocol,
            Protocol::short_message);
  EXPECT_EQ(fit.tables.find(MessageSpan::on_node, MemoryKind::host)->piece(8192).protocol,
            Protocol::rendezvous);
}

// The handshake may be less than what lies above short messages: protocols are told by their sizes.
TEST(Fit, NamesOfProtocolsFollowTheirSizes) {
  for (double const short_jump : {2.0, 5.0}) {
    Measurements all;
    for (double bytes : sizes) {
      double const seconds = bytes <= 128    ? 1e-6 + 1e-11 * bytes
                             : bytes <= 8192 ? short_jump * 1e-6 + 1e-10 * bytes
                                             : (short_jump + 10) * 1e-6 + 1e-11 * bytes;
      all.messages.push_back({{MessageSpan::on_node, MemoryKind::host, bytes, 1, 1}, seconds, 0});
    }
    Fit const fit = fit_machine(all, of_node());
    EXPECT_EQ(fit.short_up_to, 128) << short_jump;
    EXPECT_EQ(fit.eager_up_to, 8192) << short_jump;
    FitOptions given = of_node();
    given.short_up_to = 128;
    EXPECT_EQ(fit_machine(all, given).eager_up_to, 8192) << short_jump;
    given.short_up_to = {};
    given.eager_up_to = 128;
    EXPECT_EQ(fit_machine(all, given).short_up_to, std::nullopt) << short_jump;
  }
  FitOptions turned = of_node();
  turned.short_up_to = 9000;
  turned.eager_up_to = 512;
  EXPECT_THROW(fit_machine(noisy(), turned), Error);
}

// A file that its own reader takes.
TEST(Fit, ValuesThatAreNothingAreNone) {
  Measurements all;
  for (double bytes : sizes) {
    all.messages.push_back({{MessageSpan::on_node, MemoryKind::host, bytes, 1, 1}, 3e-11 + 1e-10 * bytes, 0});
    for (int messages = 1; messages <= 40; messages += 3)
      all.messages.push_back({{MessageSpan::off_node, MemoryKind::host, bytes, messages, 1},
                              1e-6 * messages + 1e-11 * messages * (messages - 1) / 2 + 1e-17 * bytes,
                              0});
  }
  MachineModel machine = load_machine("lassen");
  machine.costs = fit_machine(all, of_node()).tables;
  machine.sources["fitted"] = "fitted";
  EXPECT_NO_THROW(parse_machine(to_json(machine), "fitted.json"));
}

TEST(Fit, OneSizeIsNoLine) {
  Measurements all;
  all.messages.push_back({{MessageSpan::off_node, MemoryKind::host, 8, 1, 1}, 1e-6, 0});
  EXPECT_THROW(fit_machine(all, of_node()), Error);
}

TEST(Measurements, AreReadAndWritten) {
  std::string const text =
      "series,memory,locality,bytes,messages,active_ranks,seconds\nfirst,gpu,on_node,1024,3,2,1.500000e-06\n";
  Measurements all;
  read_measurements(text, "m.csv", all);
  ASSERT_EQ(all.messages.size(), 1U);
  EXPECT_EQ(all.messages[0].pattern.messages, 3);
  EXPECT_EQ(messages_csv(all.messages, {"first"}), text);
  read_measurements("direction,processes,bytes,seconds\r\ndevice_to_host,4,8,2e-5\r\n", "c.csv", all);
  EXPECT_EQ(all.copies.at(0).processes, 4);
  Measurements of_a_spreadsheet;
  read_measurements("\xef\xbb\xbf\r\n" + text + "\n  \n", "s.csv", of_a_spreadsheet);
  ASSERT_EQ(of_a_spreadsheet.messages.size(), 1U);
  read_measurements(text, "again.csv", all);
  EXPECT_EQ(all.messages.at(1).series, 1) << "another file is another series";
}

TEST(Measurements, AreRefusedByLine) {
  auto const problem = [](std::string const& line) -> std::string {
    try {
      Measurements all;
      read_measurements("series,memory,locality,bytes,messages,active_ranks,seconds\n" + line, "m.csv", all);
    } catch (Error const& error) {
      EXPECT_EQ(error.exit_code(), 3);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(problem("a,host,off_node,8,1,1").find("m.csv:2: 6 fields where 7 must be"), 0U);
  EXPECT_EQ(problem("a,host,off_node,8,1,1,1e6").find("m.csv:2: 1e6 cannot be measured seconds"), 0U);
  EXPECT_EQ(problem("a,disk,off_node,8,1,1,1e-6").find("m.csv:2: 'disk' is none of"), 0U);
  EXPECT_EQ(problem("a,host,off_node,8,0,1,1e-6").find("m.csv:2: '0' where a whole number from 1 on must be"),
            0U);
  EXPECT_EQ(problem("a,host,off_node,x,1,1,1e-6").find("m.csv:2: 'x' where a number must be"), 0U);
  Measurements all;
  EXPECT_THROW(read_measurements("bytes,seconds\n8,1e-6\n", "m.csv", all), Error);
  for (char const* none : {"", "\n\n", "direction,processes,bytes,seconds\n\n"})
    EXPECT_THROW(read_measurements(none, "m.csv", all), Error);
}

}  // namespace
}  // namespace hostless
