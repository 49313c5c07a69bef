// Messages of the host program between buffers of GPUs, by an MPI that takes device memory; sums through
// pinned memory, and so do rounds of few bytes: what an MPI does on the host for a message in device memory
// (looking where it lies, copies and events of its own, a handshake) took 70 to 130 us an iteration more than
// two crossings of the bus. Nothing is carried before a trial has moved numbers between all ranks that will.
// Or all through pinned memory (StreamSetup::in_pinned_memory), by whatever transport the ranks have.
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "base/variable.hpp"
#include "transport/mpi/facts.hpp"
#include "transport/stream/hosted_stream.hpp"
#include "transport/stream/stream_transports.hpp"

namespace hostless::gpu {
namespace {

class MpiStream final : public HostedStream {
 public:
  explicit MpiStream(StreamSetup const& setup)
      : HostedStream(setup),
        composite_(setup.composite),
        pinned_(setup.in_pinned_memory),
        fewest_bytes_(pinned_ ? std::numeric_limits<std::int64_t>::max()
                              : count_of("HOSTLESS_MPI_DEVICE_BYTES", usual_fewest_bytes)) {
    for (StreamRound const& round : setup.rounds)
      rounds_.push_back(std::make_unique<Round>(round, fewest_bytes_));
  }

  std::byte* outgoing(int round) override { return at(round).packed(); }
  std::byte const* incoming(int round) override { return at(round).incoming.data(); }
  void send(StreamQueue& queue, int k, std::byte*) override {
    Round const& round = at(k);
    if (sends_to_itself(round)) queue.call([&](HOSTLESS_GPU(Stream_t) stream) { copy_own(round, stream); });
    ask_exchange(queue, k);
  }
  void await(StreamQueue& queue, int k, std::byte*) override {
    Round& round = at(k);
    if (!round.stages_in) return await_exchange(queue);
    await_exchange(queue, {BroughtPart{round.come.device(), reinterpret_cast<double*>(round.incoming.data()),
                                       static_cast<std::int64_t>(round.come.size())},
                           {}});
  }
  std::vector<StreamBuffers> buffers() const override {
    std::vector<StreamBuffers> all;
    for (auto const& round : rounds_) all.emplace_back(round->out(), round->in());
    return all;
  }
  std::string describe() const override {
    if (pinned_) return "host (pinned memory)";
    std::string few;
    if (fewest_bytes_ > 0)
      few = "; through pinned memory where a round has less than " + std::to_string(fewest_bytes_) + " bytes";
    return "mpi (device memory, as " + library() + " and a trial shows" + few + ")";
  }
  std::int64_t bytes() const override {
    auto all = HostedStream::bytes();
    for (auto const& round : rounds_)
      all += static_cast<std::int64_t>(round->outgoing.bytes() + round->incoming.bytes());
    return all;
  }
  bool guards_hold() const override {
    bool hold = HostedStream::guards_hold();
    for (auto const& round : rounds_)
      hold = hold && round->outgoing.guards_hold() && round->incoming.guards_hold();
    return hold;
  }

 protected:
  void try_it() override {
    for (std::size_t k = 0; k < rounds_.size(); ++k) try_level(k);
  }

 private:
  static constexpr std::int64_t usual_fewest_bytes = std::int64_t{1} << 20;
  /// Each side of a round by itself: an MPI takes either memory at either end.
  struct Round {
    Round(StreamRound const& of, std::int64_t fewest_bytes)
        : messages(of),
          stages_out(of.out_bytes < fewest_bytes),
          stages_in(of.in_bytes < fewest_bytes),
          outgoing(stages_out ? 0 : static_cast<std::size_t>(of.out_bytes)),
          incoming(doubles_of(of.in_bytes) * sizeof(double)),
          sent(stages_out ? static_cast<std::size_t>(of.out_bytes) : 0),
          come(stages_in ? doubles_of(of.in_bytes) : 0) {}
    static std::size_t doubles_of(std::int64_t bytes) {
      return (static_cast<std::size_t>(bytes) + sizeof(double) - 1) / sizeof(double);
    }
    /// Where kernels pack it, and what MPI reads and writes.
    std::byte* packed() const { return stages_out ? sent.device() : outgoing.data(); }
    std::byte* out() const { return stages_out ? sent.data() : outgoing.data(); }
    std::byte* in() const { return stages_in ? reinterpret_cast<std::byte*>(come.data()) : incoming.data(); }
    StreamRound messages;
    bool stages_out, stages_in;
    Array<std::byte> outgoing, incoming;
    Pinned<std::byte> sent;
    Pinned<double> come;
  };

  Round& at(int round) { return *rounds_[static_cast<std::size_t>(round)]; }
  bool sends_to_itself(Round const& round) const {
    return std::any_of(round.messages.out.begin(), round.messages.out.end(),
                       [&](StreamPart const& part) { return part.rank == rank(); });
  }
  void copy_own(Round const& round, HOSTLESS_GPU(Stream_t) stream) const {
    for (StreamPart const& part : round.messages.out)
      if (part.rank == rank())
        check(HOSTLESS_GPU(MemcpyAsync)(round.in() + part.there, round.out() + part.first,
                                        static_cast<std::size_t>(part.bytes), HOSTLESS_GPU(MemcpyDefault),
                                        stream),
              "copying inside the GPU");
  }
  // Word k of what goes from a rank to a rank: every one is another.
  static double pattern(std::size_t round, int source, int target, std::int64_t k) {
    return 0.5 + static_cast<double>(k) +
           0x1p40 * static_cast<double>((round * most_ranks + static_cast<std::size_t>(source)) * most_ranks +
                                        static_cast<std::size_t>(target));
  }
  // use(first byte, word, bytes) for every word of a part, the last of which may be cut off.
  template <class Use>
  static void words_of(StreamPart const& part, std::size_t round, int source, int target, Use const& use) {
    constexpr auto word = static_cast<std::int64_t>(sizeof(double));
    for (std::int64_t at = 0; at < part.bytes; at += word) {
      double const expected = pattern(round, source, target, at / word);
      use(static_cast<std::size_t>(part.first + at), expected,
          static_cast<std::size_t>(std::min(word, part.bytes - at)));
    }
  }
  void try_level(std::size_t k) {
    Round& round = at(static_cast<int>(k));
    std::vector<std::byte> bytes(static_cast<std::size_t>(round.messages.out_bytes));
    for (StreamPart const& part : round.messages.out)
      words_of(part, k, rank(), part.rank, [&](std::size_t byte, double word, std::size_t count) {
        std::memcpy(bytes.data() + byte, &word, count);
      });
    bring(round.out(), bytes.data(), bytes.size());
    std::vector<std::byte> const nothing(static_cast<std::size_t>(round.messages.in_bytes));
    bring(round.in(), nothing.data(), nothing.size());
    copy_own(round, nullptr);
    check(HOSTLESS_GPU(StreamSynchronize)(nullptr), "waiting for what is sent");  // bounded: copies
    if (!exchange(static_cast<int>(k)))
      fail(pinned_ ? "a trial through pinned memory did not end"
                   : "a trial between device buffers did not end",
           "a rank has left, or was silent past the deadline");
    bytes.resize(nothing.size());
    bring(bytes.data(), round.in(), bytes.size());
    for (StreamPart const& part : round.messages.in)
      words_of(part, k, part.rank, rank(), [&](std::size_t byte, double word, std::size_t count) {
        if (std::memcmp(bytes.data() + byte, &word, count) != 0)
          fail("value " + std::to_string((byte - static_cast<std::size_t>(part.first)) / sizeof word) +
                   " of a trial from rank " + std::to_string(part.rank) + " did not arrive " +
                   (pinned_ ? "through pinned memory" : "in device memory"),
               "nothing is carried that was not seen to arrive");
      });
  }
  static void bring(std::byte* to, std::byte const* from, std::size_t bytes) {
    if (bytes != 0)
      check(HOSTLESS_GPU(Memcpy)(to, from, bytes, HOSTLESS_GPU(MemcpyDefault)), "copying what is tried");
    check(HOSTLESS_GPU(StreamSynchronize)(nullptr), "waiting for what is tried");  // bounded: copies
  }
  [[noreturn]] void fail(std::string const& what, std::string const& why_pinned) const {
    std::string const all = "GPU transport " + (composite_.empty() ? "mpi" : composite_) + ": " + what;
    if (pinned_)
      throw Error(ErrorCode::environment,
                  all + " (" + why_pinned + "). See what the other ranks say; else use another --transport.");
    throw Error(ErrorCode::environment,
                all + " (" + library() +
                    ", but nothing is carried that was not seen to arrive). Use --gpu-transport " +
                    (composite_.empty() ? "host" : "peer+host") + ", which stages it.");
  }

  std::string composite_;  // of which it is a part
  bool pinned_;
  std::int64_t fewest_bytes_;
  std::vector<std::unique_ptr<Round>> rounds_;
};

}  // namespace

StreamTransport mpi_stream() { return {mpi_facts, &make_stream<MpiStream>}; }

}  // namespace hostless::gpu
