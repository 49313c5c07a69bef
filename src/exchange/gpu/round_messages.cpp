#include "exchange/gpu/round_messages.hpp"

#include "transport/stream/limits.hpp"

namespace hostless {
RoundMessages::RoundMessages(Transport& transport, std::vector<gpu::StreamRound> const& rounds,
                             WaitLimits limits)
    : transport_(transport), messages_(rounds), limits_(limits) {
  calls_.exchange = [this](int round) { return exchange(round); };
  calls_.gather = [this](double const* mine, int count, double* all) { return gather(mine, count, all); };
}

void RoundMessages::bind(std::vector<gpu::StreamBuffers> const& of_round) {
  int const rank = transport_.group().rank(), ranks = transport_.group().size();
  Binding binding;
  binding.gather_width = gpu::widest_sum + 1;
  rounds_.assign(messages_.size(), {});
  for (std::size_t k = 0; k < messages_.size(); ++k) {
    auto const id = [&](int source, int target) {
      return (static_cast<int>(k) * ranks + source) * ranks + target;
    };
    for (gpu::StreamPart const& part : messages_[k].out) {
      if (part.rank == rank) continue;  // the GPU copies it
      rounds_[k].out.push_back(static_cast<int>(binding.out.size()));
      binding.out.push_back({id(rank, part.rank), part.rank, of_round[k].first + part.first,
                             static_cast<std::size_t>(part.bytes)});
    }
    for (gpu::StreamPart const& part : messages_[k].in) {
      if (part.rank == rank) continue;
      rounds_[k].in.push_back(static_cast<int>(binding.in.size()));
      binding.in.push_back({id(part.rank, rank), part.rank, of_round[k].second + part.first,
                            static_cast<std::size_t>(part.bytes)});
    }
  }
  endpoint_.reset();  // what it holds goes first
  endpoint_ = transport_.bind(binding);
  epoch_ = 0;  // a lost rank has counted differently
  is_first_ = true;
  is_lost_ = false;
}

template <class Ready>
bool RoundMessages::wait(Ready const& ready) {
  if (is_lost_) return false;
  Deadline const deadline = Deadline::after(is_first_ ? limits_.first_s : limits_.later_s);
  is_first_ = false;
  if (wait_for(
          ready, [&] { return endpoint_->peer_left(); }, deadline) == Waited::done)
    return true;
  leave();
  return false;
}

void RoundMessages::leave() noexcept {
  is_lost_ = true;
  if (endpoint_) endpoint_->leave();
}

bool RoundMessages::exchange(int round) {
  if (is_lost_) return false;
  Round const& here = rounds_[static_cast<std::size_t>(round)];
  if (round == 0) ++epoch_;
  for (int index : here.in) endpoint_->receive(index, epoch_);
  for (int index : here.out) endpoint_->send(index, epoch_);
  return wait([&] {
    bool done = true;
    for (int index : here.in) done = endpoint_->received(index) && done;
    for (int index : here.out) done = endpoint_->sent(index) && done;
    return done;
  });
}

bool RoundMessages::gather(double const* mine, int count, double* all) {
  if (is_lost_) return false;
  auto const width = static_cast<std::size_t>(count);
  endpoint_->gather({mine, width});
  std::span<double> const parts(all, width * static_cast<std::size_t>(transport_.group().size()));
  return wait([&] { return endpoint_->gathered(parts); });
}

}  // namespace hostless
