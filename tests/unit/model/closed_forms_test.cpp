#include "hostless/model/closed_forms.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "hostless/base/error.hpp"

namespace hostless {
namespace {

MachineModel const& lassen() {
  static MachineModel const machine = load_machine("lassen");
  return machine;
}

// By hand, from tables 2 to 4.
TEST(ClosedForms, EquationsOfSectionFour) {
  ClosedForms const forms(lassen());
  EXPECT_NEAR(forms.on_node(MemoryKind::host, 4096),
              (4.61e-7 + 7.12e-11 * 4096) + 2 * (1.17e-6 + 2.18e-10 * 4096), 1e-15);
  EXPECT_NEAR(forms.on_node(MemoryKind::gpu, 1e6),
              (1.82e-5 + 1.46e-11 * 1e6) + 2 * (1.93e-5 + 2.39e-11 * 1e6), 1e-12);
  EXPECT_NEAR(forms.on_split(20, 1, 64), 19 * (3.67e-7 + 1.32e-10 * 64) + 20 * (9.25e-7 + 1.19e-9 * 64),
              1e-15);
  EXPECT_NEAR(forms.on_split(20, 4, 64), 4 * (3.67e-7 + 1.32e-10 * 64) + 5 * (9.25e-7 + 1.19e-9 * 64), 1e-15);
  EXPECT_NEAR(forms.off_node(3, 1e6, 4e6, 1e6 / 3), 3 * 7.76e-6 + 4e6 * 4.19e-11, 1e-12)
      << "the card is slower";
  EXPECT_NEAR(forms.off_node(3, 1e6, 1e6, 1e6 / 3), 3 * 7.76e-6 + 1e6 * 7.97e-11, 1e-12)
      << "the process is slower";
  EXPECT_NEAR(forms.off_node_device(2, 1e4, 5e3), 2 * 8.95e-6 + 1e4 * 1.72e-10, 1e-15);
  EXPECT_NEAR(forms.copies(1e6, 2e6, 1, Reading::literal),
              1.30e-5 + 1.85e-11 * 1e6 + 1.27e-5 + 1.96e-11 * 2e6, 1e-12);
  EXPECT_NEAR(forms.copies(1e6, 2e6, 1, Reading::chosen), 1.27e-5 + 1.96e-11 * 1e6 + 1.30e-5 + 1.85e-11 * 2e6,
              1e-12);
  EXPECT_EQ(forms.message_cap(), 8192);
}

TEST(ClosedForms, SymbolsOfAnEvenExchange) {
  ExchangeSymbols const x = ExchangeSymbols::even(256, 1024, 16, 0.75, lassen().node);
  EXPECT_EQ(x.s_proc, 65536);
  EXPECT_EQ(x.s_node, 262144);
  EXPECT_EQ(x.s_node_to_node, 16384);
  EXPECT_EQ(x.m_proc_to_node, 16);
  EXPECT_EQ(x.m_node_to_node, 16);
  EXPECT_EQ(x.m_proc, 64);
}

// Rows of table 6 at 256 messages of 1,024 bytes to 16 nodes, by hand.
TEST(ClosedForms, RowsOfTableSixInBothReadings) {
  ClosedForms const forms(lassen());
  ExchangeSymbols const x = ExchangeSymbols::even(256, 1024, 16, 1, lassen().node);
  auto const of = [&](Strategy strategy, bool staged, Reading reading) {
    return forms.of(strategy, staged, reading, x).seconds();
  };
  using enum Strategy;
  using enum Reading;
  double const copy_proc = 2.57e-5 + (1.85e-11 + 1.96e-11) * 65536,
               copy_literal = 2.57e-5 + 1.85e-11 * 65536 + 1.96e-11 * 16384;
  double const standard_off = 64 * 2.44e-6 + 65536 * 3.79e-10;
  EXPECT_NEAR(of(standard, true, literal), standard_off, 1e-12);
  EXPECT_NEAR(of(standard, true, chosen), standard_off + copy_proc, 1e-12);
  EXPECT_NEAR(of(standard, false, literal), 64 * 8.95e-6 + 65536 * 1.72e-10, 1e-12);
  double const injected = 262144 * 4.19e-11;
  auto const on = [](double s) {
    return s > 8192 ? 3.15e-6 + 3.40e-11 * s + 2 * (6.77e-6 + 1.49e-10 * s)
                    : 4.61e-7 + 7.12e-11 * s + 2 * (1.17e-6 + 2.18e-10 * s);
  };
  EXPECT_NEAR(of(three_step, true, literal), 16 * 7.76e-6 + injected + 2 * on(16384) + copy_literal, 1e-12);
  EXPECT_NEAR(of(three_step, true, chosen), 4 * 7.76e-6 + injected + 2 * 4 * on(4096) + copy_proc, 1e-12);
  EXPECT_NEAR(of(two_step_all, true, literal), 16 * 2.44e-6 + 65536 * 3.79e-10 + on(65536) + copy_literal,
              1e-12);
  EXPECT_NEAR(of(two_step_all, true, chosen), 16 * 2.44e-6 + 65536 * 3.79e-10 + on(16384) + copy_proc, 1e-12);
  EXPECT_NEAR(of(two_step_one, false, chosen), 4 * 1.10e-5 + 65536 * 1.72e-10, 1e-12);
  double const split_on = 19 * (3.15e-6 + 3.40e-11 * 262144) + 20 * (6.77e-6 + 1.49e-10 * 262144);
  EXPECT_NEAR(of(split_md, true, literal), 16 * 2.44e-6 + injected + 2 * split_on + copy_literal, 1e-12);
  double const pieces_on =
      15 * (4.61e-7 + 7.12e-11 * 2048) + 16 * (1.17e-6 + 2.18e-10 * 2048);  // 32 pieces of 8,192 bytes
  EXPECT_NEAR(of(split_md, true, chosen), 2.44e-6 + injected + 2 * pieces_on + copy_proc, 1e-12);
}

TEST(ClosedForms, WithOneSocketTheTermsOfTheOtherVanish) {
  MachineModel one = lassen();
  one.node.sockets = 1;
  ClosedForms const forms(one);
  EXPECT_NEAR(forms.on_node(MemoryKind::host, 4096), 4.61e-7 + 7.12e-11 * 4096, 1e-15);
  EXPECT_NEAR(forms.on_split(20, 1, 64), 19 * (3.67e-7 + 1.32e-10 * 64), 1e-15);
}

TEST(ClosedForms, TableHasTenRowsAndRefusesWhatThePaperHasNot) {
  ClosedForms const forms(lassen());
  ExchangeSymbols const x = ExchangeSymbols::even(32, 64, 4, 1, lassen().node);
  for (Reading reading : all_readings) {
    auto const rows = forms.table(reading, x);
    EXPECT_EQ(rows.size(), 10U);
    for (ClosedForm const& row : rows) {
      EXPECT_GT(row.seconds(), 0);
      EXPECT_EQ(row.staged || row.copies == 0, true);
    }
  }
  EXPECT_THROW(forms.of(Strategy::split_md, false, Reading::chosen, x), Error);
  EXPECT_THROW(ClosedForms{load_machine("frontier")}, Error);
}

}  // namespace
}  // namespace hostless
