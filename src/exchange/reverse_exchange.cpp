#include "hostless/exchange/reverse_exchange.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

#include "exchange/field_checks.hpp"
#include "plan/index.hpp"

namespace hostless {
namespace {

/// Kept as long as the transport may write to it: contributions, and copies of ghosts that may go away.
struct Contributions {
  std::vector<std::unique_ptr<std::byte[]>> memory;
  std::shared_ptr<void> owner;
};

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
  // What has come and was not asked for is added. Looked at once: what comes after that look would be
  // overwritten by what comes next.
  if (!test() && !lost()) refuse_start();
  if (!lost())
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
