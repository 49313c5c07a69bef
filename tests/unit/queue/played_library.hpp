#pragma once
// A library that carries messages of the only rank to itself, and tells the tests who called it.

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
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

  int opened = 0;
  std::deque<Bytes> late;                            ///< notes that a test has for it: they are heard next
  std::function<void()> at_tell, at_open, at_start;  ///< called then, by whoever does so; they may throw

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
    int size() const override { return 1; }
    bool shares_memory() const override { return false; }
    void tell(int peer, Bytes text, std::shared_ptr<void>) override {
      call(library_.at_tell);
      notes_.push_back({peer, std::move(text), nullptr});
    }
    std::optional<Note> hear() override {
      if (!library_.late.empty()) {
        Note note{0, std::move(library_.late.front()), nullptr};
        library_.late.pop_front();
        return note;
      }
      if (notes_.empty()) return std::nullopt;
      Note note = std::move(notes_.front());
      notes_.pop_front();
      return note;
    }
    bool has_left(int) override { return false; }
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
};

}  // namespace hostless::test
