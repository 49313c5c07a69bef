#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "files/text.hpp"
#include "hostless/transport/group.hpp"

namespace hostless::files {

/// What every rank says about itself before each round of reading.
struct Progress {
  std::int64_t problem;   ///< byte of the first bad line met, or `none`
  std::int64_t position;  ///< all lines of this rank before it were read
  std::int64_t count;     ///< things that this rank read since it last said so
  bool finished;          ///< nothing is left to read and nothing to send
  static constexpr std::int64_t none = INT64_MAX;
};

/// Runs `work` and keeps what it throws as the rank's problem; one that was kept before stays.
void keep_problem(std::optional<Problem>& kept, std::function<void()> const& work);

/// Shares every rank's progress. Throws the same Error on every rank as soon as the first bad line of the
/// whole text is known: when no rank can meet an earlier one. Collective over group.
std::vector<Progress> share_progress(Group& group, Text& text, std::optional<Problem> const& problem,
                                     std::int64_t position, bool finished, std::int64_t count);

/// Throws the Error for the problem of rank `root` on every rank, with file and line.
/// Collective over group.
[[noreturn]] void raise(Group& group, Text& text, std::optional<Problem> const& problem, int root);

/// Rank 0 runs `work`; its result, or its Problem as an Error with file and line, on every rank.
/// Collective over group. T is trivially copyable.
template <class T>
T on_first_rank(Group& group, Text& text, std::function<T()> const& work) {
  T result{};
  std::optional<Problem> problem;
  if (group.rank() == 0) keep_problem(problem, [&] { result = work(); });
  if (group.any(problem.has_value())) raise(group, text, problem, 0);
  return group.all_gather(result)[0];
}

/// The Text of `path` on every rank.
/// Collective over group.
std::unique_ptr<Text> open_text(Group& group, std::string const& path);

}  // namespace hostless::files
