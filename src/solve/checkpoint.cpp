#include "solve/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <type_traits>

#include "base/counted.hpp"
#include "base/file.hpp"
#include "files/shared_output.hpp"
#include "solve/methods/cg_values.hpp"

namespace hostless {
namespace {

using Words = std::vector<std::uint64_t>;

constexpr std::array<char, 8> magic = {'h', 'o', 's', 't', 'l', 's', 'c', 'p'};
constexpr std::uint64_t format_version = 10;
constexpr std::int64_t word_bytes = 8;
constexpr std::size_t identity_words = 16, exact_words = identity_words - 2, members = 21,
                      state_words = members + State::values;
constexpr std::int64_t step_words = sizeof(StepRecord) / sizeof(std::uint64_t);
static_assert(sizeof(SolveControl) == 168 && sizeof(State) == sizeof(SolveControl) + 8 * State::values,
              "a new member belongs into each_member, or among those that it leaves out");
constexpr std::size_t fields_word = CheckpointWords::identity + identity_words,
                      history_word = fields_word + 1;
constexpr std::size_t state_at = history_word + 1, history_at = state_at + state_words;

[[noreturn]] void refuse(std::string const& path, std::string const& why) {
  throw Error(ErrorCode::bad_input, path + ": " + why);
}

// What a number of a State may be.
enum class Range { number, square, limit, count, flag, reason };

// Every member that the rest of a solve depends on, in the order of the file; the method's own values follow.
// What the resumed solve has of its own (target, limits, where its history lies) is not here.
template <class Visit>
void each_member(Visit&& visit) {
  visit("growth limit", &State::growth_limit, Range::limit);
  visit("(r, r)", &State::rr, Range::square);
  visit("first (r, r)", &State::first_rr, Range::square);
  visit("bound of growth", &State::growth_at, Range::square);
  visit("true (r, r)", &State::true_rr, Range::square);
  visit("best true (r, r)", &State::best_true_residual, Range::square);
  visit("(r, r) of the recurrence", &State::recurrence_rr, Range::square);
  visit("replacement", &State::replace_at, Range::square);
  visit("iteration of the last change", &State::changed_at, Range::count);
  visit("replacements", &State::replacements, Range::count);
  visit("rounded", &State::rounded, Range::flag);
  visit("reason of the exact matrix", &State::exact_again, Range::reason);
  visit("iteration", &State::iteration, Range::count);
  visit("restarts", &State::restarts, Range::count);
  visit("useless restarts", &State::useless_restarts, Range::count);
  visit("raises", &State::raises, Range::count);
  visit("truth", &State::wants_true_residual, Range::flag);
  visit("iterate", &State::iterate, Range::flag);
  visit("fresh", &State::fresh, Range::flag);
  visit("begun", &State::begun, Range::flag);
  visit("raised", &State::raised, Range::flag);
}

template <class T>
std::uint64_t word_of(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<std::uint64_t>(value);
  } else {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  }
}

// In the order of the file: the last ones, after exact_words, may differ by rounding.
template <class Identity, class Use>
void for_each_member(Identity& id, Use const& use) {
  use(id.plan), use(id.matrix), use(id.rhs), use(id.rows), use(id.ranks), use(id.method);
  use(id.preconditioner), use(id.degree), use(id.inner), use(id.precision), use(id.reduction);
  use(id.null_space), use(id.ratio), use(id.upper), use(id.function_norm), use(id.function_part);
}

Words words_of(CheckpointIdentity const& id) {
  Words words;
  for_each_member(id, [&](auto const& member) { words.push_back(word_of(member)); });
  return words;
}

CheckpointIdentity identity_of(std::span<std::uint64_t const> words) {
  CheckpointIdentity id;
  auto word = words.begin();
  for_each_member(id, [&](auto& member) {
    using Member = std::remove_reference_t<decltype(member)>;
    if constexpr (std::is_floating_point_v<Member>) {
      member = std::bit_cast<double>(*word++);
    } else {
      member = static_cast<Member>(*word++);
    }
  });
  return id;
}

// The number of a word, or nothing where no State has it. Iterations stay far from where sums of them
// overflow.
template <class T>
bool take(std::uint64_t word, Range range, T& to) {
  if constexpr (std::is_floating_point_v<T>) {
    to = std::bit_cast<double>(word);
    if (range == Range::limit) return to >= 1 && std::isfinite(to);
    return !std::isnan(to) && (range != Range::square || to >= 0);
  } else {
    constexpr std::int64_t most_iterations = std::int64_t{1} << 53, most_counted = std::int64_t{1} << 30;
    auto const number = static_cast<std::int64_t>(word);
    std::int64_t const high = range == Range::flag     ? 1
                              : range == Range::reason ? static_cast<std::int64_t>(ExactAgain::no_gain)
                              : sizeof(T) == 8         ? most_iterations
                                                       : most_counted;
    if (number < 0 || number > high) return false;
    to = static_cast<T>(number);
    return true;
  }
}

State state_of(std::string const& path, State const& fresh, std::span<std::uint64_t const> words) {
  State state = fresh;
  std::size_t at = 0;
  auto const next = [&](std::string const& what, Range range, auto& to) {
    if (!take(words[at], range, to)) {
      refuse(path,
             fmt::format("its {} is {:#x} (no paused solve has that). The checkpoint was made by something "
                         "else: use another one.",
                         what, words[at]));
    }
    ++at;
  };
  each_member([&](char const* what, auto member, Range range) { next(what, range, state.*member); });
  for (int k = 0; k < State::values; ++k) {
    bool const of_polynomial = k == chebyshev::upper || k == chebyshev::inverse_upper;
    next(fmt::format("value {} of the method", k), of_polynomial ? Range::square : Range::number,
         state.value[k]);
  }
  if (state.wants_true_residual == state.iterate || state.changed_at > state.iteration) {
    refuse(path,
           fmt::format(
               "iteration {} with gates {} and {}, a change at {} (no solve pauses there). The checkpoint "
               "was made by something else: use another one.",
               state.iteration, state.wants_true_residual, state.iterate, state.changed_at));
  }
  if (state.rounded && !fresh.rounded) {
    refuse(path,
           "its iterations multiply with a rounded matrix (this solve has none). The checkpoint was made by "
           "something else: use another one.");
  }
  return state;
}

// All of a step that a later one follows are finite, and none is negative: A and M are positive on its way.
void check_steps(std::string const& path, std::span<StepRecord const> steps) {
  for (std::size_t k = 0; k < steps.size(); ++k) {
    StepRecord const& step = steps[k];
    for (double const number : {step.rr, step.alpha, step.beta, step.true_rr}) {
      if (number >= 0 && std::isfinite(number)) continue;
      refuse(path, fmt::format(
                       "its history has (r, r) {}, alpha {}, beta {} and true (r, r) {} at iteration {} (no "
                       "paused solve has those). The checkpoint was made by something else: use another one.",
                       step.rr, step.alpha, step.beta, step.true_rr, k));
    }
  }
}

// Header | history | checksums [ranks][fields] | fields of rank 0 | fields of rank 1 | ...; all in words.
struct Layout {
  std::int64_t ranks, rank, fields;
  std::int64_t below = 0, all = 0;  // entries of a field on the ranks below this one, and on all

  template <class Fields>
  Layout(Group& group, Fields const& of)
      : ranks(group.size()), rank(group.rank()), fields(static_cast<std::int64_t>(of.size())) {
    auto const owned = static_cast<std::int64_t>(of.empty() ? 0 : of[0].size());
    auto const of_ranks = group.all_gather(owned);
    for (std::size_t r = 0; r < of_ranks.size(); ++r) {
      if (static_cast<std::int64_t>(r) < rank) below += of_ranks[r];
      all += of_ranks[r];
    }
  }
  std::int64_t head(std::int64_t history) const {
    return static_cast<std::int64_t>(history_at) + history * step_words + ranks * fields;
  }
  std::int64_t my_sums(std::int64_t history) const { return head(history) - (ranks - rank) * fields; }
  std::int64_t my_fields(std::int64_t history) const { return head(history) + below * fields; }
  std::int64_t end(std::int64_t history) const { return head(history) + all * fields; }
};

std::uint64_t head_checksum(Words head) {
  head[CheckpointWords::checksum] = 0;
  return checksum(std::as_bytes(std::span(head)));
}

// Everything before the fields. Allocates what the file has, whatever it says.
Words read_head(File const& file) {
  Words start(history_at);
  auto const cut_short = [&] {
    refuse(file.path(), "ends early (the checkpoint is cut short). Use an older one.");
  };
  std::size_t const got = file.read_at(0, std::as_writable_bytes(std::span(start)));
  if (got < sizeof magic || std::memcmp(start.data(), magic.data(), sizeof magic) != 0) {
    if (got < sizeof magic) cut_short();
    refuse(file.path(), "is no checkpoint (it does not begin as one). Name a file that --checkpoint wrote.");
  }
  if (got < 2 * sizeof(std::uint64_t)) cut_short();
  if (start[CheckpointWords::version] != format_version) {
    refuse(file.path(),
           fmt::format("is a checkpoint of format {} (this version resumes {}). Resume it with the "
                       "version that wrote it.",
                       start[CheckpointWords::version], format_version));
  }
  if (got < history_at * sizeof(std::uint64_t)) cut_short();
  std::uint64_t const words = start[CheckpointWords::head];
  if (words < history_at)
    refuse(file.path(), "a length is wrong (the checkpoint is damaged). Use an older one.");
  if (words > static_cast<std::uint64_t>(file.size() / word_bytes)) cut_short();
  Words head(static_cast<std::size_t>(words));
  auto const bytes = std::as_writable_bytes(std::span(head));
  if (file.read_at(0, bytes) != bytes.size()) cut_short();
  if (head_checksum(head) != head[CheckpointWords::checksum])
    refuse(file.path(), "a checksum is wrong (the checkpoint is damaged). Use an older one.");
  return head;
}

// How many entries the history has, once head and file are those of this solve.
std::int64_t checked_history(File const& file, Words const& head, CheckpointIdentity const& identity,
                             Layout const& layout) {
  auto const theirs = std::span(head).subspan(CheckpointWords::identity, identity_words);
  Words const wanted = words_of(identity);
  bool const is_equal = std::equal(wanted.begin(), wanted.end(), theirs.begin());
  std::string const other = is_equal ? "" : difference_of(identity_of(theirs), identity);
  if (!other.empty() || !std::equal(wanted.begin(), wanted.begin() + exact_words, theirs.begin()) ||
      static_cast<std::int64_t>(head[fields_word]) != layout.fields) {
    refuse(file.path(),
           fmt::format("a checkpoint of another solve: {} (it would not go on bit for bit). Give the "
                       "same input and options, or pass x as initial guess.",
                       other.empty() ? "its vectors are others" : other));
  }
  std::int64_t const words = static_cast<std::int64_t>(head.size()) - layout.head(0),
                     history = words / step_words;
  if (history < 1 || words % step_words != 0 || head[history_word] != static_cast<std::uint64_t>(history))
    refuse(file.path(), "its lengths disagree (the checkpoint is damaged). Use an older one.");
  if (file.size() != layout.end(history) * word_bytes) {
    refuse(file.path(), fmt::format("has {} where {} are needed (the checkpoint is cut short or has too "
                                    "much). Use an older one.",
                                    counted(file.size(), "byte"), layout.end(history) * word_bytes));
  }
  return history;
}

void check_room(std::string const& path, std::int64_t history, std::int64_t iteration, std::size_t room) {
  if (history != std::min(iteration, most_history) + 1) {
    refuse(path, fmt::format("a history of {} at iteration {} (each has one). The checkpoint was made by "
                             "something else: use another one.",
                             counted(history, "entry", "entries"), iteration));
  }
  if (history > static_cast<std::int64_t>(room)) {
    refuse(path, fmt::format("it is at iteration {}, and {} allowed (its history has no room). Raise "
                             "--max-iterations.",
                             iteration, room == 2 ? "1 is" : fmt::format("{} are", room - 1)));
  }
}

// This rank's part; the head vouches for its checksums.
void read_fields(File const& file, Layout const& layout, Words const& head, std::int64_t history,
                 std::vector<std::span<double>> const& fields) {
  std::int64_t at = layout.my_fields(history);
  auto const sums = std::span(head).subspan(static_cast<std::size_t>(layout.my_sums(history)), fields.size());
  for (std::size_t k = 0; k < fields.size(); ++k) {
    auto const bytes = std::as_writable_bytes(fields[k]);
    if (file.read_at(at * word_bytes, bytes) != bytes.size() || checksum(bytes) != sums[k])
      refuse(file.path(), "a checksum is wrong (the checkpoint is damaged). Use an older one.");
    at += static_cast<std::int64_t>(fields[k].size());
  }
}

Words head_of(CheckpointIdentity const& identity, State const& state, std::span<StepRecord const> history,
              Layout const& layout, Words const& sums) {
  Words head(CheckpointWords::identity);
  std::memcpy(head.data(), magic.data(), sizeof magic);
  head[CheckpointWords::version] = format_version;
  auto const put = [&](Words const& words) { head.insert(head.end(), words.begin(), words.end()); };
  put(words_of(identity));
  put({static_cast<std::uint64_t>(layout.fields), static_cast<std::uint64_t>(history.size())});
  each_member([&](char const*, auto member, Range) { head.push_back(word_of(state.*member)); });
  for (double const value : state.value) head.push_back(word_of(value));
  std::size_t const begin = head.size();
  head.resize(begin + history.size() * static_cast<std::size_t>(step_words));
  std::memcpy(head.data() + begin, history.data(), history.size_bytes());
  put(sums);
  head[CheckpointWords::head] = head.size();
  head[CheckpointWords::checksum] = head_checksum(head);
  return head;
}

}  // namespace

std::uint64_t checksum(std::span<std::byte const> bytes) {
  // Sign bits alone would cancel in pairs if the high bits stayed where they are. Every change of one word is
  // seen.
  std::uint64_t hash = 1469598103934665603ull;
  for (std::size_t at = 0; at + sizeof hash <= bytes.size(); at += sizeof hash) {
    std::uint64_t bits;
    std::memcpy(&bits, bytes.data() + at, sizeof bits);
    hash = (hash ^ bits) * 1099511628211ull;
    hash ^= hash >> 32;
  }
  return hash;
}

std::uint64_t checksum(Group& group, std::span<double const> mine) {
  auto const all = group.all_gather(checksum(std::as_bytes(mine)));
  return checksum(std::as_bytes(std::span(all)));
}

void write_checkpoint(Group& group, std::string const& path, CheckpointIdentity const& identity,
                      State const& state, std::span<StepRecord const> history,
                      std::vector<std::span<double const>> const& fields) {
  files::memory_checked(path, [&] {
    Layout const layout(group, fields);
    Words mine(fields.size()), sums(fields.size() * static_cast<std::size_t>(group.size()));
    for (std::size_t k = 0; k < fields.size(); ++k) mine[k] = checksum(std::as_bytes(fields[k]));
    group.all_gather_blocks(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(sums)));
    files::SharedOutput output(group, path);
    group.together([&] {
      if (group.rank() == 0) {
        Words const head = head_of(identity, state, history, layout, sums);
        output.write_at(0, std::as_bytes(std::span(head)));
      }
      std::int64_t at = layout.my_fields(static_cast<std::int64_t>(history.size()));
      for (auto const& field : fields) {
        output.write_at(at * word_bytes, std::as_bytes(field));
        at += static_cast<std::int64_t>(field.size());
      }
    });
    output.commit();
  });
}

State read_checkpoint(Group& group, std::string const& path, CheckpointIdentity const& identity,
                      State const& fresh, std::span<StepRecord> history,
                      std::vector<std::span<double>> const& fields) {
  Layout const layout(group, fields);
  State state = fresh;
  Words head;
  group.together([&] {
    File const file = File::to_read(path);
    head = read_head(file);
    std::int64_t const kept = checked_history(file, head, identity, layout);
    state = state_of(path, fresh, std::span(head).subspan(state_at, state_words));
    state.growth_at *= fresh.growth_limit / state.growth_limit;  // the limit is of the solve that resumes
    state.growth_limit = fresh.growth_limit;
    check_room(path, kept, state.iteration, history.size());
    auto const steps = history.first(static_cast<std::size_t>(kept));
    std::memcpy(steps.data(), head.data() + history_at, steps.size_bytes());
    check_steps(path, steps);
    read_fields(file, layout, head, kept, fields);
  });
  // Checksums are of one rank's fields: a file that was replaced between two ranks' looks has those of both.
  auto const heads = group.all_gather(checksum(std::as_bytes(std::span(head))));
  if (std::adjacent_find(heads.begin(), heads.end(), std::not_equal_to<>()) != heads.end())
    throw Error(ErrorCode::bad_input,
                path +
                    ": another file had taken its place before all ranks had read it (they would go on from "
                    "different iterations). Resume when nobody writes it.");
  return state;
}

}  // namespace hostless
