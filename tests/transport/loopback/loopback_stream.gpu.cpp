// The stream face of the loopback transport: messages of a round go over wires (wires.hpp) between pinned
// buffers of ranks that are threads of one process. The host waits for the stream and then for the wires, so
// nothing of it can be recorded.
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "facts.hpp"
#include "hostless/base/wait.hpp"
#include "transport/stream/limits.hpp"
#include "transport/stream/stream_transports.hpp"
#include "wires.hpp"

namespace hostless::gpu {
namespace {

using loopback::Wires;

/// What ranks share that have met.
struct Bound {
  explicit Bound(int ranks, unsigned seed) : wires(ranks, seed) {}
  Wires wires;
  std::atomic<bool> left{false};
};

/// Where those of one unique id find it: whoever comes first makes it.
class Registry {
 public:
  std::shared_ptr<Bound> at(UniqueId const& id, int ranks) {
    std::lock_guard const lock(mutex_);
    std::erase_if(all_, [](Named const& one) { return one.bound.expired(); });
    for (Named const& one : all_)
      if (std::shared_ptr<Bound> found = one.bound.lock(); found != nullptr && one.name == id.name)
        return found;
    auto const made = std::make_shared<Bound>(ranks, static_cast<unsigned>(made_++));
    all_.push_back({id.name, made});
    return made;
  }
  UniqueId new_name() {
    std::lock_guard const lock(mutex_);
    UniqueId id;
    ("loopback " + std::to_string(names_++)).copy(id.name, sizeof id.name - 1);
    return id;
  }

 private:
  struct Named {
    std::string name;
    std::weak_ptr<Bound> bound;
  };
  std::mutex mutex_;
  std::vector<Named> all_;  // no map: clang 15 gives up on it where it compiles for HIP
  int made_ = 0, names_ = 0;
};
Registry& registry() {
  static Registry all;
  return all;
}

class LoopbackStream final : public StreamEndpoint {
 public:
  explicit LoopbackStream(StreamSetup const& setup)
      : StreamEndpoint(setup),
        rank_(setup.rank),
        mine_(widest_sum + 1),
        all_(static_cast<std::size_t>(setup.ranks) * (widest_sum + 1)),
        everyone_(all_.size()) {
    for (StreamRound const& round : setup.rounds) rounds_.push_back(std::make_unique<Round>(round));
  }

  std::byte* outgoing(int round) override { return at(round).outgoing.device(); }
  std::byte const* incoming(int round) override { return at(round).incoming.device(); }
  void send(StreamQueue& queue, int k, std::byte*) override {
    queue.call([&](HOSTLESS_GPU(Stream_t) stream) {
      // bounded: kernels before it wait for nobody
      check(HOSTLESS_GPU(StreamSynchronize)(stream), "waiting for what is sent");
      Round& round = at(k);
      ++round.epoch;
      for (Way const& way : round.in) bound().wires.await(*way.message, way.at, round.epoch);
      for (Way const& way : round.out) bound().wires.offer(*way.message, way.at, round.epoch);
    });
  }
  void await(StreamQueue& queue, int k, std::byte*) override {
    queue.call([&](HOSTLESS_GPU(Stream_t)) {
      until([&] {
        bool done = true;
        for (Way const& way : at(k).in) done = bound().wires.received(*way.message) && done;
        for (Way const& way : at(k).out) done = bound().wires.sent(*way.message) && done;
        return done;
      });
    });
  }
  bool host_may_wait() const override { return true; }
  double const* gather(StreamQueue& queue, double const* mine, int count) override {
    queue.call([&](HOSTLESS_GPU(Stream_t) stream) {
      auto const width = static_cast<std::size_t>(count);
      copy(mine_.data(), mine, width, stream);
      // bounded: kernels before it wait for nobody
      check(HOSTLESS_GPU(StreamSynchronize)(stream), "waiting for what is added");
      auto const rank = static_cast<std::size_t>(rank_);
      std::span<double> const all(all_.data(), width * static_cast<std::size_t>(ranks()));
      bound().wires.contribute(rank, {mine_.data(), width});
      until([&] { return bound().wires.collected(rank, width, all); });
      copy(everyone_.data(), all_.data(), all.size(), stream);
    });
    return everyone_.data();
  }
  bool is_recorded() const override { return false; }

  UniqueId unique_id() override { return rank_ == 0 ? registry().new_name() : UniqueId{}; }
  void connect(UniqueId const& id, std::byte*) override {
    bound_ = registry().at(id, ranks());
    for (std::size_t k = 0; k < rounds_.size(); ++k) find_messages(static_cast<int>(k));
  }
  bool is_connected() const override { return bound_ != nullptr; }
  void abort() noexcept override {
    if (bound_ == nullptr) return;
    bound_->left = true;
    for (auto const& round : rounds_) {
      for (Way const& way : round->out) bound_->wires.withdraw(*way.message, true);
      for (Way const& way : round->in) bound_->wires.withdraw(*way.message, false);
    }
    bound_.reset();
  }

  std::string describe() const override { return "loopback (pinned memory, late and in another order)"; }
  std::int64_t bytes() const override { return static_cast<std::int64_t>(everyone_.bytes()); }
  bool guards_hold() const override { return everyone_.guards_hold(); }

 protected:
  bool waits_on_gpu() const override { return false; }
  bool failed() override { return bound_ == nullptr || bound_->left; }

 private:
  struct Way {
    Wires::Message* message;
    std::byte* at;
  };
  struct Round {
    explicit Round(StreamRound const& of)
        : messages(of),
          outgoing(static_cast<std::size_t>(of.out_bytes)),
          incoming(static_cast<std::size_t>(of.in_bytes)) {}
    StreamRound messages;
    Pinned<std::byte> outgoing, incoming;
    std::vector<Way> out, in;
    std::uint32_t epoch = 0;
  };
  Round& at(int round) { return *rounds_[static_cast<std::size_t>(round)]; }
  Bound& bound() const {
    if (bound_ == nullptr) throw RankLost{};
    return *bound_;
  }
  // Whoever sends to a rank hears from it, if only nothing: what is sent next but one finds its buffer free.
  void find_messages(int k) {
    Round& round = at(k);
    round.out.clear();
    round.in.clear();
    round.epoch = 0;
    for (int other = 0; other < ranks(); ++other) {
      StreamPart const out = part_of(round.messages.out, other), in = part_of(round.messages.in, other);
      if (out.bytes == 0 && in.bytes == 0) continue;
      auto const way = [&](int source, int target, StreamPart const& part, std::byte* from) {
        return Way{&bound().wires.message(source, target, k, static_cast<std::size_t>(part.bytes)),
                   part.bytes == 0 ? from : from + part.first};
      };
      round.out.push_back(way(rank_, other, out, round.outgoing.data()));
      round.in.push_back(way(other, rank_, in, round.incoming.data()));
    }
  }
  static StreamPart part_of(std::vector<StreamPart> const& parts, int rank) {
    for (StreamPart const& part : parts)
      if (part.rank == rank) return part;
    return {};
  }
  static void copy(double* to, double const* from, std::size_t count, HOSTLESS_GPU(Stream_t) stream) {
    check(HOSTLESS_GPU(MemcpyAsync)(to, from, count * sizeof(double), HOSTLESS_GPU(MemcpyDefault), stream),
          "copying what is added");
  }
  template <class Ready>
  void until(Ready const& ready) {
    double const seconds = std::exchange(is_first_, false) ? first_s() : deadline_s();
    if (wait_for(
            ready, [&] { return bound().left.load(); }, Deadline::after(seconds)) == Waited::done)
      return;
    abort();
    throw RankLost{};
  }

  int rank_;
  std::vector<std::unique_ptr<Round>> rounds_;
  Pinned<double> mine_, all_;
  Array<double> everyone_;
  std::shared_ptr<Bound> bound_;
  bool is_first_ = true;
};

}  // namespace

StreamTransport loopback_stream() { return {loopback_facts, &make_stream<LoopbackStream>}; }

}  // namespace hostless::gpu
