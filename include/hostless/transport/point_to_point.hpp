#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "hostless/transport/group.hpp"

namespace hostless {

/// A few bytes of another rank.
struct Note {
  int source = 0;
  Bytes text;
  std::shared_ptr<void> attached;  ///< of ranks that share their memory; else empty
};

/// How a matched message moves: when both sides have started; through a slot of the receiver, when the sender
/// has; at once, because the receiver was promised to have started.
enum class Delivery : std::uint8_t { standard, small, ready };

/// One side of a message that others match, and that is sent again and again.
class MessageSide {
 public:
  virtual ~MessageSide() = default;
  /// What the other side is told, to know this one by.
  virtual std::uint32_t number() const = 0;
  /// Both sides were told each other's number; a message has `bytes`.
  virtual void match(std::uint32_t other, std::size_t bytes, Delivery how) = 0;
  /// Starts it; it was matched, and the last start is complete. Never blocks.
  virtual void start() = 0;
  /// Polls. True when the source may be overwritten, or all bytes lie in the target.
  virtual bool complete() = 0;
};

/// What goes between two ranks without the others: notes, and messages whose two sides were matched by notes.
/// No call is collective and none blocks. Any thread may call where the transport's library may be called by any.
///
/// Of a transport one is open at a time, and each rank opens as many, so that the notes of each are its own:
/// what belongs to an earlier one is dropped, what belongs to a later one waits for it.
/// Errors of each  peer_lost  the library says that a rank or the network is gone
class PointToPoint {
 public:
  virtual ~PointToPoint() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Whether addresses of one rank mean the same to all others: then there are no sides, their memory is
  /// loaded and stored.
  virtual bool shares_memory() const = 0;
  /// `peer` will hear it, after what it was told before. attached: only where memory is shared.
  virtual void tell(int peer, Bytes text, std::shared_ptr<void> attached) = 0;
  /// The next note of anybody, also of this rank itself.
  virtual std::optional<Note> hear() = 0;
  /// Whether that rank is known to have left, or died; -1: any other rank.
  virtual bool has_left(int peer) = 0;
  /// A side of a message between this rank and `peer`, in one direction, before it is matched: from then on
  /// the other side may use it. from, to: [bytes], the caller's, while the side lives. most_small: the longest
  /// message that goes through a slot.
  /// Errors  usage  there are no more numbers
  virtual std::unique_ptr<MessageSide> open_send(int peer, std::byte const* from, std::size_t bytes);
  virtual std::unique_ptr<MessageSide> open_receive(int peer, std::byte* to, std::size_t bytes,
                                                    std::size_t most_small);
  /// The type of queue that starts its messages.
  virtual char const* queue_type() const { return "threads"; }
  /// How many messages may be started whose wait was not reached.
  virtual std::size_t most_started() const { return std::numeric_limits<std::size_t>::max(); }
  /// Whether threads of this library call it beside those of the caller. Else waits move on only inside the
  /// caller's calls.
  virtual bool may_progress_by_thread() const = 0;
  /// After a loss: tells all other ranks, as far as possible, and uses the library no more.
  virtual void give_up() noexcept = 0;
};

}  // namespace hostless
