#include "exchange/gpu/round_messages.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "transport/stream/limits.hpp"

namespace hostless {
namespace {

bool is_with(std::vector<gpu::StreamPart> const& parts, int rank) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](gpu::StreamPart const& part) { return part.rank == rank; });
}

}  // namespace

RoundMessages::RoundMessages(Transport& transport, std::vector<gpu::StreamRound> const& rounds,
                             WaitLimits limits)
    : transport_(transport), messages_(rounds), limits_(limits) {
  calls_.start = [this](int round) { start(round); };
  calls_.test = [this] { return test(); };
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
    credit_what_goes_one_way(binding, k, id);
  }
  endpoint_.reset();  // what it holds goes first
  endpoint_ = transport_.bind(binding);
  epoch_ = 0;  // a lost rank has counted differently
  under_way_ = nullptr;
  is_first_ = true;
  is_lost_ = false;
}

// A rank that only sends would be far ahead of one that only receives, and store on what that one has not read: the
// answer that an endpoint asks for where no sum lies between two exchanges.
template <class Id>
void RoundMessages::credit_what_goes_one_way(Binding& binding, std::size_t k, Id const& id) {
  static std::byte nothing{};
  int const rank = transport_.group().rank();
  for (gpu::StreamPart const& part : messages_[k].out) {
    if (part.rank == rank || is_with(messages_[k].in, part.rank)) continue;
    rounds_[k].in.push_back(static_cast<int>(binding.in.size()));
    binding.in.push_back({id(part.rank, rank), part.rank, &nothing, 0, true});
  }
  for (gpu::StreamPart const& part : messages_[k].in) {
    if (part.rank == rank || is_with(messages_[k].out, part.rank)) continue;
    rounds_[k].out.push_back(static_cast<int>(binding.out.size()));
    binding.out.push_back({id(rank, part.rank), part.rank, &nothing, 0, true});
  }
}

double RoundMessages::limit_s() {
  return std::exchange(is_first_, false) ? limits_.first_s : limits_.later_s;
}

void RoundMessages::leave() noexcept {
  is_lost_ = true;
  if (endpoint_) endpoint_->leave();
}

void RoundMessages::start(int round) {
  if (is_lost_) return;
  under_way_ = &rounds_[static_cast<std::size_t>(round)];
  if (round == 0) ++epoch_;
  silence_.begin(limit_s());
  for (int index : under_way_->in) endpoint_->receive(index, epoch_);
  for (int index : under_way_->out) endpoint_->send(index, epoch_);
}

bool RoundMessages::is_complete() {
  bool done = true;
  for (int index : under_way_->in) done = endpoint_->received(index) && done;
  for (int index : under_way_->out) done = endpoint_->sent(index) && done;
  return done;
}

gpu::MessageState RoundMessages::test() {
  if (is_lost_) return gpu::MessageState::lost;
  if (under_way_ == nullptr) return gpu::MessageState::complete;
  bool done = is_complete();
  if (!done && silence_.look() && (endpoint_->peer_left() || silence_.is_too_long())) {
    done = is_complete();  // others may have sent all before they left
    if (!done) leave();
  }
  if (is_lost_) return gpu::MessageState::lost;
  if (done) under_way_ = nullptr;
  return done ? gpu::MessageState::complete : gpu::MessageState::under_way;
}

bool RoundMessages::gather(double const* mine, int count, double* all) {
  if (is_lost_) return false;
  auto const width = static_cast<std::size_t>(count);
  endpoint_->gather({mine, width});
  std::span<double> const parts(all, width * static_cast<std::size_t>(transport_.group().size()));
  Deadline const deadline = Deadline::after(limit_s());
  if (wait_for([&] { return endpoint_->gathered(parts); }, [&] { return endpoint_->peer_left(); },
               deadline) == Waited::done)
    return true;
  leave();
  return false;
}

}  // namespace hostless
