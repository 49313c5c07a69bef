#include "bench/queue_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "base/counted.hpp"
#include "bench/communication.hpp"
#include "bench/known_items.hpp"
#include "bench/patient_wait.hpp"

namespace hostless::bench {
namespace {

// What packs and unpacks: a pass over the bytes, as a kernel of the paper's program.
void add_one(std::vector<std::uint8_t> const& from, std::vector<std::uint8_t>& to) {
  for (std::size_t k = 0; k < from.size(); ++k) to[k] = static_cast<std::uint8_t>(from[k] + 1);
}

// One of the two ranks.
struct End {
  explicit End(std::size_t bytes) : data(bytes), out(bytes), in(bytes) {}
  std::vector<std::uint8_t> data, out, in;
};

// After n round trips `first` has what it began with, plus 4 for each: two packs and two unpacks.
void check_answer(Group& group, QueuePingPong const& what, End const& end, std::int64_t rounds) {
  group.together([&] {
    if (group.rank() != what.first) return;
    if (end.data != std::vector(end.data.size(), static_cast<std::uint8_t>(4 * rounds)))
      throw wrong(fmt::format("after {} of {} the answer is wrong", counted(rounds, "round trip"),
                              counted(end.data.size(), "byte")));
  });
}

class QueuePair {
 public:
  QueuePair(Communicator& communicator, QueuePingPong const& what, std::size_t bytes, bool ready, int rank)
      : end_(bytes), is_first_(rank == what.first), ready_(ready) {
    int const other = is_first_ ? what.second : what.first;
    auto const out = std::as_bytes(std::span(end_.out));
    send_ = ready ? communicator.ready_send_init(out, other, 0) : communicator.send_init(out, other, 0);
    receive_ = communicator.receive_init(std::as_writable_bytes(std::span(end_.in)), other, 0);
    Request* both[] = {&send_, &receive_};
    match(both);
  }
  // A ready send needs that the other has started its receive: `second` has, before its last answer, and
  // `first` before its send. Before the first round trip, and behind the last one, that is begun and ended
  // apart.
  void begin(Queue& queue) {
    if (is_first_ || !ready_) return;
    enqueue_start(queue, receive_);
    queue.wait();
  }
  void enqueue_round_trip(Queue& queue, bool is_last) {
    if (is_first_) {
      enqueue_start(queue, receive_);
      queue.enqueue_function([this] { add_one(end_.data, end_.out); });
      enqueue_start(queue, send_);
      enqueue_wait(queue, send_);
      enqueue_wait(queue, receive_);
      queue.enqueue_function([this] { add_one(end_.in, end_.data); });
      return;
    }
    if (!ready_) enqueue_start(queue, receive_);
    enqueue_wait(queue, receive_);
    queue.enqueue_function([this] { add_one(end_.in, end_.data); });
    queue.enqueue_function([this] { add_one(end_.data, end_.out); });
    if (ready_ && !is_last) enqueue_start(queue, receive_);
    enqueue_start(queue, send_);
    enqueue_wait(queue, send_);
  }
  End const& end() const { return end_; }

 private:
  static void enqueue_start(Queue& queue, Request& request) {
    Request* const one = &request;
    queue.enqueue_start({&one, 1});
  }
  static void enqueue_wait(Queue& queue, Request& request) {
    Request* const one = &request;
    queue.enqueue_wait({&one, 1});
  }
  End end_;
  bool is_first_, ready_;
  Request send_, receive_;
};

Timing time_queue(Group& group, Communicator& communicator, QueuePingPong const& what, std::size_t bytes,
                  bool ready, Protocol const& protocol) {
  bool const takes_part = group.rank() == what.first || group.rank() == what.second;
  std::unique_ptr<QueuePair> pair;
  Queue queue(what.type);
  if (takes_part) pair = std::make_unique<QueuePair>(communicator, what, bytes, ready, group.rank());
  std::int64_t rounds = 0;
  auto const prepare = [&] {
    if (takes_part) pair->begin(queue);
  };
  Timing timing = time_runs(group, protocol, prepare, [&](int steps) {
    rounds += steps;
    if (!takes_part) return;
    for (int k = 0; k < steps; ++k) {
      pair->enqueue_round_trip(queue, k + 1 == steps);
      wait_for_room(queue, what.type, k + 1, 2);
    }
    queue.wait();
  });
  for (double& step : timing.step_s) step /= 2;
  check_answer(group, what, takes_part ? pair->end() : End(0), rounds);
  return timing;
}

// The host starts and waits for each message.
class HostPair {
 public:
  HostPair(Transport& transport, QueuePingPong const& what, std::size_t bytes, Protocol const& protocol)
      : end_(bytes), is_first_(transport.group().rank() == what.first) {
    Binding binding;
    int const rank = transport.group().rank();
    takes_part_ = is_first_ || rank == what.second;
    int const other = is_first_ ? what.second : what.first;
    if (takes_part_) {
      binding.out.push_back({is_first_ ? 0 : 1, other, as_bytes(end_.out), bytes});
      binding.in.push_back({is_first_ ? 1 : 0, other, as_bytes(end_.in), bytes});
    }
    endpoint_ = transport.bind(binding);
    await_.emplace(*endpoint_, protocol.limits, "in a ping-pong");
  }
  void round_trip() {
    if (!takes_part_) return;
    epoch_ = epoch_ == 0x7ffffffe ? 1 : epoch_ + 1;
    endpoint_->receive(0, epoch_);
    if (is_first_) {
      add_one(end_.data, end_.out);
      endpoint_->send(0, epoch_);
    }
    (*await_)([&] { return endpoint_->received(0); });
    add_one(end_.in, end_.data);
    if (!is_first_) {
      add_one(end_.data, end_.out);
      endpoint_->send(0, epoch_);
    }
    (*await_)([&] { return endpoint_->sent(0); });
  }
  End const& end() const { return end_; }

 private:
  static std::byte* as_bytes(std::vector<std::uint8_t>& bytes) {
    return reinterpret_cast<std::byte*>(bytes.data());
  }
  End end_;
  bool is_first_, takes_part_ = false;
  std::unique_ptr<Endpoint> endpoint_;
  std::optional<PatientWait> await_;
  std::uint32_t epoch_ = 0;
};

Timing time_host(Transport& transport, QueuePingPong const& what, std::size_t bytes,
                 Protocol const& protocol) {
  HostPair pair(transport, what, bytes, protocol);
  Timing timing = time_steps(transport.group(), protocol, [&] { pair.round_trip(); });
  for (double& s : timing.step_s) s /= 2;
  check_answer(transport.group(), what, pair.end(),
               protocol.warm_up + std::int64_t{protocol.repeat} * protocol.steps);
  return timing;
}

}  // namespace

char const* name(Driver driver) {
  return driver == Driver::standard ? "standard" : driver == Driver::ready ? "ready" : "host";
}

void check_queue(Transport& transport, QueueType type) {
  transport.group().together([&] {
    Queue const there_is_one(type);
    bool const threads = transport.capabilities().threads_as_ranks;
    if (type == QueueType::ofi ? threads
                               : type != QueueType::automatic && (type == QueueType::threads) != threads)
      throw Error(
          ErrorCode::usage,
          fmt::format("a queue of the type {} between ranks of the transport {} (it carries none such). "
                      "Use auto.",
                      name(type), transport.capabilities().transport));
  });
}

std::vector<QueuePingPongTiming> queue_ping_pong(Transport& transport, QueuePingPong const& what,
                                                 Protocol const& protocol) {
  check_ping_pong({what.first, what.second, what.bytes}, transport.group().size());
  check_queue(transport, what.type);
  Communicator communicator(transport);
  std::vector<QueuePingPongTiming> timings;
  for (std::size_t const bytes : what.bytes) {
    QueuePingPongTiming timing;
    timing.bytes = bytes;
    Protocol some = protocol;
    timing.steps = some.steps = steps_of(bytes, protocol.steps);
    some.warm_up = std::min(some.warm_up, some.steps);
    timing.standard = time_queue(transport.group(), communicator, what, bytes, false, some);
    timing.ready = time_queue(transport.group(), communicator, what, bytes, true, some);
    timing.host = time_host(transport, what, bytes, some);
    timings.push_back(std::move(timing));
  }
  transport.group().barrier();
  return timings;
}

namespace {

// This rank's part of a direct exchange: what it sends to each rank, and where its ghosts come from.
struct DirectHalo {
  DirectHalo(Group& group, Halo const& halo, Communicator& communicator)
      : rank(group.rank()), bytes(halo.item_bytes * static_cast<std::size_t>(halo.fields)) {
    Pattern const& mine = halo.patterns[static_cast<std::size_t>(rank)];
    std::map<Rank, std::vector<std::int32_t>> to;
    for (std::size_t k = 0; k < mine.item.size(); ++k)
      for (auto r = mine.first[k]; r < mine.first[k + 1]; ++r)
        to[mine.receiver[static_cast<std::size_t>(r)]].push_back(mine.item[k]);
    homes = homes_of_ghosts(halo.patterns, rank);
    std::map<Rank, std::vector<std::int32_t>> from;
    for (std::size_t g = 0; g < homes.size(); ++g)
      from[homes[g].rank].push_back(static_cast<std::int32_t>(g));
    owned.resize(static_cast<std::size_t>(mine.owned) * bytes);
    ghosts.resize(homes.size() * bytes);
    for (auto& [peer, items] : to) {
      Message& m = out.emplace_back();
      m.items = std::move(items);
      m.buffer.resize(m.items.size() * bytes);
      m.request = communicator.send_init(m.buffer, peer, 0);
    }
    for (auto& [peer, items] : from) {
      Message& m = in.emplace_back();
      // As the sender packs them: by rising item.
      std::sort(items.begin(), items.end(), [&](std::int32_t a, std::int32_t b) {
        return homes[static_cast<std::size_t>(a)].item < homes[static_cast<std::size_t>(b)].item;
      });
      m.items = std::move(items);
      m.buffer.resize(m.items.size() * bytes);
      m.request = communicator.receive_init(m.buffer, peer, 0);
    }
    for (auto* const all : {&in, &out})
      for (Message& m : *all) (all == &in ? receives : sends).push_back(&m.request);
    std::vector<Request*> requests = receives;
    requests.insert(requests.end(), sends.begin(), sends.end());
    match(requests);
  }
  void pack() {
    for (Message& m : out)
      for (std::size_t k = 0; k < m.items.size(); ++k)
        std::memcpy(m.buffer.data() + k * bytes, owned.data() + static_cast<std::size_t>(m.items[k]) * bytes,
                    bytes);
  }
  void unpack() {
    for (Message& m : in)
      for (std::size_t k = 0; k < m.items.size(); ++k)
        std::memcpy(ghosts.data() + static_cast<std::size_t>(m.items[k]) * bytes, m.buffer.data() + k * bytes,
                    bytes);
  }
  void enqueue(Queue& queue) {
    queue.enqueue_start(receives);
    queue.enqueue_function([this] { pack(); });
    queue.enqueue_start(sends);
    queue.enqueue_wait_all();
    queue.enqueue_function([this] { unpack(); });
  }
  void fill(int round) {
    for (std::size_t k = 0; k * bytes < owned.size(); ++k)
      fill_known(std::span(owned).subspan(k * bytes, bytes),
                 seed_of({rank, static_cast<std::int32_t>(k)}, 0, round));
  }
  void check(int round) const {
    for (std::size_t k = 0; k < homes.size(); ++k) {
      std::size_t const at =
          first_unknown(std::span(ghosts).subspan(k * bytes, bytes), seed_of(homes[k], 0, round));
      if (at < bytes)
        throw wrong(
            fmt::format("byte {} of ghost {} that a queue has brought is not that of its owner, rank "
                        "{}",
                        at, k, homes[k].rank));
    }
  }

  struct Message {
    std::vector<std::int32_t> items;
    std::vector<std::byte> buffer;
    Request request;
  };
  Rank rank;
  std::size_t bytes;
  std::vector<GhostHome> homes;
  std::vector<std::byte> owned, ghosts;
  std::deque<Message> out, in;
  std::vector<Request*> receives, sends;
};

}  // namespace

QueueHaloTiming queue_halo(Transport& transport, Halo const& what, QueueType type, Protocol const& protocol) {
  Group& group = transport.group();
  check_halo(what, group.size());
  check_queue(transport, type);
  QueueHaloTiming timing;
  {
    Communicator communicator(transport);
    DirectHalo halo(group, what, communicator);
    Queue queue(type);
    auto const run = [&](int steps) {
      for (int k = 0; k < steps; ++k) {
        halo.enqueue(queue);
        wait_for_room(queue, type, k + 1, static_cast<int>(halo.in.size() + halo.out.size()));
      }
      queue.wait();
    };
    timing.standard = time_runs(
        group, protocol, [] {}, run);
    prove(halo, [&] { run(1); });
    group.barrier();  // nobody leaves while others wait
  }
  timing.host = bench::halo(transport, what, protocol).alone;
  return timing;
}

}  // namespace hostless::bench
