#include "bench/delayed_transport.hpp"

#include <algorithm>
#include <utility>

#include "hostless/base/error.hpp"

namespace hostless::bench {
namespace {

using Moment = Clock::rep;

/// When messages and sums were sent, of the last two epochs, for all ranks of a binding.
struct Sent {
  Sent(std::size_t messages, std::size_t ranks) : message(2 * messages), sum(2 * ranks) {}
  std::vector<std::atomic<Moment>> message, sum;
};

class DelayedEndpoint final : public Endpoint {
 public:
  DelayedEndpoint(std::unique_ptr<Endpoint> inner, Binding const& binding, std::shared_ptr<Sent> sent,
                  std::size_t rank, Clock::duration latency)
      : inner_(std::move(inner)), sent_(std::move(sent)), rank_(rank), latency_(latency) {
    for (Outgoing const& one : binding.out) out_.push_back(one.id);
    for (Incoming const& one : binding.in) in_.push_back({one.id, 0, false});
  }
  void send(int index, std::uint32_t epoch) override {
    sent_->message[slot(out_[static_cast<std::size_t>(index)], epoch)].store(now());
    inner_->send(index, epoch);
  }
  void receive(int index, std::uint32_t epoch) override {
    Awaited& one = in_[static_cast<std::size_t>(index)];
    one.epoch = epoch, one.is_there = false;
    inner_->receive(index, epoch);
  }
  bool sent(int index) override { return inner_->sent(index); }
  bool received(int index) override {
    Awaited& one = in_[static_cast<std::size_t>(index)];
    one.is_there = one.is_there || inner_->received(index);
    return one.is_there && is_over(sent_->message[slot(one.id, one.epoch)].load());
  }
  void gather(std::span<double const> mine) override {
    begin_sum();
    inner_->gather(mine);
  }
  bool gathered(std::span<double> all) override {
    return summed(all, [&](std::span<double> to) { return inner_->gathered(to); });
  }
  void all_reduce(std::span<double const> mine) override {
    begin_sum();
    inner_->all_reduce(mine);
  }
  bool all_reduced(std::span<double> sums) override {
    return summed(sums, [&](std::span<double> to) { return inner_->all_reduced(to); });
  }
  bool peer_left() override { return inner_->peer_left(); }
  void leave() noexcept override { inner_->leave(); }

 private:
  struct Awaited {
    int id;
    std::uint32_t epoch;
    bool is_there;
  };
  static Moment now() { return Clock::now().time_since_epoch().count(); }
  static std::size_t slot(int number, std::uint32_t epoch) {
    return 2 * static_cast<std::size_t>(number) + epoch % 2;
  }
  bool is_over(Moment since) const { return now() - since >= latency_.count(); }
  void begin_sum() {
    ++turn_;
    sum_.clear();
    sent_->sum[slot(static_cast<int>(rank_), turn_)].store(now());
  }
  template <class Poll>
  bool summed(std::span<double> to, Poll const& poll) {
    if (sum_.empty()) {
      std::vector<double> all(to.size());
      if (!poll(std::span(all))) return false;
      sum_ = std::move(all);
    }
    for (std::size_t r = 0; r < sent_->sum.size() / 2; ++r)
      if (!is_over(sent_->sum[slot(static_cast<int>(r), turn_)].load())) return false;
    std::copy(sum_.begin(), sum_.end(), to.begin());
    return true;
  }

  std::unique_ptr<Endpoint> inner_;
  std::shared_ptr<Sent> sent_;
  std::size_t rank_;
  Clock::duration latency_;
  std::vector<int> out_;
  std::vector<Awaited> in_;
  std::uint32_t turn_ = 0;
  std::vector<double> sum_;
};

}  // namespace

DelayedTransport::DelayedTransport(Transport& inner, double latency_s)
    : inner_(inner),
      latency_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(latency_s))) {
  if (!inner.capabilities().threads_as_ranks)
    throw Error(ErrorCode::usage,
                "a latency between ranks that are processes (they have no clock in common). Use threads.");
}

std::unique_ptr<Endpoint> DelayedTransport::bind(Binding const& binding) {
  Group& ranks = group();
  int most = -1;
  for (Outgoing const& one : binding.out) most = std::max(most, one.id);
  for (Incoming const& one : binding.in) most = std::max(most, one.id);
  most = ranks.max(most);
  auto mine =
      std::make_shared<Sent>(static_cast<std::size_t>(most + 1), static_cast<std::size_t>(ranks.size()));
  auto const all = ranks.all_gather(reinterpret_cast<std::uintptr_t>(&mine));
  std::shared_ptr<Sent> sent =
      *reinterpret_cast<std::shared_ptr<Sent> const*>(all[0]);  // a thread's of this process
  ranks.barrier();                                              // until all have it
  return std::make_unique<DelayedEndpoint>(inner_.bind(binding), binding, std::move(sent),
                                           static_cast<std::size_t>(ranks.rank()), latency_);
}

}  // namespace hostless::bench
