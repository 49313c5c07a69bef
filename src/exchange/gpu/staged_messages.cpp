#include "exchange/gpu/staged_messages.hpp"

#include <algorithm>
#include <cstring>

namespace hostless {

StagedMessages::StagedMessages(Transport& transport, ExchangePlan const& plan, MessageRound const& round,
                               std::size_t item_bytes, WaitLimits limits, bool has_sums)
    : transport_(transport),
      plan_(plan),
      round_(round),
      item_bytes_(item_bytes),
      has_sums_(has_sums),
      limits_(limits) {
  transport.group().together([&] {
    std::size_t const owned = static_cast<std::size_t>(plan.owned) * item_bytes,
                      ghosts = static_cast<std::size_t>(plan.ghosts) * item_bytes;
    items_.reset(new std::byte[owned + ghosts]);  // no page before it is used
    field_ = plan.receive == 0
                 ? Field::around(items_.get() + static_cast<std::size_t>(plan.ghosts_below) * item_bytes,
                                 item_bytes)
                 : Field::apart(items_.get(), items_.get() + owned, item_bytes);
    calls_.start = [this](int) { start(); };
    calls_.test = [this] { return test(); };
    calls_.gather = [this](double const* mine, int count, double* all) { return gather(mine, count, all); };
  });
  renew();
}

void StagedMessages::renew() {
  exchange_.reset();
  is_under_way_ = false;
  ExchangeOptions options{limits_, items_, {}};
  if (has_sums_) options.sums = Reduction::ordered;
  exchange_ = std::make_unique<Exchange>(transport_, plan_, std::vector<Field>{field_}, options);
}

namespace {

template <class Use>
void each_part(std::vector<MessagePart> const& parts, std::vector<MessageItem> const& items, Use const& use) {
  for (MessagePart const& part : parts)
    use(part.first, items[static_cast<std::size_t>(part.first)].vector_offset, part.items);
}

}  // namespace

void StagedMessages::start() {
  if (exchange_->lost()) return;
  std::byte const* const sent = buffers_.first;
  auto* const owned = static_cast<std::byte*>(const_cast<void*>(field_.send));
  if (item_bytes_ == sizeof(double)) {  // one load and one store each
    for (std::size_t k = 0; k < round_.from.size(); ++k)
      std::memcpy(owned + bytes_of(round_.from[k].vector_offset), sent + k * sizeof(double), sizeof(double));
  } else {
    for (std::size_t k = 0; k < round_.from.size(); ++k)
      std::memcpy(owned + bytes_of(round_.from[k].vector_offset), sent + k * item_bytes_, item_bytes_);
  }
  is_under_way_ = true;
  exchange_->start();
}

gpu::MessageState StagedMessages::test() {
  if (!is_under_way_) return exchange_->lost() ? gpu::MessageState::lost : gpu::MessageState::complete;
  if (!exchange_->test()) return exchange_->lost() ? gpu::MessageState::lost : gpu::MessageState::under_way;
  is_under_way_ = false;
  std::byte* const ghosts = buffers_.second;
  each_part(round_.in, round_.to, [&](std::int64_t first, std::int64_t offset, std::int64_t items) {
    std::memcpy(ghosts + bytes_of(first), static_cast<std::byte const*>(field_.receive) + bytes_of(offset),
                static_cast<std::size_t>(bytes_of(items)));
  });
  return gpu::MessageState::complete;
}

bool StagedMessages::gather(double const* mine, int count, double* all) {
  auto const width = static_cast<std::size_t>(count);
  totals_.resize(width);
  exchange_->begin_sum({mine, width});
  if (!exchange_->finish_sum(totals_)) return false;
  auto const ranks = static_cast<std::size_t>(plan_.ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank)  // whose last value are control bits
    std::copy_n(exchange_->contributions().data() + rank * (width + 1), width, all + rank * width);
  return true;
}

}  // namespace hostless
