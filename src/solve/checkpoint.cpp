#include "solve/checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/file_error.hpp"

namespace hostless {
namespace {

constexpr std::array<char, 8> magic = {'h', 'o', 's', 't', 'l', 's', 'c', 'p'};
constexpr std::int32_t format_version = 5;

struct Header {
  std::array<char, 8> magic;
  std::int32_t version, state_bytes;
  CheckpointIdentity identity;
  std::int32_t fields, reserved;
  std::int64_t history;
  std::uint64_t checksum;  // of this header (with 0 here) and the history
  State state;
};

class File {
 public:
  File(std::string path, int flags)
      : path_(std::move(path)), handle_(::open(path_.c_str(), flags | O_CLOEXEC, 0644)) {
    if (handle_ < 0)
      throw flags == O_RDONLY ? unreadable(path_, "open the checkpoint")
                              : unwritable(path_, "open the checkpoint");
  }
  ~File() {
    if (handle_ >= 0) ::close(handle_);
  }
  File(File const&) = delete;
  File& operator=(File const&) = delete;

  void write_at(std::int64_t offset, void const* data, std::size_t bytes) {
    auto const* from = static_cast<char const*>(data);
    while (bytes > 0) {
      ssize_t const n = ::pwrite(handle_, from, bytes, offset);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) throw unwritable(path_, "write the checkpoint");
      from += n;
      offset += n;
      bytes -= static_cast<std::size_t>(n);
    }
  }
  void read_at(std::int64_t offset, void* data, std::size_t bytes) {
    auto* to = static_cast<char*>(data);
    while (bytes > 0) {
      ssize_t const n = ::pread(handle_, to, bytes, offset);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw unreadable(path_, "read the checkpoint");
      if (n == 0)
        throw Error(ErrorCode::bad_input,
                    path_ + ": ends early (the checkpoint is cut short). Use an older one.");
      to += n;
      offset += n;
      bytes -= static_cast<std::size_t>(n);
    }
  }
  void flush() {
    if (::fsync(handle_) != 0) throw unwritable(path_, "flush the checkpoint");
  }

 private:
  std::string path_;
  int handle_;
};

constexpr std::uint64_t empty_checksum = 1469598103934665603ull;

// FNV-1a over 8-byte words, with the high bits brought down: sign bits alone would cancel in pairs.
// Every change of one word is seen.
std::uint64_t checksum(std::span<std::byte const> bytes, std::uint64_t hash = empty_checksum) {
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t bits;
    std::memcpy(&bits, bytes.data() + at, sizeof bits);
    hash = (hash ^ bits) * 1099511628211ull;
    hash ^= hash >> 32;
  }
  return hash;
}

std::uint64_t checksum(std::span<double const> values) { return checksum(std::as_bytes(values)); }

static_assert(sizeof(Header) % 8 == 0, "the checksum covers whole words");
std::uint64_t checksum(Header const& header, std::span<double const> history) {
  return checksum(std::as_bytes(history), checksum(std::as_bytes(std::span(&header, 1))));
}

Error damaged(std::string const& path) {
  return Error(ErrorCode::bad_input,
               path + ": a checksum is wrong (the checkpoint is damaged). Use an older one.");
}

struct Share {
  std::int64_t checksums;  // where this rank's checksums lie
  std::int64_t fields;     // where its fields lie
};

// Header | history | checksums [ranks][fields] | fields of rank 0 | fields of rank 1 | ...
Share share_of(Group& group, std::int64_t history, std::size_t fields, std::size_t owned) {
  auto const all = group.all_gather(static_cast<std::int64_t>(owned));
  std::int64_t const ranks = group.size(), n = static_cast<std::int64_t>(fields);
  std::int64_t before = 0;
  for (int r = 0; r < group.rank(); ++r) before += all[static_cast<std::size_t>(r)];
  std::int64_t const sums = static_cast<std::int64_t>(sizeof(Header)) + history * 8;
  return {sums + group.rank() * n * 8, sums + ranks * n * 8 + before * n * 8};
}

bool same(CheckpointIdentity const& a, CheckpointIdentity const& b) {
  return a.plan == b.plan && a.rows == b.rows && a.ranks == b.ranks && a.method == b.method &&
         a.preconditioner == b.preconditioner && a.degree == b.degree && a.inner == b.inner &&
         a.precision == b.precision && a.ratio == b.ratio && a.upper == b.upper && a.matrix == b.matrix &&
         a.rhs == b.rhs;
}

}  // namespace

std::uint64_t checksum(Group& group, std::span<double const> mine) {
  auto const all = group.all_gather(checksum(mine));
  return checksum(std::as_bytes(std::span(all)));
}

void write_checkpoint(Group& group, std::string const& path, CheckpointIdentity const& identity,
                      State const& state, std::span<double const> history,
                      std::vector<std::span<double const>> const& fields) {
  std::string const partial = path + ".partial";
  std::size_t const owned = fields.empty() ? 0 : fields[0].size();
  Share const mine = share_of(group, static_cast<std::int64_t>(history.size()), fields.size(), owned);
  group.together([&] {
    if (group.rank() != 0) return;
    File file(partial, O_WRONLY | O_CREAT | O_TRUNC);
    Header header{};
    header.magic = magic;
    header.version = format_version;
    header.state_bytes = sizeof(State);
    header.identity = identity;
    header.fields = static_cast<std::int32_t>(fields.size());
    header.history = static_cast<std::int64_t>(history.size());
    header.state = state;
    header.state.history = nullptr;
    header.checksum = checksum(header, history);
    file.write_at(0, &header, sizeof header);
    file.write_at(sizeof header, history.data(), history.size_bytes());
  });
  group.together([&] {
    File file(partial, O_WRONLY);
    std::int64_t at = mine.fields;
    for (std::size_t k = 0; k < fields.size(); ++k) {
      std::uint64_t const sum = checksum(fields[k]);
      file.write_at(mine.checksums + static_cast<std::int64_t>(k) * 8, &sum, sizeof sum);
      file.write_at(at, fields[k].data(), fields[k].size_bytes());
      at += static_cast<std::int64_t>(fields[k].size_bytes());
    }
    file.flush();
  });
  group.together([&] {
    if (group.rank() == 0 && std::rename(partial.c_str(), path.c_str()) != 0) {
      throw Error(ErrorCode::environment, fmt::format("{}: cannot be renamed to {}: {} (checkpoint).",
                                                      partial, path, std::strerror(errno)));
    }
  });
}

State read_checkpoint(Group& group, std::string const& path, CheckpointIdentity const& identity,
                      std::span<double> history, std::vector<std::span<double>> const& fields) {
  Header header{};
  group.together([&] {
    File file(path, O_RDONLY);
    file.read_at(0, &header, sizeof header);
    if (header.magic != magic || header.version != format_version || header.state_bytes != sizeof(State)) {
      throw Error(ErrorCode::bad_input, path + ": not a checkpoint of this version (it cannot be resumed).");
    }
    if (!same(header.identity, identity) || header.fields != static_cast<std::int32_t>(fields.size())) {
      throw Error(ErrorCode::bad_input,
                  path +
                      ": a checkpoint of another matrix, partition, method, preconditioner, precision or "
                      "right-hand side (it would not go on bit for bit). Give the same input and options, or "
                      "pass x as initial guess.");
    }
    if (header.history < 0 || header.history > static_cast<std::int64_t>(history.size())) {
      throw Error(ErrorCode::bad_input,
                  path + ": more history than iterations allowed. Raise --max-iterations.");
    }
    auto const kept = history.first(static_cast<std::size_t>(header.history));
    file.read_at(sizeof header, kept.data(), kept.size_bytes());
    std::uint64_t const sum = std::exchange(header.checksum, 0);
    if (checksum(header, kept) != sum) throw damaged(path);
  });
  std::size_t const owned = fields.empty() ? 0 : fields[0].size();
  Share const mine = share_of(group, header.history, fields.size(), owned);
  group.together([&] {
    File file(path, O_RDONLY);
    std::int64_t at = mine.fields;
    for (std::size_t k = 0; k < fields.size(); ++k) {
      std::uint64_t sum = 0;
      file.read_at(mine.checksums + static_cast<std::int64_t>(k) * 8, &sum, sizeof sum);
      file.read_at(at, fields[k].data(), fields[k].size_bytes());
      at += static_cast<std::int64_t>(fields[k].size_bytes());
      if (checksum(fields[k]) != sum) throw damaged(path);
    }
  });
  return header.state;
}

}  // namespace hostless
