#pragma once
// How a matched message goes from a sender's memory to a receiver's where both can load, store and count in
// both: one text, which host threads execute with atomics, kernels with those of the device, and
// tests/unit/queue/text_exploration_test.cpp in every order.
//
// `Words` is who executes it:
//   own(word), set_own(word, value)   what only this side reads and writes
//   add(word, value)                  returns what it was; acquires and releases
//   load(word), store(word, value)    acquires; releases
//   reach(word, epoch), reached(word) store and load of what says how far a side has come
//   move(to, from, bytes)             from the sender's buffer to the receiver's. False: the other side has gone
//   put(slot, from, bytes, full, e)   into a slot, of which `full` or the slot itself says that it has epoch e
//   copy(to, slot, bytes)             out of it
//   once(work)                        work(), by one thread, when all that it was copied by has copied
//
// Where several execute the text of one message, each for a piece of its bytes, `count` is a word a piece and
// an epoch is reached when all pieces have reached it.
//
// An epoch is a start, counted from 1 by each side for itself. Of a message:
//   standard  Both starts add 1 to `count`. The one that finds it odd is the second: it moves the bytes and
//             says so to both sides. So no start waits, and no wait needs more than the other side's start.
//   small     The sender's start puts the bytes into the slot of its epoch's parity; the receiver's wait
//             takes them out, and its next start says so. The sender's wait of epoch e ends when e - 1 has
//             been taken, so that the start of e + 1 finds its slot, which e - 1 had, free. It may be said
//             so late because no more is asked for than the other side's start of e.
//   ready     The sender's start stores into the receiver's buffer: the caller promises that it is free.

#include <cstddef>
#include <cstdint>

#include "hostless/base/host_device.hpp"

namespace hostless::queue {

enum class Mode : std::uint8_t { standard, small, ready };
enum class Side : std::uint8_t { sender, receiver };
enum class Progress : std::uint8_t { pending, done, lost, broken };  // broken: a promise was

struct MessageView {
  std::uint64_t* count = nullptr;  // of starts, in the memory of either side
  // In the receiver's memory.
  std::uint64_t* arrived = nullptr;      // the epoch that lies in `to`
  std::uint64_t* full = nullptr;         // [2], by parity: the epoch in each slot
  std::uint64_t* sender_gone = nullptr;  // not 0: no more will come
  std::byte* slots = nullptr;            // [2][slot_bytes]
  // In the sender's.
  std::uint64_t* sent = nullptr;   // the epoch whose source may be overwritten
  std::uint64_t* taken = nullptr;  // the epoch that was taken out of its slot
  std::uint64_t* receiver_gone = nullptr;

  std::byte const* from = nullptr;
  std::byte* to = nullptr;
  std::size_t bytes = 0, slot_bytes = 0;
  Mode mode = Mode::standard;
};

template <class Words>
HOSTLESS_HOST_DEVICE void start_message(Words& words, MessageView const& m, Side side,
                                        std::uint64_t* own_epoch) {
  std::uint64_t const epoch = words.own(own_epoch) + 1;
  bool moved = false;
  if (m.mode == Mode::standard) {
    bool const is_second = (words.add(m.count, 1) & 1u) != 0;
    moved = is_second && words.move(m.to, m.from, m.bytes);
  } else if (side == Side::sender && m.mode == Mode::small) {
    words.put(m.slots + (epoch & 1u) * m.slot_bytes, m.from, m.bytes, m.full + (epoch & 1u), epoch);
  } else if (side == Side::sender) {
    moved = words.move(m.to, m.from, m.bytes);
  }
  words.once([&] {
    if (m.mode == Mode::small && side == Side::receiver) words.store(m.taken, epoch - 1);
    if (moved) {
      words.reach(m.arrived, epoch);
      words.reach(m.sent, epoch);
    }
    words.set_own(own_epoch, epoch);  // the last of it: a wait beside it ends no sooner
  });
}

/// What word `word` says to whoever awaits `epoch`, whose last was `before`.
template <class Words>
HOSTLESS_HOST_DEVICE Progress seen(Words& words, std::uint64_t* word, std::uint64_t epoch,
                                   std::uint64_t before) {
  std::uint64_t const found = words.reached(word);
  if (found == epoch) return Progress::done;
  return found == before ? Progress::pending : Progress::broken;
}

template <class Words>
HOSTLESS_HOST_DEVICE Progress look_at_message(Words& words, MessageView const& m, Side side,
                                              std::uint64_t epoch) {
  if (side == Side::receiver) {
    std::uint64_t const last_in_slot = epoch > 2 ? epoch - 2 : 0;
    return m.mode == Mode::small ? seen(words, m.full + (epoch & 1u), epoch, last_in_slot)
                                 : seen(words, m.arrived, epoch, epoch - 1);
  }
  if (m.mode != Mode::small) return seen(words, m.sent, epoch, epoch - 1);
  // The receiver may take e as well before this wait is reached.
  return words.load(m.taken) + 1 >= epoch ? Progress::done : Progress::pending;
}

/// One look of a wait at what others have done: done, lost, broken, or pending.
template <class Words>
HOSTLESS_HOST_DEVICE Progress await_message(Words& words, MessageView const& m, Side side,
                                            std::uint64_t epoch) {
  Progress progress = look_at_message(words, m, side, epoch);
  if (progress == Progress::pending &&
      words.load(side == Side::sender ? m.receiver_gone : m.sender_gone) != 0) {
    progress = look_at_message(words, m, side, epoch);  // what came before it went
    if (progress == Progress::pending) progress = Progress::lost;
  }
  return progress;
}

HOSTLESS_HOST_DEVICE bool is_taken_out(MessageView const& m, Side side) {
  return side == Side::receiver && m.mode == Mode::small;
}

/// Of a receive whose message lies in a slot, once it is done.
template <class Words>
HOSTLESS_HOST_DEVICE void take_message(Words& words, MessageView const& m, std::uint64_t epoch) {
  words.copy(m.to, m.slots + (epoch & 1u) * m.slot_bytes, m.bytes);
}

/// One look of a wait, again and again until it is no longer pending.
template <class Words>
HOSTLESS_HOST_DEVICE Progress poll_message(Words& words, MessageView const& m, Side side,
                                           std::uint64_t* own_epoch) {
  std::uint64_t const epoch = words.own(own_epoch);
  Progress const progress = await_message(words, m, side, epoch);
  if (progress == Progress::done && is_taken_out(m, side)) take_message(words, m, epoch);
  return progress;
}

}  // namespace hostless::queue
