// After PKWARE's APPNOTE 6.3: the directory at the end of the file is what counts.
#include "files/zip.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "base/setup_watch.hpp"
#include "files/zlib_memory.hpp"
#include "hostless/base/error.hpp"

namespace hostless::files {
namespace {

[[noreturn]] void damaged(std::string const& path, char const* what) {
  refuse(path, fmt::format("{} (the archive is cut short or damaged). Copy or save it again.", what));
}

// Little-endian numbers of a piece of the file; false beyond its end.
class Record {
 public:
  explicit Record(std::span<std::byte const> bytes) : bytes_(bytes) {}
  std::uint64_t number(std::size_t at, int width) const {
    std::uint64_t value = 0;
    for (int k = 0; k < width; ++k)
      value |= std::to_integer<std::uint64_t>(bytes_[at + static_cast<std::size_t>(k)]) << (8 * k);
    return value;
  }
  std::size_t size() const { return bytes_.size(); }
  Record from(std::size_t at) const { return Record(bytes_.subspan(std::min(at, bytes_.size()))); }
  Record first(std::size_t count) const { return Record(bytes_.first(std::min(count, bytes_.size()))); }
  std::string text(std::size_t at, std::size_t count) const {
    return {reinterpret_cast<char const*>(bytes_.data()) + at, count};
  }

 private:
  std::span<std::byte const> bytes_;
};

std::vector<std::byte> piece_of(File const& file, std::int64_t at, std::int64_t count) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  if (file.read_at(at, bytes) != bytes.size()) damaged(file.path(), "it ends inside its directory");
  return bytes;
}

struct Directory {
  std::uint64_t entries, bytes, begin;
};

constexpr std::int64_t end_bytes = 22, locator_bytes = 20, end64_bytes = 56;
constexpr std::uint64_t end_mark = 0x06054b50, locator_mark = 0x07064b50, end64_mark = 0x06064b50;

// Where ZIP64 says that the directory is; `end` is the place of the end record.
Directory find_directory64(File const& file, std::int64_t end) {
  if (end < locator_bytes) damaged(file.path(), "its ZIP64 record is missing");
  auto const locator = piece_of(file, end - locator_bytes, locator_bytes);
  std::uint64_t const at = Record(locator).number(8, 8);
  if (Record(locator).number(0, 4) != locator_mark || at > static_cast<std::uint64_t>(end) ||
      end - static_cast<std::int64_t>(at) < end64_bytes)
    damaged(file.path(), "its ZIP64 record is missing");
  auto const record = piece_of(file, static_cast<std::int64_t>(at), end64_bytes);
  if (Record(record).number(0, 4) != end64_mark) damaged(file.path(), "its ZIP64 record is missing");
  return {Record(record).number(32, 8), Record(record).number(40, 8), Record(record).number(48, 8)};
}

Directory find_directory(File const& file) {
  constexpr std::int64_t longest_comment = 65535;
  std::int64_t const tail = std::min(file.size(), end_bytes + longest_comment);
  auto const bytes = piece_of(file, file.size() - tail, tail);
  Record const record(bytes);
  for (std::int64_t at = tail - end_bytes; at >= 0; --at) {
    auto const here = static_cast<std::size_t>(at);
    if (record.number(here, 4) != end_mark) continue;
    Directory const said{record.number(here + 10, 2), record.number(here + 12, 4),
                         record.number(here + 16, 4)};
    bool const wide = said.entries == 0xffff || said.bytes == 0xffffffff || said.begin == 0xffffffff;
    return wide ? find_directory64(file, file.size() - tail + at) : said;
  }
  damaged(file.path(), "it has no directory");
}

// Takes what the ZIP64 field says of the sizes that 32 bits cannot.
void widen(std::string const& path, Record extra, std::array<std::uint64_t*, 3> const& sizes) {
  while (extra.size() >= 4) {
    std::size_t const length = extra.number(2, 2);
    if (extra.number(0, 2) == 1) {
      Record field = extra.from(4).first(length);
      for (std::uint64_t* size : sizes) {
        if (*size != 0xffffffff) continue;
        if (field.size() < 8) damaged(path, "a ZIP64 field is too short");
        *size = field.number(0, 8);
        field = field.from(8);
      }
      return;
    }
    extra = extra.from(4 + length);
  }
}

// Checks what the directory says of one member against the file, and finds its data behind its own header.
void locate(File const& file, ZipMember& member, std::uint64_t packed, std::uint64_t bytes,
            std::uint64_t header) {
  constexpr std::int64_t header_bytes = 30;
  constexpr std::uint64_t header_mark = 0x04034b50, most_shrinking = 1032;  // of deflate
  auto const size = static_cast<std::uint64_t>(file.size());
  auto const wrong = [&] { damaged(file.path(), "a member lies outside the file"); };
  if (header > size || size - header < header_bytes || packed > size) wrong();
  auto const own = piece_of(file, static_cast<std::int64_t>(header), header_bytes);
  if (Record(own).number(0, 4) != header_mark)
    damaged(file.path(), "a member is not where its directory says");
  std::uint64_t const data = header + header_bytes + Record(own).number(26, 2) + Record(own).number(28, 2);
  if (data > size || packed > size - data) wrong();
  bool const possible = member.deflated ? bytes <= packed * most_shrinking : bytes == packed;
  if (!possible) damaged(file.path(), "a member has another length than its directory says");
  member.packed = static_cast<std::int64_t>(packed);
  member.bytes = static_cast<std::int64_t>(bytes);
  member.data = static_cast<std::int64_t>(data);
}

class StoredMember final : public ByteSource {
 public:
  StoredMember(File const& file, ZipMember const& member)
      : file_(file), member_(member), name_(file.path() + ": " + member.name) {}
  std::size_t read_at(std::int64_t offset, std::span<std::byte> to) override {
    if (offset < 0 || offset >= member_.bytes) return 0;
    auto const left = static_cast<std::size_t>(member_.bytes - offset);
    return file_.read_at(member_.data + offset, to.first(std::min(to.size(), left)));
  }
  std::int64_t size() const override { return member_.bytes; }
  std::string const& name() const override { return name_; }

 private:
  File const& file_;
  ZipMember member_;
  std::string name_;
};

class DeflatedMember final : public ByteSource {
 public:
  DeflatedMember(File const& file, ZipMember const& member)
      : file_(file), member_(member), name_(file.path() + ": " + member.name), input_(32 << 10) {
    constexpr int without_header = -15;
    stream_.zalloc = zlib_allocate;
    stream_.zfree = zlib_release;
    if (inflateInit2(&stream_, without_header) != Z_OK) throw std::bad_alloc();
  }
  DeflatedMember(DeflatedMember const&) = delete;
  DeflatedMember& operator=(DeflatedMember const&) = delete;
  ~DeflatedMember() override { inflateEnd(&stream_); }

  std::size_t read_at(std::int64_t offset, std::span<std::byte> to) override {
    if (offset < at_) restart();
    std::array<std::byte, 8 << 10> skipped;
    while (at_ < offset) {
      setup_step();
      auto const want = static_cast<std::size_t>(std::min<std::int64_t>(offset - at_, skipped.size()));
      if (inflate_into(std::span(skipped).first(want)) == 0) return 0;
    }
    std::size_t done = 0;
    while (done < to.size()) {
      std::size_t const got = inflate_into(to.subspan(done));
      if (got == 0) break;
      done += got;
    }
    return done;
  }
  std::int64_t size() const override { return member_.bytes; }
  std::string const& name() const override { return name_; }

 private:
  void restart() {
    inflateReset(&stream_);
    stream_.avail_in = 0;
    taken_ = at_ = 0;
    ended_ = false;
  }
  // Some bytes more, not beyond what the directory says; 0 at the end.
  std::size_t inflate_into(std::span<std::byte> to) {
    auto const room = static_cast<uInt>(
        std::min<std::int64_t>({static_cast<std::int64_t>(to.size()), member_.bytes - at_, 1 << 30}));
    stream_.next_out = reinterpret_cast<Bytef*>(to.data());
    stream_.avail_out = room;
    while (stream_.avail_out == room && room > 0 && !ended_) {
      // What went in last may still have output to give when nothing is left to load.
      if (stream_.avail_in == 0 && taken_ < member_.packed) load();
      int const result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_MEM_ERROR) throw std::bad_alloc();
      if (result == Z_BUF_ERROR) damaged(name_, "it ends before its data");
      ended_ = result == Z_STREAM_END;
      if (result != Z_OK && !ended_) damaged(name_, "it cannot be unpacked");
    }
    std::size_t const got = room - stream_.avail_out;
    at_ += static_cast<std::int64_t>(got);
    return got;
  }
  void load() {
    auto const want = static_cast<std::size_t>(
        std::min<std::int64_t>(member_.packed - taken_, static_cast<std::int64_t>(input_.size())));
    auto const got = file_.read_at(member_.data + taken_, std::span(input_).first(want));
    if (got == 0) damaged(name_, "it ends before its data");
    taken_ += static_cast<std::int64_t>(got);
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(got);
  }

  File const& file_;
  ZipMember member_;
  std::string name_;
  std::vector<std::byte> input_;
  z_stream stream_{};
  std::int64_t taken_ = 0, at_ = 0;  // of the packed bytes, and of the unpacked ones
  bool ended_ = false;
};

}  // namespace

std::vector<ZipMember> zip_members(File const& file) {
  constexpr std::uint64_t most = 1000, most_bytes = 1 << 20, entry_mark = 0x02014b50;
  constexpr std::size_t entry_bytes = 46;
  auto const directory = find_directory(file);
  auto const size = static_cast<std::uint64_t>(file.size());
  if (directory.bytes > size || directory.begin > size - directory.bytes)
    damaged(file.path(), "its directory lies outside the file");
  if (directory.entries > most || directory.bytes > most_bytes) {
    refuse(file.path(), fmt::format("an archive of {} members (a matrix has eight). Name the right file.",
                                    directory.entries));
  }
  auto const bytes =
      piece_of(file, static_cast<std::int64_t>(directory.begin), static_cast<std::int64_t>(directory.bytes));
  Record rest{std::span(bytes)};
  std::vector<ZipMember> members;
  for (std::uint64_t k = 0; k < directory.entries; ++k) {
    if (rest.size() < entry_bytes || rest.number(0, 4) != entry_mark)
      damaged(file.path(), "its directory is wrong");
    std::size_t const name = rest.number(28, 2), extra = rest.number(30, 2), comment = rest.number(32, 2);
    if (rest.size() < entry_bytes + name + extra + comment) damaged(file.path(), "its directory is wrong");
    ZipMember member;
    member.name = rest.text(entry_bytes, name);
    for (char& c : member.name) c = c >= ' ' && c <= '~' ? c : '?';
    std::uint64_t const method = rest.number(10, 2);
    if ((rest.number(8, 2) & 1) != 0)
      refuse(file.path(),
             fmt::format("its member {} is encrypted (nobody has its key). Save it anew.", member.name));
    if (method != 0 && method != 8) {
      refuse(file.path(),
             fmt::format("its member {} is packed by method {} (known are none and deflate). Save it with "
                         "scipy.sparse.save_npz.",
                         member.name, method));
    }
    member.deflated = method == 8;
    member.crc = static_cast<std::uint32_t>(rest.number(16, 4));
    std::uint64_t packed = rest.number(20, 4), unpacked = rest.number(24, 4), header = rest.number(42, 4);
    widen(file.path(), rest.from(entry_bytes + name).first(extra), {&unpacked, &packed, &header});
    locate(file, member, packed, unpacked, header);
    members.push_back(std::move(member));
    rest = rest.from(entry_bytes + name + extra + comment);
  }
  return members;
}

std::unique_ptr<ByteSource> zip_member(File const& file, ZipMember const& member) {
  if (member.deflated) return std::make_unique<DeflatedMember>(file, member);
  return std::make_unique<StoredMember>(file, member);
}

void verify(File const& file, ZipMember const& member) {
  auto const source = zip_member(file, member);
  std::vector<std::byte> part(64 << 10);
  std::int64_t at = 0;
  uLong sum = crc32(0, nullptr, 0);
  for (std::size_t got; (got = source->read_at(at, part)) != 0; at += static_cast<std::int64_t>(got)) {
    setup_step();
    sum = crc32(sum, reinterpret_cast<Bytef const*>(part.data()), static_cast<uInt>(got));
  }
  if (at != member.bytes || sum != member.crc) damaged(source->name(), "its length or checksum is wrong");
}

}  // namespace hostless::files
