#pragma once

#include <nlohmann/json.hpp>

#include "hostless/base/error.hpp"
#include "hostless/model/fit.hpp"

namespace hostless {

nlohmann::ordered_json json_of(Fit const& fit, ModelErrors const& errors);
/// Errors  usage  a text that a machine's file cannot hold: control characters
void check_text(char const* option, std::string const& text);
/// What it means where a fit is no machine's, and the code that it ends with.
struct Unfit {
  ErrorCode code;
  std::string why, what_to_do;
};
/// Writes a machine with fitted costs, as its reader takes it.
/// Errors  unfit.code  a value that cannot be of its unit: nothing was written
void write_fitted(std::string const& file, MachineModel const& machine, Unfit const& unfit);
/// The piece whose residuals' median is the largest where that is above a half: times that others' work has
/// lengthened lie on no line. Else null.
PieceFit const* scattered_piece(Fit const& fit);
/// How many times too much or too little messages up to 8 bytes, each alone, are priced in the median, of the
/// span where that is most; 1 where none was measured.
double worst_of_small_prices(Fit const& fit, NodeShape const& node,
                             std::vector<MessageSample> const& samples);
void print_fit(Fit const& fit, ModelErrors const& errors);

}  // namespace hostless
