#include "queue_refusals.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <vector>

#include "api/guarded.hpp"
#include "hostless/queue.h"
#include "queue_home.hpp"
#include "queue_refusal_setting.hpp"

namespace hostless::test {
namespace {

template <class Make>
int freed_after(Make const& make) {
  R request = nullptr;
  int const code = make(&request);
  if (request != nullptr) Setting::need(hostless_request_free(&request));
  return code;
}

int init_queue(char const* type, void* stream) {
  hostless_queue* q = nullptr;
  int const code = hostless_queue_init(&q, type, stream);
  if (q != nullptr) Setting::need(hostless_queue_free(&q));
  return code;
}

struct Row {
  char const* name;
  int right;
  int (*call)(Setting& s);
  bool of_held_queues = false;  ///< where a queue's work can be held from outside
};

Row const starts[] = {
    {"start of an unmatched request", HOSTLESS_NOT_MATCHED,
     [](Setting& s) { return hostless_enqueue_start(s.queue, s.unmatched); }},
    {"start of one under match", HOSTLESS_NOT_MATCHED,
     [](Setting& s) { return hostless_enqueue_start(s.queue, s.under_match); }},
    {"startall, the second unmatched", HOSTLESS_NOT_MATCHED,
     [](Setting& s) { return start_two(s, s.queue, s.send, s.unmatched); }},
    {"start of NULL", HOSTLESS_NO_REQUEST,
     [](Setting& s) { return hostless_enqueue_start(s.queue, nullptr); }},
    {"startall, the second NULL", HOSTLESS_NO_REQUEST,
     [](Setting& s) { return start_two(s, s.queue, s.send, nullptr); }},
    {"start of a freed request", HOSTLESS_NO_REQUEST,
     [](Setting& s) { return hostless_enqueue_start(s.queue, s.freed); }},
    {"start of another library's request", HOSTLESS_NO_REQUEST,
     [](Setting& s) { return hostless_enqueue_start(s.queue, s.foreign); }},
    {"start of a match", HOSTLESS_NOT_PERSISTENT,
     [](Setting& s) { return hostless_enqueue_start(s.queue, s.match_of); }},
    {"startall, the second a match", HOSTLESS_NOT_PERSISTENT,
     [](Setting& s) { return start_two(s, s.queue, s.receive, s.match_of); }},
    {"startall of one twice", HOSTLESS_TWICE,
     [](Setting& s) { return start_two(s, s.queue, s.send, s.send); }},
    {"startall, no array", HOSTLESS_USAGE,
     [](Setting& s) { return hostless_enqueue_startall(s.queue, 2, nullptr); }},
    {"start on no queue", HOSTLESS_USAGE, [](Setting& s) { return hostless_enqueue_start(nullptr, s.send); }},
    {"start on another thing than a queue", HOSTLESS_USAGE,
     [](Setting& s) { return hostless_enqueue_start(reinterpret_cast<hostless_queue*>(&s), s.send); }},
    {"second start without a wait", HOSTLESS_ALREADY_STARTED,
     [](Setting& s) { return while_started(s, [&] { return hostless_enqueue_start(s.queue, s.send); }); }},
    {"second start without a wait, on another queue", HOSTLESS_ALREADY_STARTED,
     [](Setting& s) {
       return while_started(s, [&] { return hostless_enqueue_start(s.second, s.receive); });
     }},
    {"startall, the second started", HOSTLESS_ALREADY_STARTED,
     [](Setting& s) { return while_started(s, [&] { return start_two(s, s.queue, s.long_send, s.send); }); }},
    {"start on another queue before a wait is reached", HOSTLESS_OTHER_QUEUE,
     [](Setting& s) { return while_unreached(s, [&] { return hostless_enqueue_start(s.second, s.send); }); },
     true},
    {"startall of none", HOSTLESS_OK,
     [](Setting& s) { return hostless_enqueue_startall(s.queue, 0, nullptr); }},
};

Row const waits[] = {
    {"wait of what is not started", HOSTLESS_NOT_STARTED,
     [](Setting& s) { return hostless_enqueue_wait(s.queue, s.send); }},
    {"wait of an unmatched request", HOSTLESS_NOT_STARTED,
     [](Setting& s) { return hostless_enqueue_wait(s.queue, s.unmatched); }},
    {"waitall, the second not started", HOSTLESS_NOT_STARTED,
     [](Setting& s) { return while_started(s, [&] { return wait_two(s.queue, s.send, s.long_send); }); }},
    {"wait on another queue", HOSTLESS_OTHER_QUEUE,
     [](Setting& s) { return while_started(s, [&] { return hostless_enqueue_wait(s.second, s.send); }); }},
    {"waitall on another queue", HOSTLESS_OTHER_QUEUE,
     [](Setting& s) { return while_started(s, [&] { return wait_two(s.second, s.receive, s.send); }); }},
    {"waitall of one twice", HOSTLESS_TWICE,
     [](Setting& s) { return while_started(s, [&] { return wait_two(s.queue, s.send, s.send); }); }},
    {"second wait", HOSTLESS_NOT_STARTED,
     [](Setting& s) { return while_unreached(s, [&] { return hostless_enqueue_wait(s.queue, s.send); }); },
     true},
    {"wait of NULL", HOSTLESS_NO_REQUEST, [](Setting& s) { return hostless_enqueue_wait(s.queue, nullptr); }},
    {"wait of a freed request", HOSTLESS_NO_REQUEST,
     [](Setting& s) { return hostless_enqueue_wait(s.queue, s.freed); }},
    {"wait of a match", HOSTLESS_NOT_PERSISTENT,
     [](Setting& s) { return hostless_enqueue_wait(s.queue, s.match_of); }},
    {"wait on no queue", HOSTLESS_USAGE, [](Setting& s) { return hostless_enqueue_wait(nullptr, s.send); }},
    {"wait for all that is started: nothing", HOSTLESS_OK,
     [](Setting& s) { return hostless_enqueue_wait_started(s.queue); }},
};

Row const both_at_once[] = {
    {"start and wait, the second start unmatched", HOSTLESS_NOT_MATCHED,
     [](Setting& s) {
       return start_and_wait(s.queue, {s.send, s.unmatched}, {s.send});
     }},
    {"start and wait, a start under match", HOSTLESS_NOT_MATCHED,
     [](Setting& s) { return start_and_wait(s.queue, {s.under_match}, {s.under_match}); }},
    {"start and wait, a start NULL", HOSTLESS_NO_REQUEST,
     [](Setting& s) {
       return start_and_wait(s.queue, {s.send, nullptr}, {s.send});
     }},
    {"start and wait, a wait NULL", HOSTLESS_NO_REQUEST,
     [](Setting& s) {
       return start_and_wait(s.queue, {s.send}, {s.send, nullptr});
     }},
    {"start and wait, a start freed", HOSTLESS_NO_REQUEST,
     [](Setting& s) { return start_and_wait(s.queue, {s.freed}, {}); }},
    {"start and wait, a wait freed", HOSTLESS_NO_REQUEST,
     [](Setting& s) {
       return start_and_wait(s.queue, {s.send}, {s.send, s.freed});
     }},
    {"start and wait, a wait of another library's", HOSTLESS_NO_REQUEST,
     [](Setting& s) { return start_and_wait(s.queue, {s.send}, {s.foreign}); }},
    {"start and wait, a start of a match", HOSTLESS_NOT_PERSISTENT,
     [](Setting& s) {
       return start_and_wait(s.queue, {s.send, s.match_of}, {s.send});
     }},
    {"start and wait, a wait of a match", HOSTLESS_NOT_PERSISTENT,
     [](Setting& s) {
       return start_and_wait(s.queue, {s.send}, {s.send, s.match_of});
     }},
    {"start and wait, a start twice", HOSTLESS_TWICE,
     [](Setting& s) {
       return start_and_wait(s.queue, {s.send, s.receive, s.send}, {s.send});
     }},
    {"start and wait, a wait twice", HOSTLESS_TWICE,
     [](Setting& s) {
       return start_and_wait(s.queue, {s.send, s.receive}, {s.receive, s.receive});
     }},
    {"start and wait, no array of starts", HOSTLESS_USAGE,
     [](Setting& s) { return hostless_enqueue_start_and_wait(s.queue, 1, nullptr, 1, &s.send); }},
    {"start and wait, no array of waits", HOSTLESS_USAGE,
     [](Setting& s) { return hostless_enqueue_start_and_wait(s.queue, 1, &s.send, 1, nullptr); }},
    {"start and wait on no queue", HOSTLESS_USAGE,
     [](Setting& s) { return start_and_wait(nullptr, {s.send}, {s.send}); }},
    {"start and wait of what is started", HOSTLESS_ALREADY_STARTED,
     [](Setting& s) {
       return while_started(s, [&] {
         return start_and_wait(s.queue, {s.long_send, s.send}, {s.send, s.long_send});
       });
     }},
    {"start and wait, a wait of what neither is nor will be started", HOSTLESS_NOT_STARTED,
     [](Setting& s) {
       return start_and_wait(s.queue, {s.send, s.receive}, {s.receive, s.long_send});
     }},
    {"start and wait, nothing started but a wait", HOSTLESS_NOT_STARTED,
     [](Setting& s) { return start_and_wait(s.queue, {}, {s.send}); }},
    {"start and wait, a wait of what was started on another queue", HOSTLESS_OTHER_QUEUE,
     [](Setting& s) {
       return while_started(s, [&] {
         return start_and_wait(s.second, {s.long_send}, {s.long_send, s.send});
       });
     }},
    {"start and wait on another queue before a wait is reached", HOSTLESS_OTHER_QUEUE,
     [](Setting& s) {
       return while_unreached(s, [&] { return start_and_wait(s.second, {s.send}, {s.send}); });
     },
     true},
    {"start and wait of none", HOSTLESS_OK, [](Setting& s) { return start_and_wait(s.queue, {}, {}); }},
    {"start of all and wait for two, then the wait for the others", HOSTLESS_OK,
     [](Setting& s) {
       int code = start_and_wait(s.queue, {s.receive, s.long_send, s.long_receive, s.send},
                                 {s.long_receive, s.send});
       if (code == HOSTLESS_OK) code = start_and_wait(s.queue, {}, {s.long_send, s.receive});
       if (code == HOSTLESS_OK) code = hostless_queue_wait(s.queue);
       ++s.round;
       return code;
     }},
    {"start of two, then of two more with the wait for all", HOSTLESS_OK,
     [](Setting& s) {
       int code = start_and_wait(s.queue, {s.long_receive, s.send}, {});
       if (code == HOSTLESS_OK)
         code = start_and_wait(s.queue, {s.receive, s.long_send},
                               {s.send, s.receive, s.long_send, s.long_receive});
       if (code == HOSTLESS_OK) code = hostless_queue_wait(s.queue);
       ++s.round;
       return code;
     }},
};

Row const matches[] = {
    {"match of NULL", HOSTLESS_NO_REQUEST, [](Setting&) { return hostless_match(nullptr); }},
    {"match of a freed request", HOSTLESS_NO_REQUEST, [](Setting& s) { return hostless_match(s.freed); }},
    {"match of another library's request", HOSTLESS_NO_REQUEST,
     [](Setting& s) { return hostless_match(s.foreign); }},
    {"match of a match", HOSTLESS_NOT_PERSISTENT, [](Setting& s) { return hostless_match(s.match_of); }},
    {"match of a matched request", HOSTLESS_ALREADY_MATCHED,
     [](Setting& s) { return hostless_match(s.send); }},
    {"match of one under match", HOSTLESS_ALREADY_MATCHED,
     [](Setting& s) { return hostless_match(s.under_match); }},
    {"match of a started request", HOSTLESS_ALREADY_MATCHED,
     [](Setting& s) { return while_started(s, [&] { return hostless_match(s.send); }); }},
    {"matchall, the second matched", HOSTLESS_ALREADY_MATCHED,
     [](Setting& s) { return match_two(s.unmatched, s.send); }},
    {"matchall, the second a match", HOSTLESS_NOT_PERSISTENT,
     [](Setting& s) { return match_two(s.unmatched, s.match_of); }},
    {"matchall of one twice", HOSTLESS_TWICE, [](Setting& s) { return match_two(s.unmatched, s.unmatched); }},
    {"matchall of none", HOSTLESS_OK, [](Setting&) { return hostless_matchall(0, nullptr); }},
    {"imatch of a matched request", HOSTLESS_ALREADY_MATCHED,
     [](Setting& s) { return freed_after([&](R* m) { return hostless_imatch(s.receive, m); }); }},
    {"imatch, nowhere to put it", HOSTLESS_USAGE,
     [](Setting& s) { return hostless_imatch(s.unmatched, nullptr); }},
    {"is_matched, nowhere to put it", HOSTLESS_USAGE,
     [](Setting& s) { return hostless_is_matched(s.send, nullptr); }},
    {"is_matched of NULL", HOSTLESS_NO_REQUEST,
     [](Setting&) {
       int flag = 0;
       return hostless_is_matched(nullptr, &flag);
     }},
};

Row const hosts[] = {
    {"host wait for a persistent request", HOSTLESS_IN_USE,
     [](Setting& s) { return hostless_request_wait(s.send); }},
    {"host wait for a started request", HOSTLESS_IN_USE,
     [](Setting& s) { return while_started(s, [&] { return hostless_request_wait(s.send); }); }},
    {"host test of a started request", HOSTLESS_IN_USE,
     [](Setting& s) {
       int done = 0;
       return while_started(s, [&] { return hostless_request_test(s.send, &done); });
     }},
    {"host wait for NULL", HOSTLESS_NO_REQUEST, [](Setting&) { return hostless_request_wait(nullptr); }},
    {"cancel of a persistent request", HOSTLESS_IN_USE,
     [](Setting& s) { return hostless_request_cancel(s.send); }},
    {"cancel of a started request", HOSTLESS_IN_USE,
     [](Setting& s) { return while_started(s, [&] { return hostless_request_cancel(s.receive); }); }},
    {"cancel of a match", HOSTLESS_IN_USE, [](Setting& s) { return hostless_request_cancel(s.match_of); }},
    {"free of a started request", HOSTLESS_IN_USE,
     [](Setting& s) {
       return while_started(s, [&] {
         R one = s.send;
         return hostless_request_free(&one);
       });
     }},
    {"free before the wait is reached", HOSTLESS_IN_USE,
     [](Setting& s) {
       return while_unreached(s, [&] {
         R one = s.receive;
         return hostless_request_free(&one);
       });
     },
     true},
    {"free of a request under match", HOSTLESS_IN_USE,
     [](Setting& s) {
       R one = s.under_match;
       return hostless_request_free(&one);
     }},
    {"free of a match that was not waited for", HOSTLESS_IN_USE,
     [](Setting& s) {
       R one = s.match_of;
       return hostless_request_free(&one);
     }},
    {"free of NULL", HOSTLESS_NO_REQUEST,
     [](Setting&) {
       R one = nullptr;
       return hostless_request_free(&one);
     }},
    {"free at NULL", HOSTLESS_USAGE, [](Setting&) { return hostless_request_free(nullptr); }},
    {"second free", HOSTLESS_NO_REQUEST,
     [](Setting& s) {
       R one = s.freed;
       return hostless_request_free(&one);
     }},
    {"status of a freed request", HOSTLESS_NO_REQUEST,
     [](Setting& s) {
       hostless_request_status status;
       return hostless_request_get_status(s.freed, &status);
     }},
    {"status, nowhere to put it", HOSTLESS_USAGE,
     [](Setting& s) { return hostless_request_get_status(s.send, nullptr); }},
};

template <class Init>
int init(Init const& of) {
  return freed_after([&](R* r) { return of(r); });
}
Row const inits[] = {
    {"send to any rank", HOSTLESS_WILDCARD,
     [](Setting& s) {
       return init([&](R* r) {
         return hostless_send_init(s.out, 1, HOSTLESS_DATA_BYTE, HOSTLESS_ANY_RANK, 0, &s.transport, r);
       });
     }},
    {"receive from any rank", HOSTLESS_WILDCARD,
     [](Setting& s) {
       return init([&](R* r) {
         return hostless_recv_init(s.in, 1, HOSTLESS_DATA_BYTE, HOSTLESS_ANY_RANK, 0, &s.transport, r);
       });
     }},
    {"receive with any tag", HOSTLESS_WILDCARD,
     [](Setting& s) {
       return init([&](R* r) {
         return hostless_recv_init(s.in, 1, HOSTLESS_DATA_BYTE, 0, HOSTLESS_ANY_TAG, &s.transport, r);
       });
     }},
    {"ready send with any tag", HOSTLESS_WILDCARD,
     [](Setting& s) {
       return init([&](R* r) {
         return hostless_rsend_init(s.in, 1, HOSTLESS_DATA_BYTE, 0, HOSTLESS_ANY_TAG, &s.transport, r);
       });
     }},
    {"send to a rank that is none", HOSTLESS_USAGE,
     [](Setting& s) {
       return init(
           [&](R* r) { return hostless_send_init(s.out, 1, HOSTLESS_DATA_BYTE, 2, 0, &s.transport, r); });
     }},
    {"tag below 0", HOSTLESS_USAGE,
     [](Setting& s) {
       return init(
           [&](R* r) { return hostless_recv_init(s.in, 1, HOSTLESS_DATA_BYTE, 0, -2, &s.transport, r); });
     }},
    {"no buffer", HOSTLESS_USAGE,
     [](Setting& s) {
       return init(
           [&](R* r) { return hostless_send_init(nullptr, 1, HOSTLESS_DATA_BYTE, 0, 0, &s.transport, r); });
     }},
    {"no such datatype", HOSTLESS_USAGE,
     [](Setting& s) {
       return init([&](R* r) { return hostless_send_init(s.out, 1, 9, 0, 0, &s.transport, r); });
     }},
    {"no transport", HOSTLESS_USAGE,
     [](Setting&) { return init([&](R* r) { return hostless_barrier_init(nullptr, r); }); }},
    {"no such reduction", HOSTLESS_USAGE,
     [](Setting& s) {
       return init([&](R* r) {
         return hostless_allreduce_init(s.out, s.in, 1, HOSTLESS_DATA_F64, 4, &s.transport, r);
       });
     }},
    {"no such root", HOSTLESS_USAGE,
     [](Setting& s) {
       return init(
           [&](R* r) { return hostless_broadcast_init(s.out, 1, HOSTLESS_DATA_F64, 2, &s.transport, r); });
     }},
    {"nowhere to put a request", HOSTLESS_USAGE,
     [](Setting& s) {
       return hostless_send_init(s.out, 1, HOSTLESS_DATA_BYTE, 0, 0, &s.transport, nullptr);
     }},
};

Row const queues[] = {
    {"queue of no such type", HOSTLESS_USAGE, [](Setting&) { return init_queue("cxi", nullptr); }},
    {"queue of streams without one", HOSTLESS_UNSUPPORTED,
     [](Setting&) { return init_queue("peer", nullptr); }},
    {"queue of groups without a stream", HOSTLESS_UNSUPPORTED,
     [](Setting&) { return init_queue("nccl", nullptr); }},
    {"queue of threads with a GPU's stream", HOSTLESS_UNSUPPORTED,
     [](Setting& s) { return init_queue("threads", &s); }},
    {"nowhere to put a queue", HOSTLESS_USAGE,
     [](Setting&) { return hostless_queue_init(nullptr, nullptr, nullptr); }},
    {"start on a queue of another type", HOSTLESS_UNSUPPORTED,
     [](Setting& s) {
       hostless_queue* q = nullptr;
       bool const threads = s.transport.transport->capabilities().threads_as_ranks;
       Setting::need(hostless_queue_init(&q, threads ? "mpi" : "threads", nullptr));
       int const code = hostless_enqueue_start(q, s.send);
       int const same = start_and_wait(q, {s.send}, {s.send});
       Setting::need(hostless_queue_free(&q));
       return code == same ? code : -1;
     }},
    {"free of a queue with a start without a wait", HOSTLESS_IN_USE,
     [](Setting& s) {
       return while_started(s, [&] {
         hostless_queue* q = s.queue;
         return hostless_queue_free(&q);
       });
     }},
    {"free of a queue with work", HOSTLESS_IN_USE,
     [](Setting& s) {
       return while_unreached(s, [&] {
         hostless_queue* q = s.queue;
         return hostless_queue_free(&q);
       });
     },
     true},
    {"free of no queue", HOSTLESS_USAGE,
     [](Setting&) {
       hostless_queue* q = nullptr;
       return hostless_queue_free(&q);
     }},
    {"wait for no queue", HOSTLESS_USAGE, [](Setting&) { return hostless_queue_wait(nullptr); }},
    {"no function", HOSTLESS_USAGE,
     [](Setting& s) { return hostless_enqueue_function(s.queue, nullptr, nullptr); }},
    {"a limit of 0", HOSTLESS_USAGE, [](Setting& s) { return hostless_queue_set_limit(s.queue, 0); }},
    {"a limit that is no number", HOSTLESS_USAGE,
     [](Setting& s) { return hostless_queue_set_limit(s.queue, std::nan("")); }},
};

std::string try_rows(Setting& s, std::span<Row const> rows, int& tried) {
  bool const held = s.transport.transport->capabilities().threads_as_ranks;
  for (Row const& row : rows) {
    if (row.of_held_queues && !held) continue;
    int const code = row.call(s);
    if (code != row.right)
      return std::string(row.name) + ": code " + std::to_string(code) + " instead of " +
             std::to_string(row.right) + ", '" + hostless_last_error() + "'";
    if (code != HOSTLESS_OK && hostless_last_error()[0] == '\0') return std::string(row.name) + ": no text";
    if (!s.works()) return std::string(row.name) + ": afterwards the matched pairs do not work as before";
    ++tried;
  }
  return {};
}

// Sides that do not fit: both are told, and can only be freed. So can what waits in the same match for its side.
std::string try_misfits(Setting& s) {
  for (int collective = 0; collective < 2; ++collective) {
    R one = nullptr, alone = nullptr;
    bool const first = s.rank == 0;
    double& value = queue_home().array<double>(1)[0];
    if (collective == 0) {
      Setting::need(first ? hostless_send_init(s.out, 9, HOSTLESS_DATA_BYTE, s.other, 6, &s.transport, &one)
                          : hostless_recv_init(s.in, 8, HOSTLESS_DATA_BYTE, s.other, 6, &s.transport, &one));
    } else {
      Setting::need(first ? hostless_barrier_init(&s.transport, &one)
                          : hostless_allreduce_init(&value, &value, 1, HOSTLESS_DATA_F64, HOSTLESS_SUM,
                                                    &s.transport, &one));
    }
    Setting::need(hostless_recv_init(s.in, 8, HOSTLESS_DATA_BYTE, s.other, 8, &s.transport, &alone));
    int const codes[] = {match_two(alone, one), hostless_match(one), hostless_enqueue_start(s.queue, one)};
    for (int const code : codes)
      if (code != HOSTLESS_MISMATCH) return "sides that do not fit: code " + std::to_string(code);
    if (int const code = hostless_match(alone); code != HOSTLESS_ALREADY_MATCHED)
      return "the other request of a match that does not fit: code " + std::to_string(code);
    if (int const code = hostless_enqueue_start(s.queue, alone); code != HOSTLESS_NOT_MATCHED)
      return "start of the other request of a match that does not fit: code " + std::to_string(code);
    for (R* const r : {&one, &alone}) Setting::need(hostless_request_free(r));
    if (!s.works()) return "after sides that do not fit the matched pairs do not work as before";
  }
  return {};
}

// imatch says yes once both sides are there, and is still to be waited for.
std::string end_match(Setting& s) {
  R send = nullptr;
  int matched = 0, done = 0;
  Setting::need(hostless_send_init(s.out, 1, HOSTLESS_DATA_BYTE, s.rank, 4, &s.transport, &send));
  Setting::need(hostless_request_test(s.match_of, &done));
  if (done != 0) return "a match is complete without its other side";
  Setting::need(hostless_match(send));
  Setting::need(hostless_is_matched(s.under_match, &matched));
  if (matched != 1) return "a request is not matched with its other side there";
  R one = s.match_of;
  if (hostless_request_free(&one) != HOSTLESS_IN_USE) return "a match was freed that was not waited for";
  Setting::need(hostless_request_wait(s.match_of));
  for (R* const r :
       {&s.match_of, &send, &s.under_match, &s.unmatched, &s.send, &s.receive, &s.long_send, &s.long_receive})
    Setting::need(hostless_request_free(r));
  Setting::need(hostless_queue_free(&s.queue));
  Setting::need(hostless_queue_free(&s.second));
  return {};
}

}  // namespace

std::string wrong_refusals(Transport& transport) {
  std::string wrong;
  {
    Setting s(transport);
    int tried = 0;
    for (std::span<Row const> const rows :
         {std::span<Row const>(starts), std::span<Row const>(waits), std::span<Row const>(both_at_once),
          std::span<Row const>(matches), std::span<Row const>(hosts), std::span<Row const>(inits),
          std::span<Row const>(queues)})
      if (wrong.empty()) wrong = try_rows(s, rows, tried);
    if (wrong.empty()) wrong = try_misfits(s);
    if (wrong.empty()) wrong = end_match(s);
    if (s.rank == 0) std::printf("%d rows of right and wrong use\n", tried);
    transport.group().barrier();
  }
  return wrong;
}

}  // namespace hostless::test
