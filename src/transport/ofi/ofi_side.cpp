// Matched messages by counters and deferred operations, as Bridges et al. build them on a network card (section
// V, figure 4). What is a card's register there, which a stream turns, is a counter here that a queue turns.
//
//   standard  Both starts count in `trigger` of the sender: its own, and the receiver's by an atomic that its start
//             sets off. The write leaves at even values, 2 e: when both have come to start e.
//   ready     The write leaves at e: the sender's start alone counts.
//   small     As ready, into one of two slots of the receiver, by the parity of e. Its wait copies out, and says so
//             to the sender, whose wait of e ends when e - 1 was taken.
//
// A side's completion is a word of its own memory that an atomic, set off by the sender's write, or by what the
// receiver counts of remote writes, adds 1 to: that a wait polls, as a kernel could.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "transport/ofi/ofi_world.hpp"

namespace hostless::ofi {
namespace {

// Of a side's memory, before its slots. `nothing`: what a message of no bytes reads.
constexpr std::size_t word_complete = 0, word_taken = 1, word_clear = 2, word_nothing = 3, words = 4;
constexpr std::size_t word_bytes = sizeof(std::uint64_t);

class Side : public MessageSide {
 public:
  Side(std::shared_ptr<World> world, int peer, std::size_t slots)
      : world_(std::move(world)), peer_(peer), number_(world_->new_number()) {
    remains_.memory.resize(words * word_bytes + slots);
    for (auto* one : {&trigger_, &moved_}) {
      remains_.counters.push_back(world_->new_counter());
      *one = remains_.counters.back().get();
    }
    remains_.work = std::make_unique<DeferredWork>(world_->new_counter(), world_->new_counter());
    remains_.regions.push_back(world_->lend(word(0), 2 * word_bytes, own_key(), nullptr));
    world_->watch(remains_);
  }
  Side(Side const&) = delete;
  Side& operator=(Side const&) = delete;
  // Nobody reaches the caller's memory any more; our own stays for as long as it may be used.
  ~Side() override {
    lent_.clear();
    world_->keep(remains_);
  }
  std::uint32_t number() const override { return number_; }
  void match(std::uint32_t other, std::size_t bytes, Delivery how) override {
    other_ = other;
    bytes_ = bytes;
    how_ = how;
  }

 protected:
  std::uint64_t own_key() const { return key_of(Role::words, number_); }
  std::uint64_t* word(std::size_t k) { return reinterpret_cast<std::uint64_t*>(remains_.memory.data()) + k; }
  std::uint64_t read(std::size_t k) { return std::atomic_ref(*word(k)).load(std::memory_order_acquire); }
  Deferred& new_deferred() { return remains_.work->add(); }
  void count_when(fid_cntr* trigger, std::uint64_t threshold, RemoteMemory const& where) {
    world_->defer_count(new_deferred(), {trigger, threshold, remains_.work->counts()}, where);
    remains_.work->has_begun();
    world_->stir();
  }
  void begin() {
    ++epoch_;
    remains_.work->begin();
    count_when(moved_, epoch_, {world_->rank, own_key(), word_complete * word_bytes});
  }
  void turn(fid_cntr* counter) {
    check(fi_cntr_add(counter, 1), "fi_cntr_add");
    world_->stir();
  }
  // A provider whose queue was full sets off what it left when it is counted again; sooner here than by the thread
  // that watches.
  bool is_complete() {
    if (read(word_complete) >= epoch_) return true;
    constexpr unsigned often = 1024;
    if (++polls_ % often == 0)
      for (fid_cntr* const one : {trigger_, moved_}) fi_cntr_add(one, 0);
    if (fi_cntr_readerr(moved_) != 0 || remains_.work->has_failed())
      throw Error(ErrorCode::peer_lost,
                  "a message of libfabric failed (its other side has gone). See its message.");
    return false;
  }

  std::shared_ptr<World> world_;
  int peer_;
  std::uint32_t number_, other_ = 0;
  std::size_t bytes_ = 0;
  Delivery how_ = Delivery::standard;
  std::uint64_t epoch_ = 0;
  unsigned polls_ = 0;
  Remains remains_;
  fid_cntr *trigger_ = nullptr, *moved_ = nullptr;
  std::vector<Region> lent_;
};

class SendSide final : public Side {
 public:
  SendSide(std::shared_ptr<World> world, int peer, std::byte const* from)
      : Side(std::move(world), peer, 0), from_(from) {
    lent_.push_back(
        world_->lend(word(word_clear), word_bytes, key_of(Role::clear_to_send, number_), trigger_));
  }
  // Its wait of e asks for e - 1: what says that e was taken may be on its way.
  ~SendSide() override {
    if (how_ != Delivery::small) return;
    remains_.awaited = word(word_taken);
    remains_.arrivals = epoch_;
  }
  void start() override {
    begin();
    std::uint64_t const threshold = how_ == Delivery::standard ? 2 * epoch_ : epoch_;
    // A message of nothing is a byte that nobody reads, in a slot.
    bool const in_slot = how_ == Delivery::small || bytes_ == 0;
    std::size_t const bytes = std::max<std::size_t>(bytes_, 1);
    auto const* const from = bytes_ == 0 ? reinterpret_cast<std::byte const*>(word(word_nothing)) : from_;
    world_->defer_write(
        new_deferred(), {trigger_, threshold, moved_}, {from, bytes},
        {peer_, key_of(in_slot ? Role::slots : Role::buffer, other_), in_slot ? (epoch_ & 1u) * bytes : 0});
    turn(trigger_);
  }
  bool complete() override {
    return is_complete() && (how_ != Delivery::small || read(word_taken) + 1 >= epoch_);
  }

 private:
  std::byte const* from_;
};

class ReceiveSide final : public Side {
 public:
  ReceiveSide(std::shared_ptr<World> world, int peer, std::byte* to, std::size_t bytes,
              std::size_t most_small)
      : Side(std::move(world), peer, 2 * std::max<std::size_t>(std::min(bytes, most_small), 1)), to_(to) {
    lent_.push_back(world_->lend(slots(), remains_.memory.size() - words * word_bytes,
                                 key_of(Role::slots, number_), moved_));
    if (bytes != 0) lent_.push_back(world_->lend(to, bytes, key_of(Role::buffer, number_), moved_));
  }
  void match(std::uint32_t other, std::size_t bytes, Delivery how) override {
    Side::match(other, bytes, how);
    other_key_ = key_of(how == Delivery::standard ? Role::clear_to_send : Role::words, other);
  }
  void start() override {
    begin();
    is_taken_ = false;
    if (how_ == Delivery::ready) return;
    std::size_t const offset = how_ == Delivery::small ? word_taken * word_bytes : 0;
    count_when(trigger_, epoch_, {peer_, other_key_, offset});
    if (how_ == Delivery::standard) turn(trigger_);
  }
  bool complete() override {
    if (!is_complete()) return false;
    if (how_ != Delivery::small || is_taken_) return true;
    std::size_t const at = (epoch_ & 1u) * std::max<std::size_t>(bytes_, 1);
    if (bytes_ != 0) std::memcpy(to_, slots() + at, bytes_);
    is_taken_ = true;
    turn(trigger_);
    return true;
  }

 private:
  std::byte* slots() { return reinterpret_cast<std::byte*>(word(words)); }

  std::byte* to_;
  std::uint64_t other_key_ = 0;
  bool is_taken_ = false;
};

}  // namespace

std::unique_ptr<MessageSide> make_send_side(std::shared_ptr<World> world, int peer, std::byte const* from,
                                            std::size_t) {
  return std::make_unique<SendSide>(std::move(world), peer, from);
}
std::unique_ptr<MessageSide> make_receive_side(std::shared_ptr<World> world, int peer, std::byte* to,
                                               std::size_t bytes, std::size_t most_small) {
  return std::make_unique<ReceiveSide>(std::move(world), peer, to, bytes, most_small);
}

}  // namespace hostless::ofi
