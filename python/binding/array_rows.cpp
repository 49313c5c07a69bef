#include "array_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/processors.hpp"
#include "base/setup_watch.hpp"
#include "base/thread_team.hpp"
#include "hostless/base/error.hpp"
#include "operate/gpu/value_indices.impl.hpp"
#include "solve/matrix/cut_rows.hpp"

namespace hostless::python {
namespace {

class ArrayRows final : public RowSource {
 public:
  ArrayRows(Arrays const& arrays, std::int64_t first, std::int64_t last)
      : arrays_(arrays), first_(first), last_(last) {}
  std::int64_t global_rows() const override { return arrays_.columns; }
  std::int64_t first_row() const override { return first_; }
  std::int64_t last_row() const override { return last_; }
  void pattern(std::int64_t first, std::int64_t count, RowPanel& out) const override {
    cut_pattern(
        first - arrays_.first_row, count, [&](std::int64_t row) { return arrays_.offset_at(row); },
        [&](std::int64_t k) { return arrays_.column_at(k); }, out);
  }
  void panel(std::int64_t first, std::int64_t count, RowPanel& out) const override {
    pattern(first, count, out);
    std::int64_t const begin = arrays_.offset_at(first - arrays_.first_row);
    out.value.assign(arrays_.value + begin, arrays_.value + begin + out.offset.back());
  }
  bool is_concurrent() const override { return true; }

 private:
  Arrays const arrays_;
  std::int64_t first_, last_;
};

}  // namespace

std::unique_ptr<RowSource> rows_of(Arrays const& arrays, std::int64_t first, std::int64_t last) {
  return std::make_unique<ArrayRows>(arrays, first, last);
}

namespace {

[[noreturn]] void refuse(std::string const& text) { throw Error(ErrorCode::bad_input, text); }

int row_parts(Arrays const& a) {
  constexpr std::int64_t worth_a_part = 1 << 14;
  return static_cast<int>(std::min<std::int64_t>(1 + a.rows / worth_a_part, 256));
}
/// work(part, first row, past the last), by all processors.
template <class Work>
void share_rows_out(Arrays const& a, Work const& work) {
  int const parts = row_parts(a);
  share_out(processors_of_rank(1, true), parts,
            [&](int part) { work(part, piece(part, parts, a.rows), piece(part + 1, parts, a.rows)); });
}

void check_offsets(Arrays const& a, std::int64_t first, std::int64_t last) {
  for (std::int64_t row = first; row < last; ++row)
    if (a.offset_at(row + 1) < a.offset_at(row))
      refuse(fmt::format("offsets fall behind row {} (a row cannot end before it begins).", row));
}

void check_columns(Arrays const& a, std::int64_t first, std::int64_t last) {
  for (std::int64_t row = first; row < last; ++row) {
    std::int64_t before = -1;
    for (std::int64_t k = a.offset_at(row); k < a.offset_at(row + 1); ++k) {
      std::int64_t const column = a.column_at(k);
      if (column < 0 || column >= a.columns)
        refuse(fmt::format("column {} in row {} (the matrix has {}).", column, row, a.columns));
      if (column <= before)
        refuse(fmt::format("column {} after column {} in row {} (columns rise inside a row).", column, before,
                           row));
      before = column;
    }
  }
}

}  // namespace

void check_arrays(Arrays const& a) {
  if (a.offset_at(0) != 0) refuse(fmt::format("the first offset is {} (rows start at 0).", a.offset_at(0)));
  for (auto const check : {check_offsets, check_columns})  // offsets that fall may point anywhere
    share_rows_out(a, [&](int, std::int64_t first, std::int64_t last) { check(a, first, last); });
}

std::optional<Mirror> compare_with_mirror(Arrays const& a) {
  auto const numbers = [&](void const* array, GpuArray::Number number) {
    return gpu::Numbers{const_cast<void*>(array), 1, number};
  };
  auto const whole = a.wide ? GpuArray::Number::int64 : GpuArray::Number::int32;
  gpu::RowsOfCaller const rows{a.rows, numbers(a.offset, whole), numbers(a.column, whole),
                               numbers(a.value, GpuArray::Number::fp64)};
  SetupStage const stage("comparing both triangles", a.rows);
  std::vector<Mirror> worst(static_cast<std::size_t>(row_parts(a)));
  share_rows_out(a, [&](int part, std::int64_t first, std::int64_t last) {
    Mirror& mine = worst[static_cast<std::size_t>(part)];
    bool differs = false;
    constexpr std::int64_t between_steps = 4096;
    for (std::int64_t row = first; row < last; ++row) {
      if ((row - first) % between_steps == 0) setup_step(std::min(between_steps, last - row));
      for (std::int64_t k = a.offset_at(row); k < a.offset_at(row + 1); ++k) {
        double const difference = gpu::mirror_difference(rows, row, k, differs);
        if (difference <= mine.difference) continue;
        std::int64_t const column = a.column_at(k);
        mine = {difference, row, column, a.value[k], gpu::entry_at(rows, column, row)};
      }
    }
  });
  auto const most = std::max_element(worst.begin(), worst.end(), [](Mirror const& x, Mirror const& y) {
    return x.difference < y.difference;
  });
  return most->difference > 0 ? std::optional(*most) : std::nullopt;
}

}  // namespace hostless::python
