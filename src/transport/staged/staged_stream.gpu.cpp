// Numbers go to pinned memory, from there by the host program to the other ranks, and back. What any machine
// can do. The kernel that packs stores over the bus itself, so that packing and copying overlap and no copy
// is queued behind it.
#include "transport/staged/facts.hpp"
#include "transport/stream/hosted_stream.hpp"
#include "transport/stream/stream_transports.hpp"

namespace hostless::gpu {
namespace {

/// Its one round is the whole exchange: the host goes through the stages of a plan by itself. In place, its
/// parts are at most two, of whole doubles.
class StagedStream final : public HostedStream {
 public:
  explicit StagedStream(StreamSetup const& setup)
      : HostedStream(setup),
        round_(setup.rounds.at(0)),
        sent_(rounded_up(round_.out_bytes)),
        ghosts_(rounded_up(round_.in_bytes)),
        arrived_(round_.in_place ? 0 : ghosts_.size()) {}

  std::byte* outgoing(int) override { return reinterpret_cast<std::byte*>(sent_.device()); }
  std::byte const* incoming(int) override { return reinterpret_cast<std::byte const*>(arrived_.data()); }
  bool lands(int) const override { return round_.in_place; }
  void send(StreamQueue& queue, int round, std::byte*) override { ask_exchange(queue, round); }
  void await(StreamQueue& queue, int, std::byte* field) override {
    if (!round_.in_place)
      return await_exchange(
          queue,
          {BroughtPart{ghosts_.device(), arrived_.data(), static_cast<std::int64_t>(ghosts_.size())}, {}});
    std::array<BroughtPart, 2> parts;
    for (std::size_t k = 0; k < round_.in.size(); ++k) {
      StreamPart const& part = round_.in[k];
      parts.at(k) = {ghosts_.device() + part.first / number, reinterpret_cast<double*>(field + part.lands),
                     part.bytes / number};
    }
    await_exchange(queue, parts);
  }
  std::vector<StreamBuffers> buffers() const override {
    return {{reinterpret_cast<std::byte const*>(sent_.data()), reinterpret_cast<std::byte*>(ghosts_.data())}};
  }
  std::string describe() const override {
    return "host (" + std::to_string(round_.out_bytes + round_.in_bytes) + " bytes of halo in pinned memory)";
  }
  std::int64_t bytes() const override {
    return static_cast<std::int64_t>(arrived_.bytes()) + HostedStream::bytes();
  }
  bool guards_hold() const override { return arrived_.guards_hold() && HostedStream::guards_hold(); }

 private:
  static constexpr std::int64_t number = sizeof(double);
  static std::size_t rounded_up(std::int64_t bytes) {
    return static_cast<std::size_t>((bytes + number - 1) / number);
  }
  StreamRound round_;
  Pinned<double> sent_, ghosts_;
  Array<double> arrived_;
};

}  // namespace

StreamTransport host_stream() { return {host_facts, &make_stream<StagedStream>}; }

}  // namespace hostless::gpu
