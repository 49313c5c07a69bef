#include "hostless/base/status.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace hostless {
namespace {

// The words of the documentation, and the codes that scripts rely on.
TEST(Status, NamesAndExitCodes) {
  struct {
    Status status;
    char const* name;
    int code;
  } const rows[] = {{Status::running, "running", 1},
                    {Status::paused, "paused", 1},
                    {Status::converged, "converged", 0},
                    {Status::iteration_limit, "iteration_limit", 1},
                    {Status::indefinite_matrix, "indefinite_matrix", 1},
                    {Status::indefinite_preconditioner, "indefinite_preconditioner", 1},
                    {Status::not_finite, "not_finite", 1},
                    {Status::breakdown, "breakdown", 1},
                    {Status::stagnated, "stagnated", 1},
                    {Status::diverged, "diverged", 1},
                    {Status::peer_lost, "peer_lost", 4},
                    {Status::aborted, "aborted", 4}};
  std::set<std::string> names;
  for (auto const& row : rows) {
    EXPECT_STREQ(name(row.status), row.name);
    EXPECT_EQ(exit_code(row.status), row.code) << row.name;
    names.insert(name(row.status));
  }
  EXPECT_EQ(names.size(), std::size(rows));
}

}  // namespace
}  // namespace hostless
