#include "hostless/transport/group.hpp"

#include <exception>
#include <new>

#include "base/counted.hpp"

namespace hostless {

Bytes Group::broadcast(Bytes const& mine, int root) {
  std::vector<Bytes> to(static_cast<std::size_t>(size()));
  if (rank() == root) {
    for (Bytes& b : to) b = mine;
  }
  return exchange(to)[static_cast<std::size_t>(root)];
}

std::vector<Bytes> Group::all_gather_bytes(Bytes const& mine) {
  return exchange(std::vector<Bytes>(static_cast<std::size_t>(size()), mine));
}

void Group::check_room(std::size_t block_bytes, std::size_t all_bytes) const {
  if (all_bytes == block_bytes * static_cast<std::size_t>(size())) return;
  throw Error(ErrorCode::usage, "all_gather_blocks got room for " + counted(all_bytes, "byte") +
                                    ", not for " + counted(size(), "block") + " of " +
                                    std::to_string(block_bytes) + " (as many arrive). Give it exactly that.");
}

void Group::check_buffers(std::size_t buffers) const {
  if (buffers == static_cast<std::size_t>(size())) return;
  throw Error(ErrorCode::usage, "exchange got " + counted(buffers, "buffer") + " for " +
                                    counted(size(), "rank") + " (each is sent one). Give it one a rank.");
}

void Group::together(std::function<void()> const& work) {
  Bytes report;  // empty: fine; else one byte of code, then the text
  auto fail = [&report](ErrorCode code, char const* text) {
    report.push_back(static_cast<std::byte>(code));
    for (char const* c = text; *c != '\0'; ++c) report.push_back(static_cast<std::byte>(*c));
  };
  try {
    work();
  } catch (Error const& e) {
    fail(e.code(), e.what());
  } catch (std::bad_alloc const&) {
    fail(ErrorCode::environment,
         "out of memory (the problem does not fit on this rank). Use more ranks or a smaller problem.");
  } catch (std::exception const& e) {
    fail(ErrorCode::environment, e.what());
  } catch (...) {
    fail(ErrorCode::environment, "an exception of unknown type was thrown (it says nothing more). Debug it.");
  }
  if (!any(!report.empty())) return;
  for (Bytes const& other : all_gather_bytes(report)) {
    if (other.empty()) continue;
    throw Error(static_cast<ErrorCode>(other[0]),
                std::string(reinterpret_cast<char const*>(other.data()) + 1, other.size() - 1));
  }
}

namespace {

class SingleGroup final : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void barrier() override {}
  void all_gather_blocks(std::span<std::byte const> mine, std::span<std::byte> all) override {
    check_room(mine.size(), all.size());
    if (!mine.empty()) std::memcpy(all.data(), mine.data(), mine.size());
  }
  std::vector<Bytes> exchange(std::vector<Bytes> to) override {
    check_buffers(to.size());
    return to;
  }
};

}  // namespace

std::unique_ptr<Group> single_group() { return std::make_unique<SingleGroup>(); }

}  // namespace hostless
