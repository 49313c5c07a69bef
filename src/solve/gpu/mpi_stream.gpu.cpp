// Messages of the host program between buffers of GPUs, by an MPI that takes device memory; sums through
// pinned memory. Nothing is carried before a trial has moved numbers between all ranks that will.
#include <algorithm>
#include <string>

#include "solve/gpu/hosted_stream.hpp"

namespace hostless::gpu {
namespace {

class MpiStream final : public HostedStream {
 public:
  explicit MpiStream(Problem const& problem)
      : HostedStream(problem, problem.device_calls->gather),
        calls_(*problem.device_calls),
        staging_(static_cast<std::size_t>(problem.copies->staging)) {
    if (problem.levels->size() > most_levels)
      throw Error(ErrorCode::usage, "a plan of " + std::to_string(problem.levels->size()) +
                                        " levels by GPU transport mpi (at most " +
                                        std::to_string(most_levels) + "). Use another route.");
    for (MessageLevel const& level : *problem.levels) {
      levels_.push_back({level, ItemList(level.from), ItemList(level.to), Array<double>(level.from.size()),
                         Array<double>(level.to.size())});
    }
    staging_.clear();
  }

  void begin_exchange(Queue& queue, double* field) override {
    if (!levels_.empty()) send(queue, 0, field);
  }
  void finish_exchange(Queue& queue, double* field) override {
    for (std::size_t k = 0; k < levels_.size(); ++k) {
      if (k > 0) send(queue, k, field);
      await_exchange(queue);
      Level const& level = levels_[k];
      if (level.to.size() != 0) level.to.unpack(queue, level.incoming.data(), field, staging_.data());
    }
  }
  std::vector<std::pair<double const*, double*>> buffers() const override {
    std::vector<std::pair<double const*, double*>> all;
    for (Level const& level : levels_) all.emplace_back(level.outgoing.data(), level.incoming.data());
    return all;
  }
  std::string describe() const override {
    return "mpi (device memory, as " + calls_.library + " and a trial shows)";
  }
  std::int64_t bytes() const override {
    auto all = HostedStream::bytes() + static_cast<std::int64_t>(staging_.bytes());
    for (Level const& level : levels_)
      all += level.from.bytes() + level.to.bytes() +
             static_cast<std::int64_t>(level.outgoing.bytes() + level.incoming.bytes());
    return all;
  }
  bool guards_hold() const override {
    bool hold = staging_.guards_hold() && HostedStream::guards_hold();
    for (Level const& level : levels_)
      hold = hold && level.from.guards_hold() && level.to.guards_hold() && level.outgoing.guards_hold() &&
             level.incoming.guards_hold();
    return hold;
  }

 protected:
  bool exchange(int level) override { return calls_.exchange(level); }
  void try_it() override {
    for (std::size_t k = 0; k < levels_.size(); ++k) try_level(k);
  }

 private:
  struct Level {
    MessageLevel messages;
    ItemList from, to;
    Array<double> outgoing, incoming;
  };

  void send(Queue& queue, std::size_t k, double const* field) {
    Level const& level = levels_[k];
    if (level.from.size() != 0) level.from.pack(queue, field, staging_.data(), level.outgoing.data());
    if (sends_to_itself(level)) queue.call([&](HOSTLESS_GPU(Stream_t) stream) { copy_own(level, stream); });
    ask_exchange(queue, static_cast<int>(k));
  }
  bool sends_to_itself(Level const& level) const {
    return std::any_of(level.messages.out.begin(), level.messages.out.end(),
                       [&](MessagePart const& part) { return part.rank == rank(); });
  }
  void copy_own(Level const& level, HOSTLESS_GPU(Stream_t) stream) const {
    for (MessagePart const& part : level.messages.out)
      if (part.rank == rank())
        check(
            HOSTLESS_GPU(MemcpyAsync)(level.incoming.data() + part.there, level.outgoing.data() + part.first,
                                      static_cast<std::size_t>(part.items) * sizeof(double),
                                      HOSTLESS_GPU(MemcpyDeviceToDevice), stream),
            "copying inside the GPU");
  }
  // Of item k of what goes from a rank to a rank: every one is another, and exact.
  static double pattern(std::size_t level, int source, int target, std::int64_t k) {
    return 0.5 + static_cast<double>(k) +
           0x1p40 * static_cast<double>((level * most_ranks + static_cast<std::size_t>(source)) * most_ranks +
                                        static_cast<std::size_t>(target));
  }
  void try_level(std::size_t k) {
    Level& level = levels_[k];
    std::vector<double> values(level.outgoing.size());
    for (MessagePart const& part : level.messages.out)
      for (std::int64_t at = 0; at < part.items; ++at)
        values[static_cast<std::size_t>(part.first + at)] = pattern(k, rank(), part.rank, at);
    level.outgoing.put(values.data(), values.size());
    level.incoming.clear();
    copy_own(level, nullptr);
    check(HOSTLESS_GPU(StreamSynchronize)(nullptr), "waiting for what is sent");  // bounded: copies
    if (!calls_.exchange(static_cast<int>(k))) fail("a trial between device buffers did not end");
    values.resize(level.incoming.size());
    level.incoming.get(values.data(), values.size());
    for (MessagePart const& part : level.messages.in)
      for (std::int64_t at = 0; at < part.items; ++at)
        if (values[static_cast<std::size_t>(part.first + at)] != pattern(k, part.rank, rank(), at))
          fail("value " + std::to_string(at) + " of a trial from rank " + std::to_string(part.rank) +
               " did not arrive in device memory");
  }
  [[noreturn]] void fail(std::string const& what) const {
    throw Error(ErrorCode::environment, "GPU transport mpi: " + what + " (" + calls_.library +
                                            ", but nothing is carried that was not seen to arrive). Use "
                                            "--gpu-transport host, which stages it.");
  }

  DeviceCalls const& calls_;
  std::vector<Level> levels_;
  Array<double> staging_;
};

}  // namespace

std::unique_ptr<StreamEndpoint> make_mpi_stream(Problem const& problem) {
  return std::make_unique<MpiStream>(problem);
}

}  // namespace hostless::gpu
