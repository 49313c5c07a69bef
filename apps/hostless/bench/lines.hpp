#pragma once
// What the table of `bench pingpong`, `halo` and `allreduce` says of a report: a line for each of its rows.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hostless {

enum class Timed { pingpong, halo, allreduce };
char const* name(Timed what);

/// Over the columns of `line_of`.
std::string head_of(Timed what);
/// row  one of `rows_of`
std::string line_of(Timed what, nlohmann::ordered_json const& row);
/// A copy of the rows of a report; those of `halo` get a name, `what`.
std::vector<nlohmann::ordered_json> rows_of(Timed what, nlohmann::ordered_json const& report);

}  // namespace hostless
