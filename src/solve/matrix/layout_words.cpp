#include "hostless/solve/layout_words.hpp"

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/nearest.hpp"

namespace hostless {

MatrixOptions LayoutWords::parse(std::uint64_t seed, int gpus) const {
  MatrixOptions o;
  o.seed = static_cast<int>(seed & 0x7fffffff);  // METIS counts seeds in 31 bits
  using Partition = MatrixOptions::Partition;
  if (partition == "auto") {
    o.partition = Partition::automatic;
  } else if (partition == "contiguous") {
    o.partition = Partition::contiguous;
  } else if (partition == "metis") {
    o.partition = Partition::metis;
  } else if (partition.rfind("file:", 0) == 0 && partition.size() > 5) {
    o.partition = Partition::file;
    o.partition_file = partition.substr(5);
  } else {
    throw Error(ErrorCode::usage,
                fmt::format("unknown partition '{}'.{} Use auto, contiguous, metis or file:PATH.", partition,
                            did_you_mean(partition, {"auto", "contiguous", "metis"})));
  }
  std::string kind = format;
  o.block = block;
  if (gpus > 0) {
    o.gpus = gpus;
    o.gpu_format = format;
    kind = "csr";
  }
  if (kind.size() == 4 && kind.rfind("bsr", 0) == 0) {  // bsr3 is bsr with blocks of 3
    int const wanted = kind[3] - '0';
    if (block != 0 && block != wanted) {
      throw Error(ErrorCode::usage,
                  fmt::format("--format {} with --block-size {} is refused (they contradict each other).",
                              format, block));
    }
    o.block = wanted;
    kind = "bsr";
  }
  o.format = FormatRequest::from(kind, columns);
  o.automatic_route = route == "auto";
  if (!o.automatic_route) o.route = route_from(route.c_str());
  if (slices < 0 || ranks_per_node < 0)
    throw Error(ErrorCode::usage,
                fmt::format("{}, {} a node (there cannot be fewer than none). Use 0 for automatic.",
                            counted(slices, "slice"), counted(ranks_per_node, "rank")));
  o.slices = slices;
  if (!Tiling::has_threads_per_row(threads_per_row))
    throw Error(
        ErrorCode::usage,
        fmt::format("--row-lanes {} (a row's accumulators are halved until one is left). Use 1, 2, 4, 8, "
                    "16 or 32.",
                    threads_per_row));
  o.threads_per_row = threads_per_row;
  o.ranks_per_node = ranks_per_node;
  o.setup_threads = setup_threads;
  return o;
}

}  // namespace hostless
