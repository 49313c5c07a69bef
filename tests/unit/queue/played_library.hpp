#pragma once
// A library that carries messages of a rank to itself, and tells the tests who called it. Other ranks are what a
// test plays.

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "hostless/transport/point_to_point.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless::test {

/// by_thread  whether threads of the queues may call it
class PlayedLibrary final : public Transport {
 public:
  explicit PlayedLibrary(bool by_thread) : by_thread_(by_thread) {}
  Capabilities capabilities() const override { return inner_->capabilities(); }
  Group& group() override { return inner_->group(); }
  std::unique_ptr<Endpoint> bind(Binding const& binding) override { return inner_->bind(binding); }
  std::unique_ptr<PointToPoint> point_to_point() override {
    ++opened;
    return std::make_unique<Point>(*this);
  }

  /// What this rank told that one comes back as its own: the other sides of a collective.
  void answer_for(int peer) {
    for (Bytes& text : told_[peer]) answers_.push_back({peer, std::move(text), nullptr});
    told_[peer].clear();
  }

  int opened = 0;
  int ranks = 1;           ///< this one is 0
  std::set<int> left;      ///< of the others
  std::deque<Bytes> late;  ///< notes that a test has for it: they are heard next
  /// Called then, by whoever does so; they may throw.
  std::function<void()> at_tell, at_open, at_start, at_hear;
  /// Asked by each look at a receive, where a message may be; false: not yet.
  std::function<bool()> lets_arrive;

 private:
  using Box = std::deque<Bytes>;
  static void call(std::function<void()> const& what) {
    if (what) what();
  }

  class Side final : public MessageSide {
   public:
    Side(PlayedLibrary& library, std::byte const* from, std::byte* to)
        : library_(library), number_(library.numbers_++), from_(from), to_(to) {}
    std::uint32_t number() const override { return number_; }
    void match(std::uint32_t other, std::size_t bytes, Delivery) override { other_ = other, bytes_ = bytes; }
    void start() override {
      call(library_.at_start);
      std::lock_guard const lock(library_.mutex_);
      if (from_ != nullptr) library_.boxes_[other_].emplace_back(from_, from_ + bytes_);
    }
    bool complete() override {
      std::lock_guard const lock(library_.mutex_);
      if (from_ != nullptr) return true;
      if (library_.lets_arrive && !library_.lets_arrive()) return false;
      Box& box = library_.boxes_[number_];
      if (box.empty()) return false;
      std::memcpy(to_, box.front().data(), box.front().size());
      box.pop_front();
      return true;
    }

   private:
    PlayedLibrary& library_;
    std::uint32_t number_, other_ = 0;
    std::byte const* from_;
    std::byte* to_;
    std::size_t bytes_ = 0;
  };

  class Point final : public PointToPoint {
   public:
    explicit Point(PlayedLibrary& library) : library_(library) {}
    int rank() const override { return 0; }
    int size() const override { return library_.ranks; }
    bool shares_memory() const override { return false; }
    void tell(int peer, Bytes text, std::shared_ptr<void>) override {
      call(library_.at_tell);
      if (peer != 0) {
        library_.told_[peer].push_back(std::move(text));
      } else {
        notes_.push_back({peer, std::move(text), nullptr});
      }
    }
    std::optional<Note> hear() override {
      call(library_.at_hear);
      if (!library_.late.empty()) {
        Note note{0, std::move(library_.late.front()), nullptr};
        library_.late.pop_front();
        return note;
      }
      std::deque<Note>& next = notes_.empty() ? library_.answers_ : notes_;
      if (next.empty()) return std::nullopt;
      Note note = std::move(next.front());
      next.pop_front();
      return note;
    }
    bool has_left(int peer) override {
      return peer < 0 ? !library_.left.empty() : library_.left.count(peer) != 0;
    }
    std::unique_ptr<MessageSide> open_send(int, std::byte const* from, std::size_t) override {
      call(library_.at_open);
      return std::make_unique<Side>(library_, from, nullptr);
    }
    std::unique_ptr<MessageSide> open_receive(int, std::byte* to, std::size_t, std::size_t) override {
      call(library_.at_open);
      return std::make_unique<Side>(library_, nullptr, to);
    }
    bool may_progress_by_thread() const override { return library_.by_thread_; }
    void give_up() noexcept override {}

   private:
    PlayedLibrary& library_;
    std::deque<Note> notes_;
  };

  std::unique_ptr<Transport> inner_ = single_transport();
  bool by_thread_;
  std::mutex mutex_;
  std::uint32_t numbers_ = 0;
  std::map<std::uint32_t, Box> boxes_;  ///< by the receiver's number
  std::map<int, std::vector<Bytes>> told_;
  std::deque<Note> answers_;
};

}  // namespace hostless::test
