// A transport of processes whose messages between two ranks go by libfabric. Its three C entries are all that the
// loader (ofi_loader.cpp) knows of it.
#include <algorithm>
#include <exception>
#include <string>

#include "transport/ofi/ofi_plugin.hpp"
#include "transport/ofi/ofi_world.hpp"

namespace hostless::ofi {
namespace {

class OfiTransport final : public Transport {
 public:
  explicit OfiTransport(Transport& below) : below_(below), unwinding_(std::uncaught_exceptions()) {
    Group& group = below.group();
    group.together([&] { world_ = std::make_shared<World>(group.rank(), group.size()); });
    std::vector<Bytes> const addresses = group.all_gather_bytes(world_->address());
    group.together([&] { world_->connect(addresses); });
  }
  ~OfiTransport() override {
    if (std::uncaught_exceptions() > unwinding_) world_->leave_behind();
  }
  Capabilities capabilities() const override { return below_.capabilities(); }
  Group& group() override { return below_.group(); }
  std::unique_ptr<Endpoint> bind(Binding const& binding) override { return below_.bind(binding); }
  std::unique_ptr<PointToPoint> point_to_point() override { return make_point_to_point(world_); }

 private:
  Transport& below_;
  std::shared_ptr<World> world_;
  int unwinding_;
};

}  // namespace
}  // namespace hostless::ofi

#define HOSTLESS_ENTRY extern "C" __attribute__((visibility("default")))

HOSTLESS_ENTRY int hostless_ofi_interface_version() { return hostless::ofi_plugin::interface_version; }

HOSTLESS_ENTRY void hostless_ofi_describe(char* text, int capacity) {
  std::string problem;
  auto const info = hostless::ofi::find_provider(problem);
  std::uint32_t const version = fi_version();
  std::string const said = info == nullptr
                               ? "-" + problem
                               : "+libfabric " + std::to_string(FI_MAJOR(version)) + "." +
                                     std::to_string(FI_MINOR(version)) + ", provider " +
                                     info->fabric_attr->prov_name + ", interface " + info->domain_attr->name;
  text[said.copy(text, static_cast<std::size_t>(capacity) - 1)] = '\0';
}

HOSTLESS_ENTRY hostless::Transport* hostless_ofi_open(hostless::Transport* below) {
  return new hostless::ofi::OfiTransport(*below);
}
