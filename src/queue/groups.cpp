#include "queue/groups.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "hostless/base/wait.hpp"
#include "hostless/transport/group.hpp"
#include "queue/communicator_state.hpp"
#include "queue/queue_state.hpp"

namespace hostless::queue {
namespace {

// On all ranks, or on none.
void check_gpus(std::vector<int> const& gpus) {
  if (gpus.size() > gpu::most_group_ranks)
    throw QueueError(Refusal::unsupported,
                     std::to_string(gpus.size()) + " ranks of a communicator by nccl (" +
                         std::to_string(gpu::most_group_ranks) + " can be counted). Use fewer.");
  for (std::size_t a = 0; a < gpus.size(); ++a)
    for (std::size_t b = a + 1; b < gpus.size(); ++b)
      if (gpus[a] == gpus[b])
        throw QueueError(Refusal::unsupported, "GPU " + std::to_string(gpus[a]) + " for the ranks " +
                                                   std::to_string(a) + " and " + std::to_string(b) +
                                                   " of a communicator by nccl (it connects ranks with a GPU "
                                                   "each). Use the type peer, or more GPUs.");
}

bool have_all_met(std::vector<gpu::UniqueId> const& all) {
  return all[0] != gpu::UniqueId{} &&
         std::all_of(all.begin(), all.end(), [&](gpu::UniqueId const& one) { return one == all[0]; });
}

std::shared_ptr<gpu::GroupRanks> connected(hostless::Group& group, int gpu) {
  check_gpus(group.all_gather(gpu));
  WaitLimits const limits = WaitLimits::from_environment();
  std::shared_ptr<gpu::GroupRanks> ranks;
  std::vector<gpu::UniqueId> met;
  group.together(
      [&] { ranks = gpu::message_library().group_ranks(gpu, group.rank(), group.size(), limits.later_s); });
  met = group.all_gather(ranks->unique_id());
  if (!have_all_met(met)) {
    gpu::UniqueId made;
    group.together([&] { made = ranks->unique_id(); });
    met = group.all_gather(made);
  }
  group.together([&] { ranks->connect(met[0], limits.first_s); });
  return ranks;
}

std::string rank_words(int rank) { return "rank " + std::to_string(rank); }

}  // namespace

Groups::Groups(hostless::Group& group, int gpu)
    : rank_(group.rank()), sets_(static_cast<std::size_t>(group.size())), ranks_(connected(group, gpu)) {}

std::string Groups::why_not_matched(RequestState const& request) const {
  std::lock_guard const lock(mutex_);
  for (Offer const& offer : request.offers)
    if (Set const& set = sets_[static_cast<std::size_t>(offer.key.peer)]; set.there != 0)
      return request.words() + " beside what an earlier call has matched with " + rank_words(offer.key.peer) +
             " (nccl moves all between two ranks as one set, which one call matches).";
  return {};
}

void Groups::add(Requests const& requests) {
  std::lock_guard const lock(mutex_);
  ++calls_;
  for (auto const& request : requests)
    for (Offer& offer : request->offers) {
      Set& set = sets_[static_cast<std::size_t>(offer.key.peer)];
      if (set.call != calls_) set = {calls_, 0, 0, 0, ranks_->counts(offer.key.peer).done};
      offer.call = calls_;
      offer.order = ++orders_;
      ++set.offers, ++set.there;
    }
  for (auto const& request : requests)
    for (Offer& offer : request->offers)
      offer.in_call = sets_[static_cast<std::size_t>(offer.key.peer)].offers;
}

std::string Groups::misfit(Offer const& mine, Offer const& other) {
  std::lock_guard const lock(mutex_);
  Set& set = sets_[static_cast<std::size_t>(mine.key.peer)];
  if (set.other_call == 0) set.other_call = other.call;
  if (mine.in_call == other.in_call && set.other_call == other.call) return {};
  return "a message with " + rank_words(mine.key.peer) + " that is one of " + std::to_string(mine.in_call) +
         " which a call matches with it, and there one of " + std::to_string(other.in_call) +
         (mine.in_call == other.in_call ? ", not all of one call" : "") +
         " (nccl moves all between two ranks as one set). Match the same on both in one call each.";
}

void Groups::remove(RequestState& request) noexcept {
  std::lock_guard const lock(mutex_);
  for (Offer& offer : request.offers) {
    Set& set = sets_[static_cast<std::size_t>(offer.key.peer)];
    if (std::exchange(offer.call, 0) == set.call && set.there != 0) --set.there;
  }
}

std::string Groups::why_not_waited(Requests const& requests) const {
  std::map<int, std::size_t> covered;
  for (auto const& request : requests)
    for (Offer const& offer : request->offers) ++covered[offer.key.peer];
  std::lock_guard const lock(mutex_);
  for (auto const& [peer, offers] : covered) {
    Set const& set = sets_[static_cast<std::size_t>(peer)];
    if (set.there < set.offers)
      return "a wait for what was matched with " + rank_words(peer) +
             ", of which a request was freed (nccl moves all of it as one set). Free the others on both "
             "ranks, and match new ones.";
    if (offers < set.offers)
      return "a wait that leaves out some of what was matched with " + rank_words(peer) +
             " (nccl moves all of it as one set). Start all of it, and wait for it in one call.";
  }
  return {};
}

Groups::Plan Groups::plan(Requests const& requests) const {
  std::vector<OrderedMessage> ordered;
  Plan plan;
  for (auto const& request : requests) {
    request->add_messages(ordered);
    for (Offer const& offer : request->offers) plan.peers |= gpu::GroupPeers{1} << offer.key.peer;
  }
  std::sort(ordered.begin(), ordered.end(), [](OrderedMessage const& a, OrderedMessage const& b) {
    auto const key = [](OrderedMessage const& one) {
      return std::tuple(one.message.peer, one.message.side, one.order);
    };
    return key(a) < key(b);
  });
  for (std::size_t first = 0, k = 0; k < ordered.size(); ++k) {
    gpu::GroupMessage const& message = ordered[k].message;
    plan.messages.push_back(message);
    if (k + 1 < ordered.size() && ordered[k + 1].message.peer == message.peer) continue;
    // The last one with this rank. By side: where the first has the same, all have.
    if (ordered[first].message.side == message.side)
      plan.messages.push_back(
          {message.side == Side::sender ? Side::receiver : Side::sender, message.peer, nullptr, 0});
    first = k + 1;
  }
  return plan;
}

gpu::GroupCounts Groups::counts(int peer) const {
  std::lock_guard const lock(mutex_);
  if (!ranks_) return {};
  gpu::GroupCounts now = ranks_->counts(peer);
  std::uint64_t const before = sets_[static_cast<std::size_t>(peer)].groups_before;
  now.begun -= before, now.done -= before;
  return now;
}

bool Groups::move_to(std::shared_ptr<QueueState> const& queue) {
  auto const before = queue_.lock();
  if (before != nullptr && before != queue && !(before->is_done() && before->started.empty())) return false;
  queue_ = queue;
  return true;
}

bool Groups::looks_lost(CommunicatorState& communicator, double limit_s) {
  if (is_over_ || !ranks_) return is_over_;
  gpu::GroupCounts const groups = ranks_->counts();
  if (groups.begun == groups.done || groups.begun != seen_begun_) {
    seen_begun_ = groups.begun;
    watch_.begin(limit_s);
    return false;
  }
  if (!watch_.look()) return false;
  if (ranks_->has_failed()) return true;
  bool has_left = false;
  try {
    communicator.listen();
    for (std::size_t peer = 0; peer < sets_.size(); ++peer) {
      auto const with = ranks_->counts(static_cast<int>(peer));
      has_left = has_left || (with.begun != with.done && communicator.has_left(static_cast<int>(peer)));
    }
  } catch (Error const&) {  // what tells says that somebody is gone
    return true;
  }
  return watch_.must_end(has_left);
}

bool Groups::has_one_left(CommunicatorState& communicator, gpu::GroupPeers peers) const {
  try {
    communicator.listen();
    for (std::size_t peer = 0; peer < sets_.size(); ++peer)
      if ((peers >> peer & 1) != 0 && communicator.has_left(static_cast<int>(peer))) return true;
  } catch (Error const&) {  // what tells says that somebody is gone
    return true;
  }
  return false;
}

bool Groups::has_unreached() const {
  gpu::GroupCounts const now = ranks_->counts();
  return now.begun != now.done || now.done < enqueued_;
}

bool Groups::give_up() noexcept {
  if (is_over_.exchange(true)) return false;
  if (ranks_) ranks_->abort();
  return true;
}

void Groups::close() noexcept {
  if (!is_over_ && has_unreached()) {
    is_over_ = true;
    ranks_->abort();
    constexpr double enough_s = 2;
    auto const queue = queue_.lock();
    auto const is_done = [&] {
      try {
        return queue == nullptr || queue->is_done();
      } catch (...) {  // a GPU that has failed stores nothing any more
        return true;
      }
    };
    if (wait_for(
            is_done, [] { return false; }, Deadline::after(enough_s)) != Waited::done)
      say_still_used();
  }
  std::lock_guard const lock(mutex_);
  ranks_.reset();  // a queue may have them still
}

void check_whole_sets(Groups::Requests const& requests) {
  for (auto const& request : requests) {
    if (request->is_lost()) return;  // such a wait does nothing
    if (request->communicator != requests.front()->communicator)
      throw QueueError(Refusal::unsupported,
                       "a wait for requests of two communicators by nccl (each moves in a group of its own). "
                       "Wait for those of each by itself.");
  }
  if (requests.empty()) return;
  std::string const why = requests.front()->communicator->groups()->why_not_waited(requests);
  if (!why.empty()) throw QueueError(Refusal::unsupported, why);
}

}  // namespace hostless::queue
