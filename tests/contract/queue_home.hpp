#pragma once
// Where requests of a test have their buffers, and whose queues are made: the host's, or a GPU's streams.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "hostless/queue/queue.hpp"

namespace hostless::test {

/// All but `enter` is of the rank whose thread calls.
class QueueHome {
 public:
  virtual ~QueueHome() = default;
  /// By each rank before all else, together.
  virtual void enter(Transport&) {}
  /// What the rank has taken may be taken again.
  virtual void again() {}
  virtual int gpu() const { return Communicator::no_gpu; }
  /// Of queue k of the rank.
  virtual QueueType type() const { return QueueType::automatic; }
  virtual void* stream(int) { return nullptr; }
  /// Memory for requests, and for functions of queues, all 0.
  virtual std::byte* memory(std::size_t bytes) = 0;
  /// Memory for requests alone; null: there is no other.
  virtual std::byte* other_memory(std::size_t) { return nullptr; }
  /// By queue k, between the two.
  virtual void pass(int, std::byte*, std::byte const*, std::size_t) {}

  template <class T>
  std::span<T> array(std::size_t count) {
    return {reinterpret_cast<T*>(memory(count * sizeof(T))), count};
  }
};

class HostHome final : public QueueHome {
 public:
  void enter(Transport&) override { again(); }
  void again() override { blocks().clear(); }
  std::byte* memory(std::size_t bytes) override {
    blocks().push_back(std::make_unique<std::byte[]>(bytes + 1));
    return blocks().back().get();
  }

 private:
  static std::vector<std::unique_ptr<std::byte[]>>& blocks() {
    thread_local std::vector<std::unique_ptr<std::byte[]>> of_rank;
    return of_rank;
  }
};

/// That of this process: the host's, where nobody has set another.
inline std::unique_ptr<QueueHome>& set_queue_home() {
  static std::unique_ptr<QueueHome> one = std::make_unique<HostHome>();
  return one;
}
inline QueueHome& queue_home() { return *set_queue_home(); }

}  // namespace hostless::test
