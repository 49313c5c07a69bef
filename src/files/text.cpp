#include "files/text.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <new>

#include "base/setup_watch.hpp"
#include "files/zlib_memory.hpp"
#include "hostless/base/rows.hpp"

namespace hostless::files {
namespace {

class PlainText final : public Text {
 public:
  explicit PlainText(File file) : file_(std::move(file)) {}
  std::size_t read(std::int64_t offset, std::span<char> to) override {
    return file_.read_at(offset, std::as_writable_bytes(to));
  }
  std::optional<Problem> const& damage() const override { return none_; }
  bool compressed() const override { return false; }
  std::int64_t file_bytes() const override { return file_.size(); }
  std::int64_t text_bytes() override { return file_.size(); }
  std::string const& path() const override { return file_.path(); }

 private:
  File file_;
  std::optional<Problem> none_;
};

/// Decompresses through a window that slides forward and keeps its last bytes.
class GzText final : public Text {
 public:
  explicit GzText(File file) : file_(std::move(file)), input_(input_bytes), window_(window_bytes) {
    stream_.zalloc = zlib_allocate;
    stream_.zfree = zlib_release;
    if (inflateInit2(&stream_, gzip_only) != Z_OK) throw std::bad_alloc();
  }
  GzText(GzText const&) = delete;
  GzText& operator=(GzText const&) = delete;
  ~GzText() override { inflateEnd(&stream_); }

  std::size_t read(std::int64_t offset, std::span<char> to) override {
    if (offset < begin_) restart();
    std::size_t done = 0;
    while (done < to.size()) {
      std::int64_t const at = offset + static_cast<std::int64_t>(done);
      if (at >= begin_ + filled_) {
        if (!advance()) break;
        continue;
      }
      auto const here = static_cast<std::size_t>(at - begin_);
      auto const count = std::min(to.size() - done, static_cast<std::size_t>(filled_) - here);
      std::memcpy(to.data() + done, window_.data() + here, count);
      done += count;
    }
    return done;
  }
  std::optional<Problem> const& damage() const override { return damage_; }
  bool compressed() const override { return true; }
  std::int64_t file_bytes() const override { return file_.size(); }
  std::int64_t text_bytes() override {
    while (advance()) {
    }
    return begin_ + filled_;
  }
  std::string const& path() const override { return file_.path(); }

 private:
  static constexpr int gzip_only = 15 + 16;
  static constexpr std::size_t input_bytes = 32 << 10, window_bytes = 72 << 10;
  static constexpr std::int64_t kept_bytes = 8 << 10;

  void restart() {
    inflateReset(&stream_);
    stream_.avail_in = 0;
    file_at_ = begin_ = filled_ = 0;
    ended_ = between_ = false;
    damage_.reset();
  }

  void slide() {
    std::int64_t const drop = std::max<std::int64_t>(0, filled_ - kept_bytes);
    std::memmove(window_.data(), window_.data() + drop, static_cast<std::size_t>(filled_ - drop));
    begin_ += drop;
    filled_ -= drop;
  }

  // Adds text to the window; false at the end of the text.
  bool advance() {
    if (ended_) return false;
    setup_step();
    slide();
    auto const room = static_cast<uInt>(static_cast<std::int64_t>(window_bytes) - filled_);
    stream_.next_out = reinterpret_cast<Bytef*>(window_.data() + filled_);
    stream_.avail_out = room;
    char const* wrong = nullptr;
    while (stream_.avail_out != 0 && !ended_ && wrong == nullptr) wrong = step();
    filled_ += room - stream_.avail_out;
    if (wrong != nullptr) {
      ended_ = true;
      damage_.emplace(begin_ + filled_, wrong);
    }
    return stream_.avail_out != room;
  }

  // One call of zlib; says what is wrong with the data, if anything.
  char const* step() {
    if (stream_.avail_in == 0) {
      auto const got = file_.read_at(file_at_, std::as_writable_bytes(std::span(input_)));
      file_at_ += static_cast<std::int64_t>(got);
      stream_.next_in = input_.data();
      stream_.avail_in = static_cast<uInt>(got);
      if (got == 0) {
        ended_ = true;
        return between_ ? nullptr
                        : "the gz data stops here before its end (the file was cut short). Copy or compress "
                          "it again.";
      }
    }
    if (between_) {  // another member follows: gz files may be glued together, and tapes fill blocks with
                     // zeros
      while (stream_.avail_in != 0 && *stream_.next_in == 0) ++stream_.next_in, --stream_.avail_in;
      if (stream_.avail_in == 0) return nullptr;
      inflateReset(&stream_);
      between_ = false;
    }
    int const result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result == Z_STREAM_END) between_ = true;
    return result == Z_OK || result == Z_STREAM_END
               ? nullptr
               : "the gz data is damaged behind this place (decompression or its checksum fails). Copy or "
                 "compress it "
                 "again.";
  }

  File file_;
  std::vector<Bytef> input_;
  std::vector<char> window_;
  z_stream stream_{};
  std::int64_t file_at_ = 0, begin_ = 0, filled_ = 0;  // the window holds text [begin_, begin_ + filled_)
  bool ended_ = false, between_ = false;
  std::optional<Problem> damage_;
};

}  // namespace

std::unique_ptr<Text> Text::open(std::string const& path) {
  File file = File::to_read(path);
  std::array<std::byte, 2> magic{};
  bool const gz = file.read_at(0, magic) == 2 && magic[0] == std::byte{0x1f} && magic[1] == std::byte{0x8b};
  if (gz) return std::make_unique<GzText>(std::move(file));
  return std::make_unique<PlainText>(std::move(file));
}

std::int64_t line_of(Text& text, std::int64_t offset) {
  std::array<char, 16 << 10> part{};
  std::int64_t line = 1;
  for (std::int64_t at = 0; at < offset;) {
    auto const want = static_cast<std::size_t>(std::min<std::int64_t>(offset - at, part.size()));
    auto const got = text.read(at, std::span(part).first(want));
    if (got == 0) break;
    line += std::count(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(got), '\n');
    at += static_cast<std::int64_t>(got);
  }
  return line;
}

BlockRange contiguous_blocks(Text& text, std::int64_t body, int rank, int size, std::int64_t block) {
  std::int64_t const bytes = std::max<std::int64_t>(0, text.text_bytes() - body);
  return {body, body + piece(rank, size, bytes), block, block, body + piece(rank + 1, size, bytes)};
}

BlockRange dealt_blocks(std::int64_t body, int rank, int size, std::int64_t block) {
  return {body, body + rank * block, size * block, block, std::numeric_limits<std::int64_t>::max()};
}

Problem too_long(std::int64_t offset) {
  return {offset,
          "a line of more than 4096 characters (no line of numbers is that long). Check that this is a "
          "Matrix Market file."};
}

Blocks::Blocks(Text& text, BlockRange const& range) : text_(text), range_(range), position_(range.begin) {}

bool Blocks::next() {
  lines_ = {};
  if (pending_) throw *pending_;
  if (position_ >= range_.end) return false;
  std::int64_t const begin = position_, block_end = std::min(begin + range_.block, range_.end);
  position_ = begin + range_.stride;
  // One byte before the block says whether a line begins with it; the last line may run on behind the block.
  std::int64_t const from = begin > range_.body ? begin - 1 : begin;
  auto const want = static_cast<std::size_t>(block_end + longest_line - from);
  // A small file needs no large buffer; nothing that the file claims is believed, only its bytes are.
  if (!text_.compressed()) {
    buffer_.resize(
        std::min(want, static_cast<std::size_t>(std::max<std::int64_t>(1, text_.file_bytes() - from))));
  } else {
    buffer_.resize(want);
  }
  auto const got = text_.read(from, buffer_);
  setup_step(block_end - begin);
  if (from + static_cast<std::int64_t>(got) <= begin) {
    if (text_.damage()) throw *text_.damage();
    position_ = range_.end;
    return false;
  }
  cut(got, from, block_end);
  return true;
}

// Finds the lines that begin in [from + 1 or body, block_end) among the bytes read.
void Blocks::cut(std::size_t got, std::int64_t from, std::int64_t block_end) {
  std::string_view const all(buffer_.data(), got);
  std::size_t first = 0;
  if (from != position_ - range_.stride) {
    auto const newline = all.find('\n');
    if (newline == std::string_view::npos)
      return;  // the line's owner says that it is too long, or it is the last
    first = newline + 1;
  }
  if (from + static_cast<std::int64_t>(first) >= block_end || first >= got) return;
  // The end of the last line: the first newline at or behind the last byte of the block.
  auto const last_byte = static_cast<std::size_t>(block_end - 1 - from);
  auto const newline = last_byte < got ? all.find('\n', last_byte) : std::string_view::npos;
  std::size_t end = got;
  if (newline != std::string_view::npos) {
    end = newline + 1;
  } else if (text_.damage()) {
    auto const whole = all.rfind('\n');
    end = whole == std::string_view::npos || whole < first ? first : whole + 1;
    pending_ = *text_.damage();
  } else if (from + static_cast<std::int64_t>(got) >= block_end + longest_line) {
    auto const whole = all.rfind('\n', last_byte);
    end = whole == std::string_view::npos || whole < first ? first : whole + 1;
    pending_ = too_long(from + static_cast<std::int64_t>(end));
  }
  lines_ = all.substr(first, end - first);
  offset_ = from + static_cast<std::int64_t>(first);
}

}  // namespace hostless::files
