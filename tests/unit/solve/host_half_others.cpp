// What library.gpu.cpp and the streams of other libraries would bring.
#include <cstdlib>
#include <string>

#include "exchange/gpu/exchange_steps.hpp"
#include "exchange/gpu/grouped_sends.hpp"
#include "exchange/gpu/sparse_product.hpp"
#include "hostless/base/error.hpp"
#include "transport/nccl/facts.hpp"
#include "transport/nvshmem/facts.hpp"
#include "transport/stream/stream_transports.hpp"

namespace hostless::gpu {
namespace {

std::string version() { return "a library of the tests"; }
std::string detail() { return "by what tests say"; }
std::string no_version() { throw Error(ErrorCode::environment, "absent"); }

}  // namespace

bool guarded() { return std::getenv("HOSTLESS_GPU_GUARD") != nullptr; }
// Of a device, and of a library that nobody calls here.
int most_step_blocks(int) { return 1; }
void queue_exchange_steps(kernel::KernelExchange const&, void const*, void*, int, HOSTLESS_GPU(Stream_t)) {}
void queue_sparse_product(SparseProduct const&, HOSTLESS_GPU(Stream_t)) {}
UniqueId make_group_name() { return {}; }
std::unique_ptr<GroupedSends> make_grouped_sends(GroupedRank const&) { return nullptr; }
StreamTransport nccl_stream() {
  return {nccl_facts, nullptr, [] { return library_facts("nccl", version, detail); }};
}
StreamTransport nvshmem_stream() {
  return {nvshmem_facts, nullptr, [] { return library_facts("nvshmem", no_version); }};
}

}  // namespace hostless::gpu
