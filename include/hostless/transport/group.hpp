#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hostless/base/error.hpp"

namespace hostless {

using Bytes = std::vector<std::byte>;

/// Ranks that set something up together. Collective and blocking, every wait with a deadline; never used
/// inside an iteration (that is what `Endpoint` is for).
///
/// Every member function is collective: all ranks call it, in the same order.
/// Errors  peer_lost  a rank did not arrive before the deadline, or left
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void barrier() = 0;
  /// Gathers one block of equal size from every rank; block r of `all` comes from rank r.
  /// all  [size() * mine.size()] bytes
  virtual void all_gather_blocks(std::span<std::byte const> mine, std::span<std::byte> all) = 0;
  /// Sends to[r] to rank r and returns what every rank sent here (result[r] from rank r). Sizes may differ.
  virtual std::vector<Bytes> exchange(std::vector<Bytes> to) = 0;

  template <class T>
  std::vector<T> all_gather(T const& mine) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(static_cast<std::size_t>(size()));
    all_gather_blocks(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    return all;
  }
  template <class T>
  T sum(T const& mine) {
    T total{};
    for (T const& v : all_gather(mine)) total += v;  // in rank order: the same bits on every rank
    return total;
  }
  template <class T>
  T max(T const& mine) {
    auto all = all_gather(mine);
    T top = all[0];
    for (T const& v : all) top = v > top ? v : top;
    return top;
  }
  template <class T>
  T min(T const& mine) {
    auto all = all_gather(mine);
    T low = all[0];
    for (T const& v : all) low = v < low ? v : low;
    return low;
  }
  bool any(bool mine) { return max<int>(mine ? 1 : 0) != 0; }
  /// Sends `text` of rank `root` to everybody.
  Bytes broadcast(Bytes const& mine, int root);
  /// Gathers one byte string of any size from every rank, on every rank.
  std::vector<Bytes> all_gather_bytes(Bytes const& mine);
  /// Typed personalised exchange: to[r] goes to rank r.
  template <class T>
  std::vector<std::vector<T>> exchange_values(std::vector<std::vector<T>> const& to) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<Bytes> raw(to.size());
    for (std::size_t r = 0; r < to.size(); ++r) {
      raw[r].resize(to[r].size() * sizeof(T));
      if (!raw[r].empty()) std::memcpy(raw[r].data(), to[r].data(), raw[r].size());
    }
    auto got = exchange(std::move(raw));
    std::vector<std::vector<T>> from(got.size());
    for (std::size_t r = 0; r < got.size(); ++r) {
      from[r].resize(got[r].size() / sizeof(T));
      if (!from[r].empty()) std::memcpy(from[r].data(), got[r].data(), got[r].size());
    }
    return from;
  }
  /// Runs `work` on this rank, then makes failure collective: if any rank threw an `Error` (or ran out of
  /// memory), every rank throws the error of the lowest failing rank, so that all leave with one message.
  /// `work` must not call the group: a rank that failed would not take part. Call `together` around pieces
  /// between collectives.
  void together(std::function<void()> const& work);

 protected:
  /// Errors  usage  the arguments of all_gather_blocks or exchange do not fit size()
  void check_room(std::size_t block_bytes, std::size_t all_bytes) const;
  void check_buffers(std::size_t buffers) const;
};

/// The group of one.
std::unique_ptr<Group> single_group();

/// Runs `body(group)` on `ranks` threads of this process, one rank each, and returns when all have left.
/// An exception of the lowest failing rank is rethrown after all threads have ended; ranks that wait for one
/// that threw leave with `peer_lost`.
void run_on_threads(int ranks, std::function<void(Group&)> const& body);

}  // namespace hostless
