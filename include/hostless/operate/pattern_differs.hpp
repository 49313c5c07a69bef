#pragma once

#include <cstdint>

#include "hostless/base/error.hpp"

namespace hostless {

/// New values in another pattern than the matrix has, as LocalMatrix::update_values finds it.
class PatternDiffers : public Error {
 public:
  /// named  the row's number for whom the text is for
  PatternDiffers(std::int64_t local_row, std::int64_t named);
  std::int64_t local_row() const { return local_row_; }

 private:
  std::int64_t local_row_;
};

}  // namespace hostless
