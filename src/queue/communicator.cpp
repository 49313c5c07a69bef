// Requests: messages and collectives.
#include <algorithm>
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/counted.hpp"
#include "base/hash.hpp"
#include "queue/communicator_state.hpp"
#include "queue/match.hpp"
#include "queue/reduce.hpp"

namespace hostless {
namespace {

using queue::CommunicatorState;
using queue::Kind;
using queue::RequestState;
using queue::Side;

void check_peer(CommunicatorState const& state, int peer, int tag, bool receives) {
  if (peer == Communicator::any_rank || tag == Communicator::any_tag)
    throw QueueError(Refusal::wildcard, std::string("any ") +
                                            (peer != Communicator::any_rank ? "tag"
                                             : receives                     ? "rank as a source"
                                                                            : "rank as a target") +
                                            " (a match is once and for good). Name it.");
  if (peer < 0 || peer >= state.size())
    throw Error(ErrorCode::usage, "rank " + std::to_string(peer) + " (there " +
                                      (state.size() == 1 ? "is " : "are ") + std::to_string(state.size()) +
                                      "). Use " + (state.size() == 1 ? "" : "one from 0 to ") +
                                      std::to_string(state.size() - 1) + ".");
  if (tag < 0)
    throw Error(ErrorCode::usage, "tag " + std::to_string(tag) + " (tags count from 0). Use another.");
}

// What a GPU's kernels are to load or store.
void check_memory(CommunicatorState const& state, void const* buffer, std::size_t bytes) {
  if (state.gpu() < 0 || bytes == 0) return;
  std::string const why = gpu::message_library().why_unreached(buffer, state.gpu());
  if (why.empty()) return;
  throw QueueError(Refusal::unsupported,
                   "a buffer in " + why + ", of a request of GPU " + std::to_string(state.gpu()) +
                       " (its kernels load and store there). Give memory of that GPU, or "
                       "pinned memory of the host.");
}

std::shared_ptr<RequestState> make_send(CommunicatorState& state, Kind kind,
                                        std::span<std::byte const> buffer, int peer, int tag) {
  check_peer(state, peer, tag, false);
  check_memory(state, buffer.data(), buffer.size());
  auto request = state.make(kind, peer, tag);
  state.add_part(*request, peer, Side::sender, buffer, {});
  return request;
}

// Bytes of `count` elements. Errors  usage  no memory has as many, `times` of them
std::size_t bytes_of_all(std::size_t count, Datatype datatype, std::size_t times) {
  std::size_t const one = bytes_of(datatype);
  if (count > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) / one / times)
    throw Error(ErrorCode::usage, std::to_string(count) + " elements of " + std::to_string(one) +
                                      " bytes (no memory has as many). Give their number.");
  return count * one;
}

// What arrives from the others, and the result.
void take_memory(RequestState& request, std::size_t bytes) {
  try {
    request.memory.resize(bytes);
  } catch (std::bad_alloc const&) {
    throw Error(ErrorCode::environment, "out of memory: an all-reduce takes " + std::to_string(bytes) +
                                            " bytes beside its buffers (those of each rank and the result). "
                                            "Reduce the elements in several requests.");
  }
}

std::uint64_t signature_of(std::vector<std::int64_t> const& facts) {
  Hash hash;
  hash.add(facts);
  return hash.value();
}

// Each rank with each, so that all agree; what is not carried is only agreed about.
std::shared_ptr<RequestState> make_collective(CommunicatorState& state, Kind kind,
                                              std::vector<std::int64_t> facts) {
  facts.push_back(static_cast<int>(kind));
  auto request = state.make(kind, -1, -1);
  for (int k = 1; k < state.size(); ++k) {
    for (Side const side : {Side::sender, Side::receiver}) {
      // Ranks in turn, so that not all begin with the same one.
      int const peer = (state.rank() + (side == Side::sender ? k : state.size() - k)) % state.size();
      state.add_part(*request, peer, side, {}, {});
      request->offers.back().signature = signature_of(facts);
    }
  }
  return request;
}

}  // namespace

std::size_t bytes_of(Datatype datatype) {
  switch (datatype) {
    case Datatype::f32:
    case Datatype::i32:
      return 4;
    case Datatype::f64:
    case Datatype::i64:
      return 8;
    case Datatype::byte:
      return 1;
  }
  throw Error(ErrorCode::usage, "datatype number " + std::to_string(static_cast<int>(datatype)) +
                                    " (there is none). Use one of Datatype.");
}

Communicator::Communicator(Transport& transport, int gpu, QueueType by) {
  bool const is_gpus = by == QueueType::peer || by == QueueType::nccl;
  if (by != QueueType::automatic && (!is_gpus || gpu == no_gpu))
    throw Error(ErrorCode::usage,
                std::string("a communicator by ") + name(by) +
                    (is_gpus ? " without a GPU (it carries between GPUs). Name that of this rank."
                             : " (between GPUs carry peer and nccl). Use one of them, or auto."));
  state_ = std::make_shared<CommunicatorState>(transport, gpu, by == QueueType::nccl);
}
Communicator::~Communicator() { state_->close(); }

void Communicator::set_limit(double seconds) {
  queue::check_limit(seconds);
  state_->set_match_limit(seconds);
}

Request Communicator::send_init(std::span<std::byte const> buffer, int peer, int tag) {
  return Request(make_send(*state_, Kind::send, buffer, peer, tag));
}
Request Communicator::ready_send_init(std::span<std::byte const> buffer, int peer, int tag) {
  return Request(make_send(*state_, Kind::ready_send, buffer, peer, tag));
}
Request Communicator::receive_init(std::span<std::byte> buffer, int peer, int tag) {
  check_peer(*state_, peer, tag, true);
  check_memory(*state_, buffer.data(), buffer.size());
  auto request = state_->make(Kind::receive, peer, tag);
  state_->add_part(*request, peer, Side::receiver, {}, buffer);
  return Request(std::move(request));
}

Request Communicator::barrier_init() { return Request(make_collective(*state_, Kind::barrier, {})); }

Request Communicator::all_reduce_init(void const* from, void* result, std::size_t count, Datatype datatype,
                                      ReduceOperation operation) {
  auto const copies = static_cast<std::size_t>(state_->size() + 1);
  std::size_t const bytes = bytes_of_all(count, datatype, copies);
  if (operation > ReduceOperation::maximum)
    throw Error(ErrorCode::usage, "reduction number " + std::to_string(static_cast<int>(operation)) +
                                      " (there is none). Use one of ReduceOperation.");
  auto request = make_collective(
      *state_, Kind::all_reduce,
      {static_cast<std::int64_t>(count), static_cast<int>(datatype), static_cast<int>(operation)});
  auto const* const mine = static_cast<std::byte const*>(from);
  bool const on_gpu = state_->gpu() >= 0;
  if (on_gpu) {
    for (void const* const array : {from, static_cast<void const*>(result)}) {
      check_memory(*state_, array, bytes);
      if (reinterpret_cast<std::uintptr_t>(array) % bytes_of(datatype) != 0)
        throw Error(ErrorCode::usage,
                    "an array of a reduction that begins in the middle of a number (a GPU "
                    "loads whole ones). Align it.");
    }
    request->gpu_memory = gpu::message_library().memory(
        state_->gpu(), std::max<std::size_t>(1, bytes * static_cast<std::size_t>(state_->size())));
    request->on_gpu_done = {{request->gpu_memory.get(), mine, static_cast<std::byte*>(result), count,
                             state_->size(), state_->rank(), datatype, operation},
                            gpu::message_library().lend_side(state_->gpu(), 0)};
  } else {
    take_memory(*request, bytes * copies);
  }
  std::byte* const all = on_gpu ? request->gpu_memory.get() : request->memory.data();
  for (queue::Offer& offer : request->offers) {
    offer.bytes = bytes;
    if (offer.side() == Side::sender) {
      offer.from = mine;
    } else {
      offer.to = all + static_cast<std::size_t>(offer.key.peer) * bytes;
    }
  }
  // The state's, which has the memory, lives as long as this is called.
  request->done = [=, ranks = static_cast<std::size_t>(state_->size()),
                   rank = static_cast<std::size_t>(state_->rank())] {
    if (bytes == 0) return;
    std::byte* const total = all + ranks * bytes;
    std::copy_n(mine, bytes, all + rank * bytes);
    std::copy_n(all, bytes, total);
    for (std::size_t r = 1; r < ranks; ++r) queue::reduce(total, all + r * bytes, count, datatype, operation);
    std::copy_n(total, bytes, static_cast<std::byte*>(result));
  };
  request->last.bytes = bytes;
  return Request(std::move(request));
}

Request Communicator::broadcast_init(std::span<std::byte> buffer, int root) {
  if (root < 0 || root >= state_->size())
    throw Error(ErrorCode::usage, "root " + std::to_string(root) + " (there " +
                                      (state_->size() == 1 ? "is " : "are ") +
                                      counted(state_->size(), "rank") + "). Use one of them.");
  auto request = make_collective(*state_, Kind::broadcast, {static_cast<std::int64_t>(buffer.size()), root});
  check_memory(*state_, buffer.data(), buffer.size());
  bool const is_root = state_->rank() == root;
  for (queue::Offer& offer : request->offers) {
    bool const sends = offer.side() == Side::sender;
    offer.carries = sends ? is_root : offer.key.peer == root;
    offer.bytes = offer.carries ? buffer.size() : 0;
    if (offer.carries && sends) offer.from = buffer.data();
    if (offer.carries && !sends) offer.to = buffer.data();
  }
  request->last.bytes = buffer.size();
  return Request(std::move(request));
}

}  // namespace hostless
