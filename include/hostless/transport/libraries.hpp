#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hostless {

/// What the libraries of others by which host transports carry say of themselves, each in one line by the
/// name that records have for it; empty: this process has not loaded it. Local.
std::vector<std::pair<std::string, std::string>> transport_libraries();

}  // namespace hostless
