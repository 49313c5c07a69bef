#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "hostless/base/error.hpp"
#include "hostless/base/rows.hpp"
#include "hostless/transport/group.hpp"

namespace hostless::samples {

/// A folder that goes away with its test.
class Folder {
 public:
  Folder() {
    static int number = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("hostless-files-" + std::to_string(::getpid()) + "-" + std::to_string(number++));
    std::filesystem::create_directories(path_);
  }
  Folder(Folder const&) = delete;
  Folder& operator=(Folder const&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(std::string const& name) const { return (path_ / name).string(); }
  std::string write(std::string const& name, std::string const& text) const {
    std::ofstream(file(name), std::ios::binary) << text;
    return file(name);
  }
  std::string write_gz(std::string const& name, std::string const& text) const {
    gzFile const out = gzopen(file(name).c_str(), "wb");
    gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
    gzclose(out);
    return file(name);
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

inline std::string content(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Every entry of a matrix by its position: the oracle's form of it.
using EntryMap = std::map<std::pair<std::int64_t, std::int64_t>, double>;

/// What `open` gives on `ranks` ranks, put together; also checks what every RowSource promises.
template <class Open>
EntryMap collect(int ranks, Open const& open) {
  EntryMap all;
  std::mutex guard;
  run_on_threads(ranks, [&](Group& group) {
    auto const rows = open(group);
    auto const next = group.all_gather(rows->first_row());
    EXPECT_EQ(rows->last_row(), group.rank() + 1 == group.size()
                                    ? rows->global_rows()
                                    : next[static_cast<std::size_t>(group.rank()) + 1]);
    RowPanel panel;
    for (std::int64_t row = rows->first_row(); row < rows->last_row(); row += 7) {
      auto const count = std::min<std::int64_t>(7, rows->last_row() - row);
      rows->panel(row, count, panel);
      ASSERT_EQ(panel.offset.size(), static_cast<std::size_t>(count) + 1);
      for (std::int64_t r = 0; r < count; ++r) {
        for (auto k = static_cast<std::size_t>(panel.offset[static_cast<std::size_t>(r)]);
             k < static_cast<std::size_t>(panel.offset[static_cast<std::size_t>(r) + 1]); ++k) {
          std::lock_guard const lock(guard);
          EXPECT_TRUE(all.emplace(std::pair(row + r, panel.column[k]), panel.value[k]).second);
        }
      }
    }
  });
  return all;
}

/// The Error that `work` ends with on every one of `ranks` ranks; fails the test if there is none or they
/// differ.
inline Error common_error(int ranks, std::function<void(Group&)> const& work) {
  Error said(ErrorCode::usage, "nothing was refused");
  std::mutex guard;
  int refused = 0;
  run_on_threads(ranks, [&](Group& group) {
    try {
      work(group);
    } catch (Error const& error) {
      std::lock_guard const lock(guard);
      if (refused > 0) {
        EXPECT_STREQ(error.what(), said.what());
      }
      said = error;
      ++refused;
    }
  });
  EXPECT_EQ(refused, ranks);
  return said;
}

}  // namespace hostless::samples
