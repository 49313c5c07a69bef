// A library in the place of libhostless_cuda.so whose GPU is the processor: cells are stepped by StencilRun
// on one rank, and their changes have the digits that a GPU's have. So all that the host does around kernels
// runs without a GPU: verbs, looks, endings, checkpoints, the command.
#include <array>
#include <stdexcept>

#include "hostless/stencil/catalogue.hpp"
#include "hostless/stencil/stencil.hpp"
#include "hostless/transport/transport.hpp"
#include "stencil/change.hpp"
#include "stencil/gpu/stencil_library.hpp"
#include "transport/stream/gpu_files.hpp"

namespace hostless::gpu {
namespace {

StencilKernel kernel_for(StencilText const& text, std::vector<std::byte> const& parameters) {
  StencilKernel kernel = make_stencil(text.name, text.axes, text.value_bytes);
  kernel.parameters = parameters;
  return kernel;
}

class Played final : public BoundStencil {
 public:
  explicit Played(StencilProblem const& p) : problem_(p), kernel_(kernel_for(p.text, p.parameters)) {
    for (int f = 0; f < kernel_.fields; ++f) {
      before_.emplace_back(box(), std::array<std::int64_t, 3>{}, kernel_.value_bytes);
      now_.emplace_back(box(), std::array<std::int64_t, 3>{}, kernel_.value_bytes);
    }
  }
  void put(int array, CellArray const& cells) override { copy(now_.at(at(array)), cells, true); }
  void get(int field, CellArray const& cells) const override { copy(now_.at(at(field)), cells, false); }
  bool advance(std::int64_t steps, std::int64_t& taken) override {
    step(steps);
    taken = steps;
    return true;
  }
  void advance_alone() override {
    for (std::size_t f = 0; f < now_.size(); ++f) copy(before_[f], seen(now_[f]), true);
    step(1);
  }
  double largest(int field) const override {
    return change::largest(before_.at(at(field)), now_.at(at(field)), box());
  }
  std::array<std::uint64_t, 3> squares(int field, double top) const override {
    std::array<double, change::digits> digits{};
    change::squares(before_.at(at(field)), now_.at(at(field)), box(), top, digits);
    unsigned __int128 sum = 0;
    for (std::size_t k = digits.size(); k-- > 0;) sum = (sum << 32) + static_cast<std::uint64_t>(digits[k]);
    constexpr std::uint64_t mask = (1 << 20) - 1;
    return {static_cast<std::uint64_t>(sum) & mask, static_cast<std::uint64_t>(sum >> 20) & mask,
            static_cast<std::uint64_t>(sum >> 40)};
  }
  bool is_finite(int field) const override { return change::is_finite(now_.at(at(field)), box()); }
  std::string describe() const override { return "played by the processor"; }
  std::int64_t device_bytes() const override { return 2 * kernel_.fields * box().cells(); }
  void silence(int) override {}

 private:
  static std::size_t at(int k) { return static_cast<std::size_t>(k); }
  Box box() const { return {{0, 0, 0}, problem_.grid.extent}; }
  CellArray seen(GridArray const& array) const {
    return {array.at(0, 0, 0),
            {array.at(1, 0, 0) - array.at(0, 0, 0), array.at(0, 1, 0) - array.at(0, 0, 0),
             static_cast<std::int64_t>(kernel_.value_bytes)}};
  }
  void copy(GridArray const& ours, CellArray const& theirs, bool in) const {
    each_row(ours, box(), [&](std::byte* row, std::int64_t a, std::int64_t b) {
      for (std::int64_t c = 0; c < box().extent(2); ++c) {
        std::byte* const other = static_cast<std::byte*>(theirs.data) + a * theirs.stride[0] +
                                 b * theirs.stride[1] + c * theirs.stride[2];
        std::byte* const mine = row + c * static_cast<std::int64_t>(kernel_.value_bytes);
        std::memcpy(in ? mine : other, in ? other : mine, kernel_.value_bytes);
      }
    });
  }
  void step(std::int64_t steps) {
    run_with_threads_transport(1, [&](Transport& transport) {
      StencilRun run(transport, problem_.grid, kernel_);
      for (int f = 0; f < kernel_.fields; ++f) run.give(f, seen(now_[at(f)]));
      if (run.run(steps).steps != steps) throw std::logic_error("too few steps");
      for (int f = 0; f < kernel_.fields; ++f) run.take(f, seen(now_[at(f)]));
    });
  }

  StencilProblem problem_;
  StencilKernel kernel_;
  std::vector<GridArray> before_, now_;
};

class PlayedLibrary final : public StencilLibrary {
 public:
  int devices() const override { return 2; }
  StencilDevice device(int) const override { return {"played GPU", 132, 227 << 10}; }
  StencilShapes const* shapes(StencilText const& text) const override {
    static StencilShapes const of_plane{{{4, 6, 16, true}, {4, 6, 16, false}},
                                        {{{8, 8}, true}, {{8, 8}, false}}};
    constexpr PlanesShape in_planes{4, 4, 4, 256, 1, 1};
    static StencilShapes const of_space{{}, {}, {{in_planes, true}, {in_planes, false}}};
    return text.axes == 2 ? &of_plane : &of_space;
  }
  std::unique_ptr<BoundStencil> bind(StencilProblem const& problem) const override {
    return std::make_unique<Played>(problem);
  }
};

}  // namespace
}  // namespace hostless::gpu

#define HOSTLESS_ENTRY extern "C" __attribute__((visibility("default")))

HOSTLESS_ENTRY int hostless_gpu_interface_version() { return hostless::gpu::interface_version; }
HOSTLESS_ENTRY hostless::gpu::StencilLibrary* hostless_gpu_stencils() {
  static hostless::gpu::PlayedLibrary library;
  return &library;
}
