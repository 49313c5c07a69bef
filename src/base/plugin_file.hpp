#pragma once

#include <filesystem>
#include <string>

namespace hostless {

/// The file of that name in HOSTLESS_PLUGIN_DIR, next to the program or library, or in lib/hostless of its
/// prefix or of a folder above (build tree); empty when there is none that only root and this user could have
/// put there.
std::filesystem::path find_plugin_file(std::string const& name);

}  // namespace hostless
