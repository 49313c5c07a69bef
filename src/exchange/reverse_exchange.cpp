#include "hostless/exchange/reverse_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

#include "exchange/agreement.hpp"
#include "exchange/overlap.hpp"
#include "plan/index.hpp"

namespace hostless {
namespace {

/// Kept as long as the transport may write to it: contributions, and copies of ghosts that may go away.
struct Contributions {
  std::vector<std::unique_ptr<std::byte[]>> memory;
  std::shared_ptr<void> owner;
};

void require_room(ReversePlan const& plan, std::vector<SumField> const& fields) {
  auto const refuse = [](std::string const& what) {
    throw Error(ErrorCode::usage,
                what + " (every byte of an exchange is known when it is bound). Correct the fields.");
  };
  if (plan.sum.size() != static_cast<std::size_t>(plan.exchange.ghosts))
    refuse(fmt::format("sum: {} items for {} contributions", plan.sum.size(), plan.exchange.ghosts));
  if (plan.owned < 0 || plan.exchange.owned < 0)
    refuse(fmt::format("owned: {} items and {} ghosts", plan.owned, plan.exchange.owned));
  for (std::size_t k = 0; k < plan.sum.size(); ++k)
    if (plan.sum[k] < 0 || plan.sum[k] >= plan.owned)
      refuse(fmt::format("sum[{}]: {} is not below the {} owned items", k, plan.sum[k], plan.owned));
  std::vector<NamedMemory> owned, ghosts;
  auto const most = std::max({std::int64_t{1}, plan.owned, plan.exchange.owned, plan.exchange.ghosts});
  for (std::size_t f = 0; f < fields.size(); ++f) {
    SumField const& field = fields[f];
    if (field.element > Element::i64)
      refuse(fmt::format("fields[{}].element: {} is no Element", f, static_cast<int>(field.element)));
    if (field.values < 1) refuse(fmt::format("fields[{}].values: {} an item", f, field.values));
    std::size_t const bytes = bytes_of(field.element) * at(field.values);
    if (bytes > at(std::numeric_limits<std::ptrdiff_t>::max()) / at(most))
      refuse(fmt::format("fields[{}].values: {}, which for {} items are more bytes than there can be", f,
                         field.values, most));
    if (field.owned == nullptr && !plan.sum.empty())
      refuse(fmt::format("fields[{}].owned: no memory for {} items", f, plan.owned));
    if (field.ghosts == nullptr && plan.exchange.owned > 0)
      refuse(fmt::format("fields[{}].ghosts: no memory for {} ghosts", f, plan.exchange.owned));
    if (field.owned != nullptr)
      owned.push_back({fmt::format("fields[{}].owned", f), field.owned, at(plan.owned) * bytes});
    if (field.ghosts != nullptr)
      ghosts.push_back({fmt::format("fields[{}].ghosts", f), field.ghosts, at(plan.exchange.owned) * bytes});
  }
  for (NamedMemory const& one : owned)  // two fields may be added to one array
    if (std::string const text = overlap({one}, ghosts); !text.empty()) refuse(text);
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

/// Bytes of other meanings would be added as if they were one's own.
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

// Integers are added without a sign, so that they wrap around. Any address will do: a load and a store where
// it is aligned.
template <class T>
void add_to(void* owned, std::byte const* contribution, std::vector<std::int32_t> const& sum, int values) {
  auto* const items = static_cast<std::byte*>(owned);
  std::size_t const row = sizeof(T) * at(values);
  for (std::int32_t const item : sum) {
    std::byte* to = items + at(item) * row;
    for (std::byte const* const end = to + row; to != end; to += sizeof(T), contribution += sizeof(T)) {
      T value, more;
      std::memcpy(&value, to, sizeof(T));
      std::memcpy(&more, contribution, sizeof(T));
      value += more;
      std::memcpy(to, &value, sizeof(T));
    }
  }
}

}  // namespace

std::size_t bytes_of(Element element) { return element == Element::f64 || element == Element::i64 ? 8 : 4; }

ReverseExchange::ReverseExchange(Transport& transport, ReversePlan const& plan,
                                 std::vector<SumField> const& fields, ExchangeOptions const& options)
    : fields_(fields), sum_(plan.sum) {
  auto const kept = std::make_shared<Contributions>();
  kept->owner = options.owner;
  std::vector<Field> items;
  transport.group().together([&] {
    require_room(plan, fields);
    if (options.sums)
      throw Error(
          ErrorCode::usage,
          "options.sums: set, but a reverse exchange forms no sums over all ranks. Leave it empty, and "
          "make the plan without the reason reduction.");
    bool const copies = options.owner == nullptr && transport.capabilities().late_access;
    for (SumField const& field : fields) {
      std::size_t const bytes = bytes_of(field.element) * at(field.values);
      auto const room = [&](std::size_t count) {
        kept->memory.emplace_back(new std::byte[count * bytes]);
        return kept->memory.back().get();
      };
      contributions_.push_back(room(sum_.size()));
      void const* ghosts = field.ghosts;
      if (copies && ghosts != nullptr) {
        std::size_t const count = at(plan.exchange.owned);
        copies_.push_back({room(count), ghosts, count * bytes});
        ghosts = copies_.back().to;
      }
      items.push_back(Field::apart(ghosts, contributions_.back(), bytes));
    }
  });
  require_elements(transport.group(), fields);
  ExchangeOptions inner = options;
  inner.owner = kept;
  exchange_ = std::make_unique<Exchange>(transport, plan.exchange, items, inner);
}

void ReverseExchange::add() {
  added_ = true;
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    SumField const& field = fields_[f];
    switch (field.element) {
      case Element::f32:
        add_to<float>(field.owned, contributions_[f], sum_, field.values);
        break;
      case Element::f64:
        add_to<double>(field.owned, contributions_[f], sum_, field.values);
        break;
      case Element::i32:
        add_to<std::uint32_t>(field.owned, contributions_[f], sum_, field.values);
        break;
      case Element::i64:
        add_to<std::uint64_t>(field.owned, contributions_[f], sum_, field.values);
        break;
    }
  }
}

void ReverseExchange::start() {
  static_cast<void>(test());  // what has come and was not asked for is added
  if (exchange_->complete())
    for (Copy const& copy : copies_) std::memcpy(copy.to, copy.from, copy.bytes);
  exchange_->start();
  added_ = exchange_->lost();
}

bool ReverseExchange::test() {
  if (!exchange_->test()) return false;
  if (!added_) add();
  return true;
}

bool ReverseExchange::wait() {
  if (!exchange_->wait()) return false;
  if (!added_) add();
  return true;
}

}  // namespace hostless
