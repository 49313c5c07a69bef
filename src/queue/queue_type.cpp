#include <array>
#include <string>

#include "hostless/queue/queue.hpp"

namespace hostless {
namespace {

constexpr std::array<char const*, 6> type_names = {"auto", "threads", "peer", "mpi", "nccl", "ofi"};

}  // namespace

char const* name(QueueType type) { return type_names.at(static_cast<std::size_t>(type)); }

QueueType queue_type_from(char const* text) {
  for (std::size_t k = 0; k < type_names.size(); ++k)
    if (std::string(text) == type_names[k]) return static_cast<QueueType>(k);
  throw Error(ErrorCode::usage, "queue type '" + std::string(text) +
                                    "' (there is none). Use auto, threads, peer, mpi, nccl or ofi.");
}

}  // namespace hostless
