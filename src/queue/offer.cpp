#include "queue/offer.hpp"

#include <cstring>

namespace hostless::queue {
namespace {

// Offers go between processes of one build and one machine type.
struct OnTheWay {
  NoteKind kind = NoteKind::offer;
  std::uint8_t side = 0, ready = 0, carries = 0;
  std::int32_t tag = 0;
  std::uint32_t collective = 0, number = 0, call = 0;
  std::uint64_t bytes = 0, signature = 0, most_small = 0, in_call = 0, order = 0;
  std::uint64_t from = 0, to = 0;  // where memory is shared
  std::uint64_t serial = 0;
};

Bytes bytes_of(OnTheWay const& way) {
  Bytes text(sizeof way);
  std::memcpy(text.data(), &way, sizeof way);
  return text;
}

}  // namespace

OfferKey other_side(OfferKey key) {
  key.side = key.side == Side::sender ? Side::receiver : Side::sender;
  return key;
}

Bytes text_of(Offer const& offer) {
  OnTheWay way;
  way.side = static_cast<std::uint8_t>(offer.key.side);
  way.ready = offer.ready ? 1 : 0;
  way.carries = offer.carries ? 1 : 0;
  way.tag = offer.key.tag;
  way.collective = offer.key.collective;
  way.number = offer.number;
  way.call = offer.call;
  way.in_call = offer.in_call;
  way.order = offer.order;
  way.bytes = offer.bytes;
  way.signature = offer.signature;
  way.most_small = offer.most_small;
  way.from = reinterpret_cast<std::uintptr_t>(offer.from);
  way.to = reinterpret_cast<std::uintptr_t>(offer.to);
  way.serial = offer.serial;
  return bytes_of(way);
}

Bytes leaving_text() {
  OnTheWay way;
  way.kind = NoteKind::leaving;
  return bytes_of(way);
}

Bytes withdrawn_text(OfferKey const& key, std::uint64_t serial) {
  OnTheWay way;
  way.kind = NoteKind::withdrawn;
  way.side = static_cast<std::uint8_t>(key.side);
  way.tag = key.tag;
  way.collective = key.collective;
  way.serial = serial;
  return bytes_of(way);
}

NoteKind read_note(Note const& note, Offer& offer) {
  OnTheWay way;
  if (note.text.size() != sizeof way)
    throw Error(ErrorCode::environment, "a note of " + std::to_string(note.text.size()) +
                                            " bytes from rank " + std::to_string(note.source) +
                                            " is no offer (the ranks are of different versions of hostless). "
                                            "Run one version.");
  std::memcpy(&way, note.text.data(), sizeof way);
  offer.key = {note.source, way.tag, way.collective, static_cast<Side>(way.side)};
  offer.ready = way.ready != 0;
  offer.carries = way.carries != 0;
  offer.number = way.number;
  offer.call = way.call;
  offer.in_call = way.in_call;
  offer.order = way.order;
  offer.bytes = way.bytes;
  offer.signature = way.signature;
  offer.most_small = way.most_small;
  offer.from = reinterpret_cast<std::byte const*>(static_cast<std::uintptr_t>(way.from));
  offer.to = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(way.to));
  offer.serial = way.serial;
  offer.shared = std::static_pointer_cast<SharedSide>(note.attached);
  return way.kind;
}

Mode mode_of(Offer const& send) {
  return send.ready ? Mode::ready : send.bytes <= send.most_small ? Mode::small : Mode::standard;
}

std::string misfit(Offer const& mine, Offer const& other) {
  if (mine.is_on_gpu() != other.is_on_gpu())
    return "a message with rank " + std::to_string(other.key.peer) +
           " of which a GPU's stream starts one side and the host the other (whoever moves it must reach "
           "both). Make the communicators of both ranks with a GPU, or without.";
  if (mine.carries && other.carries && mine.most_small != other.most_small)
    return "a message with rank " + std::to_string(other.key.peer) + " where HOSTLESS_QUEUE_SMALL_BYTES is " +
           std::to_string(mine.most_small) + " here and " + std::to_string(other.most_small) +
           " there (both sides must know which messages go through a slot). Give all ranks the same.";
  if (mine.key.collective != 0) {
    if (mine.signature == other.signature) return {};
    return "collective " + std::to_string(mine.key.tag) + " of this communicator is another one on rank " +
           std::to_string(other.key.peer) +
           " (kind, size, datatype, reduction and root are those of all ranks). Match collectives in one "
           "order.";
  }
  Offer const& send = mine.side() == Side::sender ? mine : other;
  Offer const& receive = mine.side() == Side::sender ? other : mine;
  if (send.bytes <= receive.bytes) return {};
  return "a message of " + std::to_string(send.bytes) + " bytes with tag " + std::to_string(mine.key.tag) +
         (mine.side() == Side::sender ? " to" : " from") + " rank " + std::to_string(other.key.peer) +
         " does not fit the receiver's " + std::to_string(receive.bytes) +
         " (nothing is cut off). Make the receiver's buffer as long.";
}

}  // namespace hostless::queue
