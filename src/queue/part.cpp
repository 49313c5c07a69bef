// Messages by loads and stores of host threads, and over a library that carries them.
#include "queue/part.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hostless::queue {
namespace {

/// Who executes the text here: one host thread. `other` is the side whose buffer it moves from or to.
class HostWords {
 public:
  explicit HostWords(SharedSide& other) : other_(other) {}
  std::uint64_t own(std::uint64_t const* word) const { return *word; }
  void set_own(std::uint64_t* word, std::uint64_t value) const { *word = value; }
  std::uint64_t add(std::uint64_t* word, std::uint64_t value) const {
    return std::atomic_ref(*word).fetch_add(value, std::memory_order_acq_rel);
  }
  std::uint64_t load(std::uint64_t* word) const {
    return std::atomic_ref(*word).load(std::memory_order_acquire);
  }
  void store(std::uint64_t* word, std::uint64_t value) const {
    std::atomic_ref(*word).store(value, std::memory_order_release);
  }
  std::uint64_t reached(std::uint64_t* word) const { return load(word); }
  void reach(std::uint64_t* word, std::uint64_t epoch) const { store(word, epoch); }
  bool move(std::byte* to, std::byte const* from, std::size_t bytes) const {
    std::lock_guard const lock(other_.moving);
    if (other_.closed) return false;
    copy(to, from, bytes);
    return true;
  }
  void put(std::byte* slot, std::byte const* from, std::size_t bytes, std::uint64_t* full,
           std::uint64_t epoch) const {
    copy(slot, from, bytes);
    store(full, epoch);
  }
  void copy(std::byte* to, std::byte const* from, std::size_t bytes) const {
    if (bytes != 0) std::memmove(to, from, bytes);
  }
  template <class Work>
  void once(Work const& work) const {
    work();
  }

 private:
  SharedSide& other_;
};

class SharedPart final : public Part {
 public:
  SharedPart(Offer const& mine, Offer const& other)
      : mine_(mine.shared), other_(other.shared), side_(mine.side()), words_(*other_) {
    bool const sends = side_ == Side::sender;
    Offer const& send = sends ? mine : other;
    SharedSide& receiver = sends ? *other_ : *mine_;
    SharedSide& sender = sends ? *mine_ : *other_;
    view_.count = &receiver.count;
    view_.arrived = &receiver.arrived;
    view_.full = receiver.full;
    view_.sender_gone = &receiver.other_gone;
    view_.slots = receiver.slots.data();
    view_.slot_bytes = receiver.slots.size() / 2;
    view_.sent = &sender.sent;
    view_.taken = &sender.taken;
    view_.receiver_gone = &sender.other_gone;
    view_.from = send.from;
    view_.to = sends ? other.to : mine.to;
    view_.bytes = send.bytes;
    view_.mode = mode_of(send);
  }
  void start() override { start_message(words_, view_, side_, &epoch_); }
  Progress poll() override { return poll_message(words_, view_, side_, &epoch_); }
  void leave() noexcept override {
    {
      std::lock_guard const lock(mine_->moving);
      mine_->closed = true;
    }
    words_.store(&other_->other_gone, 1);
  }

 private:
  std::shared_ptr<SharedSide> mine_, other_;
  Side side_;
  MessageView view_;
  std::uint64_t epoch_ = 0;
  HostWords words_;
};

/// A library does the protocol: one that sends when the receiver is there.
class LibraryPart final : public Part {
 public:
  LibraryPart(Offer& mine, Offer const& other) : side_(std::move(mine.library)) {
    Offer const& send = mine.side() == Side::sender ? mine : other;
    side_->match(other.number, static_cast<std::size_t>(send.bytes), delivery_of(mode_of(send)));
  }
  void start() override { side_->start(); }
  Progress poll() override { return side_->complete() ? Progress::done : Progress::pending; }
  void leave() noexcept override {}

 private:
  static Delivery delivery_of(Mode mode) {
    if (mode == Mode::standard) return Delivery::standard;
    return mode == Mode::small ? Delivery::small : Delivery::ready;
  }
  std::shared_ptr<MessageSide> side_;
};

}  // namespace

std::unique_ptr<Part> open_part(PointToPoint& point, Offer& mine, Offer const& other) {
  if (point.shares_memory()) return std::make_unique<SharedPart>(mine, other);
  return std::make_unique<LibraryPart>(mine, other);
}

std::unique_ptr<gpu::MessageEnd> open_end(gpu::MessageLibrary& library, Offer const& mine,
                                          Offer const& other) {
  bool const sends = mine.side() == Side::sender;
  Offer const& send = sends ? mine : other;
  Offer const& receive = sends ? other : mine;
  gpu::MatchedMessage message;
  message.mine = mine.shared->on_gpu;
  message.other = other.shared->on_gpu;
  message.side = mine.side();
  message.mode = mode_of(send);
  message.from = send.from;
  message.to = receive.to;
  message.bytes = static_cast<std::size_t>(send.bytes);
  return library.open(message);
}

}  // namespace hostless::queue
