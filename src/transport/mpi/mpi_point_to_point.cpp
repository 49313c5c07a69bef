// Notes and matched messages between two ranks of an MPI communicator. Each of them is a persistent request,
// or several where MPI's int does not count its bytes.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/variable.hpp"
#include "transport/mpi/mpi_world.hpp"

namespace hostless::mpi {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 30;

// The library is called by one thread at a time where it is not MPI_THREAD_MULTIPLE; by us always.
class Side final : public MessageSide {
 public:
  /// What makes the request of `count` bytes from `at` on, of the message with a receiver's number.
  using Init = std::function<int(std::size_t at, int count, std::uint32_t number, MPI_Request* request)>;
  /// number: a receiver's; a sender takes that of the other side.
  Side(std::shared_ptr<World> world, std::optional<std::uint32_t> number, Init init)
      : world_(std::move(world)), number_(number), init_(std::move(init)) {}
  Side(Side const&) = delete;
  Side& operator=(Side const&) = delete;
  // Its request goes: the memory is the caller's again.
  ~Side() override {
    if (is_under_way_ && !world_->finalised()) end_start();
    std::lock_guard const lock(world_->point_mutex);
    if (is_under_way_ || !world_->usable()) {
      Abandoned::keep(std::move(requests_), nullptr);
    } else {
      for (MPI_Request& request : requests_) MPI_Request_free(&request);
    }
  }
  std::uint32_t number() const override { return number_.value_or(0); }
  // MPI sends when the receiver is there.
  void match(std::uint32_t other, std::size_t bytes, Delivery) override {
    std::lock_guard const lock(world_->point_mutex);
    std::uint32_t const number = number_.value_or(other);
    world_->require();
    requests_.reserve(bytes / piece_bytes + 1);
    for (std::size_t at = 0; at == 0 || at < bytes; at += piece_bytes) {
      requests_.push_back(MPI_REQUEST_NULL);
      world_->check(init_(at, static_cast<int>(std::min(piece_bytes, bytes - at)), number, &requests_.back()),
                    "making a persistent request");
    }
  }
  void start() override {
    std::lock_guard const lock(world_->point_mutex);
    world_->require();
    is_under_way_ = true;
    world_->check(MPI_Startall(static_cast<int>(requests_.size()), requests_.data()), "MPI_Startall");
  }
  bool complete() override {
    std::lock_guard const lock(world_->point_mutex);
    world_->require();
    int flag = 0;
    world_->check(
        MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &flag, MPI_STATUSES_IGNORE),
        "MPI_Testall");
    if (flag != 0) is_under_way_ = false;
    return flag != 0;
  }

 private:
  // A start that nobody waits for. A receive is cancelled, which is local; one whose message has come, or begun to,
  // is not, and ends with it. A send cannot be cancelled: it ends with the other side's start, which after a loss
  // there may not be. MPI may be called: also after a loss, as whoever poisons does.
  void end_start() noexcept {
    bool const receives = number_.has_value();
    std::atomic<bool>& patient = receives ? world_->patient_with_receives : world_->patient_with_sends;
    bool is_lost = false;
    {
      std::lock_guard const lock(world_->point_mutex);
      is_lost = !world_->usable() || world_->poisoned(world_->main);
      for (MPI_Request& request : requests_)
        if (receives) MPI_Cancel(&request);
    }
    constexpr double after_loss_s = 0.2;
    double const patience_s = !patient ? 0 : is_lost && !receives ? after_loss_s : world_->patience_s();
    auto const waited =
        wait_for([this] { return has_ended(); }, [] { return false; }, Deadline::after(patience_s));
    is_under_way_ = waited != Waited::done;
    if (is_under_way_ && patient && (receives || !is_lost)) say_still_used(receives);
    patient = !is_under_way_;
  }
  // Each by itself: MPI is done with one that has failed.
  bool has_ended() {
    std::lock_guard const lock(world_->point_mutex);
    return std::all_of(requests_.begin(), requests_.end(), [](MPI_Request& request) {
      int flag = 0;
      return MPI_Test(&request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag != 0;
    });
  }
  static void say_still_used(bool receives) noexcept {
    std::fprintf(
        stderr,
        "hostless: a request has gone whose start MPI did not end in time (it may still %s the request's "
        "buffer). Keep the buffer until MPI is finalised, and enqueue a wait behind each start.\n",
        receives ? "write to" : "read");
  }

  std::shared_ptr<World> world_;
  std::optional<std::uint32_t> number_;
  Init init_;
  std::vector<MPI_Request> requests_;
  bool is_under_way_ = false;
};

class MpiPointToPoint final : public PointToPoint {
 public:
  explicit MpiPointToPoint(std::shared_ptr<World> world) : world_(std::move(world)) {
    std::lock_guard const lock(world_->point_mutex);
    opening_ = ++world_->opened;
  }
  ~MpiPointToPoint() override {
    std::lock_guard const lock(world_->point_mutex);
    for (Told& told : told_) Abandoned::keep({told.request}, std::move(told.text));
  }
  int rank() const override { return world_->rank; }
  int size() const override { return world_->size; }
  bool shares_memory() const override { return false; }

  void tell(int peer, Bytes text, std::shared_ptr<void>) override {
    std::lock_guard const lock(world_->point_mutex);
    world_->require();
    Told& told = told_.emplace_back();
    Bytes bytes(sizeof opening_);  // in front
    std::memcpy(bytes.data(), &opening_, sizeof opening_);
    bytes.insert(bytes.end(), text.begin(), text.end());
    told.text = std::make_shared<Bytes const>(std::move(bytes));
    world_->check(MPI_Isend(told.text->data(), static_cast<int>(told.text->size()), MPI_BYTE, peer, tag_note,
                            world_->main, &told.request),
                  "MPI_Isend");
  }
  std::optional<Note> hear() override {
    std::lock_guard const lock(world_->point_mutex);
    world_->require();
    forget_sent();
    for (auto ahead = world_->notes_ahead.begin(); ahead != world_->notes_ahead.end(); ++ahead) {
      if (ahead->first != opening_) continue;
      Note note = std::move(ahead->second);
      world_->notes_ahead.erase(ahead);
      return note;
    }
    for (;;) {
      std::uint32_t opening = 0;
      std::optional<Note> note = receive(opening);
      if (!note || opening == opening_) return note;
      if (opening > opening_) world_->notes_ahead.emplace_back(opening, std::move(*note));
    }
  }
  // An MPI that goes on after a rank has died says so by an error, or by poison of whoever noticed.
  bool has_left(int) override {
    std::lock_guard const lock(world_->point_mutex);
    return !world_->usable() || world_->poisoned(world_->main);
  }
  std::unique_ptr<MessageSide> open_send(int peer, std::byte const* from, std::size_t) override {
    return std::make_unique<Side>(world_, std::nullopt,
                                  [from, peer, main = world_->main](
                                      std::size_t at, int count, std::uint32_t number, MPI_Request* request) {
                                    return MPI_Send_init(from + at, count, MPI_BYTE, peer, tag_of(number),
                                                         main, request);
                                  });
  }
  std::unique_ptr<MessageSide> open_receive(int peer, std::byte* to, std::size_t, std::size_t) override {
    return std::make_unique<Side>(world_, new_number(peer),
                                  [to, peer, main = world_->main](
                                      std::size_t at, int count, std::uint32_t number, MPI_Request* request) {
                                    return MPI_Recv_init(to + at, count, MPI_BYTE, peer, tag_of(number), main,
                                                         request);
                                  });
  }
  char const* queue_type() const override { return "mpi"; }
  bool may_progress_by_thread() const override {
    return world_->thread_level >= MPI_THREAD_MULTIPLE && is_word("HOSTLESS_QUEUE_PROGRESS", "thread");
  }
  void give_up() noexcept override {
    std::lock_guard const lock(world_->point_mutex);
    if (world_->usable()) world_->break_off();
  }

 private:
  // That this rank has not used with `peer`, in all that was opened over the transport.
  std::uint32_t new_number(int peer) {
    std::lock_guard const lock(world_->point_mutex);
    int* most = nullptr;
    int flag = 0;
    MPI_Comm_get_attr(world_->main, MPI_TAG_UB, static_cast<void*>(&most), &flag);
    constexpr int least = 32767;  // which the standard promises
    std::uint32_t& next = world_->next_number[peer];
    if (next >= static_cast<std::uint32_t>((flag != 0 ? *most : least) - tag_first_matched))
      throw Error(ErrorCode::usage, "receive number " + std::to_string(next) + " from rank " +
                                        std::to_string(peer) +
                                        " (MPI has no more tags). Keep requests and start them again.");
    return next++;
  }
  struct Told {
    MPI_Request request = MPI_REQUEST_NULL;
    std::shared_ptr<Bytes const> text;
  };
  // A note that has come, and of which opening.
  std::optional<Note> receive(std::uint32_t& opening) {
    int flag = 0;
    MPI_Status status;
    world_->check(MPI_Iprobe(MPI_ANY_SOURCE, tag_note, world_->main, &flag, &status), "MPI_Iprobe");
    if (flag == 0) return std::nullopt;
    int bytes = 0;
    world_->check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    Bytes text(static_cast<std::size_t>(bytes));
    // Notes are short: it is there as a whole, as the probe says.
    world_->check(MPI_Recv(text.data(), bytes, MPI_BYTE, status.MPI_SOURCE, tag_note,  // bounded: probed
                           world_->main, MPI_STATUS_IGNORE),
                  "MPI_Recv");
    std::memcpy(&opening, text.data(), sizeof opening);
    text.erase(text.begin(), text.begin() + sizeof opening);
    return Note{status.MPI_SOURCE, std::move(text), nullptr};
  }
  static int tag_of(std::uint32_t number) { return tag_first_matched + static_cast<int>(number); }
  void forget_sent() {
    told_.erase(std::remove_if(told_.begin(), told_.end(),
                               [&](Told& told) {
                                 int flag = 0;
                                 world_->check(MPI_Test(&told.request, &flag, MPI_STATUS_IGNORE), "MPI_Test");
                                 return flag != 0;
                               }),
                told_.end());
  }

  std::shared_ptr<World> world_;
  std::uint32_t opening_ = 0;
  std::vector<Told> told_;
};

}  // namespace

std::unique_ptr<PointToPoint> make_point_to_point(std::shared_ptr<World> world) {
  return std::make_unique<MpiPointToPoint>(std::move(world));
}

}  // namespace hostless::mpi
