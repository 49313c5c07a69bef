#include "array_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/crew.hpp"
#include "base/processors.hpp"
#include "hostless/base/error.hpp"

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
    std::int64_t const at = first - arrays_.first_row;
    std::int64_t const begin = arrays_.offset_at(at), end = arrays_.offset_at(at + count);
    out.offset.resize(static_cast<std::size_t>(count) + 1);
    for (std::int64_t i = 0; i <= count; ++i)
      out.offset[static_cast<std::size_t>(i)] = arrays_.offset_at(at + i) - begin;
    out.column.resize(static_cast<std::size_t>(end - begin));
    for (std::int64_t k = begin; k < end; ++k)
      out.column[static_cast<std::size_t>(k - begin)] = arrays_.column_at(k);
  }
  void panel(std::int64_t first, std::int64_t count, RowPanel& out) const override {
    pattern(first, count, out);
    std::int64_t const begin = arrays_.offset_at(first - arrays_.first_row);
    if (arrays_.value != nullptr) {
      out.value.assign(arrays_.value + begin, arrays_.value + begin + out.offset.back());
      return;
    }
    out.value.resize(out.column.size());
    for (std::size_t k = 0; k < out.value.size(); ++k)
      out.value[k] = static_cast<double>(begin + static_cast<std::int64_t>(k) + 1);
  }
  bool is_concurrent() const override { return true; }

 private:
  Arrays const arrays_;
  std::int64_t first_, last_;
};

// Walks the rows in order, and in each row a cursor over the entries whose mirrors have been met: the mirror
// of (i, j), if there is one, stands where the cursor of row j is, because rows i come in order.
class MirrorWalk {
 public:
  explicit MirrorWalk(Arrays const& arrays) : a_(arrays), cursor_(static_cast<std::size_t>(arrays.rows)) {
    for (std::int64_t row = 0; row < a_.rows; ++row) cursor_[at(row)] = a_.offset_at(row);
    diagonal_.resize(cursor_.size());
    for (std::int64_t row = 0; row < a_.rows; ++row) diagonal_[at(row)] = diagonal_of(row);
  }

  std::optional<Mirror> walk() {
    for (std::int64_t row = 0; row < a_.rows; ++row) {
      for (std::int64_t k = a_.offset_at(row); k < a_.offset_at(row + 1); ++k) {
        std::int64_t const column = a_.column_at(k);
        judge(row, column, a_.value[k], mirror_of(row, column));
      }
    }
    // What no row has met has no mirror.
    for (std::int64_t row = 0; row < a_.rows; ++row)
      for (; cursor_[at(row)] < a_.offset_at(row + 1); ++cursor_[at(row)]) lonely(row, cursor_[at(row)]);
    return worst_;
  }

 private:
  static std::size_t at(std::int64_t k) { return static_cast<std::size_t>(k); }
  double diagonal_of(std::int64_t row) const {
    std::int64_t low = a_.offset_at(row), high = a_.offset_at(row + 1);
    while (low < high) {
      std::int64_t const middle = low + (high - low) / 2;
      (a_.column_at(middle) < row ? low : high) = a_.column_at(middle) < row ? middle + 1 : middle;
    }
    return low < a_.offset_at(row + 1) && a_.column_at(low) == row ? std::abs(a_.value[low]) : 0.0;
  }
  double mirror_of(std::int64_t row, std::int64_t column) {
    std::int64_t& k = cursor_[at(column)];
    std::int64_t const end = a_.offset_at(column + 1);
    for (; k < end && a_.column_at(k) < row; ++k) lonely(column, k);
    if (k == end || a_.column_at(k) != row) return 0;
    return a_.value[k++];
  }
  void lonely(std::int64_t row, std::int64_t k) { judge(row, a_.column_at(k), a_.value[k], 0); }
  void judge(std::int64_t row, std::int64_t column, double value, double other) {
    if (value == other) return;
    double const size = std::max(
        {std::abs(value), std::abs(other), std::sqrt(diagonal_[at(row)]) * std::sqrt(diagonal_[at(column)])});
    double const difference = std::abs(value - other) / size;
    // NaN and infinity are for the solve to find: they are no asymmetry.
    if (!std::isfinite(difference) || (worst_ && difference <= worst_->difference)) return;
    worst_ = Mirror{difference, row, column, value, other};
  }

  Arrays const& a_;
  std::vector<std::int64_t> cursor_;
  std::vector<double> diagonal_;
  std::optional<Mirror> worst_;
};

}  // namespace

std::unique_ptr<RowSource> rows_of(Arrays const& arrays, std::int64_t first, std::int64_t last) {
  return std::make_unique<ArrayRows>(arrays, first, last);
}

namespace {

[[noreturn]] void refuse(std::string const& text) { throw Error(ErrorCode::bad_input, text); }

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
  constexpr std::int64_t worth_a_part = 1 << 14;
  auto const parts = static_cast<int>(std::min<std::int64_t>(1 + a.rows / worth_a_part, 256));
  for (auto const check : {check_offsets, check_columns}) {  // offsets that fall may point anywhere
    share_out(processors_of_rank(1, true), parts,
              [&](int part) { check(a, piece(part, parts, a.rows), piece(part + 1, parts, a.rows)); });
  }
}

std::optional<Mirror> compare_with_mirror(Arrays const& arrays) { return MirrorWalk(arrays).walk(); }

}  // namespace hostless::python
