// Messages of the host program between buffers of GPUs, by an MPI that takes device memory; sums through
// pinned memory. Nothing is carried before a trial has moved numbers between all ranks that will.
#include "transport/mpi/mpi_stream.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "transport/stream/hosted_stream.hpp"

namespace hostless::gpu {
namespace {

class MpiStream final : public HostedStream {
 public:
  explicit MpiStream(StreamSetup const& setup) : HostedStream(setup) {
    for (StreamLevel const& level : setup.levels)
      levels_.push_back({level, Array<std::byte>(static_cast<std::size_t>(level.out_bytes)),
                         Array<std::byte>(static_cast<std::size_t>(level.in_bytes))});
  }

  std::byte* outgoing(int level) override { return at(level).outgoing.data(); }
  std::byte const* incoming(int level) override { return at(level).incoming.data(); }
  void send(StreamQueue& queue, int k, std::byte*) override {
    Level const& level = at(k);
    if (sends_to_itself(level)) queue.call([&](HOSTLESS_GPU(Stream_t) stream) { copy_own(level, stream); });
    ask_exchange(queue, k);
  }
  void await(StreamQueue& queue, int, std::byte*) override { await_exchange(queue); }
  std::vector<StreamBuffers> buffers() const override {
    std::vector<StreamBuffers> all;
    for (Level const& level : levels_) all.emplace_back(level.outgoing.data(), level.incoming.data());
    return all;
  }
  std::string describe() const override {
    return "mpi (device memory, as " + library() + " and a trial shows)";
  }
  std::int64_t bytes() const override {
    auto all = HostedStream::bytes();
    for (Level const& level : levels_)
      all += static_cast<std::int64_t>(level.outgoing.bytes() + level.incoming.bytes());
    return all;
  }
  bool guards_hold() const override {
    bool hold = HostedStream::guards_hold();
    for (Level const& level : levels_)
      hold = hold && level.outgoing.guards_hold() && level.incoming.guards_hold();
    return hold;
  }

 protected:
  void try_it() override {
    for (std::size_t k = 0; k < levels_.size(); ++k) try_level(k);
  }

 private:
  struct Level {
    StreamLevel messages;
    Array<std::byte> outgoing, incoming;
  };

  Level& at(int level) { return levels_[static_cast<std::size_t>(level)]; }
  bool sends_to_itself(Level const& level) const {
    return std::any_of(level.messages.out.begin(), level.messages.out.end(),
                       [&](StreamPart const& part) { return part.rank == rank(); });
  }
  void copy_own(Level const& level, HOSTLESS_GPU(Stream_t) stream) const {
    for (StreamPart const& part : level.messages.out)
      if (part.rank == rank())
        check(HOSTLESS_GPU(MemcpyAsync)(
                  level.incoming.data() + part.there, level.outgoing.data() + part.first,
                  static_cast<std::size_t>(part.bytes), HOSTLESS_GPU(MemcpyDeviceToDevice), stream),
              "copying inside the GPU");
  }
  // Word k of what goes from a rank to a rank: every one is another.
  static double pattern(std::size_t level, int source, int target, std::int64_t k) {
    return 0.5 + static_cast<double>(k) +
           0x1p40 * static_cast<double>((level * most_ranks + static_cast<std::size_t>(source)) * most_ranks +
                                        static_cast<std::size_t>(target));
  }
  // use(first byte, word, bytes) for every word of a part, the last of which may be cut off.
  template <class Use>
  static void words_of(StreamPart const& part, std::size_t level, int source, int target, Use const& use) {
    constexpr auto word = static_cast<std::int64_t>(sizeof(double));
    for (std::int64_t at = 0; at < part.bytes; at += word) {
      double const expected = pattern(level, source, target, at / word);
      use(static_cast<std::size_t>(part.first + at), expected,
          static_cast<std::size_t>(std::min(word, part.bytes - at)));
    }
  }
  void try_level(std::size_t k) {
    Level& level = levels_[k];
    std::vector<std::byte> bytes(level.outgoing.size());
    for (StreamPart const& part : level.messages.out)
      words_of(part, k, rank(), part.rank, [&](std::size_t byte, double word, std::size_t count) {
        std::memcpy(bytes.data() + byte, &word, count);
      });
    level.outgoing.put(bytes.data(), bytes.size());
    level.incoming.clear();
    copy_own(level, nullptr);
    check(HOSTLESS_GPU(StreamSynchronize)(nullptr), "waiting for what is sent");  // bounded: copies
    if (!exchange(static_cast<int>(k))) fail("a trial between device buffers did not end");
    bytes.resize(level.incoming.size());
    level.incoming.get(bytes.data(), bytes.size());
    for (StreamPart const& part : level.messages.in)
      words_of(part, k, part.rank, rank(), [&](std::size_t byte, double word, std::size_t count) {
        if (std::memcmp(bytes.data() + byte, &word, count) != 0)
          fail("value " + std::to_string((byte - static_cast<std::size_t>(part.first)) / sizeof word) +
               " of a trial from rank " + std::to_string(part.rank) + " did not arrive in device memory");
      });
  }
  [[noreturn]] void fail(std::string const& what) const {
    throw Error(ErrorCode::environment, "GPU transport mpi: " + what + " (" + library() +
                                            ", but nothing is carried that was not seen to arrive). Use "
                                            "--gpu-transport host, which stages it.");
  }

  std::vector<Level> levels_;
};

}  // namespace

std::unique_ptr<StreamEndpoint> make_mpi_stream(StreamSetup const& setup) {
  return std::make_unique<MpiStream>(setup);
}

}  // namespace hostless::gpu
