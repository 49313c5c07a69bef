#include "hostless/exchange/reverse_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.hpp"

namespace hostless {
namespace {

/// Contributions are kept as long as the transport may write to them.
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
  for (std::size_t k = 0; k < plan.sum.size(); ++k)
    if (plan.sum[k] < 0 || plan.sum[k] >= plan.owned)
      refuse(fmt::format("sum[{}]: {} is not below the {} owned items", k, plan.sum[k], plan.owned));
  for (std::size_t f = 0; f < fields.size(); ++f) {
    if (fields[f].values < 1) refuse(fmt::format("fields[{}].values: {} an item", f, fields[f].values));
    if (fields[f].owned == nullptr && !plan.sum.empty())
      refuse(fmt::format("fields[{}].owned: no memory for {} items", f, plan.owned));
  }
}

/// Bytes of other meanings would be added as if they were one's own.
void require_elements(Group& group, std::vector<SumField> const& fields) {
  Hash hash;
  for (SumField const& field : fields) {
    hash.add(static_cast<std::int64_t>(field.element));
    hash.add(field.values);
  }
  auto const all = group.all_gather(hash.value());
  auto const other = std::find_if(all.begin(), all.end(), [&](std::uint64_t h) { return h != all[0]; });
  if (other != all.end())
    throw Error(
        ErrorCode::usage,
        fmt::format("ranks 0 and {} add other elements (a sum is of one kind of number). Pass fields of "
                    "equal elements and values in equal order.",
                    other - all.begin()));
}

// Integers are added without a sign, so that they wrap around.
template <class T>
void add_to(void* owned, std::byte const* contribution, std::vector<std::int32_t> const& sum, int values) {
  T* const items = static_cast<T*>(owned);
  T const* from = reinterpret_cast<T const*>(contribution);
  for (std::int32_t const item : sum)
    for (int k = 0; k < values; ++k) items[std::int64_t{item} * values + k] += *from++;
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
    for (SumField const& field : fields) {
      std::size_t const bytes = bytes_of(field.element) * static_cast<std::size_t>(field.values);
      kept->memory.emplace_back(new std::byte[sum_.size() * bytes]);
      contributions_.push_back(kept->memory.back().get());
      items.push_back(Field::apart(field.ghosts, contributions_.back(), bytes));
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
