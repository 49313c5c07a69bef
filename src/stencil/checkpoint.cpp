#include "hostless/stencil/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "base/counted.hpp"
#include "base/hash.hpp"
#include "files/array_runs.hpp"
#include "files/byte_source.hpp"
#include "files/content/same_content.hpp"
#include "hostless/base/error.hpp"
#include "stencil/array_axes.hpp"

namespace hostless {
namespace {

using Words = std::vector<std::uint64_t>;

constexpr std::array<char, 8> magic = {'h', 'o', 's', 't', 'l', 's', 's', 't'};
constexpr std::uint64_t format_version = 1;
constexpr std::size_t word_bytes = sizeof(std::uint64_t);

// Words of the head: these, then the bytes of the name and of the parameters, each filled up to whole words,
// and a checksum for each field. The fields follow, each as the array of the whole grid, the last axis
// fastest.
enum At : std::size_t {
  magic_at,
  version_at,
  head_words_at,
  checksum_at,
  steps_at,
  axes_at,
  value_bytes_at,
  fields_at,
  coefficients_at,
  extent_at,
  boundary_at = extent_at + 3,
  name_bytes_at = boundary_at + 3,
  parameter_bytes_at,
  fixed_words
};
// A head has no more than that: a name, 8 fields, parameters.
constexpr std::uint64_t most_head_words = 1u << 16;

std::size_t words_for(std::size_t bytes) { return (bytes + word_bytes - 1) / word_bytes; }

struct Head {
  Words words;

  std::uint64_t operator[](std::size_t at) const { return words[at]; }
  std::string name() const {
    auto const* first = reinterpret_cast<char const*>(words.data() + fixed_words);
    return {first, static_cast<std::size_t>(words[name_bytes_at])};
  }
  std::vector<std::byte> parameters() const {
    auto const* first =
        reinterpret_cast<std::byte const*>(words.data() + fixed_words + words_for(words[name_bytes_at]));
    return {first, first + words[parameter_bytes_at]};
  }
  std::size_t sums_at() const {
    return fixed_words + words_for(words[name_bytes_at]) + words_for(words[parameter_bytes_at]);
  }
  std::int64_t data() const { return static_cast<std::int64_t>(words.size() * word_bytes); }
};

std::uint64_t checksum_of(Head const& head) {
  Hash hash;
  for (std::size_t k = 0; k < head.words.size(); ++k)
    if (k != checksum_at) hash.add(static_cast<std::int64_t>(head.words[k]));
  return hash.value();
}

Head head_for(CellStepper const& run, StencilKernel const& kernel, Words const& sums) {
  Head head;
  head.words.assign(fixed_words, 0);
  Words& w = head.words;
  std::memcpy(w.data(), magic.data(), magic.size());
  w[version_at] = format_version;
  w[steps_at] = static_cast<std::uint64_t>(run.steps());
  w[axes_at] = static_cast<std::uint64_t>(kernel.axes);
  w[value_bytes_at] = kernel.value_bytes;
  w[fields_at] = static_cast<std::uint64_t>(kernel.fields);
  w[coefficients_at] = static_cast<std::uint64_t>(kernel.coefficients);
  for (std::size_t a = 0; a < 3; ++a) {
    w[extent_at + a] = static_cast<std::uint64_t>(run.grid().extent[a]);
    w[boundary_at + a] = static_cast<std::uint64_t>(run.grid().boundary[a]);
  }
  w[name_bytes_at] = kernel.name.size();
  w[parameter_bytes_at] = kernel.parameters.size();
  auto const put = [&](void const* bytes, std::size_t count) {
    std::size_t const at = w.size();
    w.resize(at + words_for(count), 0);
    if (count > 0) std::memcpy(w.data() + at, bytes, count);
  };
  put(kernel.name.data(), kernel.name.size());
  put(kernel.parameters.data(), kernel.parameters.size());
  w.insert(w.end(), sums.begin(), sums.end());
  w[head_words_at] = w.size();
  w[checksum_at] = checksum_of(head);
  return head;
}

[[noreturn]] void damaged(std::string const& path, char const* what) {
  files::refuse(path, fmt::format("{} (the checkpoint is damaged). Use an older one.", what));
}

// Allocates what the file has, whatever it says.
Head read_head(File const& file) {
  Head head;
  head.words.assign(fixed_words, 0);
  std::size_t const got = file.read_at(0, std::as_writable_bytes(std::span(head.words)));
  if (got < magic.size() || std::memcmp(head.words.data(), magic.data(), magic.size()) != 0)
    files::refuse(
        file.path(),
        "is no checkpoint of a stencil (it does not begin as one). Name a file that --checkpoint of "
        "a stencil wrote.");
  if (got < fixed_words * word_bytes) damaged(file.path(), "ends early");
  if (head[version_at] != format_version)
    files::refuse(file.path(),
                  fmt::format("is a checkpoint of format {} (this version resumes {}). Resume it "
                              "with the version that wrote it.",
                              head[version_at], format_version));
  std::uint64_t const words = head[head_words_at];
  if (words < fixed_words || words > most_head_words) damaged(file.path(), "a length is wrong");
  head.words.resize(static_cast<std::size_t>(words));
  auto const bytes = std::as_writable_bytes(std::span(head.words));
  if (file.read_at(0, bytes) != bytes.size()) damaged(file.path(), "ends early");
  if (checksum_of(head) != head[checksum_at]) damaged(file.path(), "a checksum is wrong");
  bool const fits = head[name_bytes_at] < words * word_bytes &&
                    head[parameter_bytes_at] < words * word_bytes && head[fields_at] < words &&
                    head.sums_at() + head[fields_at] == words;
  if (!fits) damaged(file.path(), "its lengths disagree");
  return head;
}

// Tells it from every other: its head has the checksums of all fields.
files::ContentMark mark_of(File const& file, Head const& head) { return {file.size(), head[checksum_at]}; }

// Values of 8 bytes as numbers, which those of named stencils are.
std::string shown(std::vector<std::byte> const& parameters) {
  if (parameters.empty()) return "none";
  if (parameters.size() % sizeof(double) != 0) return counted(parameters.size(), "byte");
  std::vector<double> values(parameters.size() / sizeof(double));
  std::memcpy(values.data(), parameters.data(), parameters.size());
  return fmt::format("{}", fmt::join(values, ", "));
}

std::string shown(Head const& head, std::size_t first, bool boundary) {
  std::vector<std::string> all;
  for (std::size_t const a : grid_axes(static_cast<int>(std::clamp<std::uint64_t>(head[axes_at], 1, 3)))) {
    std::uint64_t const word = head[first + a];
    bool const known = word <= static_cast<std::uint64_t>(GridBoundary::periodic);
    all.push_back(!boundary ? fmt::format("{}", word)
                  : known   ? name(static_cast<GridBoundary>(word))
                            : "unknown");
  }
  return fmt::format("{}", fmt::join(all, boundary ? "," : " x "));
}

// Names the first thing that is not the same.
void check_same(std::string const& path, Head const& theirs, Head const& ours) {
  auto const refuse_other = [&](char const* what, std::string const& there, std::string const& here) {
    files::refuse(path,
                  fmt::format("{} {}, and this run has {} (it would not go on bit for bit). Give what the "
                              "checkpoint was made with.",
                              what, there, here));
  };
  auto const differ = [&](std::size_t first, std::size_t count) {
    return !std::equal(theirs.words.begin() + static_cast<std::ptrdiff_t>(first),
                       theirs.words.begin() + static_cast<std::ptrdiff_t>(first + count),
                       ours.words.begin() + static_cast<std::ptrdiff_t>(first));
  };
  if (theirs.name() != ours.name()) refuse_other("is of the stencil", theirs.name(), ours.name());
  if (differ(axes_at, 1) || differ(extent_at, 3))
    refuse_other("is of a grid of", shown(theirs, extent_at, false), shown(ours, extent_at, false));
  auto const type = [](Head const& head) { return std::string(head[value_bytes_at] == 4 ? "fp32" : "fp64"); };
  if (differ(value_bytes_at, 1)) refuse_other("holds cells in", type(theirs), type(ours));
  if (differ(boundary_at, 3))
    refuse_other("has the boundary", shown(theirs, boundary_at, true), shown(ours, boundary_at, true));
  if (theirs.parameters() != ours.parameters())
    refuse_other("has the parameters", shown(theirs.parameters()), shown(ours.parameters()));
  if (differ(fields_at, 2))
    refuse_other(
        "has fields and coefficients:", fmt::format("{} and {}", theirs[fields_at], theirs[coefficients_at]),
        fmt::format("{} and {}", ours[fields_at], ours[coefficients_at]));
  if (theirs[steps_at] > (std::uint64_t{1} << 62)) damaged(path, "its number of steps is wrong");
}

// A cell adds a number that its bits and its index in the grid alone decide, so the sum is the same whoever
// adds up which of them, and every change of one cell changes it.
template <class Bits>
std::uint64_t sum_of(ArrayForm const& form, ArrayPart const& part, std::span<std::byte const> cells) {
  std::uint64_t sum = 0;
  files::each_run(form.shape, part, [&](std::int64_t at, std::int64_t mine, std::int64_t values) {
    std::byte const* const first = cells.data() + static_cast<std::size_t>(mine) * sizeof(Bits);
    for (std::int64_t k = 0; k < values; ++k) {
      Bits bits;
      std::memcpy(&bits, first + static_cast<std::size_t>(k) * sizeof bits, sizeof bits);
      sum += mixed(std::uint64_t{bits} ^ (static_cast<std::uint64_t>(at + k) * 0x9e3779b97f4a7c15u));
    }
  });
  return sum;
}

// This rank's part of one field after the other, and where it lies.
class Fields {
 public:
  Fields(CellStepper const& run, StencilKernel const& kernel)
      : form(array_form_of(run.grid(), kernel.axes, kernel.value_bytes)),
        part(array_part_of(run.box(), kernel.axes)),
        bytes(static_cast<std::int64_t>(kernel.value_bytes)),
        cells(static_cast<std::size_t>(run.box().cells() * bytes)),
        as_array(cells_of_box(cells.data(), run.box(), kernel.value_bytes)) {
    for (std::int64_t const extent : form.shape) bytes *= extent;
  }
  std::uint64_t sum() const {
    return form.value_bytes == 4 ? sum_of<std::uint32_t>(form, part, cells)
                                 : sum_of<std::uint64_t>(form, part, cells);
  }

  ArrayForm form;
  ArrayPart part;
  std::int64_t bytes;  // of a field, all ranks'
  std::vector<std::byte> cells;
  CellArray as_array;
};

}  // namespace

void write_stencil_checkpoint(Group& group, std::string const& path, CellStepper const& run,
                              StencilKernel const& kernel) {
  files::memory_checked(path, [&] {
    std::optional<Fields> there;
    group.together([&] { there.emplace(run, kernel); });  // a rank without memory for it ends all alike
    Fields& fields = *there;
    files::SharedOutput output(group, path);
    Words sums(static_cast<std::size_t>(kernel.fields), 0);
    std::int64_t const data = head_for(run, kernel, sums).data();
    for (int f = 0; f < kernel.fields; ++f) {
      run.take(f, fields.as_array);
      sums[static_cast<std::size_t>(f)] = group.sum(fields.sum());
      group.together([&] {
        files::write_runs(output, data + f * fields.bytes, fields.form, fields.part, fields.cells);
      });
    }
    group.together([&] {
      if (group.rank() != 0) return;
      Head const head = head_for(run, kernel, sums);
      output.write_at(0, std::as_bytes(std::span(head.words)));
    });
    output.commit();
  });
}

StencilCheckpointGrid read_stencil_checkpoint_grid(Group& group, std::string const& path) {
  StencilCheckpointGrid grid;
  files::ContentMark mark;
  group.together([&] {
    File const file = File::to_read(path);
    Head const head = read_head(file);
    mark = mark_of(file, head);
    if (head[axes_at] < 1 || head[axes_at] > 3 || (head[value_bytes_at] != 4 && head[value_bytes_at] != 8))
      damaged(path, "its grid is none");
    grid.stencil = head.name();
    grid.value_bytes = static_cast<std::size_t>(head[value_bytes_at]);
    constexpr std::uint64_t most_cells = std::uint64_t{1} << 53;
    std::uint64_t cells = 1;
    for (std::size_t const a : grid_axes(static_cast<int>(head[axes_at]))) {
      std::uint64_t const extent = head[extent_at + a], boundary = head[boundary_at + a];
      if (extent < 1 || extent > most_cells / cells ||
          boundary > static_cast<std::uint64_t>(GridBoundary::periodic))
        damaged(path, "its grid is none");
      cells *= extent;
      grid.shape.push_back(static_cast<std::int64_t>(extent));
      grid.boundary.push_back(static_cast<GridBoundary>(boundary));
    }
    std::vector<std::byte> const parameters = head.parameters();
    grid.parameters.resize(parameters.size() / sizeof(double));
    if (!grid.parameters.empty())
      std::memcpy(grid.parameters.data(), parameters.data(), grid.parameters.size() * sizeof(double));
  });
  files::require_same_content(group, path, mark);
  return grid;
}

std::int64_t read_stencil_checkpoint(Group& group, std::string const& path, CellStepper& run,
                                     StencilKernel const& kernel) {
  return files::memory_checked(path, [&] {
    std::optional<Fields> there;
    group.together([&] { there.emplace(run, kernel); });
    Fields& fields = *there;
    Head head;
    files::ContentMark mark;
    group.together([&] {
      File const file = File::to_read(path);
      head = read_head(file);
      mark = mark_of(file, head);
      check_same(path, head, head_for(run, kernel, Words(static_cast<std::size_t>(kernel.fields), 0)));
      std::int64_t const wanted = head.data() + kernel.fields * fields.bytes;
      if (file.size() != wanted)
        files::refuse(path, fmt::format("has {} where {} are needed (the checkpoint is cut short or has "
                                        "too much). Use an older one.",
                                        counted(file.size(), "byte"), wanted));
    });
    files::require_same_content(group, path, mark);  // of other steps, where all else may be equal
    for (int f = 0; f < kernel.fields; ++f) {
      group.together([&] {
        File const file = File::to_read(path);
        if (!files::read_runs(file, head.data() + f * fields.bytes, fields.form, fields.part, fields.cells))
          damaged(path, "ends early");
      });
      std::uint64_t const sum = group.sum(fields.sum());
      group.together([&] {
        if (sum != head[head.sums_at() + static_cast<std::size_t>(f)]) damaged(path, "a checksum is wrong");
      });
      run.give(f, fields.as_array);
    }
    auto const steps = static_cast<std::int64_t>(head[steps_at]);
    run.count_from(steps);
    return steps;
  });
}

}  // namespace hostless
