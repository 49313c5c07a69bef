// Numbers go to pinned memory, from there by the host program to the other ranks, and back. What any machine
// can do. The kernel that packs stores over the bus itself, so that packing and copying overlap and no copy
// is queued behind it.
#include "solve/gpu/hosted_carrier.hpp"

namespace hostless::gpu {
namespace {

std::vector<CarriedItem> items_of(std::vector<std::int32_t> const& rows) {
  std::vector<CarriedItem> items;
  for (std::int32_t row : rows) items.push_back({row, 0});
  return items;
}

class StagedCarrier final : public HostedCarrier {
 public:
  explicit StagedCarrier(Problem const& problem)
      : HostedCarrier(problem, problem.carriage->gather),
        carriage_(*problem.carriage),
        owned_(problem.owned),
        rows_(items_of(carriage_.rows)),
        sent_(rows_.size()),
        ghosts_(static_cast<std::size_t>(carriage_.ghosts_below + carriage_.ghosts_above)) {}
  void begin_exchange(Queue& queue, double* field) override {
    rows_.pack(queue, field, nullptr, sent_.device());
    ask_exchange(queue, 0);
  }
  void finish_exchange(Queue& queue, double* field) override {
    auto const below = carriage_.ghosts_below;
    await_exchange(queue, {BroughtPart{ghosts_.device(), field - below, below},
                           BroughtPart{ghosts_.device() + below, field + owned_, carriage_.ghosts_above}});
  }
  std::string describe() const override {
    return "host (" + std::to_string(8 * (sent_.size() + ghosts_.size())) +
           " bytes of halo in pinned memory)";
  }
  std::int64_t bytes() const override { return rows_.bytes() + HostedCarrier::bytes(); }
  bool guards_hold() const override { return rows_.guards_hold() && HostedCarrier::guards_hold(); }

 protected:
  bool exchange(int) override { return carriage_.exchange(sent_.data(), ghosts_.data()); }

 private:
  HostCarriage const& carriage_;
  std::int64_t owned_;
  ItemList rows_;
  Pinned<double> sent_, ghosts_;
};

}  // namespace

std::unique_ptr<Carrier> make_host_carrier(Problem const& problem) {
  return std::make_unique<StagedCarrier>(problem);
}

}  // namespace hostless::gpu
