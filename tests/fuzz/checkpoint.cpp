// Reads any bytes as a checkpoint, as they are and with the checksums that they should have: what is refused
// must be bad input, what is accepted a state that a solve can go on from.
#include "solve/checkpoint.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "hostless/base/error.hpp"

// Names of methods come with all of `solve`.
std::string hostless::difference_of(CheckpointIdentity const&, CheckpointIdentity const&) { return "others"; }

namespace {

using namespace hostless;

constexpr std::size_t owned = 2, fields = 2, room = 8;

// Puts the checksums of a checkpoint of one rank right, as far as its lengths make sense.
void mend(std::vector<std::uint64_t>& words) {
  if (words.size() <= CheckpointWords::identity) return;
  std::uint64_t const head = words[CheckpointWords::head];
  if (head < CheckpointWords::identity + fields || head > words.size()) return;
  auto const all = std::span(words);
  for (std::size_t k = 0; k < fields && head + (k + 1) * owned <= words.size(); ++k)
    words[head - fields + k] = checksum(std::as_bytes(all.subspan(head + k * owned, owned)));
  words[CheckpointWords::checksum] = 0;
  words[CheckpointWords::checksum] = checksum(std::as_bytes(all.first(head)));
}

void read(std::string const& path) {
  static auto const group = single_group();
  std::array<std::array<double, owned>, fields> values{};
  std::array<StepRecord, room> history{};
  State fresh;
  fresh.limit = room - 1;
  fresh.history_size = room;
  try {
    State const state =
        read_checkpoint(*group, path, CheckpointIdentity{}, fresh, history, {values[0], values[1]});
    bool const good = state.iteration >= 0 && state.iteration < static_cast<std::int64_t>(room) &&
                      state.wants_true_residual != state.iterate && state.changed_at <= state.iteration &&
                      state.restarts >= 0 && state.raises >= 0 && state.rr >= 0 &&
                      state.limit == fresh.limit && state.history == fresh.history &&
                      state.history_size == fresh.history_size;
    if (!good) std::abort();
  } catch (Error const& error) {
    if (error.code() != ErrorCode::bad_input) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static int const file = ::memfd_create("fuzz", 0);
  static std::string const path = "/proc/self/fd/" + std::to_string(file);
  auto const give = [&](void const* bytes, std::size_t count) {
    if (file < 0 || ::ftruncate(file, 0) != 0 ||
        ::pwrite(file, bytes, count, 0) != static_cast<ssize_t>(count))
      std::abort();
    read(path);
  };
  give(data, size);
  std::vector<std::uint64_t> words(size / sizeof(std::uint64_t));
  if (words.empty()) return 0;
  std::memcpy(words.data(), data, words.size() * sizeof(std::uint64_t));
  mend(words);
  give(words.data(), words.size() * sizeof(std::uint64_t));
  return 0;
}
