// docs/options.md, which `hostless options` writes.
#include <fmt/format.h>

#include "hostless/solve/option_table.hpp"

namespace hostless {
namespace {

struct Section {
  OptionGroup group;
  char const* title;
};
constexpr Section sections[] = {{OptionGroup::method, "Method and run"},
                                {OptionGroup::ranks, "Ranks"},
                                {OptionGroup::work, "Where and with what"},
                                {OptionGroup::ends, "When it ends, and what is solved for"},
                                {OptionGroup::files, "Checkpoints"},
                                {OptionGroup::block, "Blocks"},
                                {OptionGroup::storage, "Storage"},
                                {OptionGroup::shares, "Who has which rows, and how ghosts travel"},
                                {OptionGroup::inner, "Functions, and what is for nobody to choose"}};

// A bar would end the cell.
std::string in_cell(std::string const& text) {
  std::string cell;
  for (char const letter : text) cell += letter == '|' ? std::string("\\|") : std::string(1, letter);
  return cell;
}

std::string cell_of(OptionFace const& face) {
  return face.name.empty() ? "no: " + in_cell(face.why_not) : "`" + face.name + "`";
}

std::string standard_of(Option const& option) {
  std::string const text = option.standard_at(Face::command), python = option.standard_at(Face::python);
  if (option.type == OptionType::flag) return text;
  if (text == python) return text.empty() ? "none" : text;
  return fmt::format("{}; Python: {}", text, python);
}

std::string values_of(Option const& option) {
  if (option.type == OptionType::job) return "of the whole job";
  std::string const text = allowed(option);
  return option.type == OptionType::word ? text.substr(std::string("one of ").size()) : text;
}

}  // namespace

std::string options_page() {
  std::string page =
      "# Options\n\nEvery option of a solve and of laying out its matrix, as the command, Python and C spell "
      "it. The page is written by\n`hostless options` from the table that all three take their options from "
      "([decision 0015](decisions/"
      "0015-options-by-one-table.md)): change\n"
      "[option_list.cpp](../src/solve/option_list.cpp), then `make options`.\n\nPython: keywords of "
      "`hostless.cg`; those \"of the matrix\" are of `hostless.Matrix`, the others of `Matrix.solve`. C: "
      "members of\n`hostless_options`. In JSON results `settings` has them by their first names. `hostless "
      "bench solve`, `bench halo`, `info`, `plan` and `predict` take those\nthat they have a use for. What "
      "is `yes or "
      "no` stands alone on a command line where its default is no (`--oversubscribe`), and has its word "
      "where "
      "that is yes\n(`--tune no`).\n";
  for (Section const& section : sections) {
    page += fmt::format(
        "\n## {}\n\n| option | command | Python | C | values | default | meaning "
        "|\n|---|---|---|---|---|---|---|\n",
        section.title);
    for (Option const& one : all_options()) {
      if (one.group != section.group) continue;
      page += fmt::format("| {} | {} | {} | {} | {} | {} | {}{} |\n", one.name,
                          cell_of(one.at(Face::command)), cell_of(one.at(Face::python)),
                          cell_of(one.at(Face::c)), in_cell(values_of(one)), in_cell(standard_of(one)),
                          in_cell(one.meaning), one.of_layout ? "; of the matrix" : "");
    }
  }
  return page;
}

}  // namespace hostless
