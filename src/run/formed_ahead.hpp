#pragma once
// Which slices of a gathered field a thread forms in the sweep that multiplies it (decision 0017): each shortly
// before the first of its slices that reads it, so that what was formed is still in the caches. What other
// threads read is formed before the sweep begins.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "hostless/operate/local_matrix.hpp"

namespace hostless::host {

class FormedAhead {
 public:
  /// A thread forms the slices that it multiplies, of a matrix that is `threads` threads' work.
  FormedAhead(LocalMatrix const& matrix, SweepOrder const& order, int thread, int threads) {
    Tiling const& t = matrix.tiling();
    auto const slices = static_cast<std::size_t>(t.slices);
    std::vector<int> owner(slices, 0);
    for (auto const* list : {&order.interior, &order.boundary})
      for (int one = 0; one < threads; ++one)
        order.for_each_of(*list, one, threads, [&](int s) { owner[static_cast<std::size_t>(s)] = one; });
    std::vector<int> change(slices + 1, 0);  // of the number of others' slices that read one
    reads_.resize(slices);
    for (std::size_t s = 0; s < slices; ++s) {
      reads_[s] = slices_of(t, matrix.owned_reads(static_cast<int>(s)));
      if (owner[s] == thread) continue;
      ++change[static_cast<std::size_t>(reads_[s].first)];
      --change[static_cast<std::size_t>(reads_[s].last)];
    }
    int readers = 0;
    for (std::size_t s = 0; s < slices; ++s) {
      readers += change[s];
      if (owner[s] != thread) continue;
      mine_.push_back(static_cast<int>(s));
      if (readers > 0) early_.push_back(static_cast<int>(s));
    }
    is_formed_.resize(slices);
  }

  /// form(slice) for what others read; a sweep begins.
  template <class Form>
  void form_early(Form const& form) {
    std::fill(is_formed_.begin(), is_formed_.end(), 0);
    next_ = 0;
    for (int const s : early_) form_one(s, form);
  }
  /// For what a slice reads and is not formed yet.
  template <class Form>
  void form_for(int slice, Form const& form) {
    Range const reads = reads_[static_cast<std::size_t>(slice)];
    while (next_ < mine_.size() && is_formed_[static_cast<std::size_t>(mine_[next_])] != 0) ++next_;
    for (std::size_t at = next_; at < mine_.size() && mine_[at] < reads.last; ++at)
      if (mine_[at] >= reads.first) form_one(mine_[at], form);
  }
  /// For all that are left: none, where every slice was multiplied.
  template <class Form>
  void form_all(Form const& form) {
    for (int const s : mine_) form_one(s, form);
  }

 private:
  struct Range {
    int first = 0, last = 0;
  };
  static Range slices_of(Tiling const& t, RowRange const& rows) {
    if (rows.first >= rows.last) return {};
    return {t.slice_of(rows.first / t.block), t.slice_of((rows.last - 1) / t.block) + 1};
  }
  template <class Form>
  void form_one(int slice, Form const& form) {
    char& is_formed = is_formed_[static_cast<std::size_t>(slice)];
    if (is_formed != 0) return;
    is_formed = 1;
    form(slice);
  }

  std::vector<Range> reads_;       // of every slice
  std::vector<int> mine_, early_;  // rising
  std::vector<char> is_formed_;
  std::size_t next_ = 0;  // in mine_: before it all are formed
};

}  // namespace hostless::host
