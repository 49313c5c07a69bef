#include "options/equal_words.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "hostless/base/error.hpp"

namespace hostless {
namespace {

std::string path_of_command(CLI::App const& command) {
  return command.get_parent() == nullptr ? command.get_name()
                                         : path_of_command(*command.get_parent()) + " " + command.get_name();
}

// Each word behind its length: words may hold anything.
Bytes packed(GivenWords const& words) {
  Bytes bytes;
  auto const put = [&](std::string const& word) {
    std::uint64_t const length = word.size();
    auto const head = std::as_bytes(std::span(&length, 1));
    auto const body = std::as_bytes(std::span(word));
    bytes.insert(bytes.end(), head.begin(), head.end());
    bytes.insert(bytes.end(), body.begin(), body.end());
  };
  for (auto const& [name, value] : words) put(name), put(value);
  return bytes;
}

GivenWords unpacked(Bytes const& bytes) {
  std::size_t at = 0;
  auto const take = [&] {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof length);
    at += sizeof length;
    std::string word(reinterpret_cast<char const*>(bytes.data() + at), length);
    at += length;
    return word;
  };
  GivenWords words;
  while (at < bytes.size()) {
    std::string name = take();
    words.emplace_back(std::move(name), take());
  }
  return words;
}

std::string const* value_in(GivenWords const& words, std::string const& name) {
  auto const found =
      std::find_if(words.begin(), words.end(), [&](auto const& one) { return one.first == name; });
  return found == words.end() ? nullptr : &found->second;
}

std::string said(std::string const& name, std::string const* value) {
  if (value == nullptr) return "no " + name;
  return value->empty() ? name : name + " " + *value;
}

// The first of `a` that `b` has not, or otherwise; empty: none.
std::string first_missing(GivenWords const& a, GivenWords const& b) {
  for (auto const& [name, value] : a) {
    std::string const* const other = value_in(b, name);
    if (other == nullptr || *other != value) return name;
  }
  return "";
}

}  // namespace

GivenWords given_words(CLI::App const& command) {
  constexpr std::string_view partition_file = "file:";
  GivenWords words = {{"the command", path_of_command(command)}};
  bool const solves = command.get_name() == "solve";  // also `bench solve`
  for (CLI::Option const* option : command.get_options()) {
    if (option->count() == 0) continue;
    std::string const name = option->get_name();
    if (solves && option->get_positional()) {
      words.emplace_back("the number of files", std::to_string(option->results().size()));
      continue;
    }
    std::string value;
    if (option->get_expected_max() == 0) {  // a flag, which says no word
      words.emplace_back(name, value);
      continue;
    }
    for (std::string const& word : option->results()) value += (value.empty() ? "" : " ") + word;
    if (name == "--partition" && value.starts_with(partition_file)) value = partition_file;
    words.emplace_back(name, value);
  }
  return words;
}

void require_equal_words(Group& group, GivenWords const& mine) {
  if (group.size() == 1) return;
  GivenWords const first = unpacked(group.broadcast(packed(mine), 0));
  group.together([&] {
    std::string name = first_missing(first, mine);
    if (name.empty()) name = first_missing(mine, first);
    if (name.empty()) return;
    throw Error(
        ErrorCode::usage,
        fmt::format("rank {} is given {}; rank 0 {} (ranks do the same or wait for each other in vain). Give "
                    "all ranks the same.",
                    group.rank(), said(name, value_in(mine, name)), said(name, value_in(first, name))));
  });
}

}  // namespace hostless
