#pragma once
// Options by one table: each stands here once, and the command line, Python, C, the JSON record and
// docs/options.md derive from it.

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "hostless/solve/layout_words.hpp"
#include "hostless/solve/solver.hpp"

namespace hostless {

/// What options are set on. Default-constructed it has every default.
struct Choices {
  SolveOptions solve;  ///< with MatrixOptions::gpus and the threads of FormatRequest as `run` has them
  LayoutWords layout;
  std::uint64_t seed = 1;
  bool generate_on_gpu = false;
  bool has_run = false, has_threads = false;  ///< they follow from the others where nobody chose

  /// The run that was chosen, or the one that follows: `automatic` with GPUs, else `host`.
  RunKind run_kind() const;
  /// Errors  usage  as LayoutWords::parse
  MatrixOptions matrix_options() const;
};

/// Who takes options, each with a spelling of its own.
enum class Face : std::uint8_t { command, python, c };
constexpr int faces = 3;

/// What values it has.
enum class OptionType : std::uint8_t {
  word,   ///< one of Option::words, or free where there are none
  file,   ///< a name
  whole,  ///< a number from `least` to `most`
  real,   ///< a number from `low` to `high`
  flag,
  function,  ///< whoever takes it has a type of its own for it
  job        ///< who the ranks are: said before there is anything to set
};

/// Under which heading people find it.
enum class OptionGroup : std::uint8_t { method, ranks, work, ends, files, block, storage, shares, inner };

using OptionValue = std::variant<std::string, std::int64_t, double, bool>;

/// How a face spells an option, or why it has none.
struct OptionFace {
  std::string name;        ///< empty: it has none
  std::string why_not;     ///< then; never empty
  std::string standard;    ///< the default where it is another one than that of the struct, in words
  bool is_number = false;  ///< of a word: which of Option::words it is, from 0 on, stands for it
};

/// One row of the table.
struct Option {
  std::string name;  ///< in the JSON record, and what the faces' names come from
  OptionType type = OptionType::word;
  OptionGroup group = OptionGroup::method;
  std::string meaning;  ///< one sentence or less, without a full stop
  bool of_solve = true, of_layout = false;
  OptionFace face[faces];
  std::vector<std::string> words;  ///< that it can be
  std::string prefix;              ///< or anything that begins like this
  std::int64_t least = 0, most = std::numeric_limits<std::int64_t>::max();
  double low = 0, high = std::numeric_limits<double>::max();
  bool above_low = false;  ///< low itself is none
  std::string standard;    ///< the default in words, where the struct's says nothing
  void (*write)(Choices&, OptionValue const&) = nullptr;  ///< null: function or job
  OptionValue (*read)(Choices const&) = nullptr;

  OptionFace const& at(Face where) const { return face[static_cast<int>(where)]; }
  OptionFace& at(Face where) { return face[static_cast<int>(where)]; }
  /// What a default-constructed struct has.
  OptionValue standard_value() const { return read(Choices()); }
  /// What the face takes where nothing is said, in words; may be empty: nothing.
  std::string standard_at(Face where) const;
};

/// All of them, in the order in which people are told of them.
std::span<Option const> all_options();
/// By Option::name; null: there is none.
Option const* find_option(std::string_view name);

/// 1e-08, 3, yes, cg: as JSON records and --help have it.
std::string words_of(OptionValue const& value);
/// `--rtol 3`, `rtol=3`, `options.rtol: 3`.
std::string spelled(Face where, Option const& option, OptionValue const& value);
/// A text that names the command's options, with the face's names: "(--rtol)", "Use --gpus 1." and "--run graph" become
/// "(rtol)", "Use gpus=1." and "run='graph'", or "(options.rtol)", "Use options.gpus: 1." and "options.run: "graph"".
/// Those that the face has not, and values that the option cannot have, stay.
std::string respelled(Face where, std::string text);
/// Of the type that the option has.
bool is_allowed(Option const& option, OptionValue const& value);
/// What is allowed: "one of a, b", "a whole number from 1 to 7", "a number above 0".
std::string allowed(Option const& option);
/// Errors  usage  a value that the option cannot have, named as the face spells it
void set_option(Choices& choices, Option const& option, OptionValue const& value, Face where);

/// Options of the matrix alone, with the values that they have: names and values of `settings` in JSON.
std::vector<std::pair<std::string, std::string>> layout_settings(Choices const& choices);

/// docs/options.md.
std::string options_page();

}  // namespace hostless
