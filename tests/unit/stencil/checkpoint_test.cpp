// Checkpoints of stencils: any ranks write them and others go on, and nothing but the run's own is taken.
#include "hostless/stencil/checkpoint.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

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

}  // namespace
}  // namespace hostless
