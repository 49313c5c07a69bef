#include "transport/stream/stream_transports.hpp"

#include "transport/stream/limits.hpp"

namespace hostless::gpu {
namespace {

StreamTransport const& row_of(GpuTransport transport, char const* wanted) {
  for (StreamTransport const& one : stream_transports())
    if (one.facts.transport == transport) return one;
  throw Error(ErrorCode::usage, "GPU transport number " + std::to_string(static_cast<int>(transport)) + " " +
                                    wanted +
                                    " (this GPU library has none of that number). Use another GPU "
                                    "transport.");
}

}  // namespace

std::unique_ptr<StreamEndpoint> make_stream_endpoint(GpuTransport transport, StreamSetup const& setup) {
  if (setup.ranks > most_ranks)
    throw Error(ErrorCode::usage, std::to_string(setup.ranks) +
                                      " ranks on GPUs (kernels add the sums of at most " +
                                      std::to_string(most_ranks) + "). Use fewer ranks.");
  return row_of(transport, "with a stream face").make(setup);
}

std::string library_of(GpuTransport transport) {
  StreamTransport const& row = row_of(transport, "with a library");
  return row.library == nullptr ? std::string() : row.library().library;
}

namespace {

StreamTransport const& with_memory(GpuTransport transport) {
  StreamTransport const& row = row_of(transport, "with symmetric memory");
  if (row.offer == nullptr)
    throw Error(ErrorCode::usage, std::string("GPU transport ") + name(transport) +
                                      " with symmetric memory (it has none). Use another GPU transport.");
  return row;
}

}  // namespace

SymmetricOffer symmetric_offer(GpuTransport transport, StreamSetup const& setup, std::int64_t window_bytes) {
  return with_memory(transport).offer(setup, window_bytes);
}

std::shared_ptr<SymmetricMemory> symmetric_memory(GpuTransport transport, StreamSetup const& setup,
                                                  std::vector<SymmetricOffer> const& all) {
  return with_memory(transport).memory(setup, all);
}

TransportFacts library_facts(char const* name, std::string (*version)(), std::string (*detail)()) {
  try {
    return {name, version(), "", detail == nullptr ? "" : detail()};
  } catch (Error const& error) {
    return {name, "", error.what(), ""};
  }
}

std::vector<TransportFacts> library_transports() {
  std::vector<TransportFacts> all;
  for (StreamTransport const& one : stream_transports())
    if (one.library != nullptr) all.push_back(one.library());
  return all;
}

}  // namespace hostless::gpu
