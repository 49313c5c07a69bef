#pragma once
// What the two sides of a message tell each other when they are matched.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "hostless/transport/point_to_point.hpp"
#include "queue/gpu/message_library.hpp"
#include "queue/message_text.hpp"

namespace hostless::queue {

/// What one side of a message brings where ranks share their memory. It lives as long as one of both sides.
struct alignas(128) SharedSide {
  alignas(64) std::uint64_t count = 0;  // a receiver's: count, arrived, full, other_gone, slots
  alignas(64) std::uint64_t arrived = 0;
  std::uint64_t full[2] = {0, 0};
  std::uint64_t sent = 0, taken = 0;  // a sender's: these and other_gone
  std::uint64_t other_gone = 0;
  std::vector<std::byte> slots;
  std::shared_ptr<gpu::LentSide> on_gpu;  ///< instead of all the others: streams start and wait
  /// Held while the other side moves bytes from or to this side's buffer; closed: it may not.
  std::mutex moving;
  bool closed = false;
};

/// Which message: its sides find each other by this.
struct OfferKey {
  std::int32_t peer = 0;
  std::int32_t tag = 0;
  std::uint32_t collective = 0;  ///< 1: tag is the number of a collective, not of the caller
  Side side = Side::sender;      ///< of whoever offers
  auto tie() const { return std::tuple(peer, collective, tag, side); }
  friend bool operator<(OfferKey const& a, OfferKey const& b) { return a.tie() < b.tie(); }
};

/// Of the offer that this one waits for.
OfferKey other_side(OfferKey key);

struct Offer {
  OfferKey key;
  std::uint64_t bytes = 0;      ///< of the buffer
  std::uint64_t signature = 0;  ///< of a collective: what all ranks must agree about
  std::uint64_t most_small = 0;
  std::uint32_t number = 0;  ///< of this side's MessageSide
  // Where messages move in groups (groups.hpp): by which of its match calls this side has offered it, one of how many
  // with the same rank, and its place among all of this side's offers.
  std::uint32_t call = 0;
  std::uint64_t in_call = 0, order = 0;
  std::uint64_t serial = 0;  ///< of all offers of this side's communicator, from 1 on; 0: not told
  bool ready = false, carries = true;
  std::byte const* from = nullptr;
  std::byte* to = nullptr;
  std::shared_ptr<SharedSide> shared;
  std::shared_ptr<MessageSide> library;  ///< of this side, where a library carries; until it is matched
  std::uint64_t other_serial = 0;        ///< that of the other side's, once they have met
  bool withdrawn = false;                ///< of one that was heard: its rank has given it up since

  Side side() const { return key.side; }
  bool is_on_gpu() const { return shared != nullptr && shared->on_gpu != nullptr; }
};

/// leaving: no more will come; withdrawn: nobody waits for the other side of an earlier offer any more.
enum class NoteKind : std::uint8_t { offer, leaving, withdrawn };
Bytes text_of(Offer const& offer);
Bytes leaving_text();
/// Of the offer that was told with this key and serial.
Bytes withdrawn_text(OfferKey const& key, std::uint64_t serial);
/// offer: what the note holds; its key has the peer of whoever told it. Of a withdrawn one key and serial alone.
NoteKind read_note(Note const& note, Offer& offer);

/// Of a message between the two.
Mode mode_of(Offer const& send);
/// Why the two do not fit, or empty.
std::string misfit(Offer const& mine, Offer const& other);

}  // namespace hostless::queue
