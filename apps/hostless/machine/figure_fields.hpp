#pragma once
// Pictures as data: fields of lines, which plots_of_machines.py draws.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hostless/model/closed_forms.hpp"

namespace hostless {

struct FigureLine {
  std::string label;
  std::vector<double> x, y;
  bool dashed = false;
  std::vector<bool> marked;  ///< points that are circled; empty: none
};

struct FigureField {
  std::string title, x_label, y_label;
  std::vector<FigureLine> lines;
};

struct Figure {
  std::string name, title;
  std::vector<FigureField> fields;
};

nlohmann::ordered_json json_of(Figure const& figure);

/// Time of a message by locality (2.5 of Lockhart et al. 2022), for each memory that has data.
Figure figure_of_localities(MachineModel const& machine);
/// Time of a volume between two nodes that 1, 2, 4, ... ranks share (2.6).
Figure figure_of_shared_volumes(MachineModel const& machine);
/// Time of copies by number of processes (3.1).
Figure figure_of_copies(MachineModel const& machine);
/// 32 and 256 messages to 4 and 16 nodes, with and without a quarter of duplicates; the fastest but 2-Step 1
/// marked (4.3).
Figure figure_of_scenarios(MachineModel const& machine, Reading reading);

/// A pattern on some number of GPUs.
struct PatternPoint {
  int gpus = 0;
  ExchangeSymbols symbols;
};
/// Closed forms of a matrix's exchange against the number of GPUs (4.2).
Figure figure_of_pattern(MachineModel const& machine, Reading reading, std::string const& matrix,
                         std::vector<PatternPoint> const& points);

}  // namespace hostless
