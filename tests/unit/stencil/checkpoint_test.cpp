// Checkpoints of stencils: any ranks write them and others go on, and nothing but the run's own is taken.
#include "hostless/stencil/checkpoint.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include "base/hash.hpp"
#include "hostless/base/error.hpp"
#include "hostless/stencil/catalogue.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless {
namespace {

using Cells = std::vector<double>;

class StencilCheckpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("hostless-stencil-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file(char const* name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

Grid grid_of(std::int64_t rows, std::int64_t columns, GridBoundary boundary = GridBoundary::periodic) {
  Grid grid;
  grid.extent = {rows, 1, columns};
  grid.boundary.fill(boundary);
  return grid;
}

CellArray array_of(Cells& cells, Grid const& grid) {
  std::int64_t const row = grid.extent[2] * 8;
  return {cells.data(), {row, row, 8}};
}

// Both fields of a wave after some steps, on so many ranks; `between` may save and load.
using Between = std::function<void(Group&, StencilRun&, StencilKernel const&)>;
std::vector<Cells> wave(int ranks, std::int64_t steps, Between const& before, Between const& after) {
  Grid const grid = grid_of(13, 17);
  std::vector<Cells> fields(2, Cells(13 * 17));
  run_with_threads_transport(ranks, [&](Transport& transport) {
    StencilKernel const kernel = make_stencil("wave", 2, 8, {0.3});
    StencilRun run(transport, grid, kernel);
    Cells first(13 * 17);
    for (std::size_t k = 0; k < first.size(); ++k) first[k] = static_cast<double>(k * k % 31);
    run.give(0, array_of(first, grid));
    run.give(1, array_of(first, grid));
    if (before) before(transport.group(), run, kernel);
    EXPECT_EQ(run.run(steps - run.steps()).status, StencilStatus::steps_done);
    if (after) after(transport.group(), run, kernel);
    for (int f = 0; f < 2; ++f) run.take(f, array_of(fields[static_cast<std::size_t>(f)], grid));
  });
  return fields;
}

std::string content(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST_F(StencilCheckpoint, HasTheSameBytesFromAnyRanksAndGoesOnWithAnyOthers) {
  std::vector<Cells> const whole = wave(1, 20, {}, {});
  std::string first;
  for (int const ranks : {1, 2, 3}) {
    std::string const path = file("c");
    wave(ranks, 7, {}, [&](Group& group, StencilRun& run, StencilKernel const& kernel) {
      write_stencil_checkpoint(group, path, run, kernel);
    });
    if (first.empty()) first = content(path);
    EXPECT_EQ(content(path), first);
    for (int const others : {1, 2, 4}) {
      auto const load = [&](Group& group, StencilRun& run, StencilKernel const& kernel) {
        EXPECT_EQ(read_stencil_checkpoint(group, path, run, kernel), 7);
      };
      EXPECT_EQ(wave(others, 20, load, {}), whole);
    }
  }
}

std::string refusal(std::string const& path, Grid const& grid, StencilKernel const& kernel) {
  std::string text;
  run_with_threads_transport(1, [&](Transport& transport) {
    StencilRun run(transport, grid, kernel);
    try {
      read_stencil_checkpoint(transport.group(), path, run, kernel);
    } catch (Error const& e) {
      EXPECT_EQ(e.code(), ErrorCode::bad_input);
      text = e.what();
    }
  });
  return text;
}

TEST_F(StencilCheckpoint, OfAnythingElseIsRefusedByName) {
  std::string const path = file("c");
  wave(2, 3, {}, [&](Group& group, StencilRun& run, StencilKernel const& kernel) {
    write_stencil_checkpoint(group, path, run, kernel);
  });
  auto const says = [&](Grid const& grid, StencilKernel const& kernel, char const* words) {
    std::string const text = refusal(path, grid, kernel);
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  Grid const same = grid_of(13, 17);
  says(same, make_stencil("gray_scott", 2, 8), "of the stencil wave, and this run has gray_scott");
  says(grid_of(17, 13), make_stencil("wave", 2, 8, {0.3}), "13 x 17, and this run has 17 x 13");
  says(same, make_stencil("wave", 2, 4, {0.3}), "fp64, and this run has fp32");
  says(same, make_stencil("wave", 2, 8), "parameters 0.3, and this run has 0.25");
  says(grid_of(13, 17, GridBoundary::neumann), make_stencil("wave", 2, 8, {0.3}),
       "periodic,periodic, and this run has neumann,neumann");
  EXPECT_EQ(refusal(path, same, make_stencil("wave", 2, 8, {0.3})), "");
}

TEST_F(StencilCheckpoint, EveryDamagedByteIsSeen) {
  std::string const path = file("c"), damaged = file("d");
  wave(1, 3, {}, [&](Group& group, StencilRun& run, StencilKernel const& kernel) {
    write_stencil_checkpoint(group, path, run, kernel);
  });
  std::string const whole = content(path);
  StencilKernel const kernel = make_stencil("wave", 2, 8, {0.3});
  auto const write = [&](std::string const& text) { std::ofstream(damaged, std::ios::binary) << text; };
  // Every byte of the head, and some of the fields.
  for (std::size_t at = 0; at < whole.size(); at += at < 300 ? 1 : 97) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x40);
    write(changed);
    EXPECT_NE(refusal(damaged, grid_of(13, 17), kernel), "") << at;
  }
  for (std::size_t const bytes : {std::size_t{0}, std::size_t{5}, std::size_t{50}, whole.size() - 1}) {
    write(whole.substr(0, bytes));
    EXPECT_NE(refusal(damaged, grid_of(13, 17), kernel), "") << bytes;
  }
  write(whole + "x");
  EXPECT_NE(refusal(damaged, grid_of(13, 17), kernel).find("too much"), std::string::npos);
}

// What reading the grid alone says, of ranks that each name a file; empty: all was well.
std::string refusal_of_grid(std::vector<std::string> const& paths) {
  std::string text;
  run_with_threads_transport(static_cast<int>(paths.size()), [&](Transport& transport) {
    Group& group = transport.group();
    std::string const& mine = paths[static_cast<std::size_t>(group.rank())];
    std::string said;
    try {
      read_stencil_checkpoint_grid(group, mine);
    } catch (Error const& e) {
      EXPECT_EQ(e.exit_code(), 3) << e.what();
      said = e.what();
    }
    auto const others = group.all_gather_bytes(Bytes(said.size()));
    for (Bytes const& other : others) EXPECT_EQ(other.size(), said.size());  // all ranks end alike
    if (group.rank() == 0) text = said;
  });
  return text;
}

// Where in a head, in words, what stands.
namespace word {
constexpr std::size_t version = 1, head = 2, checksum = 3, axes = 5, value_bytes = 6, fields = 7, extent = 9,
                      boundary = 12, name_bytes = 15, parameter_bytes = 16;
}

std::uint64_t word_of(std::string const& file, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, file.data() + 8 * at, 8);
  return value;
}

// The file with other words in its head, whose checksum is right.
std::string with_words(std::string file, std::vector<std::pair<std::size_t, std::uint64_t>> const& words) {
  auto const put = [&](std::size_t at, std::uint64_t value) { std::memcpy(file.data() + 8 * at, &value, 8); };
  for (auto const& [at, value] : words) put(at, value);
  Hash hash;
  for (std::size_t k = 0; k < std::min<std::size_t>(word_of(file, word::head), file.size() / 8); ++k)
    if (k != word::checksum) hash.add(static_cast<std::int64_t>(word_of(file, k)));
  put(word::checksum, hash.value());
  return file;
}

TEST_F(StencilCheckpoint, HeadsThatNoRunWroteAreRefusedWithWhatIsWrong) {
  std::string const path = file("c"), bad = file("bad");
  wave(2, 3, {}, [&](Group& group, StencilRun& run, StencilKernel const& kernel) {
    write_stencil_checkpoint(group, path, run, kernel);
  });
  std::string const whole = content(path);
  ASSERT_EQ(with_words(whole, {}), whole) << "the words are not where the test thinks";
  EXPECT_EQ(refusal_of_grid({path}), "");
  std::uint64_t const head = word_of(whole, word::head);
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max(), large = std::uint64_t{1} << 40;
  struct Case {
    std::string content;
    char const* says;
  };
  std::vector<Case> cases = {
      {"", "is no checkpoint of a stencil"},
      {"hostless", "is no checkpoint of a stencil"},
      {whole.substr(0, 5), "is no checkpoint of a stencil"},
      {"x" + whole.substr(1), "is no checkpoint of a stencil"},
      {"hostlscp" + whole.substr(8), "is no checkpoint of a stencil"},  // that of a solve
      {whole.substr(0, 8), "ends early"},
      {whole.substr(0, 8 * 17 - 1), "ends early"},
      {whole.substr(0, 8 * head - 1), "ends early"},
      {with_words(whole, {{word::version, 0}}), "is a checkpoint of format 0 (this version resumes 1)"},
      {with_words(whole, {{word::version, 2}}), "is a checkpoint of format 2 (this version resumes 1)"},
      {with_words(whole, {{word::head, 0}}), "a length is wrong"},
      {with_words(whole, {{word::head, 16}}), "a length is wrong"},
      {with_words(whole, {{word::head, (1u << 16) + 1}}), "a length is wrong"},
      {with_words(whole, {{word::head, most}}), "a length is wrong"},
      {with_words(whole, {{word::head, 1u << 16}}), "ends early"},
      {with_words(whole, {{word::head, head + 1}}), "its lengths disagree"},
      {with_words(whole, {{word::name_bytes, most}}), "its lengths disagree"},
      {with_words(whole, {{word::name_bytes, 8 * head}}), "its lengths disagree"},
      {with_words(whole, {{word::parameter_bytes, most}}), "its lengths disagree"},
      {with_words(whole, {{word::parameter_bytes, most - 7}}), "its lengths disagree"},
      {with_words(whole, {{word::fields, most}}), "its lengths disagree"},
      {with_words(whole, {{word::fields, 3}}), "its lengths disagree"},
      {with_words(whole, {{word::axes, 0}}), "its grid is none"},
      {with_words(whole, {{word::axes, 4}}), "its grid is none"},
      {with_words(whole, {{word::axes, most}}), "its grid is none"},
      {with_words(whole, {{word::value_bytes, 0}}), "its grid is none"},
      {with_words(whole, {{word::value_bytes, 16}}), "its grid is none"},
      {with_words(whole, {{word::extent, 0}}), "its grid is none"},
      {with_words(whole, {{word::extent, most}}), "its grid is none"},
      {with_words(whole, {{word::extent, large}, {word::extent + 2, large}}), "its grid is none"},
      {with_words(whole, {{word::boundary + 2, 3}}), "its grid is none"},
      {with_words(whole, {{word::boundary, most}}), "its grid is none"},
  };
  std::string flipped = whole;
  flipped[8 * 4] ^= 1;  // of the number of steps
  cases.push_back({flipped, "a checksum is wrong"});
  for (auto const& [text, says] : cases) {
    std::ofstream(bad, std::ios::binary) << text;
    for (int const ranks : {1, 2}) {
      std::string const said =
          refusal_of_grid(std::vector<std::string>(static_cast<std::size_t>(ranks), bad));
      EXPECT_TRUE(said.starts_with(bad + ": ")) << said;
      EXPECT_NE(said.find(says), std::string::npos) << said << " where it should say: " << says;
    }
  }
  std::filesystem::remove(bad);
  EXPECT_TRUE(refusal_of_grid({bad, bad}).starts_with(bad + ": cannot open it"));
}

TEST_F(StencilCheckpoint, AnotherOnOneRankIsRefusedByItsName) {
  Grid const small = grid_of(5, 7), large = grid_of(9, 7);
  auto const write = [&](char const* name, Grid const& grid, std::int64_t steps) {
    run_with_threads_transport(1, [&](Transport& transport) {
      StencilKernel const kernel = make_stencil("wave", 2, 8);
      StencilRun run(transport, grid, kernel);
      Cells cells(static_cast<std::size_t>(grid.extent[0] * grid.extent[2]), 1.0);  // equal after any steps
      for (int field : {0, 1}) run.give(field, array_of(cells, grid));
      run.count_from(steps);
      write_stencil_checkpoint(transport.group(), file(name), run, kernel);
    });
    return file(name);
  };
  std::string const mine = write("c", small, 3), same = write("same", small, 3),
                    later = write("later", small, 4), larger = write("larger", large, 3);
  EXPECT_EQ(refusal_of_grid({mine, same}), "");
  EXPECT_EQ(refusal_of_grid({mine, mine, larger}).find(larger + ": rank 2 reads another file than rank 0"),
            0u);
  EXPECT_EQ(refusal_of_grid({mine, later}).find(later + ": rank 1 reads another file than rank 0"), 0u);
  run_with_threads_transport(2, [&](Transport& transport) {
    StencilKernel const kernel = make_stencil("wave", 2, 8);
    StencilRun run(transport, small, kernel);
    std::string const& path = transport.group().rank() == 0 ? mine : later;
    try {
      read_stencil_checkpoint(transport.group(), path, run, kernel);
      ADD_FAILURE() << "ranks went on from different steps";
    } catch (Error const& e) {
      EXPECT_EQ(e.exit_code(), 3);
      EXPECT_EQ(std::string(e.what()).find(later + ": rank 1 reads another file"), 0u) << e.what();
    }
  });
}

}  // namespace
}  // namespace hostless
