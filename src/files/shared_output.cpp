#include "files/shared_output.hpp"

#include <cstring>
#include <filesystem>

namespace hostless::files {

SharedOutput::SharedOutput(Group& group, std::string const& path) : group_(group) {
  Bytes name;
  group_.together([&] {
    if (group_.rank() != 0) return;
    std::error_code ignored;
    auto const now = std::filesystem::status(path, ignored).type();
    if (now != std::filesystem::file_type::not_found && now != std::filesystem::file_type::regular) {
      throw Error(ErrorCode::environment,
                  path + ": is not a regular file (renaming would replace it). Name a regular file.");
    }
    created_.emplace(path);
    auto const text = std::as_bytes(std::span(created_->path()));
    name.assign(text.begin(), text.end());
  });
  name = group_.broadcast(name, 0);
  group_.together([&] {
    if (group_.rank() == 0) return;
    std::string const temporary(reinterpret_cast<char const*>(name.data()), name.size());
    opened_.emplace(File::to_write(temporary, path));
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
