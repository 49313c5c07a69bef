// What ranks must say alike of their halos, and what they are told where they do not.
#include <cstring>
#include <utility>

#include "queue/communicator_state.hpp"
#include "queue/halo/halo_plan.hpp"

namespace hostless::queue {
namespace {

// A fact that all ranks must have alike, its name, and those of its values where they are no numbers. The first ones say
// how many there are.
struct HaloFact {
  std::string name;
  std::int64_t value;
  std::vector<char const*> words = {};
};

std::string shown(HaloFact const& fact, std::int64_t value) {
  bool const has_word = value >= 0 && value < static_cast<std::int64_t>(fact.words.size());
  return has_word ? fact.words[static_cast<std::size_t>(value)] : std::to_string(value);
}

std::vector<HaloFact> facts_of(HaloGrid const& grid, std::vector<HaloField> const& fields,
                               HaloOptions const& options) {
  std::vector<char const*> const no_or_yes{"false", "true"};
  std::vector<HaloFact> facts = {{"the number of axes", static_cast<std::int64_t>(grid.ranks.size())},
                                 {"the number of fields", static_cast<std::int64_t>(fields.size())},
                                 {"the width of the halo", grid.width},
                                 {"the reach", static_cast<int>(grid.reach), {"star", "box"}},
                                 {"ready (ready sends)", options.ready ? 1 : 0, no_or_yes},
                                 {"the first tag", options.tag}};
  for (std::size_t a = 0; a < grid.ranks.size(); ++a) {
    std::string const axis = " axis " + std::to_string(a);
    facts.push_back({"the ranks along" + axis, grid.ranks[a]});
    facts.push_back({"periodic along" + axis, grid.periodic[a] ? 1 : 0, no_or_yes});
  }
  for (std::size_t f = 0; f < fields.size(); ++f) {
    std::string const field = " field " + std::to_string(f);
    facts.push_back({"the bytes of a cell of" + field, static_cast<std::int64_t>(fields[f].item_bytes)});
    facts.push_back({"the type of elements of" + field,
                     static_cast<int>(fields[f].element),
                     {"f32", "f64", "i32", "i64", "byte"}});
  }
  return facts;
}

// What a rank says to all: that it has found nothing, and numbers, or what it has found.
enum class Opinion : std::uint8_t { fine, usage, unsupported };

Bytes said(HaloProblem const& problem, std::vector<std::int64_t> const& numbers) {
  bool const is_fine = problem.text.empty();
  Opinion const opinion = is_fine                  ? Opinion::fine
                          : problem.is_unsupported ? Opinion::unsupported
                                                   : Opinion::usage;
  std::size_t const bytes = is_fine ? numbers.size() * sizeof(std::int64_t) : problem.text.size();
  Bytes all(1 + bytes, static_cast<std::byte>(opinion));
  void const* const from =
      is_fine ? static_cast<void const*>(numbers.data()) : static_cast<void const*>(problem.text.data());
  if (bytes != 0) std::memcpy(all.data() + 1, from, bytes);
  return all;
}
std::vector<std::int64_t> numbers_of(Bytes const& bytes) {
  std::vector<std::int64_t> numbers((bytes.size() - 1) / sizeof(std::int64_t));
  std::memcpy(numbers.data(), bytes.data() + 1, numbers.size() * sizeof(std::int64_t));
  return numbers;
}
void throw_first_problem(std::vector<Bytes> const& all) {
  for (std::size_t r = 0; r < all.size(); ++r) {
    auto const opinion = static_cast<Opinion>(all[r][0]);
    if (opinion == Opinion::fine) continue;
    std::string const text = "a halo on rank " + std::to_string(r) + ": " +
                             std::string(reinterpret_cast<char const*>(all[r].data()) + 1, all[r].size() - 1);
    if (opinion == Opinion::unsupported) throw QueueError(Refusal::unsupported, text);
    throw Error(ErrorCode::usage, text);
  }
}

[[noreturn]] void throw_mismatch(HaloFact const& what, std::size_t one, std::int64_t of_one,
                                 std::size_t other, std::int64_t of_other) {
  throw QueueError(Refusal::mismatch, "a halo of which rank " + std::to_string(one) + " says that " +
                                          what.name + " is " + shown(what, of_one) + " and rank " +
                                          std::to_string(other) + " " + shown(what, of_other) +
                                          " (their messages would not fit). Give both the same.");
}

// Boxes at one place along an axis have one size there, or faces do not fit.
void compare_sizes(HaloGrid const& grid, std::vector<std::vector<std::int64_t>> const& all,
                   std::size_t facts) {
  std::size_t below = all.size();  // ranks of one place along an axis
  for (std::size_t a = 0; a < grid.ranks.size(); ++a) {
    auto const along = static_cast<std::size_t>(grid.ranks[a]);
    below /= along;
    for (std::size_t r = 0; r < all.size(); ++r) {
      std::size_t const first = r / below % along * below;  // the first rank of that place
      if (all[r][facts + a] != all[first][facts + a])
        throw_mismatch({"the size of its box along axis " + std::to_string(a), 0}, first,
                       all[first][facts + a], r, all[r][facts + a]);
    }
  }
}

}  // namespace

HaloPlan plan_halo(CommunicatorState const& ranks, HaloGrid const& grid, std::vector<HaloField> const& fields,
                   HaloOptions const& options) {
  HaloPlan plan;
  HaloProblem problem;
  ranks.group().together([&] { problem = plan_own_halo(ranks, grid, fields, options, plan); });
  std::vector<HaloFact> facts;
  std::vector<std::int64_t> numbers;
  if (problem.text.empty()) {
    facts = facts_of(grid, fields, options);
    for (HaloFact const& fact : facts) numbers.push_back(fact.value);
    numbers.insert(numbers.end(), grid.size.begin(), grid.size.end());
  }
  std::vector<Bytes> const heard = ranks.group().all_gather_bytes(said(problem, numbers));
  throw_first_problem(heard);
  std::vector<std::vector<std::int64_t>> all;
  for (Bytes const& one : heard) all.push_back(numbers_of(one));
  for (std::size_t k = 0; k < facts.size(); ++k)
    for (std::size_t r = 1; r < all.size(); ++r)
      if (all[r][k] != all[0][k]) throw_mismatch(facts[k], 0, all[0][k], r, all[r][k]);
  compare_sizes(grid, all, facts.size());
  return plan;
}

}  // namespace hostless::queue
