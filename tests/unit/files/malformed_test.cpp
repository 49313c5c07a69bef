// Every file of tests/data/malformed (tools/make_malformed_corpus.py) is refused by the same one message on
// every rank, with its name and the line, and without memory that only its header asks for.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "counted_memory.hpp"
#include "hostless/files/matrix_file.hpp"
#include "hostless/files/vector_file.hpp"
#include "samples.hpp"

namespace {

using namespace hostless;

struct Case {
  std::string file, kind, phrase;
  int line;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  std::ifstream table(std::string(HOSTLESS_MALFORMED) + "/expected.tsv");
  for (std::string text; std::getline(table, text);) {
    std::istringstream fields(text);
    Case c;
    std::string line;
    std::getline(fields, c.file, '\t');
    std::getline(fields, c.kind, '\t');
    std::getline(fields, line, '\t');
    std::getline(fields, c.phrase);
    c.line = std::stoi(line);
    all.push_back(c);
  }
  return all;
}

void read(Group& group, Case const& c, std::string const& path) {
  if (c.kind == "matrix") {
    read_matrix(group, path);
  } else {
    read_vector_share(group, path, std::stoll(c.kind.substr(c.kind.find(':') + 1)), 0, 1);
  }
}

class Malformed : public testing::TestWithParam<Case> {};

TEST_P(Malformed, IsRefused) {
  Case const& c = GetParam();
  auto const path = std::string(HOSTLESS_MALFORMED) + "/" + c.file;
  auto const size = static_cast<std::int64_t>(std::filesystem::file_size(path));
  for (int ranks : {1, 3}) {
    counted_memory::start();
    auto const error = samples::common_error(ranks, [&](Group& group) { read(group, c, path); });
    counted_memory::stop();
    std::string const text = error.what();
    EXPECT_EQ(error.code(), ErrorCode::bad_input) << text;
    auto const begin = c.line == 0 ? path + ": " : path + ":" + std::to_string(c.line) + ": ";
    EXPECT_EQ(text.substr(0, begin.size()), begin) << text;
    EXPECT_NE(text.find(c.phrase), std::string::npos) << text;
    // One clear line: printable, with a reason in brackets and a way out behind it.
    EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char x) { return x >= ' ' && x <= '~'; })) << text;
    EXPECT_NE(text.find(". "), std::string::npos) << text;
    EXPECT_EQ(text.back(), '.') << text;
    EXPECT_LE(counted_memory::peak_bytes(), ranks * (1 << 20) + 64 * size);
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, Malformed, testing::ValuesIn(cases()), [](auto const& c) {
  std::string name = c.param.file;
  for (char& x : name) x = x == '.' ? '_' : x;
  return name;
});

TEST(MalformedCorpus, IsWhole) {
  auto const all = cases();
  EXPECT_GE(all.size(), 60u);
  std::size_t files = 0;
  for (auto const& entry : std::filesystem::directory_iterator(HOSTLESS_MALFORMED)) {
    auto const name = entry.path().filename().string();
    if (name == "expected.tsv" || name.front() == '.') continue;
    ++files;
    EXPECT_EQ(std::count_if(all.begin(), all.end(), [&](Case const& c) { return c.file == name; }), 1)
        << name;
  }
  EXPECT_EQ(files, all.size());
}

}  // namespace
