#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "hostless/base/fused_vectors.hpp"

namespace hostless {

/// Values of some cells side by side, on which arithmetic does to each what it does to one: what is written for
/// a float or a double is computed for a whole vector register. Every value has the bits of one computed alone.
///
/// It is handed over by reference, whatever instruction set the caller and the callee are compiled for: its copy
/// constructor says so.
///
/// divides  a sixth of it is a division: of some processors that is the faster way
template <class T, int size, bool divides = false>
class Pack {
 public:
  static constexpr int bytes = size;
  static constexpr int width = size / static_cast<int>(sizeof(T));
  using Half = Pack<T, size / 2, divides>;

  Pack() = default;
  Pack(Pack const& other) : values_(other.values_) {}
  Pack& operator=(Pack const& other) {
    values_ = other.values_;
    return *this;
  }
  /// The same in all, rounded to T. Zeros keep their sign: -0 + 0 is +0, -0 - 0 is not.
  explicit Pack(double value) : values_(static_cast<T>(value) - Values{}) {}
  static Pack load(T const* first) {
    Pack found;
    std::memcpy(&found.values_, first, bytes);
    return found;
  }
  void store(T* first) const { std::memcpy(first, &values_, bytes); }

  /// The last value of `before` and all but the last of `here`; all but the first of `here` and the first of
  /// `after`.
  static Pack last_and(Pack const& before, Pack const& here) { return joined<width - 1>(before, here); }
  static Pack and_first(Pack const& here, Pack const& after) { return joined<1>(here, after); }
  /// The first value of `here` twice and all others but the last; all but the first, and the last twice.
  static Pack first_twice(Pack const& here) { return joined<-1>(here, here); }
  static Pack last_twice(Pack const& here) { return joined<1, width - 1>(here, here); }

  /// Each of them / 6 in every bit, mostly without a division, which long vectors wait for ten cycles and more: what the
  /// product misses is a number without loss, and the second product of it mends the first; but where the quotient lies
  /// halfway between two of the smallest numbers, and of infinities. (All floats were tried, and doubles by chance and
  /// around the smallest.)
  Pack sixth() const requires(is_fused<T, size> && !divides) {
    using Index = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
    typedef Index Bits __attribute__((vector_size(size)));
    Pack const part(1.0 / 6.0), six(6.0), halfway(3.0 * std::numeric_limits<T>::denorm_min());
    Values const near = values_ * part.values_;
    Values over;
    fused_product(six.values_, near, -values_, over);
    if (any_is_nan_or((Values)((Bits)over & std::numeric_limits<Index>::max()), halfway.values_))
      return *this / six;
    Pack found;
    fused_product(-over, part.values_, near, found.values_);
    return found;
  }

  friend Pack operator+(Pack const& a, Pack const& b) {
    Pack found;
    found.values_ = a.values_ + b.values_;
    return found;
  }
  friend Pack operator-(Pack const& a, Pack const& b) {
    Pack found;
    found.values_ = a.values_ - b.values_;
    return found;
  }
  friend Pack operator*(Pack const& a, Pack const& b) {
    Pack found;
    found.values_ = a.values_ * b.values_;
    return found;
  }
  friend Pack operator/(Pack const& a, Pack const& b) {
    Pack found;
    found.values_ = a.values_ / b.values_;
    return found;
  }

 private:
  /// Which of the values of two, one after the other, is the k-th from `from` on.
  static constexpr int index(int k, int most) { return k < 0 ? 0 : k > most ? most : k; }
  template <int from, int most = 2 * width - 1>
  static Pack joined(Pack const& low, Pack const& high) {
#if defined(HOSTLESS_GPU_COMPILER)  // nvcc's front end hands pack expansions of builtins on unexpanded
    Pack found;
    for (int k = 0; k < width; ++k) {
      int const i = index(from + k, most);
      found.values_[k] = i < width ? low.values_[i] : high.values_[i - width];
    }
    return found;
#else
    return [&]<int... k>(std::integer_sequence<int, k...>) {
      Pack found;
#if defined(__clang__) || __GNUC__ >= 12
      found.values_ = __builtin_shufflevector(low.values_, high.values_, index(from + k, most)...);
#else
      using Index = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
      typedef Index Indices __attribute__((vector_size(size)));
      found.values_ = __builtin_shuffle(low.values_, high.values_, Indices{index(from + k, most)...});
#endif
      return found;
    }
    (std::make_integer_sequence<int, width>{});
#endif
  }
  typedef T Values __attribute__((vector_size(size)));
  Values values_;
};

}  // namespace hostless
