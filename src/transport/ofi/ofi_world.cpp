#include "transport/ofi/ofi_world.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace hostless::ofi {
namespace {

constexpr std::size_t longest_text = 255, letters = 64;
constexpr std::uint32_t fabric_version = FI_VERSION(1, 11);

// Worlds that ended abnormally: the provider's threads may still look at them.
template <class Object>
void leave_alone(Object object) {
  static auto* const all = new std::vector<Object>;
  static auto* const mutex = new std::mutex;
  std::lock_guard const lock(*mutex);
  all->push_back(std::move(object));
}

}  // namespace

void check(long code, char const* doing) {
  if (code >= 0) return;
  throw Error(ErrorCode::environment, std::string(doing) + " failed with '" +
                                          fi_strerror(static_cast<int>(-code)) +
                                          "' (libfabric carries nothing without it). See fi_info, or use "
                                          "another type of queue.");
}

Info find_provider(std::string& problem) {
  Info const hints(fi_allocinfo());
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_TRIGGER | FI_RMA_EVENT;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->domain_attr->control_progress = hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
  hints->domain_attr->mr_mode = 0;  // keys of our own choice, offsets from 0
  hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->tx_attr->inject_size = longest_text;
  fi_info* found = nullptr;
  int const code = fi_getinfo(fabric_version, nullptr, nullptr, 0, hints.get(), &found);
  if (code != 0)
    problem =
        std::string(
            "libfabric has no provider with triggered operations, counters and remote atomics here (") +
        fi_strerror(-code) +
        "; queues of the type ofi are those). Drop FI_PROVIDER, or install a libfabric with the provider "
        "sockets.";
  return Info(found);
}

World::World(int my_rank, int ranks) : rank(my_rank), size(ranks), peers_(static_cast<std::size_t>(ranks)) {
  open();
}

void World::open() {
  std::string problem;
  info_ = find_provider(problem);
  if (info_ == nullptr) throw Error(ErrorCode::environment, problem);
  fid_fabric* fabric = nullptr;
  check(fi_fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  check(fi_domain(fabric, info_.get(), &domain, nullptr), "fi_domain");
  domain_.reset(domain);
  fid_ep* endpoint = nullptr;
  check(fi_endpoint(domain, info_.get(), &endpoint, nullptr), "fi_endpoint");
  endpoint_.reset(endpoint);
  fi_av_attr table{};
  table.type = FI_AV_TABLE;
  fid_av* addresses = nullptr;
  check(fi_av_open(domain, &table, &addresses, nullptr), "fi_av_open");
  addresses_.reset(addresses);
  fi_cq_attr queue{};
  queue.format = FI_CQ_FORMAT_MSG;
  queue.size = std::max<std::size_t>(1024, letters + 4 * peers_.size());
  fid_cq* completions = nullptr;
  check(fi_cq_open(domain, &queue, &completions, nullptr), "fi_cq_open");
  completions_.reset(completions);
  check(fi_ep_bind(endpoint, &addresses->fid, 0), "fi_ep_bind");
  check(fi_ep_bind(endpoint, &completions->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION), "fi_ep_bind");
  check(fi_ep_bind(endpoint, &completions->fid, FI_RECV), "fi_ep_bind");
  check(fi_enable(endpoint), "fi_enable");
  alive_region_ = lend(&words_->alive, sizeof words_->alive, key_of(Role::alive, 0), nullptr);
  for (std::size_t k = 0; k < letters; ++k) {
    Mail& mail = mail_.emplace_back();
    mail.text.resize(longest_text);
    await(mail);
  }
  std::size_t bytes = 256;
  address_.resize(bytes);
  check(fi_getname(&endpoint->fid, address_.data(), &bytes), "fi_getname");
  address_.resize(bytes);
}

void World::connect(std::vector<Bytes> const& all) {
  for (std::size_t r = 0; r < peers_.size(); ++r)
    check(fi_av_insert(addresses_.get(), all[r].data(), 1, &peers_[r].address, 0, nullptr) == 1 ? 0
                                                                                                : -FI_EINVAL,
          "fi_av_insert");
}

World::~World() {
  constexpr double patience_s = 1.0;
  end_watch();
  auto const is_still = [this] {
    return send_letters() &&
           std::all_of(remains_.begin(), remains_.end(), [](Remains const& one) { return is_done(one); });
  };
  bool const still =
      !is_left_ && wait_for(
                       is_still, [] { return false; }, Deadline::after(patience_s)) == Waited::done;
  if (still) {
    endpoint_.reset();
    remains_.clear();
    return;
  }
  leave_alone(std::move(remains_));
  leave_alone(std::move(mail_));
  leave_alone(std::move(peers_));
  alive_region_.release();
  endpoint_.release();
  completions_.release();
  addresses_.release();
  domain_.release();
  fabric_.release();
  leave_alone(std::move(words_));
  leave_alone(std::move(info_));
}

Counter World::new_counter() {
  fi_cntr_attr what{};
  what.events = FI_CNTR_EVENTS_COMP;
  what.wait_obj = FI_WAIT_NONE;
  fid_cntr* counter = nullptr;
  check(fi_cntr_open(domain_.get(), &what, &counter, nullptr), "fi_cntr_open");
  return Counter(counter);
}

Region World::lend(void* memory, std::size_t bytes, std::uint64_t key, fid_cntr* counts) {
  fid_mr* region = nullptr;
  check(
      fi_mr_reg(domain_.get(), memory, bytes, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0, &region, nullptr),
      "fi_mr_reg");
  Region own(region);
  if (counts != nullptr) check(fi_mr_bind(region, &counts->fid, FI_REMOTE_WRITE), "fi_mr_bind");
  return own;
}

namespace {
// What is due already goes to the provider's queue at once, and is refused where that is full: the provider empties it by
// itself.
void set_off(fid_domain* domain, Deferred& one, When const& when, double patience_s) {
  one.work.threshold = when.threshold;
  one.work.triggering_cntr = when.trigger;
  one.work.completion_cntr = when.counts;
  long code = 0;
  auto const is_taken = [&] {
    code = fi_control(&domain->fid, FI_QUEUE_WORK, &one.work);
    return code != -FI_EAGAIN;
  };
  wait_for(
      is_taken, [] { return false; }, Deadline::after(patience_s));
  if (code == 0) return;
  throw Error(ErrorCode::peer_lost, std::string("libfabric defers no operation: ") +
                                        fi_strerror(static_cast<int>(-code)) +
                                        " (a rank cannot be reached). See its message.");
}
}  // namespace

// Writes and atomics say alike what goes where; `context` is what a completion names.
template <class Message, class From, class To>
void World::aim(Message& message, From const& from, int peer, To const& to, void* context) const {
  message.msg_iov = &from;
  message.iov_count = 1;
  message.addr = peers_[static_cast<std::size_t>(peer)].address;
  message.rma_iov = &to;
  message.rma_iov_count = 1;
  message.context = context;
}

void World::defer_write(Deferred& one, When const& when, std::span<std::byte const> from,
                        RemoteMemory const& to) {
  one.from = {const_cast<std::byte*>(from.data()), from.size()};
  one.to = {to.offset, from.size(), to.key};
  one.write.ep = endpoint_.get();
  aim(one.write.msg, one.from, to.peer, one.to, &one.work.context);
  one.work.op_type = FI_OP_WRITE;
  one.work.op.rma = &one.write;
  set_off(domain_.get(), one, when, limits_.later_s);
}

void World::defer_count(Deferred& one, When const& when, RemoteMemory const& to) {
  one.addend = {&words_->one, 1};
  one.word = {to.offset, 1, to.key};
  one.atomic.ep = endpoint_.get();
  aim(one.atomic.msg, one.addend, to.peer, one.word, &one.work.context);
  one.atomic.msg.datatype = FI_UINT64;
  one.atomic.msg.op = FI_SUM;
  one.work.op_type = FI_OP_ATOMIC;
  one.work.op.atomic = &one.atomic;
  set_off(domain_.get(), one, when, limits_.later_s);
}

void World::await(Mail& mail) {
  check(fi_recv(endpoint_.get(), mail.text.data(), longest_text, nullptr, FI_ADDR_UNSPEC, &mail), "fi_recv");
}

bool World::post(int peer, Bytes text) {
  letters_.emplace_back(peer, std::move(text));
  return send_letters();
}

bool World::send_letters() {
  while (!letters_.empty() && send(letters_.front().first, letters_.front().second)) letters_.pop_front();
  return letters_.empty();
}

// False: not now. A rank that cannot be reached is gone.
bool World::send(int peer, Bytes const& text) {
  Peer& to = peers_[static_cast<std::size_t>(peer)];
  if (to.gone) return true;  // nobody hears it
  long const code = fi_inject(endpoint_.get(), text.data(), text.size(), to.address);
  if (code != 0 && code != -FI_EAGAIN) to.gone = true;
  return code != -FI_EAGAIN;
}

bool World::receive(Bytes& text) {
  for (;;) {
    fi_cq_msg_entry done{};
    long const count = fi_cq_read(completions_.get(), &done, 1);
    if (count == -FI_EAVAIL) {
      take_failure();
      continue;
    }
    if (count != 1) return false;
    if ((done.flags & FI_RECV) != 0) {
      auto& mail = *static_cast<Mail*>(done.op_context);
      text.assign(mail.text.begin(), mail.text.begin() + static_cast<std::ptrdiff_t>(done.len));
      await(mail);
      return true;
    }
    for (Peer& peer : peers_)
      if (done.op_context == &peer) peer.question.reset();
    if (done.op_context == &peers_[static_cast<std::size_t>(rank)]) ++own_answers_;
  }
}

// A receive is posted again. A question: that rank is no longer there. What was deferred: its counter of what has
// ended hears of it, for the provider tells only of what went well.
void World::take_failure() {
  fi_cq_err_entry failure{};
  if (fi_cq_readerr(completions_.get(), &failure, 0) != 1 || failure.op_context == nullptr) return;
  for (Mail& mail : mail_)
    if (failure.op_context == &mail) return await(mail);
  for (Peer& peer : peers_)
    if (failure.op_context == &peer) {
      peer.gone = true;
      return;
    }
  auto const* const work = static_cast<fi_deferred_work const*>(failure.op_context);  // its first member
  fi_cntr_adderr(work->completion_cntr, 1);
}

// By a write into its memory, which its provider answers whatever its program does.
void World::ask(int number) {
  Peer& peer = peers_[static_cast<std::size_t>(number)];
  iovec const from{&words_->question, sizeof words_->question};
  fi_rma_iov const to{0, sizeof words_->question, key_of(Role::alive, 0)};
  fi_msg_rma message{};
  aim(message, from, number, to, &peer);
  long const code = fi_writemsg(endpoint_.get(), &message, FI_COMPLETION | FI_DELIVERY_COMPLETE);
  if (code == 0) peer.question.emplace(Deadline::after(limits_.later_s));
  if (code != 0 && code != -FI_EAGAIN) peer.gone = true;
}

void World::ask_sometimes(int number) {
  constexpr std::chrono::milliseconds pause(100);
  Peer& peer = peers_[static_cast<std::size_t>(number)];
  auto const now = Clock::now();
  if (peer.gone || peer.question || now - peer.when <= pause) return;
  peer.when = now;
  peer.is_silent = false;
  ask(number);
}

// Where threads of providers wait for a core for seconds, ours answers itself no sooner: between two of its own answers
// counts what does between two looks.
bool World::is_silent(Peer& peer) {
  ask_sometimes(rank);
  bool const is_busy = peer.looked == own_answers_ && !peers_[static_cast<std::size_t>(rank)].gone;
  if (!is_busy) peer.is_silent = peer.question->is_over();
  peer.looked = own_answers_;
  return peer.is_silent;
}

// Who is silent may only be stopped: it is there again when it answers after all.
bool World::is_gone(int number) {
  Peer& peer = peers_[static_cast<std::size_t>(number)];
  if (peer.question) return peer.gone || is_silent(peer);
  ask_sometimes(number);
  return peer.gone;
}

}  // namespace hostless::ofi
