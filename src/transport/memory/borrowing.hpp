#pragma once
// Which ranks have closed memory that is lent to other processes: a word in memory that lender and borrowers
// share, and that has no name which a killed process could leave behind.

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "transport/memory/lent_memory.hpp"

namespace hostless::gpu {

/// What both sides see.
struct BorrowingPage {
  std::uint64_t key = 0;
  std::atomic<std::uint32_t> returned{0};  ///< ranks as bits
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "words in shared memory hold no lock");

/// The lender's side.
class Lent {
 public:
  /// Where no such page can be had, nothing is ever known to be returned.
  Lent();
  ~Lent();
  Lent(Lent const&) = delete;
  Lent& operator=(Lent const&) = delete;
  Borrowing contact() const;
  /// borrowers: ranks as bits. Whether all of them have closed what they opened.
  bool is_returned_by(std::uint32_t borrowers) const;

 private:
  int file_ = -1;
  BorrowingPage* page_ = nullptr;
};

/// A borrower's side, of one lender.
class Borrowed {
 public:
  /// Where the lender's page cannot be had, it never hears.
  explicit Borrowed(Borrowing const& from);
  ~Borrowed();
  Borrowed(Borrowed&& other) noexcept;
  Borrowed& operator=(Borrowed&&) = delete;
  /// By rank `rank`, once all that it has opened is closed. A forked child has opened nothing.
  void give_back(int rank);

 private:
  BorrowingPage* page_ = nullptr;
  pid_t process_;
};

}  // namespace hostless::gpu
