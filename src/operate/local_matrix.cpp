#include "hostless/operate/local_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/nearest.hpp"
#include "hostless/base/error.hpp"
#include "hostless/operate/storage_count.hpp"
#include "storage.hpp"

namespace hostless {
namespace {

[[noreturn]] void wrong(std::string const& text) { throw Error(ErrorCode::usage, text + "."); }

void check_request(LocalRows const& rows, Tiling const& tiling, FormatRequest request, Isa isa) {
  int const b = tiling.block;
  if (b != 1 && b != 2 && b != 3 && b != 4 && b != 6) {
    wrong(
        fmt::format("block size {} has no kernels (a leaf is 1, 2, 3, 4 or 6 rows). Choose one of these", b));
  }
  if (tiling.slices < 1)
    wrong(fmt::format("{} slices (a tiling needs at least one). Use the default", tiling.slices));
  if (tiling.rows() != rows.owned() || rows.ghosts() < 0 || rows.ghosts() % b != 0 ||
      rows.ghosts_below() < 0 || rows.ghosts_below() > rows.ghosts() || rows.ghosts_below() % b != 0) {
    wrong(fmt::format(
        "{} leaves of {} rows for {} owned rows and {} ghosts, {} of them below (leaves and ghost leaves are "
        "whole). Give the tiling of this matrix",
        tiling.block_rows, b, rows.owned(), rows.ghosts(), rows.ghosts_below()));
  }
  if (rows.owned() + rows.ghosts() > INT32_MAX) {
    wrong(fmt::format("{} owned rows and {} ghosts on one rank (local columns are 32 bits). Use more ranks",
                      rows.owned(), rows.ghosts()));
  }
  if (request.format == FormatRequest::Kind::bsr && b == 1) {
    wrong("format bsr for a matrix of block size 1 (there are no blocks to store). Use auto, csr or sell");
  }
  if (!Tiling::has_threads_per_row(tiling.threads_per_row)) {
    wrong(fmt::format(
        "{} row lanes (a row's accumulators are halved until one is left). Use 1, 2, 4, 8, 16 or 32",
        tiling.threads_per_row));
  }
  using Kind = FormatRequest::Kind;
  if (tiling.threads_per_row > 1 && request.format != Kind::auto_ && request.format != Kind::csr) {
    wrong(fmt::format("format {} with {} row lanes is refused (it adds a row in one chain). Use auto or csr",
                      request.format == Kind::bsr ? "bsr" : "sell", tiling.threads_per_row));
  }
  if (request.threads < 1) {
    wrong(
        fmt::format("{} threads for the sweeps (who multiplies what is part of the storage). Use at least 1",
                    request.threads));
  }
  if (request.half_reach < FormatRequest::automatic) {
    wrong(fmt::format("half_reach {} (leaves between row and column). Use 0 or more, or `automatic`",
                      request.half_reach));
  }
  if (isa > active_isa()) {
    wrong(fmt::format(
        "instruction set {} (this process has {}: the processor or HOSTLESS_ISA limits it). Use the "
        "default",
        name(isa), name(active_isa())));
  }
}

/// The candidate that streams the fewest bytes in a sweep; the first one of equals.
std::size_t choose(Counted const& counted, int block, int threads_per_row, std::string& why) {
  std::size_t best = 0;
  for (std::size_t f = 0; f < counted.candidates.size(); ++f) {
    Shape const& shape = counted.candidates[f];
    why += fmt::format("{}{} {:.3f} MB a sweep", f == 0 ? "" : ", ", name(shape.format),
                       static_cast<double>(shape.sweep_bytes(block)) * 1e-6);
    if (shape.sweep_bytes(block) < counted.candidates[best].sweep_bytes(block)) best = f;
  }
  why = fmt::format("{} {} ({})", name(counted.candidates[best].format),
                    counted.candidates.size() > 1 ? "streams the fewest bytes"
                    : threads_per_row > 1         ? "alone has several accumulators a row"
                                                  : "was asked for",
                    why);
  return best;
}

void allocate(MatrixStorage& storage) {
  Shape const& shape = storage.shape;
  storage.value.resize(static_cast<std::size_t>(shape.values + value_padding));
  std::fill(storage.value.end() - value_padding, storage.value.end(), 0.0);
  storage.narrow.resize(static_cast<std::size_t>(shape.narrow));
  storage.wide.resize(static_cast<std::size_t>(shape.wide));
  std::int64_t const far = shape.far_blocks();
  storage.far_column.resize(static_cast<std::size_t>(far));
  storage.far_value.resize(
      static_cast<std::size_t>(far * storage.tiling.block * storage.tiling.block + value_padding));
  std::fill(storage.far_value.end() - value_padding, storage.far_value.end(), 0.0);
}

void set_view(MatrixStorage& storage) {
  Shape const& shape = storage.shape;
  storage.view = MatrixView{storage.tiling,       shape.slice.data(),         shape.start.data(),
                            storage.value.data(), storage.narrow.data(),      storage.wide.data(),
                            shape.group.data(),   shape.first_group.data(),   shape.diagonal.data(),
                            HalvedView{},         storage.first_reads.data(), shape.reads.data()};
  if (shape.ring > 0) {
    storage.view.halved = HalvedView{shape.first_slot.data(),
                                     shape.far_range.data(),
                                     shape.far_block_row.data(),
                                     shape.far_start.data(),
                                     storage.far_column.data(),
                                     storage.far_value.data(),
                                     shape.ring};
  }
}

/// Slots of which at least one in so many may read x where it lies.
constexpr std::size_t slots_per_far_one = 8;
/// A window may fill so many units for each of x: else its slots jump, and filling it is the work.
constexpr std::int64_t most_filled = 3;

/// A window as long as all slots but the farthest ones read; none where they do not follow each other.
void set_window(MatrixStorage& storage) {
  Tiling const& tiling = storage.tiling;
  std::vector<SlotReads> const& reads = storage.shape.reads;
  storage.first_reads.assign(1, 0);
  for (int s = 0; s < tiling.slices; ++s)
    storage.first_reads.push_back(storage.first_reads.back() +
                                  (tiling.first(s + 1) - tiling.first(s) + Tiling::accumulators - 1) /
                                      Tiling::accumulators);
  storage.window = 0;
  std::vector<std::int64_t> lengths;
  for (SlotReads const& slot : reads) lengths.push_back(std::int64_t{slot.last} - slot.first);
  if (lengths.empty()) return;
  auto const longest = lengths.end() - 1 - static_cast<std::ptrdiff_t>(lengths.size() / slots_per_far_one);
  std::nth_element(lengths.begin(), longest, lengths.end());
  if (*longest == 0) return;
  auto const size = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(*longest)));
  std::int64_t first = 0, end = 0, filled = 0, rows = 0;
  for (SlotReads const& slot : reads) {
    if (slot.last - slot.first > size || slot.last == slot.first) continue;
    if (!follows(slot, first, end, size)) first = end = slot.first;
    filled += std::max<std::int64_t>(slot.last - end, 0);
    end = std::max<std::int64_t>(end, slot.last);
    rows += Tiling::accumulators;
  }
  if (filled <= most_filled * rows) storage.window = size;
}

KernelWanted wanted_of(MatrixStorage const& storage) {
  return {storage.shape.format, storage.tiling.block, storage.shape.ring > 0, storage.tiling.threads_per_row};
}

template <class Vector>
std::int64_t bytes_of(Vector const& array) {
  return static_cast<std::int64_t>(array.size() * sizeof(typename Vector::value_type));
}

}  // namespace

char const* name(Format format) {
  switch (format) {
    case Format::csr:
      return "csr";
    case Format::bsr:
      return "bsr";
    case Format::sell:
      return "sell";
  }
  return "csr";
}

FormatRequest FormatRequest::from(std::string const& format, std::string const& columns) {
  FormatRequest request;
  if (format == "csr")
    request.format = Kind::csr;
  else if (format == "bsr")
    request.format = Kind::bsr;
  else if (format == "sell")
    request.format = Kind::sell;
  else if (format == "diagonals" || format == "diagonals-full" || format == "merge" || format == "vendor")
    wrong(fmt::format(
        "format '{}' on the processor is refused (only GPUs have it). Use auto, csr, bsr or sell", format));
  else if (format != "auto")
    wrong(fmt::format("format '{}' (unknown).{} Use auto, csr, bsr or sell", format,
                      did_you_mean(format, {"auto", "csr", "bsr", "sell"})));
  if (columns == "16")
    request.columns = Columns::narrow;
  else if (columns == "32")
    request.columns = Columns::wide;
  else if (columns != "auto")
    wrong(fmt::format("columns of '{}' bits (unknown). Use auto, 16 or 32", columns));
  return request;
}

std::int64_t Shape::sweep_bytes(int block) const {
  return bytes_of(slice) + bytes_of(start) + bytes_of(group) + bytes_of(first_group) + bytes_of(diagonal) +
         bytes_of(first_slot) + bytes_of(far_range) + bytes_of(far_block_row) + bytes_of(far_start) +
         far_blocks() * (8 * block * block + 4) + values * 8 + narrow * 2 + wide * 4;
}

LocalMatrix::LocalMatrix(LocalRows const& rows, Tiling tiling, FormatRequest request, Isa isa) {
  check_request(rows, tiling, request, isa);
  build(rows, tiling, request, isa);
}

void LocalMatrix::build(LocalRows const& rows, Tiling const& tiling, FormatRequest request, Isa isa) {
  storage_ = std::make_unique<MatrixStorage>();  // an earlier one is gone before this one grows
  view_ = &storage_->view;
  storage_->tiling = tiling;
  storage_->owned = rows.owned();
  storage_->ghosts = rows.ghosts();
  storage_->ghosts_below = rows.ghosts_below();
  storage_->isa = isa;
  storage_->request = request;
  if (tiling.threads_per_row > 1) request.format = FormatRequest::Kind::csr;
  {
    Counted counted = count(rows, tiling, request);  // the losing shapes are gone before values are allocated
    std::size_t const best = choose(counted, tiling.block, tiling.threads_per_row, storage_->why);
    storage_->shape = std::move(counted.candidates[best]);
    storage_->reads = std::move(counted.ghosts);
    storage_->owned_reads = std::move(counted.owned_reads);
    storage_->order = std::move(counted.order);
    if (storage_->shape.ring == 0) storage_->order.threads = 0;
    storage_->entries = counted.entries;
  }
  set_window(*storage_);
  kernel_ = find_kernel(storage_->isa, wanted_of(*storage_));
  wide_kernel_ = find_wide_kernel(storage_->isa, wanted_of(*storage_));
  allocate(*storage_);
  set_view(*storage_);
  if (!fill(rows, *storage_, false)) return rebuild_in_full(rows);
  storage_->complete = true;
}

void LocalMatrix::rebuild_in_full(LocalRows const& rows) {
  FormatRequest request = storage_->request;
  request.half_reach = 0;
  Tiling const tiling = storage_->tiling;
  Isa const isa = storage_->isa;
  storage_.reset();
  build(rows, tiling, request, isa);
}

StorageCount count_storage(LocalRows const& rows, Tiling const& tiling, FormatRequest request) {
  check_request(rows, tiling, request, active_isa());
  if (tiling.threads_per_row > 1) request.format = FormatRequest::Kind::csr;
  Counted const counted = count(rows, tiling, request);
  std::string why;
  Shape const& best = counted.candidates[choose(counted, tiling.block, tiling.threads_per_row, why)];
  int const unit = best.format == Format::bsr ? tiling.block * tiling.block : 1;
  return {best.format, best.sweep_bytes(tiling.block), best.left_out * unit};
}

LocalMatrix::LocalMatrix() = default;
LocalMatrix::LocalMatrix(LocalMatrix&&) noexcept = default;
LocalMatrix& LocalMatrix::operator=(LocalMatrix&&) noexcept = default;
LocalMatrix::~LocalMatrix() = default;

bool LocalMatrix::reads_ghosts(int slice) const {
  return storage_->reads.first[slice] != storage_->reads.first[slice + 1];
}
GhostReads const& LocalMatrix::ghost_reads() const { return storage_->reads; }
RowRange LocalMatrix::owned_reads(int slice, int slot) const {
  return storage_->owned_reads[static_cast<std::size_t>(storage_->first_reads[slice] + slot)];
}

std::int64_t LocalMatrix::bytes() const {
  MatrixStorage const& s = *storage_;
  std::int64_t const padding = value_padding * 8 * 2;  // of both arrays of values
  return bytes_per_sweep() + padding + bytes_of(s.reads.first) + bytes_of(s.reads.ghost) +
         bytes_of(s.owned_reads) + bytes_of(s.shape.reads) + bytes_of(s.first_reads) +
         bytes_of(s.order.interior) + bytes_of(s.order.boundary);
}

std::int64_t LocalMatrix::bytes_per_sweep() const {
  return storage_->shape.sweep_bytes(storage_->tiling.block);
}
std::int64_t LocalMatrix::entries() const { return storage_->entries; }
std::int64_t LocalMatrix::owned() const { return storage_->owned; }
std::int64_t LocalMatrix::ghosts() const { return storage_->ghosts; }
std::int64_t LocalMatrix::ghosts_below() const { return storage_->ghosts_below; }
Tiling const& LocalMatrix::tiling() const { return storage_->tiling; }
Format LocalMatrix::format() const { return storage_->shape.format; }
std::string LocalMatrix::why() const { return storage_->why; }

std::int64_t LocalMatrix::left_out() const { return storage_->shape.left_out; }
SweepOrder const& LocalMatrix::order() const { return storage_->order; }
std::int64_t LocalMatrix::ring() const { return storage_->shape.ring * ring_stride(storage_->tiling.block); }

void LocalMatrix::multiply(double const* x, double* out) const {
  std::vector<double> waiting(static_cast<std::size_t>(ring()), 0.0);
  Tiling const& t = tiling();
  order().for_each_group([&](std::span<int const> slices) {
    for (int s : slices) {
      for (std::int64_t block_row = t.first(s); block_row < t.first(s + 1);
           block_row += Tiling::accumulators) {
        int const block_rows =
            static_cast<int>(std::min<std::int64_t>(Tiling::accumulators, t.first(s + 1) - block_row));
        multiply(s, block_row, block_rows, x, out + block_row * t.block, waiting.data());
      }
    }
  });
}

int LocalMatrix::narrow_slices() const {
  auto const& slices = storage_->shape.slice;
  return static_cast<int>(
      std::count_if(slices.begin(), slices.end(), [](auto const& s) { return s.wide == 0; }));
}

std::string LocalMatrix::describe() const {
  MatrixStorage const& s = *storage_;
  std::string text = fmt::format("{} with block {}, 16-bit columns in {} of {} slices", name(format()),
                                 s.tiling.block, narrow_slices(), s.tiling.slices);
  if (format() == Format::sell) {
    auto const& groups = s.shape.group;
    text += fmt::format(", diagonals in {} of {} groups",
                        std::count_if(groups.begin(), groups.end(),
                                      [](auto const& g) { return g.kind != SellGroup::Kind::listed; }),
                        groups.size());
  }
  if (left_out() > 0) {
    text += fmt::format(", {} {} stored once for both triangles", left_out(),
                        format() == Format::bsr ? "blocks" : "entries");
  }
  if (s.tiling.threads_per_row > 1) text += fmt::format(", {} accumulators a row", s.tiling.threads_per_row);
  return text + fmt::format(", {} entries, {:.3f} MB, {} kernels", s.entries,
                            static_cast<double>(bytes()) * 1e-6, name(s.isa));
}

void LocalMatrix::update_values(LocalRows const& rows) {
  if (rows.owned() != owned() || rows.ghosts() != ghosts() || rows.ghosts_below() != ghosts_below()) {
    wrong(fmt::format(
        "new values for {} rows and {} ghosts, {} of them below, of a matrix with {}, {} and {} (values are "
        "replaced in place). Build a new matrix for a new pattern",
        rows.owned(), rows.ghosts(), rows.ghosts_below(), owned(), ghosts(), ghosts_below()));
  }
  if (!storage_->complete) {  // the memory did not suffice for an earlier update
    FormatRequest const request = storage_->request;
    return build(rows, Tiling(tiling()), request, storage_->isa);
  }
  if (!fill(rows, *storage_, true)) rebuild_in_full(rows);
}

LocalMatrix LocalMatrix::rounded_to_fp32() const {
  LocalMatrix copy;
  copy.storage_ = std::make_unique<MatrixStorage>(*storage_);
  for (auto* values : {&copy.storage_->value, &copy.storage_->far_value})
    for (double& value : *values) value = static_cast<double>(static_cast<float>(value));
  set_view(*copy.storage_);
  copy.view_ = &copy.storage_->view;
  copy.kernel_ = kernel_;
  copy.wide_kernel_ = wide_kernel_;
  return copy;
}

/// Whole cache lines: else half of all loads and stores of four sides are of two.
struct SidesRoom::Memory {
  Array<double> rings, values;
  std::vector<SidesWindow> windows;
};

void LocalMatrix::multiply(int slice, std::int64_t first_block_row, int block_rows, int count,
                           double const* const* x, double* const* out, SidesRoom& room) const noexcept {
  int c = 0;
  for (; wide_kernel_ != nullptr && c + 1 < count; c += wide_sides) {
    RightHandSides of;
    of.count = std::min(count - c, wide_sides);
    for (int w = 0; w < wide_sides; ++w) {
      int const from = c + std::min(w, of.count - 1);
      of.x[w] = x[from];
      of.out[w] = out[from];
    }
    of.ring = room.ring(c);
    of.window = &room.memory_->windows[static_cast<std::size_t>(c / wide_sides)];
    wide_kernel_(*view_, slice, first_block_row, block_rows, of);
  }
  for (; c < count; ++c) kernel_(*view_, slice, first_block_row, block_rows, x[c], out[c], room.ring(c));
}

SidesRoom::SidesRoom(LocalMatrix const* matrix, int count) : memory_(std::make_unique<Memory>()) {
  if (matrix == nullptr) return;
  std::int64_t const together = count == 1 ? 1 : (count + wide_sides - 1) / wide_sides * wide_sides;
  ring_ = matrix->ring();
  memory_->rings.resize(static_cast<std::size_t>(ring_ * together));
  std::fill(memory_->rings.begin(), memory_->rings.end(), 0.0);
  rings_ = memory_->rings.data();
  if (count == 1) return;
  MatrixStorage const& storage = *matrix->storage_;
  std::int64_t const unit = storage.shape.format == Format::bsr ? storage.tiling.block : 1;
  std::int64_t const values = storage.window * unit * wide_sides;
  memory_->windows.resize(static_cast<std::size_t>(together / wide_sides));
  memory_->values.resize(memory_->windows.size() * static_cast<std::size_t>(values));
  for (std::size_t w = 0; w < memory_->windows.size(); ++w)
    memory_->windows[w] = {memory_->values.data() + w * static_cast<std::size_t>(values), storage.window, 0,
                           0};
}
SidesRoom::SidesRoom(SidesRoom&&) noexcept = default;
SidesRoom& SidesRoom::operator=(SidesRoom&&) noexcept = default;
SidesRoom::~SidesRoom() = default;

void SidesRoom::begin_sweep() {
  for (SidesWindow& window : memory_->windows) window.first = window.end = 0;
}

std::optional<LocalMatrix::Entry> LocalMatrix::beyond_fp32() const { return find_beyond_fp32(*storage_); }

void LocalMatrix::diagonal_blocks(std::vector<double>& out) const { read_diagonal_blocks(*storage_, out); }

}  // namespace hostless
