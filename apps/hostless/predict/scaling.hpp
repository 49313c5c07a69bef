#pragma once
// What all predictions by the number of nodes share: options, lines of a table, JSON and the picture.

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hostless/model/machine_model.hpp"
#include "hostless/model/plan_price.hpp"

namespace CLI {
class App;
}

namespace hostless {

constexpr int most_predicted_ranks = 1 << 13;

struct ScalingOptions {
  std::string machine, messages_of, json, output;
  std::vector<int> nodes;
  bool weak = false;

  /// scaling  what --scaling means
  void add(CLI::App& command, char const* scaling);
  /// input  a file that is read, or nothing
  /// Errors  usage  --machine or --nodes is missing; names of files that clash, a picture that is no SVG
  void check(std::string const& input = {}) const;
  /// The machine, every span of whose messages has a price where any has; `notes` says whose they are.
  /// Errors  usage  --messages-of where it changes nothing
  MachineModel load(std::set<std::string>& notes) const;
  /// Errors  usage  more than 2^13 ranks
  void check_ranks(int ranks_per_node) const;
  /// How many times what the first number of nodes has: 1 where scaling is strong.
  /// Errors  usage  no multiple of it
  int growth(int at_nodes) const;
};

/// asked: by that option, 0 for a rank for each GPU, or core. Errors  bad_input  the machine has none; usage  fewer than
/// asked
int ranks_of_node(MachineModel const& machine, MemoryKind memory, int asked,
                  char const* option = "--ranks-per-node");

/// One number of nodes.
struct ScalingPoint {
  int nodes = 1, ranks = 1;
  double seconds = 0.0, least = 0.0, most = 0.0;
  std::vector<double> parts;  ///< as Scaling::parts names them; their sum is `seconds`
  std::string way = "none";   ///< of the exchange
  double efficiency = 1.0;    ///< against the first point that has a price
  std::string refused = {};   ///< why there can be no such thing; it has no price
};

struct Scaling {
  std::string title, what;         ///< of the picture; what `seconds` are of
  std::vector<char const*> parts;  ///< in words
  std::vector<ScalingPoint> points;
  std::set<std::string> sources, notes;

  void add(ScalingPoint point, bool weak);
  void add_words(std::vector<std::string> const& more_sources, std::vector<std::string> const& more_notes);
};

/// Where no number of nodes has a price. Errors  usage, always  why the last one has none
[[noreturn]] void refuse_all(int nodes, std::string const& why);

/// "direct device": its words.
std::string words_of(PricedWay const& way);

nlohmann::ordered_json json_of(Scaling const& scaling);
/// A line for each point, then print_words.
void print_scaling(Scaling const& scaling, bool weak);
/// Sources and notes.
void print_words(Scaling const& scaling);
/// The picture, the JSON (`head` in front) and the table, as the options ask. Errors  usage  no point has a price
int show_scaling(ScalingOptions const& options, Scaling const& scaling, nlohmann::ordered_json head);

/// Draws parts, the whole and its band.
void draw_scaling(ScalingOptions const& options, Scaling const& scaling);

}  // namespace hostless
