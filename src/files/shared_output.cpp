#include "files/shared_output.hpp"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "files/content/same_content.hpp"

namespace hostless::files {
namespace {

std::string this_folder() {
  std::error_code unknown;
  return std::filesystem::current_path(unknown).string();
}

// What rank 0 has created, opened by another one, which may see another folder or another disk by that name.
File open_created(std::string const& temporary, std::string const& path, int rank,
                  std::string const& folder_of_first) {
  try {
    return File::to_write(temporary, path);
  } catch (Error const& e) {
    std::string const who = fmt::format("rank {} in {} ", rank, this_folder());
    std::error_code unknown;
    if (std::filesystem::exists(temporary, unknown))
      throw Error(e.code(), std::string(e.what()).insert(path.size() + 2, who));  // behind "PATH: "
    throw Error(
        ErrorCode::environment,
        fmt::format("{}: {}does not see what rank 0 has created for it in {} (all ranks write parts of "
                    "one file). Start them in one folder that all see, or give the path from the root.",
                    path, who, folder_of_first));
  }
}

}  // namespace

SharedOutput::SharedOutput(Group& group, std::string const& path) : group_(group) {
  std::string temporary, folder_of_first;
  group_.together([&] {
    if (group_.rank() != 0) return;
    std::error_code ignored;
    auto const now = std::filesystem::status(path, ignored).type();
    if (now != std::filesystem::file_type::not_found && now != std::filesystem::file_type::regular) {
      throw Error(ErrorCode::environment,
                  path + ": is not a regular file (renaming would replace it). Name a regular file.");
    }
    created_.emplace(path);
    temporary = created_->path();
    folder_of_first = this_folder();
  });
  temporary = path_of(group_, temporary, 0);
  folder_of_first = path_of(group_, folder_of_first, 0);
  group_.together([&] {
    if (group_.rank() > 0) opened_.emplace(open_created(temporary, path, group_.rank(), folder_of_first));
  });
}

void SharedOutput::write_at(std::int64_t offset, std::span<std::byte const> from) const {
  (created_ ? created_->file() : *opened_).write_at(offset, from);
}

void SharedOutput::commit() {
  group_.together([&] { (created_ ? created_->file() : *opened_).finish(); });
  group_.together([&] {
    if (created_) created_->take_name();
  });
}

}  // namespace hostless::files
