// Slices count their entries in 32 bits, and the values of as many blocks in more: kernels find them behind 2^32 values.
#include <gtest/gtest.h>

#include <vector>

#include "operate/matrix_view.hpp"

namespace hostless {
namespace {

/// Three block rows, A[0, 0], A[0, 1] (twice where halved), A[1, 1] and A[2, 2], whose entries are counted from `before`
/// on: as if that many lay in front of them.
class Counted {
 public:
  Counted(int block, bool is_halved, std::uint32_t before) : b_(block) {
    for (std::uint32_t const at : {0u, 2u, 3u, 4u}) start_.push_back(before + at);
    if (is_halved) column_[1] |= once_narrow;
    for (int k = 0; k < 4 * b_ * b_ + value_padding; ++k) value_.push_back(1.0 + k % 97);
    for (int k = 0; k < 8 * b_; ++k) x_.push_back(0.5 + k % 31);
    slice_.value = -std::int64_t{before} * b_ * b_;
    slice_.column = -std::int64_t{before};
    view_.tiling = {3, b_, 1};
    view_.slice = &slice_;
    view_.start = start_.data();
    view_.value = value_.data();
    view_.narrow = column_;
    view_.halved = {first_, &none_, nullptr, nullptr, nullptr, nullptr, 4};
    view_.first_reads = first_;
    view_.reads = &reads_;
  }
  std::vector<double> product(Kernel kernel) {
    std::vector<double> out(3 * std::size_t(b_) + 8), ring(64, 0.0);
    kernel(view_, 0, 0, 3, x_.data(), out.data(), ring.data());
    return out;
  }
  std::vector<double> products(WideKernel kernel) {
    std::vector<double> out(wide_sides * rows()), ring(64 * wide_sides, 0.0);
    SidesWindow window;
    RightHandSides sides{{}, {}, wide_sides, ring.data(), &window};
    for (int w = 0; w < wide_sides; ++w) {
      sides.x[w] = x_.data() + w;
      sides.out[w] = out.data() + std::size_t(w) * rows();
    }
    kernel(view_, 0, 0, 3, sides);
    return out;
  }

 private:
  std::size_t rows() const { return 3 * static_cast<std::size_t>(b_); }
  int b_;
  std::vector<std::uint32_t> start_;
  std::uint16_t column_[4] = {0, 1, 1, 2};
  std::vector<double> value_, x_;
  SliceStart slice_;
  std::int64_t first_[2] = {0, 1};
  FarRange none_;
  SlotReads reads_{0, 3};
  MatrixView view_;
};

TEST(KernelOffsets, ValuesBeyond32Bits) {
  constexpr std::uint32_t blocks = 1u
                                   << 30;  // 2^32 values in blocks of 2, and 36 times as many in blocks of 6
  for (Isa const isa : {Isa::baseline, Isa::v3, Isa::v4}) {
    if (isa > active_isa()) continue;
    for (int const b : {2, 3, 4, 6}) {
      for (bool const is_halved : {false, true}) {
        KernelWanted const wanted{Format::bsr, b, is_halved, 1};
        Counted near(b, is_halved, 0), far(b, is_halved, blocks);
        EXPECT_EQ(near.product(find_kernel(isa, wanted)), far.product(find_kernel(isa, wanted)))
            << b << is_halved;
        WideKernel const wide = find_wide_kernel(isa, wanted);
        if (wide == nullptr) continue;
        EXPECT_EQ(near.products(wide), far.products(wide)) << b << is_halved;
      }
    }
  }
}

}  // namespace
}  // namespace hostless
