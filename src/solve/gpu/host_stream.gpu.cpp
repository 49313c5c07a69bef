// Numbers go to pinned memory, from there by the host program to the other ranks, and back. What any machine
// can do. The kernel that packs stores over the bus itself, so that packing and copying overlap and no copy
// is queued behind it.
#include "solve/gpu/hosted_stream.hpp"

namespace hostless::gpu {
namespace {

std::vector<MessageItem> items_of(std::vector<std::int32_t> const& rows) {
  std::vector<MessageItem> items;
  for (std::int32_t row : rows) items.push_back({row, 0});
  return items;
}

class StagedStream final : public HostedStream {
 public:
  explicit StagedStream(Problem const& problem)
      : HostedStream(problem, problem.host_calls->gather),
        calls_(*problem.host_calls),
        owned_(problem.owned),
        rows_(items_of(calls_.rows)),
        sent_(rows_.size()),
        ghosts_(static_cast<std::size_t>(calls_.ghosts_below + calls_.ghosts_above)) {}
  void begin_exchange(Queue& queue, double* field) override {
    rows_.pack(queue, field, nullptr, sent_.device());
    ask_exchange(queue, 0);
  }
  void finish_exchange(Queue& queue, double* field) override {
    auto const below = calls_.ghosts_below;
    await_exchange(queue, {BroughtPart{ghosts_.device(), field - below, below},
                           BroughtPart{ghosts_.device() + below, field + owned_, calls_.ghosts_above}});
  }
  std::string describe() const override {
    return "host (" + std::to_string(8 * (sent_.size() + ghosts_.size())) +
           " bytes of halo in pinned memory)";
  }
  std::int64_t bytes() const override { return rows_.bytes() + HostedStream::bytes(); }
  bool guards_hold() const override { return rows_.guards_hold() && HostedStream::guards_hold(); }

 protected:
  bool exchange(int) override { return calls_.exchange(sent_.data(), ghosts_.data()); }

 private:
  HostCalls const& calls_;
  std::int64_t owned_;
  ItemList rows_;
  Pinned<double> sent_, ghosts_;
};

}  // namespace

std::unique_ptr<StreamEndpoint> make_host_stream(Problem const& problem) {
  return std::make_unique<StagedStream>(problem);
}

}  // namespace hostless::gpu
