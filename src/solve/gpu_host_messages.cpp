#include "solve/gpu_host_messages.hpp"

#include <algorithm>

namespace hostless::gpu {

HostMessages::HostMessages(Transport& transport, ExchangePlan const& plan, PeerCopies const& copies,
                           WaitLimits limits)
    : transport_(transport), plan_(plan), limits_(limits) {
  transport.group().together([&] {
    items_.reset(
        new double[static_cast<std::size_t>(plan.owned + plan.ghosts)]);  // no page before it is used
    owned_ = items_.get() + plan.ghosts_below;
    calls_.rows = rows_sent(copies);
    calls_.ghosts_below = plan.ghosts_below;
    calls_.ghosts_above = plan.ghosts - plan.ghosts_below;
    calls_.exchange = [this](double const* sent, double* ghosts) { return exchange(sent, ghosts); };
    calls_.gather = [this](double const* mine, int count, double* all) { return gather(mine, count, all); };
  });
  renew();
}

void HostMessages::renew() {
  exchange_.reset();
  exchange_ = std::make_unique<Exchange>(transport_, plan_, owned_, Reduction::ordered, limits_, items_);
}

bool HostMessages::exchange(double const* sent, double* ghosts) {
  if (exchange_->lost()) return false;
  for (std::size_t k = 0; k < calls_.rows.size(); ++k) owned_[calls_.rows[k]] = sent[k];
  exchange_->start();
  if (!exchange_->wait()) return false;
  std::copy_n(owned_ - calls_.ghosts_below, calls_.ghosts_below, ghosts);
  std::copy_n(owned_ + plan_.owned, calls_.ghosts_above, ghosts + calls_.ghosts_below);
  return true;
}

bool HostMessages::gather(double const* mine, int count, double* all) {
  auto const width = static_cast<std::size_t>(count);
  totals_.resize(width);
  exchange_->begin_sum({mine, width});
  if (!exchange_->finish_sum(totals_)) return false;
  auto const ranks = static_cast<std::size_t>(plan_.ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank)  // whose last value are control bits
    std::copy_n(exchange_->contributions().data() + rank * (width + 1), width, all + rank * width);
  return true;
}

}  // namespace hostless::gpu
