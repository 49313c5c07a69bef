// Notes between two ranks by libfabric's messages, and the sides of matched ones.
#include <cstring>
#include <limits>
#include <utility>

#include "base/variable.hpp"
#include "transport/ofi/ofi_world.hpp"

namespace hostless::ofi {
namespace {

enum class What : std::uint32_t { note, given_up };
struct Letter {
  std::uint32_t opening;
  What what;
  std::int32_t source;
};

class OfiPointToPoint final : public PointToPoint {
 public:
  explicit OfiPointToPoint(std::shared_ptr<World> world) : world_(std::move(world)) {
    world_->start_watching();
    std::lock_guard const lock(world_->mutex);
    opening_ = ++world_->opened;
  }
  int rank() const override { return world_->rank; }
  int size() const override { return world_->size; }
  bool shares_memory() const override { return false; }

  void tell(int peer, Bytes text, std::shared_ptr<void>) override {
    if (!send(peer, std::move(text))) world_->stir();
  }
  std::optional<Note> hear() override {
    std::lock_guard const lock(world_->mutex);
    if (!own_.empty()) {
      Note note = std::move(own_.front());
      own_.pop_front();
      return note;
    }
    world_->send_letters();
    for (auto ahead = world_->notes_ahead.begin(); ahead != world_->notes_ahead.end(); ++ahead) {
      if (ahead->first != opening_) continue;
      Note note = std::move(ahead->second);
      world_->notes_ahead.erase(ahead);
      if (std::optional<Note> known = look_at(std::move(note))) return known;
      break;  // one that said it in its first word
    }
    for (Bytes text; world_->receive(text);) {
      Letter head{};
      if (text.size() < sizeof head) continue;
      std::memcpy(&head, text.data(), sizeof head);
      Note note{head.source, std::move(text), nullptr};
      if (head.opening > opening_) world_->notes_ahead.emplace_back(head.opening, std::move(note));
      if (head.opening != opening_) continue;
      if (std::optional<Note> known = look_at(std::move(note))) return known;
    }
    return std::nullopt;
  }
  bool has_left(int peer) override {
    std::lock_guard const lock(world_->mutex);
    if (is_given_up_) return true;
    for (int r = 0; r < world_->size; ++r)
      if (r != world_->rank && (peer < 0 || r == peer) && world_->is_gone(r)) return true;
    return false;
  }
  std::unique_ptr<MessageSide> open_send(int peer, std::byte const* from, std::size_t bytes) override {
    return make_send_side(world_, peer, from, bytes);
  }
  std::unique_ptr<MessageSide> open_receive(int peer, std::byte* to, std::size_t bytes,
                                            std::size_t most_small) override {
    return make_receive_side(world_, peer, to, bytes, most_small);
  }
  char const* queue_type() const override { return "ofi"; }
  std::size_t most_started() const override {
    constexpr std::int64_t half_of_a_card = 250;  // Slingshot has room for some 500 deferred operations (V-C)
    return static_cast<std::size_t>(count_of("HOSTLESS_QUEUE_STARTS", half_of_a_card));
  }
  bool may_progress_by_thread() const override { return !is_word("HOSTLESS_QUEUE_PROGRESS", "calls"); }
  void give_up() noexcept override {
    try {
      if (!tell_given_up()) world_->stir();
    } catch (...) {  // no memory for it: the others find out by themselves
    }
  }

 private:
  // Both: false, where letters are left over.
  bool send(int peer, Bytes text) {
    std::lock_guard const lock(world_->mutex);
    if (peer != world_->rank) return world_->post(peer, letter(What::note, text));
    own_.push_back({peer, std::move(text), nullptr});
    return true;
  }
  bool tell_given_up() {
    std::lock_guard const lock(world_->mutex);
    if (is_given_up_) return true;
    is_given_up_ = true;
    world_->leave_behind();
    bool all_left = true;
    for (int r = 0; r < world_->size; ++r)
      if (r != world_->rank) all_left = world_->post(r, letter(What::given_up, {}));
    return all_left;
  }
  Bytes letter(What what, Bytes const& text) const {
    Letter const head{opening_, what, world_->rank};
    Bytes all(sizeof head + text.size());
    std::memcpy(all.data(), &head, sizeof head);
    if (!text.empty()) std::memcpy(all.data() + sizeof head, text.data(), text.size());
    return all;
  }
  std::optional<Note> look_at(Note note) {
    Letter head{};
    std::memcpy(&head, note.text.data(), sizeof head);
    if (head.what == What::given_up) {
      is_given_up_ = true;
      world_->leave_behind();
      return std::nullopt;
    }
    note.text.erase(note.text.begin(), note.text.begin() + sizeof head);
    return note;
  }

  std::shared_ptr<World> world_;
  std::uint32_t opening_ = 0;
  std::deque<Note> own_;
  bool is_given_up_ = false;
};

}  // namespace

std::unique_ptr<PointToPoint> make_point_to_point(std::shared_ptr<World> world) {
  return std::make_unique<OfiPointToPoint>(std::move(world));
}

}  // namespace hostless::ofi
