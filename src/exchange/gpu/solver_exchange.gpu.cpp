#include "exchange/gpu/solver_exchange.hpp"

namespace hostless::gpu {

SolverExchange::SolverExchange(StreamEndpoint& endpoint, std::vector<MessageRound> const& rounds,
                               std::int64_t staging)
    : endpoint_(endpoint), staging_(static_cast<std::size_t>(staging)) {
  for (std::size_t k = 0; k < rounds.size(); ++k) {
    bool const lands = endpoint.lands(static_cast<int>(k));
    rounds_.push_back(
        {ItemList(rounds[k].from), ItemList(lands ? std::vector<MessageItem>() : rounds[k].to)});
  }
  staging_.clear();
}

void SolverExchange::send(StreamQueue& queue, int round, double* field) {
  ItemList const& from = rounds_[static_cast<std::size_t>(round)].from;
  if (from.size() != 0)
    from.pack(queue, field, staging_.data(), reinterpret_cast<double*>(endpoint_.outgoing(round)));
  endpoint_.send(queue, round, reinterpret_cast<std::byte*>(field));
}

void SolverExchange::land(StreamQueue& queue, int round, double* field) {
  endpoint_.await(queue, round, reinterpret_cast<std::byte*>(field));
  ItemList const& to = rounds_[static_cast<std::size_t>(round)].to;
  if (to.size() != 0)
    to.unpack(queue, reinterpret_cast<double const*>(endpoint_.incoming(round)), field, staging_.data());
}

// After round 0 was sent.
void SolverExchange::go_on(StreamQueue& queue, double* field) {
  for (int round = 0; round < static_cast<int>(rounds_.size()); ++round) {
    if (round > 0) send(queue, round, field);
    land(queue, round, field);
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
  for (Round const& round : rounds_) all += round.from.bytes() + round.to.bytes();
  return all;
}

bool SolverExchange::guards_hold() const {
  bool hold = staging_.guards_hold();
  for (Round const& round : rounds_) hold = hold && round.from.guards_hold() && round.to.guards_hold();
  return hold;
}

}  // namespace hostless::gpu
