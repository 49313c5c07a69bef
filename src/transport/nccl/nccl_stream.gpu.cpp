// The vendors' library of collectives: sends and receives of a halo are one group, the parts of a sum are
// gathered and added here, so that the bits are everybody's.
#include <algorithm>

#include "device/loaded_library.hpp"
#include "device/memory.hpp"
#include "transport/nccl/facts.hpp"
#include "transport/nccl/nccl_ranks.hpp"
#include "transport/stream/limits.hpp"
#include "transport/stream/stream_transports.hpp"

namespace hostless::gpu {
namespace {

class NcclStream final : public StreamEndpoint {
 public:
  explicit NcclStream(StreamSetup const& setup)
      : StreamEndpoint(setup),
        use_(nccl_functions()),
        rounds_(setup.rounds),
        everyone_(static_cast<std::size_t>(setup.ranks) * (widest_sum + 1)),
        connected_({setup.device, setup.rank, setup.ranks, setup.purpose}, setup.deadline_s,
                   "GPU transport " + (setup.composite.empty() ? "nccl" : setup.composite),
                   std::string("Use --gpu-transport ") +
                       (setup.composite.empty() ? "peer or host." : "peer+host.")) {
    std::int64_t most_out = sizeof(double), most_in = 0;  // of one round; the first value tries a sum
    for (StreamRound const& round : rounds_) {
      most_out = std::max(most_out, round.out_bytes);
      most_in = std::max(most_in, round.in_place ? 0 : round.in_bytes);
    }
    outgoing_ = Array<std::byte>(static_cast<std::size_t>(most_out));
    outgoing_.clear();
    incoming_ = Array<std::byte>(static_cast<std::size_t>(most_in));
  }

  std::byte* outgoing(int) override { return outgoing_.data(); }
  std::byte const* incoming(int) override { return incoming_.data(); }
  bool takes_from_field(int round) const override {
    auto const& out = rounds_[static_cast<std::size_t>(round)].out;
    return std::all_of(out.begin(), out.end(), [](StreamPart const& part) { return part.from != nullptr; });
  }
  bool lands(int round) const override { return rounds_[static_cast<std::size_t>(round)].in_place; }
  void send(StreamQueue& queue, int round, std::byte* field) override {
    queue.call([&](HOSTLESS_GPU(Stream_t) stream) {
      move_round(rounds_[static_cast<std::size_t>(round)], takes_from_field(round), field, stream);
    });
  }
  double const* gather(StreamQueue& queue, double const* mine, int count) override {
    queue.call([&](HOSTLESS_GPU(Stream_t) stream) {
      connected_.accept(use_.gather(mine, everyone_.data(), static_cast<std::size_t>(count), nccl_double,
                                    connected_.handle(), stream));
      connected_.await_call(patience_s_);
    });
    return everyone_.data();
  }
  bool is_recorded() const override { return true; }

  UniqueId unique_id() override { return connected_.unique_id(); }
  void connect(UniqueId const& point, std::byte* field) override {
    connected_.connect(point, first_s());
    patience_s_ = first_s();
    try {  // the first message between two ranks connects them, which no graph can record
      Stream const stream;
      DirectQueue queue(stream);
      exchange_buffers(queue, static_cast<int>(rounds_.size()), field);
      static_cast<void>(gather(queue, reinterpret_cast<double const*>(outgoing_.data()), 1));
      expect_late_ranks();
      if (!wait(stream)) connected_.give_up("the first messages did not arrive");
    } catch (RankLost const&) {
      connected_.give_up("the first messages were not sent");
    }
    connected_.forget_failure();
    patience_s_ = deadline_s();
  }
  bool is_connected() const override { return connected_.is_connected(); }
  void abort() noexcept override { connected_.abort(); }
  void settle() noexcept override { connected_.settle(); }

  std::string describe() const override {
    std::string const& failure = connected_.failure();
    return "nccl (" + describe_nccl() + (failure.empty() ? ")" : "; " + failure + ")");
  }
  std::int64_t bytes() const override {
    return static_cast<std::int64_t>(everyone_.bytes() + outgoing_.bytes() + incoming_.bytes());
  }
  bool guards_hold() const override {
    return everyone_.guards_hold() && outgoing_.guards_hold() && incoming_.guards_hold();
  }

 protected:
  bool waits_on_gpu() const override { return true; }
  bool failed() override { return connected_.has_failed(); }

 private:
  /// The same on both sides, which know the same bytes.
  struct Elements {
    std::size_t count;
    int type;
  };
  static Elements elements_of(StreamPart const& part) {
    auto const bytes = static_cast<std::size_t>(part.bytes);
    if (bytes % sizeof(double) == 0) return {bytes / sizeof(double), nccl_double};
    return {bytes, nccl_char};
  }

  void move_round(StreamRound const& round, bool from_field, std::byte* field,
                  HOSTLESS_GPU(Stream_t) stream) {
    NcclHandle const ranks = connected_.handle();
    if (round.in.empty() && round.out.empty()) return;
    connected_.accept(use_.begin_group());
    NcclStatus worst = nccl_success;
    for (StreamPart const& part : round.in) {
      std::byte* const to = round.in_place ? field + part.lands : incoming_.data() + part.first;
      Elements const what = elements_of(part);
      worst = std::max(worst, use_.receive(to, what.count, what.type, part.rank, ranks, stream));
    }
    for (StreamPart const& part : round.out) {
      Elements const what = elements_of(part);
      std::byte const* const from = from_field ? part.from : outgoing_.data() + part.first;
      worst = std::max(worst, use_.send(from, what.count, what.type, part.rank, ranks, stream));
    }
    NcclStatus const end = use_.end_group();
    connected_.accept(worst == nccl_in_progress ? nccl_success : worst);
    connected_.accept(end);
    connected_.await_call(patience_s_);
  }

  NcclFunctions const& use_;
  std::vector<StreamRound> rounds_;
  double patience_s_ = 0;  // with a call that returned early: longer while ranks connect
  Array<double> everyone_;
  Array<std::byte> outgoing_, incoming_;
  NcclRanks connected_;  // the last: nothing of it is under way when memory goes
};

TransportFacts nccl_library() {
  return library_facts("nccl", describe_nccl,
                       [] { return "loaded from " + LoadedLibrary::path_of(nccl_functions().version); });
}

}  // namespace

StreamTransport nccl_stream() { return {nccl_facts, &make_stream<NcclStream>, &nccl_library}; }

}  // namespace hostless::gpu
