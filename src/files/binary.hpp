#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/setup_watch.hpp"
#include "files/shared_output.hpp"
#include "hostless/base/rows.hpp"

namespace hostless::files {

/// What a file holds, by its first bytes.
enum class Content { text, npy, petsc, zip };
/// Collective over group. Everything unknown is `text`, whose reader says what it found.
/// Errors  bad_input  it cannot be read, or ranks read different files by this name (content/same_content.hpp)
Content content_of(Group& group, std::string const& path);

constexpr std::int32_t petsc_matrix_id = 1211216, petsc_vector_id = 1211214;

template <class T>
T big_endian(T value) {
  if constexpr (std::endian::native == std::endian::big) return value;
  auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  std::reverse(bytes.begin(), bytes.end());
  return std::bit_cast<T>(bytes);
}
template <class T>
T little_endian(T value) {
  if constexpr (std::endian::native == std::endian::little) return value;
  auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  std::reverse(bytes.begin(), bytes.end());
  return std::bit_cast<T>(bytes);
}

/// Bytes of a file one after the other, written through a buffer; inside Group::together.
class ByteWriter {
 public:
  ByteWriter(SharedOutput const& file, std::int64_t offset) : file_(file), offset_(offset) {
    buffer_.reserve(most);
  }
  template <class T>
  void put(T const& value) {
    put_bytes(std::as_bytes(std::span(&value, 1)));
  }
  void put_text(std::string_view text) { put_bytes(std::as_bytes(std::span(text.data(), text.size()))); }
  void flush() {
    setup_step();
    file_.write_at(offset_, buffer_);
    offset_ += static_cast<std::int64_t>(buffer_.size());
    buffer_.clear();
  }

 private:
  static constexpr std::size_t most = 256 << 10;
  void put_bytes(std::span<std::byte const> bytes) {
    if (buffer_.size() + bytes.size() > most) flush();
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  SharedOutput const& file_;
  std::int64_t offset_;
  std::vector<std::byte> buffer_;
};

/// Calls visit(row, panel, k) for rows [rows.first_row(), rows.last_row()); row's entries are panel's
/// [offset[k], offset[k + 1]).
template <class Visit>
void each_row(RowSource const& rows, Visit&& visit) {
  constexpr std::int64_t most = 1024;
  RowPanel panel;
  for (std::int64_t first = rows.first_row(); first < rows.last_row(); first += most) {
    std::int64_t const count = std::min(most, rows.last_row() - first);
    rows.panel(first, count, panel);
    setup_step(count);
    for (std::int64_t k = 0; k < count; ++k) visit(first + k, panel, static_cast<std::size_t>(k));
  }
}

/// What the ranks below this one have, and all together.
struct Before {
  std::int64_t below, total;
};
inline Before before(Group& group, std::int64_t mine) {
  Before result{0, 0};
  auto const all = group.all_gather(mine);
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (static_cast<int>(r) < group.rank()) result.below += all[r];
    result.total += all[r];
  }
  return result;
}

}  // namespace hostless::files
