#pragma once

#include <memory>

#include "hostless/transport/transport.hpp"
#include "transport/composite/composite_nodes.hpp"

namespace hostless {

/// Collective over both. `binding` has passed check_binding; inside: the ranks of this node, by their local
/// numbers. Both transports outlive the endpoint.
std::unique_ptr<Endpoint> bind_composite(Transport& between, Transport& inside, CompositeNodes const& nodes,
                                         Binding const& binding);

}  // namespace hostless
