#pragma once

#include <cstdint>
#include <string>

#include "hostless/solve/matrix.hpp"

namespace hostless {

/// MatrixOptions in the words that people use on the command line and in scripts.
struct LayoutWords {
  std::string partition = "auto";  ///< auto, contiguous, metis or file:PATH
  /// auto, csr, bsr, bsr2, bsr3, bsr4, bsr6 or sell; with GPUs a layout there (MatrixOptions::gpu_format)
  std::string format = "auto";
  std::string columns = "auto";  ///< auto, 16 or 32
  std::string route = "auto";    ///< direct, two_step, three_step, split, leader or auto
  int block = 0, slices = 0, threads_per_row = 1, ranks_per_node = 0;
  int setup_threads = 0;  ///< as MatrixOptions::setup_threads

  /// seed  of METIS
  /// gpus  above 0: `format` speaks of the layout there; the processor's, which set-up work uses, is then
  ///       the plainest
  /// Errors  usage  unknown words, or words that contradict each other
  MatrixOptions parse(std::uint64_t seed, int gpus = 0) const;
};

}  // namespace hostless
