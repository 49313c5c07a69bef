#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>
#undef count_of  // a macro of theirs, a function of ours

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hostless/base/wait.hpp"
#include "hostless/transport/point_to_point.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless::ofi {

/// What memory of a rank is known by to others: keys are chosen, so that nobody need be told them.
enum class Role : std::uint64_t { buffer = 0, slots, clear_to_send, words, alive };
inline std::uint64_t key_of(Role role, std::uint32_t number) {
  return static_cast<std::uint64_t>(role) << 32 | number;
}

struct Close {
  template <class Object>
  void operator()(Object* object) const {
    fi_close(&object->fid);
  }
};
template <class Object>
using Own = std::unique_ptr<Object, Close>;

/// Counts what a network card would count, and sets off what was deferred until it has counted enough.
using Counter = Own<fid_cntr>;
using Region = Own<fid_mr>;

/// A deferred operation; it stays where it is until it has been done.
struct Deferred {
  fi_deferred_work work{};
  fi_op_rma write{};
  fi_op_atomic atomic{};
  iovec from{};
  fi_rma_iov to{};
  fi_ioc addend{};
  fi_rma_ioc word{};
};

/// Memory of a rank, under its key.
struct RemoteMemory {
  int peer;
  std::uint64_t key;
  std::uint64_t offset;
};
/// Set off when `trigger` has counted `threshold`; `counts` counts its end.
struct When {
  fid_cntr* trigger;
  std::uint64_t threshold;
  fid_cntr* counts;
};

/// The deferred operations of a side, in two halves: where one has grown, the other is used again as soon as all of
/// it has ended. So they stay few also where the last ones are always under way. One thread adds, any asks.
class DeferredWork {
 public:
  DeferredWork(Counter one, Counter other);
  /// The next operations belong together, one that `counts` counts among them: it ends last.
  void begin();
  Deferred& add() { return halves_[current_].operations.emplace_back(); }
  /// Which counter an operation counts its end in.
  fid_cntr* counts();
  /// The provider has taken one that counts.
  void has_begun();
  bool is_done() const { return halves_[0].is_done() && halves_[1].is_done(); }
  bool has_failed() const;
  std::size_t size() const { return halves_[0].operations.size() + halves_[1].operations.size(); }

 private:
  struct Half {
    Counter ended;
    std::atomic<std::uint64_t> begun{0};
    std::deque<Deferred> operations{};
    bool is_done() const;
  };
  std::array<Half, 2> halves_;
  std::size_t current_ = 0;
};

/// What a side leaves behind that the provider may still use.
struct Remains {
  std::vector<std::byte> memory;
  std::vector<Counter> counters;
  std::vector<Region> regions;
  std::unique_ptr<DeferredWork> work;
  /// A word of `memory` that others count in, and what it will be when nothing of theirs is; null: there is none.
  std::uint64_t const* awaited = nullptr;
  std::uint64_t arrivals = 0;
};

/// Whether nothing of ours is under way; sets off what a full queue of the provider left over.
bool is_done(Remains const& one);

/// The information of a provider that can carry; null: none can, and why.
struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;
Info find_provider(std::string& problem);

/// What one opened transport and its messages share. Local, but for `connect`.
class World {
 public:
  World(int rank, int size);
  World(World const&) = delete;
  World& operator=(World const&) = delete;
  ~World();

  int const rank, size;
  std::mutex mutex;  ///< of all below but what libfabric guards itself

  // Of notes, over all openings.
  std::uint32_t opened = 0;
  std::deque<std::pair<std::uint32_t, Note>> notes_ahead;

  std::vector<std::byte> const& address() const { return address_; }
  void connect(std::vector<Bytes> const& addresses);

  Counter new_counter();
  Region lend(void* memory, std::size_t bytes, std::uint64_t key, fid_cntr* counts);
  /// Errors  peer_lost  the provider says that it cannot
  void defer_write(Deferred& one, When const& when, std::span<std::byte const> from, RemoteMemory const& to);
  void defer_count(Deferred& one, When const& when, RemoteMemory const& to);

  std::uint32_t new_number() { return next_number_.fetch_add(1); }
  /// What a full queue of the provider left over is done by a thread of this world from now on, whether or not
  /// anybody waits for it: letters leave, operations are set off.
  void start_watching();
  /// Work of a side is watched while the side lives.
  void watch(Remains const& side);
  /// No longer watched as a side's, but kept until nothing of it is under way.
  void keep(Remains& side);
  /// Something was deferred, a counter turned, or a letter was left over. Not under `mutex`.
  void stir();

  // ---- under `mutex`
  /// A letter, behind those before it, whoever they are for. False: it has not left, and leaves later, also when who
  /// posted it calls nothing any more.
  bool post(int peer, Bytes text);
  /// True: all letters have left.
  bool send_letters();
  /// Looks at what has come. True: a text.
  bool receive(Bytes& text);
  /// Whether that rank answers; asks it now and then.
  bool is_gone(int peer);
  /// It goes abnormally: what the library may still use is left alone until the process ends.
  void leave_behind() { is_left_ = true; }

 private:
  struct Peer {
    fi_context2 context{};  // first: what a completion names
    fi_addr_t address = FI_ADDR_UNSPEC;
    bool gone = false;
    std::optional<Countdown> question{};  ///< which it has not answered
    bool is_silent = false;               ///< for too long, at the last look
    std::uint64_t looked = 0;             ///< at that many answers of our own
    Clock::time_point when{};             ///< it was asked
  };
  struct Mail {
    fi_context2 context{};
    Bytes text;
  };
  void open();
  void start_sweeper();
  bool send(int peer, Bytes const& text);
  void await(Mail& mail);
  void ask(int number);
  void ask_sometimes(int number);
  bool is_silent(Peer& peer);
  template <class Message, class From, class To>
  void aim(Message& message, From const& from, int peer, To const& to, void* context) const;
  void take_failure();
  bool clear_remains();
  bool sweep();
  void sweep_until_end();
  void end_watch();

  WaitLimits limits_ = WaitLimits::from_environment();
  Info info_;
  Own<fid_fabric> fabric_;
  Own<fid_domain> domain_;
  Own<fid_av> addresses_;
  Own<fid_cq> completions_;
  Own<fid_ep> endpoint_;
  std::vector<std::byte> address_;
  std::vector<Peer> peers_;        // this rank among them
  std::uint64_t own_answers_ = 0;  // of this rank's provider to itself
  std::deque<Mail> mail_;
  std::deque<std::pair<int, Bytes>> letters_;  // that the provider had no room for
  /// Where others ask, what is asked with, and what is added.
  struct Words {
    std::uint64_t alive = 0, question = 1, one = 1;
  };
  std::unique_ptr<Words> words_ = std::make_unique<Words>();
  Region alive_region_;
  std::list<Remains> remains_;  // which destroys in place: regions before their memory
  std::atomic<std::uint32_t> next_number_{0};
  std::atomic<bool> is_left_{false};

  // Of the thread that watches.
  std::mutex watching_;
  std::condition_variable wakes_;  // bounded: waited for by wait_for of a second
  std::set<Remains const*> watched_;
  std::atomic<bool> is_stirred_{false};
  bool ends_ = false;
  std::thread sweeper_;
};

/// Errors  environment  libfabric's name of a negative `code`
void check(long code, char const* doing);

std::unique_ptr<MessageSide> make_send_side(std::shared_ptr<World> world, int peer, std::byte const* from,
                                            std::size_t bytes);
std::unique_ptr<MessageSide> make_receive_side(std::shared_ptr<World> world, int peer, std::byte* to,
                                               std::size_t bytes, std::size_t most_small);
std::unique_ptr<PointToPoint> make_point_to_point(std::shared_ptr<World> world);

}  // namespace hostless::ofi
