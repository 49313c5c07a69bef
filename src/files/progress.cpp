#include "files/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace hostless::files {

void keep_problem(std::optional<Problem>& kept, std::function<void()> const& work) {
  std::optional<Problem> met;
  try {
    work();
  } catch (Problem const& problem) {
    met = problem;
  } catch (Error const& error) {
    met.emplace(-1, error.what(), error.code());
  } catch (std::bad_alloc const&) {
    met.emplace(
        -1,
        "out of memory while reading (this rank's share does not fit). Use more ranks or a larger machine.",
        ErrorCode::environment);
  }
  if (met && !kept) kept = std::move(met);
}

void raise(Group& group, Text& text, std::optional<Problem> const& problem, int root) {
  // Rank `root` has the text, its own line and code; the others learn them.
  Bytes message;
  if (group.rank() == root) {
    std::string said = problem->text;
    if (problem->offset >= 0) {
      std::optional<Problem> worse;
      keep_problem(worse, [&] {
        said = fmt::format("{}:{}: {}", text.path(), line_of(text, problem->offset), problem->text);
      });
      if (worse) said = fmt::format("{}: {}", text.path(), problem->text);
    }
    message.resize(said.size() + 1);
    message[0] = static_cast<std::byte>(problem->code);
    std::memcpy(message.data() + 1, said.data(), said.size());
  }
  message = group.broadcast(message, root);
  throw Error(static_cast<ErrorCode>(message.at(0)),
              std::string(reinterpret_cast<char const*>(message.data()) + 1, message.size() - 1));
}

std::vector<Progress> share_progress(Group& group, Text& text, std::optional<Problem> const& problem,
                                     std::int64_t position, bool finished, std::int64_t count) {
  Progress const mine{problem ? problem->offset : Progress::none, position, count, finished || problem};
  auto all = group.all_gather(mine);
  auto const lowest = std::min_element(all.begin(), all.end(),
                                       [](auto const& a, auto const& b) { return a.problem < b.problem; });
  if (lowest->problem == Progress::none) return all;
  bool const first = std::all_of(
      all.begin(), all.end(), [&](Progress const& p) { return p.finished || p.position > lowest->problem; });
  if (first) raise(group, text, problem, static_cast<int>(lowest - all.begin()));
  return all;
}

std::unique_ptr<Text> open_text(Group& group, std::string const& path) {
  std::unique_ptr<Text> text;
  group.together([&] { text = Text::open(path); });
  return text;
}

}  // namespace hostless::files
