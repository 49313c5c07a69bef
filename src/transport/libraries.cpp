#include "hostless/transport/libraries.hpp"

#include <algorithm>

#include "transport/host_transport.hpp"

namespace hostless {

std::vector<std::pair<std::string, std::string>> transport_libraries() {
  std::vector<std::pair<std::string, std::string>> all;
  for (HostTransport const& transport : host_transports()) {
    if (transport.library == nullptr) continue;
    auto const same = [&](auto const& known) { return known.first == transport.library_name; };
    if (std::none_of(all.begin(), all.end(), same))
      all.emplace_back(transport.library_name, transport.library());
  }
  return all;
}

}  // namespace hostless
