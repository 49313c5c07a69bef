#include "transport/memory/borrowing.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <new>
#include <string>
#include <utility>

namespace hostless::gpu {
namespace {

BorrowingPage* page_in(int file) {
  void* const at = mmap(nullptr, sizeof(BorrowingPage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return at == MAP_FAILED ? nullptr : static_cast<BorrowingPage*>(at);
}

// Another process may get the number of one that has ended: no two pages have one key.
std::uint64_t new_key() {
  static std::atomic<std::uint64_t> made{0};
  auto const now = std::chrono::system_clock::now().time_since_epoch().count();
  return (static_cast<std::uint64_t>(now) << 16 | (++made & 0xffffu)) ^ static_cast<std::uint64_t>(getpid())
                                                                            << 40;
}

}  // namespace

Lent::Lent() : file_(memfd_create("hostless-lent", MFD_CLOEXEC)) {
  if (file_ < 0 || ftruncate(file_, sizeof(BorrowingPage)) != 0) return;
  page_ = page_in(file_);
  if (page_ != nullptr) new (page_) BorrowingPage{new_key(), 0};
}

Lent::~Lent() {
  if (page_ != nullptr) munmap(page_, sizeof(BorrowingPage));
  if (file_ >= 0) close(file_);
}

Borrowing Lent::contact() const {
  if (page_ == nullptr) return {};
  return {static_cast<std::int32_t>(getpid()), file_, page_->key};
}

bool Lent::is_returned_by(std::uint32_t borrowers) const {
  return page_ != nullptr && (page_->returned.load(std::memory_order_acquire) & borrowers) == borrowers;
}

Borrowed::Borrowed(Borrowing const& from) : process_(getpid()) {
  if (from.process == 0) return;
  std::string const path = "/proc/" + std::to_string(from.process) + "/fd/" + std::to_string(from.file);
  int const file = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);  // bounded: O_NONBLOCK
  if (file < 0) return;
  if (lseek(file, 0, SEEK_END) == static_cast<off_t>(sizeof(BorrowingPage))) page_ = page_in(file);
  close(file);
  if (page_ == nullptr || page_->key == from.key) return;
  munmap(std::exchange(page_, nullptr), sizeof(BorrowingPage));  // of somebody else
}

Borrowed::Borrowed(Borrowed&& other) noexcept
    : page_(std::exchange(other.page_, nullptr)), process_(other.process_) {}

Borrowed::~Borrowed() {
  if (page_ != nullptr) munmap(page_, sizeof(BorrowingPage));
}

void Borrowed::give_back(int rank) {
  if (page_ == nullptr || process_ != getpid()) return;
  page_->returned.fetch_or(1u << rank, std::memory_order_release);
  munmap(std::exchange(page_, nullptr), sizeof(BorrowingPage));
}

}  // namespace hostless::gpu
