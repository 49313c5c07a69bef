// Numbers go to pinned memory, from there by the host program to the other ranks, and back: the host waits
// for the stream in every exchange and sum. What any machine can do. The kernel that packs stores over the
// bus itself, so that packing and copying overlap and no copy is queued behind it.
#include <algorithm>

#include "solve/gpu/carrier.hpp"

namespace hostless::gpu {
namespace {

std::vector<CarriedItem> items_of(std::vector<std::int32_t> const& rows) {
  std::vector<CarriedItem> items;
  for (std::int32_t row : rows) items.push_back({row, 0});
  return items;
}

class StagedCarrier final : public Carrier {
 public:
  explicit StagedCarrier(Problem const& problem)
      : Carrier(problem),
        carriage_(*problem.carriage),
        owned_(problem.owned),
        rows_(items_of(carriage_.rows)),
        everyone_(static_cast<std::size_t>(problem.ranks) * (widest_sum + 1)),
        sent_(rows_.size()),
        ghosts_(static_cast<std::size_t>(carriage_.ghosts_below + carriage_.ghosts_above)),
        mine_(widest_sum + 1),
        all_(everyone_.size()) {}
  void begin_exchange(Queue& queue, double* field) override {
    rows_.pack(queue, field, nullptr, sent_.device());
  }
  void finish_exchange(Queue& queue, double* field) override {
    queue.call([&](HOSTLESS_GPU(Stream_t) stream) {
      await_copies(stream);
      if (!carriage_.exchange(sent_.data(), ghosts_.data())) throw RankLost{};
      auto const below = carriage_.ghosts_below;
      put(field - below, ghosts_.data(), below, stream);
      put(field + owned_, ghosts_.data() + below, carriage_.ghosts_above, stream);
    });
  }
  double const* gather(Queue& queue, double const* mine, int count) override {
    queue.call([&](HOSTLESS_GPU(Stream_t) stream) {
      bring(mine_, mine, static_cast<std::size_t>(count), stream);
      if (!carriage_.gather(mine_.data(), count, all_.data())) throw RankLost{};
      put(everyone_.data(), all_.data(), std::int64_t{ranks()} * count, stream);
    });
    return everyone_.data();
  }
  bool is_recorded() const override { return false; }
  void connect(MeetingPoint const&, double*) override {}  // the host program has
  bool is_connected() const override { return true; }
  std::string describe() const override {
    return "host (" + std::to_string(8 * (sent_.size() + ghosts_.size())) +
           " bytes of halo in pinned memory)";
  }
  std::int64_t bytes() const override { return rows_.bytes() + static_cast<std::int64_t>(everyone_.bytes()); }
  bool guards_hold() const override { return rows_.guards_hold() && everyone_.guards_hold(); }

 protected:
  bool waits_on_gpu() const override { return false; }

 private:
  // What was put from pinned memory before is there when these return.
  static void await_copies(HOSTLESS_GPU(Stream_t) stream) {
    check(HOSTLESS_GPU(StreamSynchronize)(stream), "waiting for copies to the host");
  }
  static void bring(Pinned<double>& to, double const* from, std::size_t count,
                    HOSTLESS_GPU(Stream_t) stream) {
    if (count != 0)
      check(HOSTLESS_GPU(MemcpyAsync)(to.data(), from, count * sizeof(double),
                                      HOSTLESS_GPU(MemcpyDeviceToHost), stream),
            "copying to the host");
    await_copies(stream);
  }
  static void put(double* to, double const* from, std::int64_t count, HOSTLESS_GPU(Stream_t) stream) {
    if (count == 0) return;
    check(HOSTLESS_GPU(MemcpyAsync)(to, from, static_cast<std::size_t>(count) * sizeof(double),
                                    HOSTLESS_GPU(MemcpyHostToDevice), stream),
          "copying from the host");
  }

  HostCarriage const& carriage_;
  std::int64_t owned_;
  ItemList rows_;
  Array<double> everyone_;
  Pinned<double> sent_, ghosts_, mine_, all_;
};

}  // namespace

std::unique_ptr<Carrier> make_host_carrier(Problem const& problem) {
  return std::make_unique<StagedCarrier>(problem);
}

}  // namespace hostless::gpu
