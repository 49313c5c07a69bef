#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "hostless/base/error.hpp"

namespace hostless::files {

/// Something wrong at a byte of a text. Whoever reports it turns the byte into a line; the lowest byte of all
/// ranks wins. offset -1: not of the text (memory, disk, a peer); `text` is then the whole message.
struct Problem : std::exception {
  Problem(std::int64_t at, std::string why, ErrorCode kind = ErrorCode::bad_input)
      : offset(at), text(std::move(why)), code(kind) {}
  char const* what() const noexcept override { return text.c_str(); }
  std::int64_t offset;
  std::string text;
  ErrorCode code;
};

/// The text of a file, plain or gz, found out by its first bytes. One rank's own; not collective.
class Text {
 public:
  static std::unique_ptr<Text> open(std::string const& path);
  virtual ~Text() = default;
  /// Copies text from byte `offset` on; fewer bytes than asked only at the end of the text or before damage.
  /// Forward reading is cheap everywhere; going back more than 8 KiB in gz starts over.
  virtual std::size_t read(std::int64_t offset, std::span<char> to) = 0;
  /// Why the text cannot be read beyond `damage()->offset`, once a read has met that place.
  virtual std::optional<Problem> const& damage() const = 0;
  virtual bool compressed() const = 0;
  /// Bytes of the file, which for gz is less than the text.
  virtual std::int64_t file_bytes() const = 0;
  /// Bytes of the text up to its end or damage; for gz reads all of it.
  virtual std::int64_t text_bytes() = 0;
  virtual std::string const& path() const = 0;
};

/// The line (from 1) that byte `offset` lies in. Reads everything before it: for error messages only.
std::int64_t line_of(Text& text, std::int64_t offset);

/// The longest line of numbers: what a block may have to read behind its end.
constexpr std::int64_t longest_line = 4096;
/// The Problem of a longer one that begins at `offset`.
Problem too_long(std::int64_t offset);

/// Which bytes of a text one rank reads, block by block: blocks start at begin, begin + stride, ... below
/// end.
struct BlockRange {
  std::int64_t body;   ///< where the first line of the whole body begins
  std::int64_t begin;  ///< of the first block
  std::int64_t stride;
  std::int64_t block;  ///< bytes of a block
  std::int64_t end;    ///< no line of this rank begins here or later
};

/// A rank's contiguous range of the body, in blocks; plain text only.
BlockRange contiguous_blocks(Text& text, std::int64_t body, int rank, int size, std::int64_t block);
/// Block k of the body for rank k mod size; plain text or gz.
BlockRange dealt_blocks(std::int64_t body, int rank, int size, std::int64_t block);

/// Reads the lines that begin inside each block.
class Blocks {
 public:
  Blocks(Text& text, BlockRange const& range);
  /// False when no block is left; else lines() are the whole lines that begin in the next block (maybe none).
  /// Throws Problem for a line that is too long and for damage of the file, after the lines before it were
  /// given.
  bool next();
  std::string_view lines() const { return lines_; }
  std::int64_t offset() const { return offset_; }      ///< of lines().front()
  std::int64_t position() const { return position_; }  ///< every line of this rank before it was given

 private:
  void cut(std::size_t got, std::int64_t from, std::int64_t block_end);
  Text& text_;
  BlockRange range_;
  std::vector<char> buffer_;
  std::string_view lines_;
  std::int64_t offset_ = 0, position_;
  std::optional<Problem> pending_;
};

}  // namespace hostless::files
