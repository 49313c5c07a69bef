#include "solve/matrix/memory_need.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "base/bytes_text.hpp"
#include "base/variable.hpp"
#include "hostless/machine/memory.hpp"

namespace hostless {
namespace {

/// What every rank learns of every other.
struct Word {
  std::array<char, 256> host{};
  long process = 0;
  MemoryNeed need;
  bool same_machine(Word const& other) const { return host == other.host; }
  bool same_process(Word const& other) const { return same_machine(other) && process == other.process; }
};

void refuse(MemoryNeed const& all, MemoryRoom const& room, std::string const& where,
            std::string const& what) {
  throw Error(
      ErrorCode::environment,
      fmt::format("{}: at least {} of memory are needed {}: matrix {}, vectors {}, set-up {} ({} are "
                  "there: {}). Use more machines or a smaller problem; HOSTLESS_SIZE_CHECK=0 tries it "
                  "all the same.",
                  what, bytes_text(all.total()), where, bytes_text(all.matrix), bytes_text(all.vectors),
                  bytes_text(all.setup), bytes_text(room.bytes), room.limit));
}

MemoryNeed& operator+=(MemoryNeed& sum, MemoryNeed const& other) {
  sum.matrix += other.matrix;
  sum.vectors += other.vectors;
  sum.setup += other.setup;
  return sum;
}

}  // namespace

MemoryNeed least_need(double rows, double entries, MatrixOptions const& options, int ranks, int vectors) {
  // CSR holds every value and 16 bits of its column; the others one value for both triangles where they can.
  bool const whole = options.gpus == 0 && options.format.format == FormatRequest::Kind::csr;
  double const layout = whole ? 10 * entries + 4 * rows : 4 * (entries + rows);
  bool const dealt_out = options.partition == MatrixOptions::Partition::metis ||
                         options.partition == MatrixOptions::Partition::file;
  MemoryNeed need;
  if (!options.generate_on_gpu) need.matrix = layout;
  if (options.gpus == 0) need.vectors = 8.0 * vectors * rows;
  if (dealt_out && ranks > 1) need.setup = 16 * entries;
  return need;
}

bool sizes_are_checked() { return !is_zero("HOSTLESS_SIZE_CHECK"); }

void require_memory(Group& group, MemoryNeed const& mine, std::string const& what) {
  Word word;
  gethostname(word.host.data(), word.host.size() - 1);
  word.process = getpid();
  word.need = mine;
  auto const words = group.all_gather(word);
  group.together([&] {
    if (!sizes_are_checked()) return;
    MemoryNeed on_machine, in_process;
    int ranks_here = 0;
    for (Word const& other : words) {
      if (word.same_process(other)) in_process += other.need;
      if (!word.same_machine(other)) continue;
      on_machine += other.need;
      ++ranks_here;
    }
    MemoryRoom const machine = machine_memory_room(), process = process_memory_room();
    auto const where = ranks_here == 1 ? std::string("on this machine")
                                       : fmt::format("on this machine, whose ranks are {}", ranks_here);
    if (on_machine.total() > machine.bytes) refuse(on_machine, machine, where, what);
    if (in_process.total() > process.bytes) refuse(in_process, process, "by this process", what);
  });
}

}  // namespace hostless
