#include "exchange/gpu/solver_exchange.hpp"

namespace hostless::gpu {

SolverExchange::SolverExchange(StreamEndpoint& endpoint, std::vector<MessageLevel> const& levels,
                               std::int64_t staging)
    : endpoint_(endpoint), staging_(static_cast<std::size_t>(staging)) {
  for (std::size_t k = 0; k < levels.size(); ++k) {
    bool const lands = endpoint.lands(static_cast<int>(k));
    levels_.push_back(
        {ItemList(levels[k].from), ItemList(lands ? std::vector<MessageItem>() : levels[k].to)});
  }
  staging_.clear();
}

void SolverExchange::send(StreamQueue& queue, int level, double* field) {
  ItemList const& from = levels_[static_cast<std::size_t>(level)].from;
  if (from.size() != 0)
    from.pack(queue, field, staging_.data(), reinterpret_cast<double*>(endpoint_.outgoing(level)));
  endpoint_.send(queue, level, reinterpret_cast<std::byte*>(field));
}

void SolverExchange::land(StreamQueue& queue, int level, double* field) {
  endpoint_.await(queue, level, reinterpret_cast<std::byte*>(field));
  ItemList const& to = levels_[static_cast<std::size_t>(level)].to;
  if (to.size() != 0)
    to.unpack(queue, reinterpret_cast<double const*>(endpoint_.incoming(level)), field, staging_.data());
}

// After level 0 was sent.
void SolverExchange::go_on(StreamQueue& queue, double* field) {
  for (int level = 0; level < static_cast<int>(levels_.size()); ++level) {
    if (level > 0) send(queue, level, field);
    land(queue, level, field);
  }
  endpoint_.end_exchange(queue);
}

void SolverExchange::begin_exchange(StreamQueue& queue, double* field) {
  send(queue, 0, field);
  if (!endpoint_.host_may_wait()) go_on(queue, field);
}

void SolverExchange::finish_exchange(StreamQueue& queue, double* field) {
  if (endpoint_.host_may_wait()) go_on(queue, field);
}

std::int64_t SolverExchange::bytes() const {
  auto all = static_cast<std::int64_t>(staging_.bytes());
  for (Level const& level : levels_) all += level.from.bytes() + level.to.bytes();
  return all;
}

bool SolverExchange::guards_hold() const {
  bool hold = staging_.guards_hold();
  for (Level const& level : levels_) hold = hold && level.from.guards_hold() && level.to.guards_hold();
  return hold;
}

}  // namespace hostless::gpu
