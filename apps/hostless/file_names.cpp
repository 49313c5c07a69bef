#include "file_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "hostless/base/error.hpp"

namespace hostless {
namespace {

namespace fs = std::filesystem;

bool are_one(std::string const& a, std::string const& b) {
  if (a.empty() || b.empty()) return false;
  std::error_code ignored;
  auto const whole = [&](std::string const& path) {
    return fs::weakly_canonical(fs::absolute(path, ignored), ignored);
  };
  return a == b || fs::equivalent(a, b, ignored) || whole(a) == whole(b);
}

// Standard output, pipes and devices take what is written one after the other.
bool can_be_replaced(std::string const& path) {
  std::error_code ignored;
  auto const type = fs::status(path, ignored).type();
  return path != "-" && (type == fs::file_type::regular || type == fs::file_type::not_found);
}

}  // namespace

void check_names(std::vector<NamedFile> const& written, std::vector<NamedFile> const& read) {
  auto const standard = [](NamedFile const& one) { return one.path == "-"; };
  auto const first = std::find_if(written.begin(), written.end(), standard);
  if (first != written.end())
    if (auto const second = std::find_if(first + 1, written.end(), standard); second != written.end())
      throw Error(ErrorCode::usage, fmt::format("{} and {} are both standard output (a reader could not part "
                                                "them). Name a file.",
                                                first->what, second->what));
  for (std::size_t k = 0; k < written.size(); ++k) {
    if (!can_be_replaced(written[k].path)) continue;
    auto const check = [&](NamedFile const& other) {
      if (!are_one(written[k].path, other.path)) return;
      throw Error(ErrorCode::usage,
                  fmt::format("{} and {} are one file, {} (the one would replace the other). "
                              "Name another file.",
                              written[k].what, other.what, written[k].path));
    };
    for (std::size_t j = 0; j < k; ++j) check(written[j]);
    for (NamedFile const& other : read) check(other);
  }
}

}  // namespace hostless
