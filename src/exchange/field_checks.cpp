#include "exchange/field_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "exchange/agreement.hpp"
#include "exchange/overlap.hpp"
#include "hostless/base/error.hpp"
#include "plan/index.hpp"

namespace hostless {
namespace {

[[noreturn]] void refuse_agreement(int rank, std::string const& what) {
  throw Error(ErrorCode::usage, fmt::format("ranks 0 and {} {}", rank, what));
}

std::string name(Element element) {
  switch (element) {
    case Element::f32:
      return "f32";
    case Element::f64:
      return "f64";
    case Element::i32:
      return "i32";
    case Element::i64:
      break;
  }
  return "i64";
}

}  // namespace

void refuse_fields(std::string const& what) {
  throw Error(ErrorCode::usage,
              what + " (every byte of an exchange is known when it is bound). Correct the fields.");
}

void refuse_options(std::string const& what) {
  throw Error(ErrorCode::usage, what + " (an exchange cannot be bound so). Correct the options.");
}

void refuse_start() {
  throw Error(ErrorCode::usage,
              "an exchange was started before the last one was complete (its ghosts are still to come). Wait "
              "for it first.");
}

void require_limits(WaitLimits const& limits) {
  for (auto const& [label, limit] :
       {std::pair{"first_s", limits.first_s}, std::pair{"later_s", limits.later_s}})
    if (!(limit > 0))
      refuse_options(fmt::format("options.limits.{}: {} is no time to wait for", label, limit));
}

void require_apart(ExchangePlan const& plan, std::span<Field const> fields) {
  std::vector<NamedMemory> ghosts, owned;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    std::size_t const bytes = fields[f].item_bytes;
    auto const* const first = static_cast<std::byte const*>(fields[f].receive);
    auto const add = [&](std::byte const* from, std::int64_t items) {
      if (from != nullptr && items > 0)
        ghosts.push_back(
            {fmt::format("the {} ghosts of fields[{}]", plan.ghosts, f), from, at(items) * bytes});
    };
    if (plan.receive == 0 && first != nullptr) {  // around the owned items
      add(first - at(plan.ghosts_below) * bytes, plan.ghosts_below);
      add(first + at(plan.owned) * bytes, plan.ghosts - plan.ghosts_below);
    } else {
      add(first, plan.ghosts);
    }
    if (fields[f].send != nullptr)
      owned.push_back({fmt::format("the {} owned items of fields[{}]", plan.owned, f), fields[f].send,
                       at(plan.owned) * bytes});
  }
  if (std::string const text = overlap(ghosts, owned); !text.empty()) refuse_fields(text);
}

void require_same_sizes(Group& group, std::span<Field const> fields) {
  std::vector<std::int64_t> sizes;
  for (Field const& field : fields) sizes.push_back(static_cast<std::int64_t>(field.item_bytes));
  if (auto const differ = first_difference(group, sizes)) {
    char const* const why =
        "(a message carries the same on both sides). Pass fields of equal item sizes in equal order.";
    if (differ->is_length())
      refuse_agreement(differ->rank,
                       fmt::format("bind {} and {} fields {}", differ->count_of_first, differ->count, why));
    refuse_agreement(differ->rank, fmt::format("bind other fields: fields[{}].item_bytes is {} and {} {}",
                                               differ->index, differ->of_first, differ->value, why));
  }
}

void require_room(ReversePlan const& plan, std::vector<SumField> const& fields) {
  if (plan.sum.size() != static_cast<std::size_t>(plan.exchange.ghosts))
    refuse_fields(fmt::format("sum: {} items for {} contributions", plan.sum.size(), plan.exchange.ghosts));
  if (plan.owned < 0 || plan.exchange.owned < 0)
    refuse_fields(fmt::format("owned: {} items and {} ghosts", plan.owned, plan.exchange.owned));
  for (std::size_t k = 0; k < plan.sum.size(); ++k)
    if (plan.sum[k] < 0 || plan.sum[k] >= plan.owned)
      refuse_fields(fmt::format("sum[{}]: {} is not below the {} owned items", k, plan.sum[k], plan.owned));
  std::vector<NamedMemory> owned, ghosts;
  auto const most = std::max({std::int64_t{1}, plan.owned, plan.exchange.owned, plan.exchange.ghosts});
  for (std::size_t f = 0; f < fields.size(); ++f) {
    SumField const& field = fields[f];
    if (field.element > Element::i64)
      refuse_fields(fmt::format("fields[{}].element: {} is no Element", f, static_cast<int>(field.element)));
    if (field.values < 1) refuse_fields(fmt::format("fields[{}].values: {} an item", f, field.values));
    std::size_t const bytes = bytes_of(field.element) * at(field.values);
    if (bytes > at(std::numeric_limits<std::ptrdiff_t>::max()) / at(most))
      refuse_fields(fmt::format("fields[{}].values: {}, which for {} items are more bytes than there can be",
                                f, field.values, most));
    if (field.owned == nullptr && !plan.sum.empty())
      refuse_fields(fmt::format("fields[{}].owned: no memory for {} items", f, plan.owned));
    if (field.ghosts == nullptr && plan.exchange.owned > 0)
      refuse_fields(fmt::format("fields[{}].ghosts: no memory for {} ghosts", f, plan.exchange.owned));
    if (field.owned != nullptr)
      owned.push_back({fmt::format("fields[{}].owned", f), field.owned, at(plan.owned) * bytes});
    if (field.ghosts != nullptr)
      ghosts.push_back({fmt::format("fields[{}].ghosts", f), field.ghosts, at(plan.exchange.owned) * bytes});
  }
  for (NamedMemory const& one : owned)  // two fields may be added to one array
    if (std::string const text = overlap({one}, ghosts); !text.empty()) refuse_fields(text);
}

void require_elements(Group& group, std::vector<SumField> const& fields) {
  std::vector<std::int64_t> kinds;
  for (SumField const& field : fields)
    kinds.insert(kinds.end(), {static_cast<std::int64_t>(field.element), field.values});
  auto const differ = first_difference(group, kinds);
  if (!differ) return;
  char const* const why =
      "(a sum is of one kind of number). Pass fields of equal elements and values in equal order.";
  if (differ->is_length())
    throw Error(ErrorCode::usage, fmt::format("ranks 0 and {} add {} and {} fields {}", differ->rank,
                                              differ->count_of_first / 2, differ->count / 2, why));
  bool const values = differ->index % 2 != 0;
  auto const text = [&](std::int64_t value) {
    return values ? fmt::format("{}", value) : name(static_cast<Element>(value));
  };
  throw Error(ErrorCode::usage,
              fmt::format("ranks 0 and {} add other elements: fields[{}].{} is {} and {} {}", differ->rank,
                          differ->index / 2, values ? "values" : "element", text(differ->of_first),
                          text(differ->value), why));
}

}  // namespace hostless
