#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "files/file.hpp"
#include "hostless/base/rows.hpp"

namespace hostless::files {

/// What a file holds, by its first bytes.
enum class Content { text, npy, petsc, petsc_wide };
/// Collective over group. Everything unknown is `text`, whose reader says what it found.
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

/// Numbers of a file one after the other, read through a buffer.
template <class T>
class NumberReader {
 public:
  NumberReader(File const& file, std::int64_t offset, std::int64_t count)
      : file_(file), offset_(offset), left_(count) {}
  /// As it lies in the file; the caller knows its byte order.
  T next() {
    if (at_ == buffer_.size()) refill();
    return buffer_[at_++];
  }

 private:
  void refill() {
    constexpr std::int64_t most = (64 << 10) / sizeof(T);
    buffer_.resize(static_cast<std::size_t>(std::min(most, left_)));
    auto const bytes = std::as_writable_bytes(std::span(buffer_));
    if (bytes.empty() || file_.read_at(offset_, bytes) != bytes.size()) {
      throw Error(ErrorCode::bad_input,
                  file_.path() +
                      ": ends before its data (it was cut short while it was read). Copy it "
                      "again.");
    }
    offset_ += static_cast<std::int64_t>(bytes.size());
    left_ -= static_cast<std::int64_t>(buffer_.size());
    at_ = 0;
  }
  File const& file_;
  std::int64_t offset_, left_;
  std::vector<T> buffer_;
  std::size_t at_ = 0;
};

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
