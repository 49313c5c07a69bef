#include "queue_cases.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <thread>

#include "api/guarded.hpp"
#include "halos/queue_halos.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/queue.h"
#include "queue_home.hpp"
#include "queue_refusals.hpp"

namespace hostless::test {
namespace {

// What a call of the C interface returned, where that is wrong.
struct Wrong {
  std::string text;
  void expect(bool holds, std::string const& what) {
    if (!holds && text.empty()) text = what;
  }
  void expect_code(int code, int right, std::string const& what) {
    expect(code == right, what + ": code " + std::to_string(code) + " instead of " + std::to_string(right) +
                              ", '" + hostless_last_error() + "'");
  }
  void fine(int code, std::string const& what) { expect_code(code, HOSTLESS_OK, what); }
};

struct Handle {
  explicit Handle(Transport& t) {
    handle.transport = &t;
    if (int const gpu = queue_home().gpu(); gpu >= 0)
      handle.communicator = std::make_unique<Communicator>(t, gpu, queue_home().type());
  }
  operator hostless_transport*() { return &handle; }
  hostless_transport handle;
};

int make_queue(hostless_queue** queue) {
  return hostless_queue_init(queue, name(queue_home().type()), queue_home().stream(0));
}

// A note of one rank to another past the transport, which is silent or lost meanwhile: a file. Made by all together.
class Note {
 public:
  explicit Note(Transport& t) {
    static std::atomic<int> made{0};
    auto const name = t.group().all_gather(std::array<int, 2>{getpid(), made++}).front();
    path_ = std::filesystem::temp_directory_path() /
            ("hostless_note_" + std::to_string(name[0]) + "_" + std::to_string(name[1]));
  }
  void say() const { std::ofstream(path_) << "." << std::flush; }
  bool hear() const {
    wait_for([&] { return std::filesystem::exists(path_); }, [] { return false; }, Deadline::after(240));
    return std::filesystem::remove(path_);
  }

 private:
  std::filesystem::path path_;
};

std::string refusals(Transport& transport) { return wrong_refusals(transport); }

// Products that 64 bits do not hold, or no pointer reaches.
std::string sizes(Transport& t) {
  Wrong wrong;
  Handle handle(t);
  double from = 1, to = 0;
  constexpr int f64 = HOSTLESS_DATA_F64;
  for (std::size_t const count : {std::size_t{1} << 61, std::size_t{1} << 60, SIZE_MAX / 8 + 2}) {
    hostless_request* r = nullptr;
    std::string const what = " of " + std::to_string(count) + " doubles";
    wrong.expect_code(hostless_send_init(&from, count, f64, 0, 0, handle, &r), HOSTLESS_USAGE,
                      "send_init" + what);
    wrong.expect_code(hostless_rsend_init(&from, count, f64, 0, 0, handle, &r), HOSTLESS_USAGE,
                      "rsend_init" + what);
    wrong.expect_code(hostless_recv_init(&to, count, f64, 0, 0, handle, &r), HOSTLESS_USAGE,
                      "recv_init" + what);
    wrong.expect_code(hostless_broadcast_init(&to, count, f64, 0, handle, &r), HOSTLESS_USAGE,
                      "broadcast_init" + what);
    wrong.expect_code(hostless_allreduce_init(&from, &to, count, f64, HOSTLESS_SUM, handle, &r),
                      HOSTLESS_USAGE, "allreduce_init" + what);
    wrong.expect(r == nullptr, "a request" + what);
  }
  return wrong.text;
}

// Bytes, source and tag; messages that are shorter than the buffer, empty, or of the rank to itself.
std::string statuses(Transport& t) {
  Wrong wrong;
  Handle handle(t);
  int const rank = t.group().rank(), ranks = t.group().size(), next = (rank + 1) % ranks,
            before = (rank + ranks - 1) % ranks;
  hostless_queue* queue = nullptr;
  wrong.fine(make_queue(&queue), "queue_init");
  auto const out = queue_home().array<double>(3), in = queue_home().array<double>(5);
  double& self_out = queue_home().array<double>(1)[0];
  double& self_in = queue_home().array<double>(1)[0];
  out[1] = 2, out[2] = 3, self_out = rank, self_in = -1;
  hostless_request* r[6] = {};
  wrong.fine(hostless_send_init(out.data(), 3, HOSTLESS_DATA_F64, next, 7, handle, &r[0]), "send_init");
  wrong.fine(hostless_recv_init(in.data(), 5, HOSTLESS_DATA_F64, before, 7, handle, &r[1]), "recv_init");
  wrong.fine(hostless_send_init(nullptr, 0, HOSTLESS_DATA_F64, next, 8, handle, &r[2]),
             "send_init of nothing");
  wrong.fine(hostless_recv_init(nullptr, 0, HOSTLESS_DATA_BYTE, before, 8, handle, &r[3]),
             "recv_init of nothing");
  wrong.fine(hostless_rsend_init(&self_out, 1, HOSTLESS_DATA_F64, rank, 9, handle, &r[4]),
             "rsend_init to itself");
  wrong.fine(hostless_recv_init(&self_in, 1, HOSTLESS_DATA_F64, rank, 9, handle, &r[5]),
             "recv_init from itself");
  wrong.fine(hostless_matchall(6, r), "matchall");
  for (int round = 1; round <= 3; ++round) {
    hostless_request* receives[3] = {r[1], r[3], r[5]};
    hostless_request* sends[3] = {r[0], r[2], r[4]};
    out[0] = rank + 0.5 * round;
    wrong.fine(hostless_enqueue_startall(queue, 3, receives), "startall");
    wrong.fine(hostless_enqueue_startall(queue, 3, sends), "startall");
    wrong.fine(hostless_enqueue_wait_started(queue), "wait_started");
    wrong.fine(hostless_queue_wait(queue), "queue_wait");
    wrong.expect(in[0] == before + 0.5 * round && in[2] == 3 && in[3] == 0, "what was received");
    wrong.expect(self_in == rank, "what was received from itself");
    int const bytes[6] = {24, 24, 0, 0, 8, 8}, tags[6] = {7, 7, 8, 8, 9, 9},
              peers[6] = {next, before, next, before, rank, rank};
    for (int k = 0; k < 6; ++k) {
      hostless_request_status status;
      wrong.fine(hostless_request_get_status(r[k], &status), "get_status");
      wrong.expect(status.bytes == static_cast<std::size_t>(bytes[k]) && status.tag == tags[k] &&
                       status.source == peers[k] && status.starts == static_cast<std::uint64_t>(round) &&
                       status.lost == 0,
                   "the status of request " + std::to_string(k));
    }
  }
  for (auto& one : r) wrong.fine(hostless_request_free(&one), "request_free");
  wrong.fine(hostless_queue_free(&queue), "queue_free");
  t.group().barrier();
  return wrong.text;
}

// All ranks have reached the barrier when its wait ends; broadcasts of every root; reductions of every kind.
std::string collectives(Transport& t) {
  Wrong wrong;
  Handle handle(t);
  int const rank = t.group().rank(), ranks = t.group().size();
  hostless_queue* queue = nullptr;
  wrong.fine(make_queue(&queue), "queue_init");
  for (int root = 0; root < ranks; ++root)
    for (std::size_t const count :
         {std::size_t{0}, std::size_t{3}, std::size_t{20000}}) {  // in slots, and longer
      auto const values = queue_home().array<std::int64_t>(count);
      std::fill(values.begin(), values.end(), rank == root ? 40 + root : -1);
      hostless_request* request = nullptr;
      wrong.fine(hostless_broadcast_init(values.data(), count, HOSTLESS_DATA_I64, root, handle, &request),
                 "broadcast_init");
      wrong.fine(hostless_match(request), "match");
      wrong.fine(hostless_enqueue_start(queue, request), "start");
      wrong.fine(hostless_enqueue_wait(queue, request), "wait");
      wrong.fine(hostless_queue_wait(queue), "queue_wait");
      for (std::int64_t const v : values) wrong.expect(v == 40 + root, "a broadcast value");
      wrong.fine(hostless_request_free(&request), "request_free");
    }
  int const sum = ranks * (ranks - 1) / 2 + ranks;
  int product = 1;
  for (int r = 0; r < ranks; ++r) product *= r + 1;
  int const right[4] = {sum, product, 1, ranks};
  for (int datatype = 0; datatype <= HOSTLESS_DATA_BYTE; ++datatype)
    for (int reduction = 0; reduction < 4; ++reduction) {
      double& f64 = queue_home().array<double>(1)[0];
      float& f32 = queue_home().array<float>(1)[0];
      std::int32_t& i32 = queue_home().array<std::int32_t>(1)[0];
      std::int64_t& i64 = queue_home().array<std::int64_t>(1)[0];
      std::uint8_t& byte = queue_home().array<std::uint8_t>(1)[0];
      f64 = f32 = static_cast<float>(rank + 1);
      i64 = i32 = rank + 1;
      byte = static_cast<std::uint8_t>(rank + 1);
      void* const values[5] = {&f32, &f64, &i32, &i64, &byte};
      hostless_request* request = nullptr;
      wrong.fine(hostless_allreduce_init(values[datatype], values[datatype], 1, datatype, reduction, handle,
                                         &request),
                 "allreduce_init");
      wrong.fine(hostless_match(request), "match");
      wrong.fine(hostless_enqueue_start(queue, request), "start");
      wrong.fine(hostless_enqueue_wait(queue, request), "wait");
      wrong.fine(hostless_queue_wait(queue), "queue_wait");
      double const got[5] = {f32, f64, static_cast<double>(i32), static_cast<double>(i64),
                             static_cast<double>(byte)};
      wrong.expect(
          got[datatype] == static_cast<std::uint8_t>(right[reduction]) || got[datatype] == right[reduction],
          "reduction " + std::to_string(reduction) + " of datatype " + std::to_string(datatype));
      wrong.fine(hostless_request_free(&request), "request_free");
    }
  // A barrier: what was sent before it by a slow rank's work is there.
  hostless_request* barrier = nullptr;
  wrong.fine(hostless_barrier_init(handle, &barrier), "barrier_init");
  wrong.fine(hostless_match(barrier), "match");
  for (int slow = 0; slow < ranks; ++slow) {
    auto const nap = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
    auto const began = std::chrono::steady_clock::now();
    t.group().barrier();
    if (rank == slow) wrong.fine(hostless_enqueue_function(queue, nap, nullptr), "enqueue_function");
    wrong.fine(hostless_enqueue_start(queue, barrier), "start");
    wrong.fine(hostless_enqueue_wait(queue, barrier), "wait");
    wrong.fine(hostless_queue_wait(queue), "queue_wait");
    std::chrono::duration<double> const took = std::chrono::steady_clock::now() - began;
    wrong.expect(took.count() > 0.019, "a barrier ended before a rank's start");
  }
  wrong.fine(hostless_request_free(&barrier), "request_free");
  wrong.fine(hostless_queue_free(&queue), "queue_free");
  t.group().barrier();
  return wrong.text;
}

// Two ranks that each wait for their send first: a pull by the receiver's wait would deadlock. Of every size.
std::string send_waits_first(Transport& t) {
  Wrong wrong;
  Communicator communicator(t, queue_home().gpu(), queue_home().type());
  int const rank = t.group().rank(), other = rank ^ 1;
  Queue queue(queue_home().type(), queue_home().stream(0));
  for (std::size_t const bytes : {std::size_t{0}, std::size_t{8}, std::size_t{8192}, std::size_t{1} << 20}) {
    auto const out = queue_home().array<std::byte>(bytes), in = queue_home().array<std::byte>(bytes);
    std::fill(out.begin(), out.end(), static_cast<std::byte>(rank + 3));
    Request send = communicator.send_init(out, other, 0), receive = communicator.receive_init(in, other, 0);
    Request* both[] = {&send, &receive};
    match(both);
    for (int round = 0; round < 20; ++round) {
      Request *const s = &send, *const r = &receive;
      queue.enqueue_start({&r, 1});
      queue.enqueue_start({&s, 1});
      queue.enqueue_wait({&s, 1});
      queue.enqueue_wait({&r, 1});
    }
    queue.wait();
    for (std::byte const b : in)
      wrong.expect(b == static_cast<std::byte>(other + 3), "a byte that was received");
    send.free();
    receive.free();
  }
  t.group().barrier();
  return wrong.text;
}

// A start that nobody waits for yet blocks nothing behind it.
std::string starts_do_not_block(Transport& t) {
  Wrong wrong;
  Communicator communicator(t, queue_home().gpu(), queue_home().type());
  int const rank = t.group().rank(), other = rank ^ 1;
  auto const out = queue_home().array<std::byte>(100000), in = queue_home().array<std::byte>(100000);
  Request send = communicator.send_init(out, other, 0), receive = communicator.receive_init(in, other, 0);
  Request* both[] = {&send, &receive};
  match(both);
  Queue queue(queue_home().type(), queue_home().stream(0));
  Request *const s = &send, *const r = &receive;
  queue.enqueue_start({&s, 1});  // neither side has started its receive
  std::atomic<bool> reached{false};
  queue.enqueue_function([&] { reached.store(true); });
  queue.wait();
  wrong.expect(reached.load(), "the work behind a start was not done");
  t.group().barrier();
  queue.enqueue_start({&r, 1});
  queue.enqueue_wait_all();
  queue.wait();
  wrong.expect(send.status().starts == 1 && receive.status().starts == 1, "both are complete");
  send.free();
  receive.free();
  t.group().barrier();
  return wrong.text;
}

// What a function throws is thrown by the queue's wait, and the queue goes on.
std::string functions_that_throw(Transport&) {
  Wrong wrong;
  Queue queue(queue_home().type(), queue_home().stream(0));
  bool went_on = false;
  queue.enqueue_function([] { throw std::runtime_error("as it should be"); });
  queue.enqueue_function([&] { went_on = true; });
  try {
    queue.wait();
    wrong.expect(false, "nothing was thrown");
  } catch (std::runtime_error const& e) {
    wrong.expect(std::string(e.what()) == "as it should be", e.what());
  }
  wrong.expect(went_on, "the queue did not go on");
  queue.wait();
  return wrong.text;
}

// One after the other over one transport: what belongs to an earlier one, or to one that a faster rank has
// opened already, is not taken for its own.
std::string communicators_in_turn(Transport& t) {
  Wrong wrong;
  int const rank = t.group().rank(), ranks = t.group().size();
  for (int turn = 0; turn < 30; ++turn) {
    Communicator communicator(t, queue_home().gpu(), queue_home().type());
    auto const out_of = queue_home().array<int>(1), into = queue_home().array<int>(1);
    int &out = out_of[0], &in = into[0];
    out = 100 * turn + rank, in = -1;
    int const next = (rank + 1 + turn % ranks) % ranks,
              before = (rank + 2 * ranks - 1 - turn % ranks) % ranks;
    Request send = communicator.send_init(std::as_bytes(std::span(&out, 1)), next, 0);
    Request receive = communicator.receive_init(std::as_writable_bytes(std::span(&in, 1)), before, 0);
    Request* both[] = {&send, &receive};
    match(both);
    Queue queue(queue_home().type(), queue_home().stream(0));
    queue.enqueue_start(both);
    queue.enqueue_wait(both);
    queue.wait();
    wrong.expect(in == 100 * turn + before, "a message of turn " + std::to_string(turn));
    if (turn % 3 == rank % 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    send.free();
    receive.free();
  }
  t.group().barrier();
  return wrong.text;
}

// Nobody answers: a wait ends by the queue's limit, what is behind it is done, the requests are lost, and so
// is a new start. The match of others goes on to work.
std::string limits(Transport& t) {
  Wrong wrong;
  Handle handle(t);
  Note const given_up(t);
  if (t.group().rank() == 0) {
    hostless_queue* queue = nullptr;
    wrong.fine(make_queue(&queue), "queue_init");
    wrong.fine(hostless_queue_set_limit(queue, 0.2), "set_limit");
    auto const big = queue_home().array<std::byte>(100000);
    hostless_request* receive = nullptr;
    wrong.fine(hostless_recv_init(big.data(), big.size(), HOSTLESS_DATA_BYTE, 1, 0, handle, &receive),
               "recv_init");
    wrong.fine(hostless_match(receive), "match");
    bool reached = false;
    wrong.fine(hostless_enqueue_start(queue, receive), "start");
    wrong.fine(hostless_enqueue_wait(queue, receive), "wait");
    wrong.fine(hostless_enqueue_function(
                   queue, [](void* b) { *static_cast<bool*>(b) = true; }, &reached),
               "function");
    wrong.expect_code(hostless_queue_wait(queue), HOSTLESS_PEER_LOST, "queue_wait of what never comes");
    wrong.expect(reached, "the work behind a lost wait was not done");
    hostless_request_status status;
    wrong.fine(hostless_request_get_status(receive, &status), "get_status");
    wrong.expect(status.lost == 1 && status.starts == 0, "the request is not lost");
    wrong.fine(hostless_enqueue_start(queue, receive), "a start after the loss");
    wrong.fine(hostless_enqueue_wait(queue, receive), "a wait after the loss");
    wrong.expect_code(hostless_queue_wait(queue), HOSTLESS_PEER_LOST, "queue_wait after the loss");
    given_up.say();
    wrong.fine(hostless_request_free(&receive), "request_free");
    wrong.fine(hostless_queue_free(&queue), "queue_free");
  } else if (t.group().rank() == 1) {
    auto const big = queue_home().array<std::byte>(100000);
    hostless_request* send = nullptr;
    wrong.fine(hostless_send_init(big.data(), big.size(), HOSTLESS_DATA_BYTE, 0, 0, handle, &send),
               "send_init");
    wrong.fine(hostless_match(send), "match");
    // Told by the other's end of it; no start of ours.
    hostless_queue* queue = nullptr;
    wrong.fine(make_queue(&queue), "queue_init");
    wrong.expect(given_up.hear(), "the other has not given up");
    wrong.fine(hostless_enqueue_start(queue, send), "start towards who has given up");
    wrong.fine(hostless_enqueue_wait(queue, send), "wait");
    wrong.expect_code(hostless_queue_wait(queue), HOSTLESS_PEER_LOST,
                      "queue_wait after the other has given up");
    wrong.fine(hostless_request_free(&send), "request_free");
    wrong.fine(hostless_queue_free(&queue), "queue_free");
  }
  return wrong.text;
}

// Sides with different tags: both matches end by the limit, and later ones find their sides.
std::string match_limits(Transport& t) {
  Wrong wrong;
  Handle handle(t);
  int const rank = t.group().rank(), other = 1 - rank;
  auto const buffer = queue_home().array<std::byte>(100);
  wrong.expect_code(hostless_requests_set_limit(handle, 0), HOSTLESS_USAGE, "a limit of 0");
  wrong.fine(hostless_requests_set_limit(handle, 0.2), "requests_set_limit");
  for (int const tag : {rank, 7}) {  // the second time it is the same
    hostless_request* one = nullptr;
    wrong.fine(rank == 0
                   ? hostless_recv_init(buffer.data(), 100, HOSTLESS_DATA_BYTE, other, tag, handle, &one)
                   : hostless_send_init(buffer.data(), 100, HOSTLESS_DATA_BYTE, other, tag, handle, &one),
               "init");
    if (tag == 7) {
      wrong.fine(hostless_requests_set_limit(handle, 600), "requests_set_limit");
      wrong.fine(hostless_match(one), "match after one that has ended");
    } else {
      wrong.expect_code(hostless_match(one), HOSTLESS_PEER_LOST, "match of sides with different tags");
      std::string const said = hostless_last_error();
      wrong.expect(said.find("in time") != said.npos, "a match that has ended otherwise: " + said);
    }
    t.group().barrier();
    wrong.fine(hostless_request_free(&one), "request_free");
  }
  return wrong.text;
}

// A match that one side has given up is none for the other side that comes later, whether the first one goes on
// calling or is silent; other messages go on.
std::string given_up(Transport& t) {
  Wrong wrong;
  Handle handle(t);
  int const rank = t.group().rank(), other = 1 - rank;
  auto const long_one = queue_home().array<std::byte>(100000), short_one = queue_home().array<std::byte>(8);
  auto const init = [&](std::span<std::byte> buffer, int tag, hostless_request** one) {
    wrong.fine(
        rank == 0
            ? hostless_recv_init(buffer.data(), buffer.size(), HOSTLESS_DATA_BYTE, other, tag, handle, one)
            : hostless_send_init(buffer.data(), buffer.size(), HOSTLESS_DATA_BYTE, other, tag, handle, one),
        "init");
  };
  bool const over_library = !t.capabilities().threads_as_ranks;
  Note const is_told(t);
  hostless_queue* queue = nullptr;
  wrong.fine(make_queue(&queue), "queue_init");
  for (bool const goes_on : {true, false}) {
    hostless_request *one = nullptr, *later = nullptr;
    init(long_one, 1, &one);
    init(short_one, 2, &later);
    if (rank == 0) {
      wrong.fine(hostless_requests_set_limit(handle, 0.2), "requests_set_limit");
      wrong.expect_code(hostless_match(one), HOSTLESS_PEER_LOST, "match whose other side comes too late");
      wrong.fine(hostless_request_free(&one), "request_free");
      wrong.fine(hostless_requests_set_limit(handle, 600), "requests_set_limit");
      t.group().barrier();
      if (!goes_on) wrong.expect(is_told.hear(), "a match that is told only when the other side goes on");
      wrong.fine(hostless_match(later), "match of another message");
    } else {
      t.group().barrier();
      int const code = hostless_match(one);
      std::string const said = code == HOSTLESS_OK ? "" : hostless_last_error();
      if (!over_library || code != HOSTLESS_OK) {
        wrong.expect_code(code, HOSTLESS_PEER_LOST, "match of what the other side has given up");
        wrong.expect(said.find("rank 0 has given up") != said.npos,
                     "a match that has ended otherwise: " + said);
      }
      // Over a library the word may come behind the offer.
      int matched = 1;
      auto const told = [&] {
        wrong.fine(hostless_is_matched(one, &matched), "is_matched");
        return matched == 0;
      };
      wrong.expect(wait_for(
                       told, [] { return false; }, Deadline::after(120)) == Waited::done,
                   "a match of what was given up that is not told");
      if (!goes_on) is_told.say();
      wrong.expect_code(hostless_enqueue_start(queue, one), HOSTLESS_NOT_MATCHED,
                        "start of what has no match");
      wrong.fine(hostless_request_free(&one), "request_free");
      wrong.fine(hostless_match(later), "match of another message");
    }
    wrong.fine(hostless_enqueue_start(queue, later), "start");
    wrong.fine(hostless_enqueue_wait(queue, later), "wait");
    wrong.fine(hostless_queue_wait(queue), "queue_wait");
    wrong.fine(hostless_request_free(&later), "request_free");
  }
  wrong.fine(hostless_queue_free(&queue), "queue_free");
  return wrong.text;
}

std::string halos(Transport& t) {
  Communicator communicator(t, queue_home().gpu(), queue_home().type());
  t.group().barrier();
  Queue queue(queue_home().type(), queue_home().stream(0));
  auto const at_once = [](std::function<void()> const& steps) {
    steps();
    return 1;
  };
  std::uint64_t const grids = t.capabilities().threads_as_ranks ? 40 : 12;
  return run_random_halos(communicator, t.group(), queue, 1, grids, at_once);
}

}  // namespace

std::vector<QueueCase> const& queue_cases() {
  static std::vector<QueueCase> const all = {
      {"refusals", 2, false, refusals, false},
      {"sizes", 2, false, sizes},
      {"statuses", 0, false, statuses},
      {"collectives", 0, false, collectives},
      {"send_waits_first", 2, false, send_waits_first, false},
      {"starts_do_not_block", 2, false, starts_do_not_block},
      {"communicators_in_turn", 0, false, communicators_in_turn},
      {"functions_that_throw", 2, false, functions_that_throw},
      {"match_limits", 2, false, match_limits},
      {"given_up", 2, false, given_up},
      {"halos", 0, false, halos},
      {"limits", 2, true, limits},
  };
  return all;
}

}  // namespace hostless::test
