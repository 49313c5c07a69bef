#pragma once
// Which rows of a gathered field a thread forms in the sweep that multiplies it (decision 0017): those of each
// slot shortly before the first of its slots that reads them, so that what was formed is still in the caches,
// and a few at a time between its products, so that memory delivers the ones while the others are computed.
// What other threads read is formed before the sweep begins.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "hostless/operate/local_matrix.hpp"

namespace hostless::host {

/// The slots of all slices, numbered in the order of their rows.
class AllSlots {
 public:
  struct Slot {
    int slice;
    std::int64_t first;                        ///< block row
    int count;                                 ///< block rows
    std::size_t first_read = 0, end_read = 0;  ///< slots that a product with it reads
  };
  explicit AllSlots(LocalMatrix const& matrix) : tiling_(matrix.tiling()), first_(1, 0) {
    Tiling const& t = tiling_;
    for (int s = 0; s < t.slices; ++s) {
      for (std::int64_t first = t.first(s), last = t.first(s + 1); first < last;
           first += Tiling::accumulators)
        slots_.push_back(
            {s, first, static_cast<int>(std::min<std::int64_t>(Tiling::accumulators, last - first))});
      first_.push_back(slots_.size());
    }
    for (std::size_t k = 0; k < slots_.size(); ++k) {
      Slot& slot = slots_[k];
      RowRange const rows =
          matrix.owned_reads(slot.slice, static_cast<int>(k - first_[static_cast<std::size_t>(slot.slice)]));
      slot.first_read = number_of(rows.first / t.block);
      slot.end_read = number_of((rows.last - 1) / t.block) + 1;
    }
  }
  std::size_t size() const { return slots_.size(); }
  Slot const& operator[](std::size_t k) const { return slots_[k]; }
  std::size_t first_of(int slice) const { return first_[static_cast<std::size_t>(slice)]; }

 private:
  std::size_t number_of(std::int64_t block_row) const {
    int const s = tiling_.slice_of(block_row);
    return first_of(s) + static_cast<std::size_t>((block_row - tiling_.first(s)) / Tiling::accumulators);
  }
  Tiling tiling_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> first_;  // of each slice, and one more
};

class FormedAhead {
 public:
  /// A thread forms the slots that it multiplies, of a matrix that is `threads` threads' work.
  FormedAhead(LocalMatrix const& matrix, SweepOrder const& order, int thread, int threads) {
    AllSlots const all(matrix);
    std::vector<int> mine;
    for (auto const* list : {&order.interior, &order.boundary})
      order.for_each_of(*list, thread, threads, [&](int s) { mine.push_back(s); });
    std::vector<char> is_mine(static_cast<std::size_t>(matrix.tiling().slices), 0);
    for (int const s : mine) is_mine[static_cast<std::size_t>(s)] = 1;
    std::vector<std::size_t> next = find_early(all, is_mine);
    find_order(all, mine, next);
  }

  /// form(first block row, block rows) for what others read; a sweep begins.
  template <class Form>
  void form_early(Form const& form) {
    for (Rows const& rows : early_) form(rows.first, rows.count);
    slot_ = next_ = 0;
    formed_ = within_ = 0;
  }
  /// For what the thread's next slot reads and is not formed yet: before each of its slots, in order.
  template <class Form>
  void form_for_slot(Form const& form) {
    form_up_to(needed_[slot_++], form);
  }
  /// For a share of what the slot after it reads, when so many shares are left in this one.
  template <class Form>
  void form_share(int left, Form const& form) {
    if (slot_ == needed_.size()) return;
    std::int64_t const missing = needed_[slot_] - formed_;
    if (missing > 0) form_up_to(formed_ + (missing + left - 1) / left, form);
  }
  /// For all that are left: none, where every slot was multiplied.
  template <class Form>
  void form_all(Form const& form) {
    if (!needed_.empty()) form_up_to(needed_.back(), form);
  }

 private:
  /// Block rows.
  struct Rows {
    std::int64_t first;
    int count;
  };
  /// So many rows of a column are formed after each other: shorter pieces cost more before and behind their vectors.
  static constexpr int together = LocalMatrix::step_of_sides;

  /// Of every slot it or the next one that is left for the sweep.
  std::vector<std::size_t> find_early(AllSlots const& all, std::vector<char> const& is_mine) {
    std::vector<int> change(all.size() + 1, 0);  // of the number of others' slots that read one
    auto const mine = [&](std::size_t k) { return is_mine[static_cast<std::size_t>(all[k].slice)] != 0; };
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (mine(k)) continue;
      ++change[all[k].first_read];
      --change[all[k].end_read];
    }
    std::vector<std::size_t> next(all.size() + 1);
    std::iota(next.begin(), next.end(), std::size_t{0});
    int readers = 0;
    for (std::size_t k = 0; k < all.size(); ++k) {
      readers += change[k];
      if (mine(k) && readers == 0) continue;
      if (mine(k)) early_.push_back({all[k].first, all[k].count});
      next[k] = k + 1;
    }
    return next;
  }
  void find_order(AllSlots const& all, std::vector<int> const& mine, std::vector<std::size_t>& next) {
    auto const find = [&](std::size_t k) {
      while (next[k] != k) k = next[k] = next[next[k]];
      return k;
    };
    std::int64_t rows = 0;
    for (int const s : mine) {
      for (std::size_t k = all.first_of(s); k < all.first_of(s + 1); ++k) {
        for (std::size_t one = find(all[k].first_read); one < all[k].end_read; one = find(one)) {
          order_.push_back({all[one].first, all[one].count});
          rows += all[one].count;
          next[one] = one + 1;
        }
        needed_.push_back(rows);
      }
    }
  }
  template <class Form>
  void form_up_to(std::int64_t rows, Form const& form) {
    while (formed_ < rows) {
      Rows const& slot = order_[next_];
      int const count = std::min(together, slot.count - within_);
      form(slot.first + within_, count);
      formed_ += count;
      within_ += count;
      if (within_ < slot.count) continue;
      within_ = 0;
      ++next_;
    }
  }

  std::vector<Rows> early_, order_;   // slots: those that others read, and the others as they are needed
  std::vector<std::int64_t> needed_;  // block rows of order_ that each of the thread's slots needs
  std::size_t slot_ = 0, next_ = 0;   // in needed_ the next one; in order_
  std::int64_t formed_ = 0;           // block rows of order_,
  int within_ = 0;                    // of them those of the slot at hand
};

}  // namespace hostless::host
