#include "queue/communicator_state.hpp"

#include <algorithm>
#include <set>

#include "base/variable.hpp"
#include "hostless/base/environment.hpp"
#include "transport/setup_wait.hpp"

namespace hostless::queue {
namespace {

template <class One>
One take_first(std::map<OfferKey, std::deque<One>>& all,
               typename std::map<OfferKey, std::deque<One>>::iterator of) {
  One first = std::move(of->second.front());
  of->second.pop_front();
  if (of->second.empty()) all.erase(of);
  return first;
}

struct Taken {
  std::mutex mutex;
  std::set<Transport const*> transports;
};
Taken& taken() {
  static Taken* const here = new Taken;  // outlives whatever ends with the process
  return *here;
}

// Before anything is open, whose end others hear of.
void check_and_prepare(Transport& transport, int gpu) {
  if (gpu < Communicator::no_gpu)
    throw Error(ErrorCode::usage, "GPU " + std::to_string(gpu) + " (they count from 0). Use another number.");
  check_queue_environment();
  if (gpu >= 0 && transport.capabilities().processes_as_ranks)
    throw QueueError(
        Refusal::unsupported,
        "a GPU for requests between ranks that are processes (streams start and wait between ranks "
        "that are threads of one process). Use ranks that are threads, or the host's requests.");
  if (gpu >= 0) gpu::message_library().prepare(gpu);
}
std::unique_ptr<PointToPoint> opened(std::optional<TakenTransport>& mine, Transport& transport, int gpu,
                                     bool in_groups) {
  auto const ready = [&] {
    mine.emplace(transport);
    check_and_prepare(transport, gpu);
  };
  in_groups ? transport.group().together(ready) : ready();
  auto point = transport.point_to_point();
  if (point->rank() == 0) tell_unknown_variables();
  return point;
}

}  // namespace

TakenTransport::TakenTransport(Transport const& transport) : transport_(&transport) {
  std::lock_guard const lock(taken().mutex);
  if (!taken().transports.insert(transport_).second)
    throw Error(
        ErrorCode::usage,
        "a second communicator of one transport (it would hear what ranks tell the first one). Use that "
        "one, of which come any number of requests, or let it go before.");
}
TakenTransport::~TakenTransport() {
  std::lock_guard const lock(taken().mutex);
  taken().transports.erase(transport_);
}

CommunicatorState::CommunicatorState(Transport& transport, int gpu, bool in_groups)
    : group_(transport.group()),
      point_(opened(taken_, transport, gpu, in_groups)),
      rank_(point_->rank()),
      size_(point_->size()),
      gpu_(gpu),
      shares_memory_(point_->shares_memory()),
      may_progress_by_thread_(shares_memory_ || point_->may_progress_by_thread()),
      queue_type_(point_->queue_type()),
      started_(point_->most_started()),
      groups_(in_groups ? std::make_unique<Groups>(transport.group(), gpu) : nullptr),
      told_(static_cast<std::size_t>(size_)),
      left_(static_cast<std::size_t>(size_)) {
  // Measured: `hostless bench pingpong` with HOSTLESS_QUEUE_SMALL_BYTES.
  constexpr std::int64_t small_of_host = 8192, small_of_gpu = 65536;
  most_small_ = static_cast<std::uint64_t>(
      count_of("HOSTLESS_QUEUE_SMALL_BYTES", gpu_ < 0 ? small_of_host : small_of_gpu));
}

bool CommunicatorState::is_open() {
  std::lock_guard const lock(mutex_);
  return point_ != nullptr;
}

std::shared_ptr<RequestState> CommunicatorState::make(Kind kind, int peer, int tag) {
  auto request = std::make_shared<RequestState>();
  request->kind = kind;
  request->communicator = shared_from_this();
  request->last.peer = peer;
  request->last.tag = tag;
  std::lock_guard const lock(mutex_);
  if (point_ == nullptr)
    throw Error(ErrorCode::usage,
                "a request of a communicator that was closed (it reaches nobody). Open another.");
  std::erase_if(requests_, [](auto const& one) { return one.expired(); });
  requests_.push_back(request);
  return request;
}

void CommunicatorState::add_part(RequestState& request, int peer, Side side, std::span<std::byte const> from,
                                 std::span<std::byte> to) const {
  Offer& offer = request.offers.emplace_back();
  offer.key.peer = peer;
  offer.key.tag = request.last.tag;
  offer.key.side = side;
  offer.key.collective = request.kind > Kind::receive ? 1 : 0;
  offer.bytes = side == Side::sender ? from.size() : to.size();
  offer.from = from.data();
  offer.to = to.data();
  offer.ready = request.kind == Kind::ready_send;
}

void CommunicatorState::offer(std::vector<std::shared_ptr<RequestState>> const& requests) {
  std::lock_guard const lock(mutex_);
  if (point_ == nullptr)
    throw Error(ErrorCode::peer_lost, "a match over a communicator that was closed. Open another.");
  if (groups_ && groups_->is_over())
    throw Error(ErrorCode::peer_lost, "a match over a communicator that has lost a rank. Open another.");
  if (groups_) groups_->add(requests);
  for (auto const& request : requests) {
    request->phase.store(RequestState::Phase::matching);
    request->unmatched = request->offers.size();
    others_[request.get()].assign(request->offers.size(), std::nullopt);
    if (request->kind > Kind::receive) {
      auto const number = static_cast<std::int32_t>(collectives_++);
      for (Offer& offer : request->offers) offer.key.tag = number;
    }
    for (std::size_t k = 0; k < request->offers.size(); ++k) {
      Offer& offer = request->offers[k];
      offer.serial = ++offers_;
      waiting_[offer.key].push_back({request, k, offer.serial});
      tell_offer(offer);
    }
    if (request->offers.empty()) settle(*request);
  }
  hear();  // behind what was told here: withdraw() says why
  for (auto const& request : requests)
    for (Offer const& offer : request->offers) join(offer.key);
}

void CommunicatorState::tell_offer(Offer& offer) {
  offer.most_small = most_small_;
  if (groups_) {
    // nothing is shared: the library that moves has its own ways
  } else if (shares_memory_) {
    offer.shared = std::make_shared<SharedSide>();
    auto const slot_bytes =
        offer.side() == Side::receiver ? static_cast<std::size_t>(std::min(offer.bytes, most_small_)) : 0;
    if (gpu_ < 0) {
      offer.shared->slots.resize(2 * slot_bytes);
    } else {
      offer.shared->on_gpu = gpu::message_library().lend_side(gpu_, slot_bytes);
    }
  } else if (offer.carries) {
    auto const bytes = static_cast<std::size_t>(offer.bytes);
    offer.library =
        offer.side() == Side::sender
            ? point_->open_send(offer.key.peer, offer.from, bytes)
            : point_->open_receive(offer.key.peer, offer.to, bytes, static_cast<std::size_t>(most_small_));
    offer.number = offer.library->number();
  }
  told_[static_cast<std::size_t>(offer.key.peer)] = true;
  point_->tell(offer.key.peer, text_of(offer), offer.shared);
}

void CommunicatorState::listen() {
  std::lock_guard const lock(mutex_);
  if (point_ == nullptr) return;
  hear();
  join_heard();
}

void CommunicatorState::hear() {
  while (std::optional<Note> const note = point_->hear()) take(*note);
}

void CommunicatorState::join_heard() {
  for (; !unjoined_.empty(); unjoined_.pop_front()) join(unjoined_.front());
}

void CommunicatorState::take(Note const& note) {
  Offer offer;
  NoteKind const kind = read_note(note, offer);
  if (kind == NoteKind::leaving) {
    left_[static_cast<std::size_t>(note.source)] = true;
    return;
  }
  if (kind == NoteKind::withdrawn) return withdraw(offer);
  told_[static_cast<std::size_t>(note.source)] = true;
  OfferKey const mine = other_side(offer.key);
  heard_[mine].push_back(std::move(offer));
  unjoined_.push_back(mine);
}

void CommunicatorState::join(OfferKey const& key) {
  for (;;) {
    auto const waiting = waiting_.find(key);
    auto const heard = heard_.find(key);
    if (waiting == waiting_.end() || heard == heard_.end()) return;
    Waiting const one = take_first(waiting_, waiting);
    Offer const other = take_first(heard_, heard);
    auto const request = one.request.lock();
    bool const is_matching = request != nullptr && request->phase.load() == RequestState::Phase::matching;
    if (other.withdrawn) {  // who has given it up waits for no answer
      if (is_matching) give_up_with(*request, key.peer);
      continue;
    }
    if (!is_matching) {
      tell_gone(other);                                         // this side has given up
      if (request == nullptr) tell_withdrawn(key, one.serial);  // when it went nobody could
      continue;
    }
    Offer& mine = request->offers[one.offer];
    mine.other_serial = other.serial;
    if (request->problem.empty()) request->problem = misfit(mine, other);
    std::string const uneven = groups_ ? groups_->misfit(mine, other) : "";
    if (request->problem.empty()) request->problem = uneven;
    others_[request.get()][one.offer] = other;
    if (--request->unmatched == 0) settle(*request);
    if (!uneven.empty()) end_set(mine, uneven);
  }
}

// Those that have not met their other sides are not to wait for them.
void CommunicatorState::end_set(Offer const& of, std::string const& problem) {
  for (auto const& known : requests_) {
    auto const request = known.lock();
    if (request == nullptr || request->phase.load() != RequestState::Phase::matching) continue;
    bool const is_of_set = std::any_of(request->offers.begin(), request->offers.end(), [&](Offer const& one) {
      return one.key.peer == of.key.peer && one.call == of.call;
    });
    if (!is_of_set) continue;
    request->problem = problem;
    settle(*request);
  }
}

void CommunicatorState::settle(RequestState& request) {
  if (request.problem.empty()) {
    std::vector<Offer> others;
    for (auto const& other : others_[&request]) others.push_back(*other);
    try {
      request.open(*point_, others);
    } catch (Error const& e) {
      if (gpu_ < 0) {
        abandon_locked(request);
        throw;
      }
      request.problem = e.what();
    } catch (...) {
      abandon_locked(request);
      throw;
    }
  }
  others_.erase(&request);
  request.phase.store(request.problem.empty() ? RequestState::Phase::matched : RequestState::Phase::misfit);
}

bool CommunicatorState::has_left(RequestState const& request) {
  std::lock_guard const lock(mutex_);
  if (point_ == nullptr) return true;
  auto const known = others_.find(&request);  // while it is being matched
  for (std::size_t k = 0; k < request.offers.size(); ++k) {
    if (known != others_.end() && known->second[k]) continue;  // that side has said all that a match wants
    int const peer = request.offers[k].key.peer;
    if (peer != rank_ && (left_[static_cast<std::size_t>(peer)] || point_->has_left(peer))) return true;
  }
  return false;
}

bool CommunicatorState::has_left(int peer) {
  std::lock_guard const lock(mutex_);
  return point_ == nullptr || left_[static_cast<std::size_t>(peer)] ||
         (peer != rank_ && point_->has_left(peer));
}

double CommunicatorState::match_limit_s() const {
  double const set = match_limit_s_.load();
  return set > 0 ? set : setup_limit_s(WaitLimits::from_environment());
}

std::string CommunicatorState::missing(RequestState& request) {
  std::lock_guard const lock(mutex_);
  std::string const words = request.words();
  auto const known = others_.find(&request);
  if (known == others_.end()) return words;
  OfferKey const* first = nullptr;
  bool are_more = false;
  for (std::size_t k = 0; k < request.offers.size(); ++k) {
    if (known->second[k]) continue;
    OfferKey const& one = request.offers[k].key;
    if (first == nullptr) first = &one;
    are_more = are_more || one.peer != first->peer;
  }
  if (first == nullptr) return words;
  OfferKey const& key = *first;
  std::string const peer = "rank " + std::to_string(key.peer);
  if (key.collective != 0)
    return words + ", in which " + peer + (are_more ? " and others are missing" : " is missing");
  for (auto const& [other, offers] : heard_)
    if (other.peer == key.peer && other.side == key.side && other.collective == 0)
      return words + " (" + peer + " has offered one with tag " + std::to_string(other.tag) + ")";
  return words + " (" + peer + " has offered none)";
}

}  // namespace hostless::queue
