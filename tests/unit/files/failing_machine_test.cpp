// Every allocation and every file call of the readers and writers fails once: each time there is one clean
// Error, nothing leaks, and no file that was there is lost.
#include <gtest/gtest.h>

#include <atomic>

#include "counted_memory.hpp"
#include "failing_calls.hpp"
#include "hostless/base/file_calls.hpp"
#include "hostless/files/matrix_file.hpp"
#include "hostless/files/matrix_market.hpp"
#include "hostless/files/petsc_binary.hpp"
#include "hostless/files/vector_file.hpp"
#include "samples.hpp"

namespace {

using namespace hostless;
using samples::Folder;

constexpr std::int64_t n = 40;

// A tridiagonal matrix, as a source.
class Chain final : public RowSource {
 public:
  explicit Chain(Group const& group)
      : first_(share_first(n, group.size(), group.rank())),
        last_(share_first(n, group.size(), group.rank() + 1)) {}
  std::int64_t global_rows() const override { return n; }
  std::int64_t first_row() const override { return first_; }
  std::int64_t last_row() const override { return last_; }
  void panel(std::int64_t first, std::int64_t count, RowPanel& out) const override {
    out.clear();
    for (std::int64_t row = first; row < first + count; ++row) {
      for (std::int64_t column = std::max<std::int64_t>(0, row - 1); column < std::min(n, row + 2);
           ++column) {
        out.column.push_back(column);
        out.value.push_back(column == row ? 2.1 : -1.0);
      }
      out.offset.push_back(static_cast<std::int64_t>(out.column.size()));
    }
  }

 private:
  std::int64_t first_, last_;
};

std::string general_text() {
  std::string text = "%%MatrixMarket matrix coordinate real general\n40 40 118\n";
  for (std::int64_t i = 1; i <= n; ++i) {
    for (std::int64_t j = std::min(n, i + 1); j >= std::max<std::int64_t>(1, i - 1); --j) {
      text += std::to_string(i) + " " + std::to_string(j) + (i == j ? " 2.1\n" : " -1\n");
    }
  }
  return text;
}

struct Work {
  char const* name;
  bool writes;
  std::function<void(Group&, std::string const& path)> work;
};

void write_share(Group& group, std::string const& path) {
  std::int64_t const first = piece(group.rank(), group.size(), n),
                     last = piece(group.rank() + 1, group.size(), n);
  static std::vector<double> const whole(n, 0.1);
  write_vector(group, path, n, first, std::span(whole).first(static_cast<std::size_t>(last - first)));
}

std::vector<Work> works() {
  return {
      {"general.mtx", false, [](Group& g, std::string const& p) { read_matrix(g, p); }},
      {"general.gz", false, [](Group& g, std::string const& p) { read_matrix(g, p); }},
      {"matrix.petsc", false, [](Group& g, std::string const& p) { read_matrix(g, p); }},
      {"vector.mtx", false, [](Group& g, std::string const& p) { read_vector_share(g, p, n, 3, 30); }},
      {"vector.npy", false, [](Group& g, std::string const& p) { read_vector_share(g, p, n, 3, 30); }},
      {"vector.petsc", false, [](Group& g, std::string const& p) { read_vector_share(g, p, n, 3, 30); }},
      {"general.mtx", true, [](Group& g, std::string const& p) { write_matrix_market(g, p, Chain(g)); }},
      {"matrix.petsc", true, [](Group& g, std::string const& p) { write_petsc_matrix(g, p, Chain(g)); }},
      {"vector.mtx", true, write_share},
      {"vector.npy", true, write_share},
  };
}

// The files that the works read or replace.
void fill(Folder const& folder) {
  auto const group = single_group();
  folder.write("general.mtx", general_text());
  folder.write_gz("general.gz", general_text());
  write_petsc_matrix(*group, folder.file("matrix.petsc"), Chain(*group));
  for (char const* name : {"vector.mtx", "vector.npy", "vector.petsc"})
    write_share(*group, folder.file(name));
}

struct Kept {
  Kept(Folder const& f, Work const& w)
      : folder(f), path(f.file(w.name)), bytes(samples::content(path)), files(f.files()) {}
  void expect() const {
    EXPECT_EQ(samples::content(path), bytes);
    EXPECT_EQ(folder.files(), files);
  }
  Folder const& folder;
  std::string path, bytes;
  std::size_t files;
};

TEST(FailingMachine, EveryAllocationOfOneRank) {
  Folder folder;
  fill(folder);
  auto const group = single_group();
  for (Work const& w : works()) {
    w.work(*group, folder.file(w.name));  // what is made once for the process is made now
    Kept const kept(folder, w);
    counted_memory::start();
    w.work(*group, kept.path);
    counted_memory::stop();
    std::int64_t const all = counted_memory::allocations();
    ASSERT_GT(all, 5) << w.name;
    EXPECT_EQ(counted_memory::live_bytes(), 0) << w.name;
    for (std::int64_t k = 1; k <= all; ++k) {
      counted_memory::start();
      counted_memory::fail(k);
      try {
        w.work(*group, kept.path);
        ADD_FAILURE() << w.name << ": allocation " << k << " of " << all << " failed unseen";
      } catch (Error const& error) {
        EXPECT_EQ(error.code(), ErrorCode::environment) << error.what();
      }
      counted_memory::stop();
      EXPECT_EQ(counted_memory::live_bytes(), 0) << w.name << ", allocation " << k;
    }
    kept.expect();
  }
}

TEST(FailingMachine, AllocationsOfTwoRanks) {
  Folder folder;
  fill(folder);
  for (Work const& w : works()) {
    Kept const kept(folder, w);
    for (std::int64_t k = 1; k <= 400; k += 13) {
      counted_memory::start();
      std::atomic<int> refused = 0;
      try {
        run_on_threads(2, [&](Group& group) {
          group.barrier();
          if (group.rank() == 0) counted_memory::fail(k);
          group.barrier();
          try {
            w.work(group, kept.path);
          } catch (Error const& error) {
            ++refused;
            EXPECT_TRUE(error.code() == ErrorCode::environment || error.code() == ErrorCode::peer_lost)
                << error.what();
            throw;
          }
        });
      } catch (Error const&) {
      }
      counted_memory::stop();
      EXPECT_NE(refused, 1) << w.name << ", allocation " << k << ": one rank went on alone";
      EXPECT_EQ(counted_memory::live_bytes(), 0) << w.name << ", allocation " << k;
    }
    if (!w.writes) kept.expect();
    EXPECT_EQ(folder.files(), kept.files) << w.name << ": something half written stays";
  }
}

TEST(FailingMachine, EveryFileCall) {
  Folder folder;
  fill(folder);
  for (Work const& w : works()) {
    for (int ranks : {1, 2}) {
      samples::FailingCalls counting(0);
      use_file_calls(&counting);
      run_on_threads(ranks, [&](Group& group) { w.work(group, folder.file(w.name)); });
      EXPECT_TRUE(counting.all_closed());
      EXPECT_EQ(counting.stored(), w.writes) << w.name;
      use_file_calls(nullptr);
      Kept const kept(folder, w);
      for (int k = 1; k <= counting.calls(); ++k) {
        samples::FailingCalls failing(k);
        use_file_calls(&failing);
        auto const error = samples::common_error(ranks, [&](Group& group) { w.work(group, kept.path); });
        use_file_calls(nullptr);
        EXPECT_EQ(error.code(), w.writes ? ErrorCode::environment : ErrorCode::bad_input)
            << w.name << ", call " << k << ": " << error.what();
        EXPECT_NE(std::string(error.what()).find(kept.path), std::string::npos) << error.what();
        EXPECT_TRUE(failing.all_closed()) << w.name << ", call " << k;
        kept.expect();
      }
    }
  }
}

// Gives and takes a few bytes at a time, and is interrupted in between.
class SlowCalls final : public FileCalls {
 public:
  ssize_t read_at(int file, void* to, std::size_t bytes, std::int64_t offset) override {
    return interrupted() ? -1 : FileCalls::read_at(file, to, std::min<std::size_t>(bytes, 7), offset);
  }
  ssize_t write_at(int file, void const* from, std::size_t bytes, std::int64_t offset) override {
    return interrupted() ? -1 : FileCalls::write_at(file, from, std::min<std::size_t>(bytes, 7), offset);
  }

 private:
  bool interrupted() {
    if (++calls_ % 3 != 0) return false;
    errno = EINTR;
    return true;
  }
  std::atomic<int> calls_ = 0;
};

TEST(FailingMachine, ShortAndInterruptedCallsChangeNothing) {
  Folder folder;
  fill(folder);
  auto const read = [&](char const* name) {
    return samples::collect(2, [&](Group& group) { return read_matrix(group, folder.file(name)); });
  };
  auto const matrix = read("general.mtx");
  auto const bytes = samples::content(folder.file("vector.npy"));
  SlowCalls slow;
  use_file_calls(&slow);
  for (char const* name : {"general.mtx", "general.gz", "matrix.petsc"})
    EXPECT_EQ(read(name), matrix) << name;
  run_on_threads(2, [&](Group& group) { write_share(group, folder.file("vector.npy")); });
  use_file_calls(nullptr);
  EXPECT_EQ(samples::content(folder.file("vector.npy")), bytes);
}

// Gives another text the second time that a place is read.
class ChangingCalls final : public FileCalls {
 public:
  explicit ChangingCalls(std::string const& second) : second_(second) {}
  ssize_t read_at(int file, void* to, std::size_t bytes, std::int64_t offset) override {
    auto const got = FileCalls::read_at(file, to, bytes, offset);
    // Everything behind the header is first read whole in one call, then again in the second pass.
    if (offset > 10 && got > 0 && ++reads_ == 2)
      second_.copy(static_cast<char*>(to), static_cast<std::size_t>(got), static_cast<std::size_t>(offset));
    return got;
  }

 private:
  std::string second_;
  int reads_ = 0;
};

TEST(FailingMachine, AFileThatChangesWhileItIsReadIsRefused) {
  Folder folder;
  std::string const head = "%%MatrixMarket matrix coordinate real symmetric\n4 4 4\n";
  std::string const first = head + "1 1 5\n2 2 5\n3 3 5\n4 4 5\n";
  auto const path = folder.write("a.mtx", first);
  for (std::string const body : {"1 1 5\n2 2 5\n3 3 5\n4 3 5\n", "1 1 5\n2 2 5\n3 3 5\n      \n",
                                 "1 1 5\n1 1 5\n1 1 5\n1 1 5\n", "4 4 5\n4 4 5\n4 4 5\n4 4 5\n"}) {
    ChangingCalls calls(head + body);
    use_file_calls(&calls);
    auto const error = samples::common_error(1, [&](Group& group) { read_matrix(group, path); });
    use_file_calls(nullptr);
    EXPECT_NE(std::string(error.what()).find("changed while it was read"), std::string::npos) << error.what();
  }
}

}  // namespace
