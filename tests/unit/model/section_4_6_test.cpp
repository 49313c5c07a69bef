// Section 4.6 of Lockhart et al. 2022, sentence by sentence: what their closed forms say on Lassen, under the
// literal and under the chosen reading, with the figures of the smallest size at which a sentence does not
// hold.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "hostless/model/closed_forms.hpp"

namespace hostless {
namespace {

struct Panel {
  double messages, nodes, kept;
};

constexpr double largest = 1 << 20;  // bytes of a message

/// The closed forms of one panel of figure 4.3 at one size.
class Models {
 public:
  Models(Reading reading, Panel panel, double bytes)
      : rows_(forms().table(
            reading, ExchangeSymbols::even(panel.messages, bytes, panel.nodes, panel.kept, machine().node))) {
  }
  double seconds(Strategy strategy, bool staged) const { return row(strategy, staged).seconds(); }
  /// The fastest of those that the figure circles, or of all.
  ClosedForm const& fastest(bool with_two_step_one = false) const {
    return *std::min_element(rows_.begin(), rows_.end(), [&](ClosedForm const& a, ClosedForm const& b) {
      auto const cost = [&](ClosedForm const& f) {
        return f.strategy == Strategy::two_step_one && !with_two_step_one ? 1.0 : f.seconds();
      };
      return cost(a) < cost(b);
    });
  }
  double fastest_of(std::function<bool(ClosedForm const&)> const& wanted) const {
    double least = 1.0;
    for (ClosedForm const& f : rows_)
      if (wanted(f)) least = std::min(least, f.seconds());
    return least;
  }

 private:
  static MachineModel const& machine() {
    static MachineModel const lassen = load_machine("lassen");
    return lassen;
  }
  static ClosedForms const& forms() {
    static ClosedForms const all(machine());
    return all;
  }
  ClosedForm const& row(Strategy strategy, bool staged) const {
    return *std::find_if(rows_.begin(), rows_.end(),
                         [&](ClosedForm const& f) { return f.strategy == strategy && f.staged == staged; });
  }
  std::vector<ClosedForm> rows_;
};

std::string words(ClosedForm const& f) {
  return fmt::format("{}{} {:.4g} us", name(f.strategy), f.staged ? "" : " device-aware", 1e6 * f.seconds());
}

/// Why a sentence does not hold; empty: it does.
using Check = std::function<std::string(Reading)>;

// The rule at every size of these panels; the first exception is told.
Check at_sizes(std::vector<Panel> const& panels, double from, double to,
               std::function<bool(Models const&)> const& rule) {
  return [=](Reading reading) -> std::string {
    for (Panel const& panel : panels)
      for (double bytes = 1; bytes <= to; bytes *= 2) {
        if (bytes < from) continue;
        Models const models(reading, panel, bytes);
        if (!rule(models))
          return fmt::format("{:.0f} messages, {:.0f} nodes, {:.0f} % kept, {:.0f} bytes: {}", panel.messages,
                             panel.nodes, 100 * panel.kept, bytes, words(models.fastest()));
      }
    return {};
  };
}

// At least half of the sizes.
Check often(std::vector<Panel> const& panels, double to, std::function<bool(Models const&)> const& rule) {
  return [=](Reading reading) -> std::string {
    for (Panel const& panel : panels) {
      int held = 0, all = 0;
      for (double bytes = 1; bytes <= to; bytes *= 2, ++all) held += rule(Models(reading, panel, bytes));
      if (2 * held < all)
        return fmt::format("{:.0f} messages, {:.0f} nodes: at {} of {} sizes", panel.messages, panel.nodes,
                           held, all);
    }
    return {};
  };
}

auto fastest_is(std::vector<Strategy> const& strategies, int staged = -1) {
  return [=](Models const& models) {
    ClosedForm const& f = models.fastest();
    return std::find(strategies.begin(), strategies.end(), f.strategy) != strategies.end() &&
           (staged < 0 || f.staged == (staged == 1));
  };
}

// Whether removing a quarter of the bytes changes the fastest, and between which, at some size.
Check removal_switches(Panel panel, double from, std::vector<std::pair<Strategy, Strategy>> const& wanted) {
  return [=](Reading reading) -> std::string {
    std::string seen;
    for (double bytes = 1; bytes <= largest; bytes *= 2) {
      ClosedForm const before = Models(reading, panel, bytes).fastest(),
                       after = Models(reading, {panel.messages, panel.nodes, 0.75}, bytes).fastest();
      if (bytes < from || (before.strategy == after.strategy && before.staged == after.staged)) continue;
      for (auto const& [one, other] : wanted)
        if (before.strategy == one && after.strategy == other) return {};
      seen += fmt::format("{}{:.0f} bytes: {} to {}", seen.empty() ? "" : "; ", bytes, words(before),
                          words(after));
    }
    return seen.empty() ? "it changes nothing" : seen;
  };
}

using enum Strategy;
Panel const few_4{32, 4, 1}, few_16{32, 16, 1}, many_4{256, 4, 1}, many_16{256, 16, 1};
constexpr double thousand = 1001, ten_thousand = 1e4;

bool is_node_aware(ClosedForm const& f) { return f.strategy != standard && f.strategy != two_step_one; }

struct Sentence {
  char const* says;
  bool literal, chosen;  // holds
  Check check;
};

std::vector<Sentence> sentences() {
  std::vector<Panel> const many = {many_4, many_16, {256, 4, 0.75}, {256, 16, 0.75}},
                           all = {few_4, few_16, many_4, many_16};
  return {
      {"256 messages above 10^3 bytes: device-aware 2-Step 1 is best of all", false, true,
       at_sizes(many, thousand, largest,
                [](Models const& m) {
                  return m.fastest(true).strategy == two_step_one && !m.fastest(true).staged;
                })},
      {"256 messages above 10^3 bytes: 2-Step 1, staged or not, is best of all", false, true,
       at_sizes(many, thousand, largest,
                [](Models const& m) { return m.fastest(true).strategy == two_step_one; })},
      {"32 messages to 4 nodes: 3-Step and standard are the fastest", true, true,
       at_sizes({few_4}, 1, largest, fastest_is({three_step, standard}))},
      {"32 messages to 16 nodes: Split+MD replaces 3-Step", false, false,
       at_sizes({few_16}, 1, largest, fastest_is({split_md, standard}))},
      {"32 messages to 16 nodes: a split, MD or DD, replaces 3-Step", false, true,
       at_sizes({few_16}, 1, largest, fastest_is({split_md, split_dd, standard}))},
      {"32 messages up to 10^4 bytes: through the host is best", true, true,
       at_sizes({few_4, few_16}, 1, ten_thousand, [](Models const& m) { return m.fastest().staged; })},
      {"32 messages above 10^4 bytes: device-aware standard is best", false, true,
       at_sizes({few_4, few_16}, ten_thousand, largest, fastest_is({standard}, 0))},
      {"256 messages of the largest sizes: device-aware is best", false, true,
       at_sizes({many_4, many_16}, 131072, largest, [](Models const& m) { return !m.fastest().staged; })},
      {"256 messages of large sizes: of these 3-Step or 2-Step", false, false,
       at_sizes({many_4, many_16}, 131072, largest, fastest_is({three_step, two_step_all}, 0))},
      {"256 messages up to 10^4 bytes: node-aware through the host is best, to 4 and to 16 nodes", false,
       false,
       at_sizes({many_4, many_16}, 1, ten_thousand,
                [](Models const& m) { return m.fastest().staged && is_node_aware(m.fastest()); })},
      {"256 messages to 4 nodes: 3-Step and 2-Step are often the fastest", true, true,
       often({many_4}, largest, fastest_is({three_step, two_step_all}))},
      {"256 messages to 16 nodes up to 10^4 bytes: Split+MD is the fastest", false, false,
       at_sizes({many_16}, 1, ten_thousand, fastest_is({split_md}))},
      {"256 messages to 16 nodes up to 10^4 bytes: a split, MD or DD, is often the fastest", false, true,
       often({many_16}, ten_thousand, fastest_is({split_md, split_dd}))},
      {"device-aware 3-Step and 2-Step cost more than through the host, up to 10^3 bytes", true, true,
       at_sizes(all, 1, 1000,
                [](Models const& m) {
                  return m.seconds(three_step, false) > m.seconds(three_step, true) &&
                         m.seconds(two_step_all, false) > m.seconds(two_step_all, true);
                })},
      {"device-aware node-aware beats through the host above 10^4 bytes alone, 2-Step 1 aside", false, true,
       at_sizes(all, 1, ten_thousand,
                [](Models const& m) {
                  return m.fastest_of([](ClosedForm const& f) { return is_node_aware(f) && !f.staged; }) >
                         m.fastest_of([](ClosedForm const& f) { return f.staged; });
                })},
      {"without duplicates the fastest of 32 messages stays the same", true, false,
       [](Reading reading) -> std::string {
         for (Panel const& panel : {few_4, few_16})
           if (std::string const seen = removal_switches(panel, 1, {})(reading); seen != "it changes nothing")
             return fmt::format("{:.0f} nodes: {}", panel.nodes, seen);
         return {};
       }},
      {"256 messages to 16 nodes above 10^3 bytes: without duplicates Split+DD follows Split+MD, or 3-Step "
       "2-Step",
       false, false, removal_switches(many_16, thousand, {{split_md, split_dd}, {two_step_all, three_step}})},
      {"256 messages up to 10^4 bytes: node-aware through the host beats standard of both kinds", false, true,
       at_sizes(many, 1, ten_thousand,
                [](Models const& m) {
                  return m.fastest_of([](ClosedForm const& f) { return is_node_aware(f) && f.staged; }) <
                         std::min(m.seconds(standard, true), m.seconds(standard, false));
                })},
      {"Split+DD is slower than Split+MD (section 5)", false, false,
       at_sizes(all, 1, largest,
                [](Models const& m) { return m.seconds(split_dd, true) > m.seconds(split_md, true); })},
  };
}

TEST(Section46, EverySentenceUnderBothReadings) {
  for (Sentence const& sentence : sentences()) {
    std::string const literal = sentence.check(Reading::literal), chosen = sentence.check(Reading::chosen);
    fmt::print("{:<8} {}\n",
               literal.empty() && chosen.empty() ? "both"
               : literal.empty()                 ? "literal"
               : chosen.empty()                  ? "chosen"
                                                 : "neither",
               sentence.says);
    if (!literal.empty()) fmt::print("         literal: {}\n", literal);
    if (!chosen.empty()) fmt::print("         chosen:  {}\n", chosen);
    EXPECT_EQ(literal.empty(), sentence.literal) << sentence.says << "\nliteral: " << literal;
    EXPECT_EQ(chosen.empty(), sentence.chosen) << sentence.says << "\nchosen: " << chosen;
  }
}

}  // namespace
}  // namespace hostless
