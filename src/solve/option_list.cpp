// The options. One that is added here stands in all faces, unless it says why not.
#include "solve/option_list.hpp"

#include <fmt/format.h>

#include <cstring>
#include <type_traits>

#include "base/processors.hpp"
#include "hostless/solve/option_table.hpp"
#include "solve/methods/chebyshev_numbers.hpp"
#include "solve/methods/method_facts.hpp"

namespace hostless {
namespace {

constexpr int longest_int = std::numeric_limits<int>::max();

// An option of one member, which `At` finds: what it writes there and reads.
template <class At>
struct Member {
  using Type = std::remove_cvref_t<decltype(At{}(std::declval<Choices&>()))>;
  static void write(Choices& choices, OptionValue const& value) {
    if constexpr (std::is_same_v<Type, bool>) {
      At{}(choices) = std::get<bool>(value);
    } else if constexpr (std::is_integral_v<Type>) {
      At{}(choices) = static_cast<Type>(std::get<std::int64_t>(value));
    } else {
      At{}(choices) = std::get<std::conditional_t<std::is_same_v<Type, double>, double, std::string>>(value);
    }
  }
  static OptionValue read(Choices const& choices) {
    Type const& now = At{}(const_cast<Choices&>(choices));  // is only read
    if constexpr (std::is_integral_v<Type> && !std::is_same_v<Type, bool>) {
      return static_cast<std::int64_t>(now);
    } else {
      return now;
    }
  }
};

// In all faces by its name: --its-name, its_name, options.its_name.
Option named(char const* name, OptionType type, char const* meaning) {
  Option one;
  one.name = name;
  one.type = type;
  one.meaning = meaning;
  one.at(Face::command).name = "--" + one.name;
  for (char& letter : one.at(Face::command).name)
    if (letter == '_') letter = '-';
  one.at(Face::python).name = one.at(Face::c).name = one.name;
  return one;
}

template <class At>
Option of_member(char const* name, OptionType type, char const* meaning, At) {
  Option one = named(name, type, meaning);
  one.write = Member<At>::write;
  one.read = Member<At>::read;
  return one;
}

// Of an enumeration, whose words `name` has and `From` understands.
template <auto From, class At>
Option of_words(char const* name_of_it, char const* meaning, At,
                std::vector<std::remove_cvref_t<decltype(At{}(std::declval<Choices&>()))>> const& all) {
  Option one = named(name_of_it, OptionType::word, meaning);
  for (auto const kind : all) one.words.emplace_back(name(kind));
  one.write = [](Choices& choices, OptionValue const& value) {
    At{}(choices) = From(std::get<std::string>(value).c_str());
  };
  one.read = [](Choices const& choices) -> OptionValue {
    return std::string(name(At{}(const_cast<Choices&>(choices))));
  };
  return one;
}

Option between(Option one, std::int64_t least, std::int64_t most = longest_int) {
  one.least = least;
  one.most = most;
  return one;
}
Option above(Option one, double low) {
  one.low = low;
  one.above_low = true;
  return one;
}
Option of_words(Option one, std::vector<std::string> words) {
  one.words = std::move(words);
  return one;
}
Option standing(Option one, char const* standard) {
  one.standard = standard;
  return one;
}
Option spelled_as(Option one, Face where, char const* name) {
  one.at(where).name = name;
  return one;
}
Option without(Option one, Face where, char const* why_not) {
  one.at(where) = {"", why_not, ""};
  return one;
}
Option of_both(Option one) {
  one.of_layout = true;
  return one;
}

using List = std::vector<Option>;

void add(List& list, OptionGroup group, std::vector<Option> more) {
  for (Option& one : more) {
    one.group = group;
    list.push_back(std::move(one));
  }
}
void add_of_layout(List& list, OptionGroup group, std::vector<Option> more) {
  for (Option& one : more) {
    one.of_layout = true;
    one.of_solve = false;
  }
  add(list, group, std::move(more));
}

#define HOSTLESS_AT(member) \
  [](Choices & c) -> auto& { return c.member; }

std::vector<GpuTransport> known_gpu_transports() {
  std::vector<GpuTransport> all = {GpuTransport::automatic};
  for (GpuTransportFacts const& facts : gpu_transports()) all.push_back(facts.transport);
  return all;
}

void add_method(List& list) {
  Option run = named("run", OptionType::word,
                     "Who pulls the trigger: host, persistent or graph; with GPUs auto, persistent, graph or "
                     "stream");
  run.words = {"host", "persistent", "graph", "stream", "auto"};
  run.standard = "host; with GPUs auto";
  run.write = [](Choices& c, OptionValue const& value) {
    c.solve.run.kind = run_kind_from(std::get<std::string>(value).c_str());
    c.has_run = true;
  };
  run.read = [](Choices const& c) -> OptionValue { return std::string(name(c.run_kind())); };
  Option profile =
      of_member("profile", OptionType::file, "Write a Chrome trace of the first iterations on the GPU",
                HOSTLESS_AT(solve.run.profile_file));
  std::vector<Method> const known(methods().begin(), methods().end());
  add(list, OptionGroup::method,
      {of_words<method_from>("method", "How the system is solved", HOSTLESS_AT(solve.method), known), run,
       of_words<gpu_transport_from>("gpu_transport",
                                    "What carries between GPUs; auto is peer, their own memory "
                                    "(docs/howto/use-a-gpu.md says what each needs)",
                                    HOSTLESS_AT(solve.run.gpu_transport), known_gpu_transports()),
       of_words<host_waits_from>("host_waits",
                                 "What the host waits for in the stream run: what it needs, the end of every "
                                 "iteration, or every sum, as programs do whose CPU is in charge",
                                 HOSTLESS_AT(solve.run.host_waits),
                                 {HostWaits::when_needed, HostWaits::every_iteration, HostWaits::every_sum}),
       of_member("tune", OptionType::flag,
                 "Run auto measures the runs of one GPU once a matrix and remembers, else a model chooses",
                 HOSTLESS_AT(solve.run.tune)),
       spelled_as(profile, Face::c, "profile_file"),
       above(of_member("longest_launch_s", OptionType::real,
                       "Seconds after which a persistent kernel returns, so that what else waits for the GPU "
                       "waits no longer",
                       HOSTLESS_AT(solve.run.longest_launch_s)),
             0)});
}

void add_ranks(List& list) {
  char const* const of_c =
      "the transport that the matrix is made on: hostless_run_threads, hostless_open_mpi, "
      "hostless_open_composite";
  Option ranks = without(named("ranks", OptionType::job, "Ranks that share the matrix"), Face::c, of_c);
  ranks.standard = "1, with GPUs as many, or those of mpirun";
  Option transport = without(named("transport", OptionType::job,
                                   "What the ranks are: threads, processes of this machine, mpi, or "
                                   "composite (mpi, and shared memory inside a node)"),
                             Face::c, of_c);
  transport.standard = "threads; mpi under mpirun or with a communicator";
  add_of_layout(list, OptionGroup::ranks, {ranks, transport});
}

void add_work(List& list) {
  Option threads = between(named("lanes", OptionType::whole,
                                 "Threads of a rank, for the persistent run of the "
                                 "processor"),
                           1, most_workers);
  threads.write = [](Choices& c, OptionValue const& value) {
    c.solve.run.threads = static_cast<int>(std::get<std::int64_t>(value));
    c.has_threads = true;
  };
  threads.read = [](Choices const& c) -> OptionValue { return std::int64_t{c.solve.run.threads}; };
  threads.standard = "1; the command takes 2 with run persistent";
  Option generate_on =
      named("generate_on", OptionType::word,
            "host, or gpu: the GPU makes the entries of the generated matrix, which the host "
            "never has");
  generate_on.words = {"host", "gpu"};
  generate_on.of_solve = false;
  generate_on.of_layout = true;
  generate_on.write = [](Choices& c, OptionValue const& value) {
    c.generate_on_gpu = std::get<std::string>(value) == "gpu";
  };
  generate_on.read = [](Choices const& c) -> OptionValue {
    return std::string(c.generate_on_gpu ? "gpu" : "host");
  };
  Option columns = between(
      of_member(
          "rhs_columns", OptionType::whole,
          "Right-hand sides that are solved for at once, each to the bits that it has alone; Python: at most "
          "so many of b's columns",
          HOSTLESS_AT(solve.rhs_columns)),
      1, most_columns);
  columns.at(Face::python).standard = "as many as b has, at most 8";
  static_assert(most_columns == 8);
  char const* const brings = "the caller brings the rows, in whatever memory they lie";
  using Kind = PreconditionerKind;
  add(list, OptionGroup::work,
      {of_both(between(of_member("gpus", OptionType::whole,
                                 "GPUs of each machine to run on, each with a rank; 0: the processor",
                                 HOSTLESS_AT(solve.run.gpus)),
                       0)),
       of_both(of_member("oversubscribe", OptionType::flag, "Several ranks may share a GPU: to test, slow",
                         HOSTLESS_AT(solve.run.oversubscribe))),
       without(without(generate_on, Face::python, brings), Face::c, brings), of_both(threads),
       of_words<preconditioner_from>("preconditioner", "What approximates the inverse of A",
                                     HOSTLESS_AT(solve.preconditioner),
                                     {Kind::none, Kind::jacobi, Kind::block_jacobi, Kind::chebyshev}),
       between(of_member("chebyshev_degree", OptionType::whole,
                         "Of the polynomial of preconditioner chebyshev: products with A in one application",
                         HOSTLESS_AT(solve.chebyshev.degree)),
               1, most_chebyshev_degree),
       above(of_member("chebyshev_ratio", OptionType::real,
                       "It is small where eigenvalues of M A lie between upper / ratio and upper",
                       HOSTLESS_AT(solve.chebyshev.ratio)),
             1),
       of_member("chebyshev_upper", OptionType::real,
                 "Bound of the eigenvalues of M A; 0: 1.1 times what a Lanczos run of 12 steps finds",
                 HOSTLESS_AT(solve.chebyshev.upper)),
       of_words<preconditioner_from>("chebyshev_inner", "M, which the polynomial is over",
                                     HOSTLESS_AT(solve.chebyshev.inner),
                                     {Kind::none, Kind::jacobi, Kind::block_jacobi}),
       of_words<matrix_precision_from>(
           "matrix_precision",
           "fp64, or fp32: iterations multiply with the rounded matrix, true residuals with the exact one",
           HOSTLESS_AT(solve.matrix_precision), {MatrixPrecision::fp64, MatrixPrecision::fp32}),
       of_words<reduction_from>(
           "reduction",
           "ordered (the same bits on every transport) or fast (the library's all-reduce; on a GPU sums in "
           "whatever order is quickest)",
           HOSTLESS_AT(solve.reduction), {Reduction::ordered, Reduction::fast}),
       columns});
}

// "of the method: 1e+10, bicgstab 1e+30".
std::string divergence_limits() {
  std::string text = fmt::format("of the method: {:.0e}", symmetric_divergence_limit);
  for (MethodFacts const& one : method_table())
    if (one.divergence_limit != symmetric_divergence_limit)
      text += fmt::format(", {} {:.0e}", one.name, one.divergence_limit);
  return text;
}

void add_ends(List& list) {
  Option rtol = of_member("rtol", OptionType::real, "Ends when |b - A x| <= max(rtol |b|, atol)",
                          HOSTLESS_AT(solve.rtol));
  Option atol = of_member("atol", OptionType::real, "See rtol", HOSTLESS_AT(solve.atol));
  rtol.high = atol.high = std::numeric_limits<double>::infinity();  // as scipy has them
  rtol.at(Face::python).standard = "1e-05";                         // scipy's
  Option iterations = between(
      of_member("max_iterations", OptionType::whole, "Ends after so many", HOSTLESS_AT(solve.max_iterations)),
      0, std::numeric_limits<std::int64_t>::max());
  iterations.standard = "10 times the rows";
  Option growth =
      of_member("divergence_limit", OptionType::real,
                "Ends as diverged where |b - A x| grows beyond so many times the first, 1 to 1e100",
                HOSTLESS_AT(solve.divergence_limit));
  growth.low = 1;
  growth.high = 1e100;
  growth.standard = divergence_limits();
  Option limit = standing(above(of_member("time_limit_s", OptionType::real,
                                          "Seconds after which the solve is aborted, with the x that it has",
                                          HOSTLESS_AT(solve.time_limit_s)),
                                0),
                          "none");
  limit = spelled_as(spelled_as(limit, Face::command, "--time-limit"), Face::python, "time_limit");
  Option null_space =
      named("null_space", OptionType::word,
            "none, or constant (A 1 = 0, as with pure Neumann boundaries): b, the guess and x "
            "lose their means");
  null_space.words = {"none", "constant"};
  null_space.at(Face::c) = {"null_space_constant", "", "", true};
  null_space.write = [](Choices& c, OptionValue const& value) {
    c.solve.null_space_constant = std::get<std::string>(value) == "constant";
  };
  null_space.read = [](Choices const& c) -> OptionValue {
    return std::string(c.solve.null_space_constant ? "constant" : "none");
  };
  add(list, OptionGroup::ends,
      {between(of_member("check_interval", OptionType::whole, "Iterations between two looks at the gates",
                         HOSTLESS_AT(solve.run.check_interval)),
               1, longest_check_interval),
       rtol, atol, spelled_as(iterations, Face::python, "maxiter"), growth, limit, null_space});
  char const* const of_command = "readers compare every entry with its mirror, and generators make both";
  Option check =
      without(of_member("check_symmetry", OptionType::flag,
                        "A matrix that is visibly not symmetric is refused: its entries are compared "
                        "with their mirrors, or one sample x' A y with y' A x",
                        HOSTLESS_AT(solve.check_symmetry)),
              Face::command, of_command);
  Option tolerance = of_member("symmetry_tolerance", OptionType::real,
                               "By how much the two may differ, as a share of their size",
                               HOSTLESS_AT(solve.symmetry_tolerance));
  tolerance.at(Face::python).standard = "1e-09; 1e-05 where A is float32";
  add(list, OptionGroup::ends, {of_both(check), of_both(tolerance)});
}

void add_files(List& list) {
  Option file =
      of_member("checkpoint_file", OptionType::file, "Write a checkpoint file every so many iterations",
                HOSTLESS_AT(solve.checkpoint_file));
  file = spelled_as(spelled_as(file, Face::command, "--checkpoint"), Face::python, "checkpoint");
  Option every = between(of_member("checkpoint_every", OptionType::whole, "Iterations between checkpoints",
                                   HOSTLESS_AT(solve.checkpoint_every)),
                         1, std::numeric_limits<std::int64_t>::max());
  Option resume =
      of_member("resume_file", OptionType::file, "Go on from a checkpoint of the same problem, bit for bit",
                HOSTLESS_AT(solve.resume_file));
  resume = spelled_as(spelled_as(resume, Face::command, "--resume"), Face::python, "resume");
  add(list, OptionGroup::files, {file, standing(every, "none"), resume});
}

void add_layout(List& list) {
  add_of_layout(
      list, OptionGroup::block,
      {spelled_as(of_words(between(of_member("block_size", OptionType::whole,
                                             "Rows of a block: 1, 2, 3, 4 or 6; 0 finds it in the matrix",
                                             HOSTLESS_AT(layout.block)),
                                   0, 6),
                           {"0", "1", "2", "3", "4", "6"}),
                  Face::python, "block")});
  add_of_layout(
      list, OptionGroup::storage,
      {of_words(
           of_member(
               "format", OptionType::word,
               "How the matrix is stored. With GPUs auto, diagonals, diagonals-full, sell or csr, with "
               "reduction fast also merge or vendor; else auto, csr, bsr, bsr2, bsr3, bsr4, bsr6 or sell",
               HOSTLESS_AT(layout.format)),
           {"auto", "csr", "bsr", "bsr2", "bsr3", "bsr4", "bsr6", "sell", "diagonals", "diagonals-full",
            "merge", "vendor"}),
       of_words(of_member("columns", OptionType::word, "Bits of column offsets", HOSTLESS_AT(layout.columns)),
                {"auto", "16", "32"}),
       between(of_member("setup_threads", OptionType::whole,
                         "Threads of a rank that lay its rows out; 0: as many as the system lets it use",
                         HOSTLESS_AT(layout.setup_threads)),
               0, most_workers)});
  Option partition =
      of_words(of_member("partition", OptionType::word,
                         "Who gets which rows: auto, contiguous, metis, or file:PATH (one part number a row)",
                         HOSTLESS_AT(layout.partition)),
               {"auto", "contiguous", "metis", "file:PATH"});
  partition.prefix = "file:";
  add_of_layout(
      list, OptionGroup::shares,
      {partition,
       between(
           of_member("slices", OptionType::whole,
                     "Slices of a rank; part of the plan, so another number gives other bits; 0: automatic",
                     HOSTLESS_AT(layout.slices)),
           0),
       of_words(
           between(
               of_member("row_lanes", OptionType::whole,
                         "Accumulators of a row, 1, 2, 4, 8, 16 or 32: long rows are then shared by as many "
                         "threads of a GPU; part of the plan too",
                         HOSTLESS_AT(layout.threads_per_row)),
               1, Tiling::most_threads_per_row),
           {"1", "2", "4", "8", "16", "32"}),
       of_words(of_member("route", OptionType::word,
                          "How ghosts travel: direct, two_step, three_step, split, leader, or auto "
                          "(three_step between nodes)",
                          HOSTLESS_AT(layout.route)),
                {"auto", "direct", "two_step", "three_step", "split", "leader"}),
       between(of_member("ranks_per_node", OptionType::whole, "Declares the nodes; 0 finds them by host name",
                         HOSTLESS_AT(layout.ranks_per_node)),
               0),
       between(
           of_member("seed", OptionType::whole,
                     "Of METIS; of the command also of generated coefficients and the manufactured solution",
                     HOSTLESS_AT(seed)),
           0, std::numeric_limits<std::int64_t>::max())});
}

// Functions, and what is no option of a face yet or ever.
void add_inner(List& list) {
  char const* const of_a_program = "a function is a program's";
  Option callback =
      without(named("callback", OptionType::function,
                    "Is called after each iteration; on a GPU now and then, and not from Python"),
              Face::command, "it shows the progress itself");
  Option preconditioner = named("preconditioner_function", OptionType::function, "z = M r as a function");
  preconditioner = without(spelled_as(preconditioner, Face::python, "M"), Face::command, of_a_program);
  preconditioner = without(preconditioner, Face::c,
                           "vectors of the solver are in its own order of rows, which C has no calls for");
  add(list, OptionGroup::inner, {standing(callback, "none"), standing(preconditioner, "none")});
  char const* const scaled =
      "HOSTLESS_DEADLINE_SCALE scales the deadlines of a job, the same for all of its ranks";
  for (auto const& [name, meaning, of_first] :
       {std::tuple{"first_deadline_s", "Seconds that a rank may be silent in the first wait", true},
        std::tuple{"later_deadline_s", "The same in every later wait", false}}) {
    Option one = of_first ? of_member(name, OptionType::real, meaning, HOSTLESS_AT(solve.limits.first_s))
                          : of_member(name, OptionType::real, meaning, HOSTLESS_AT(solve.limits.later_s));
    for (Face const face : {Face::command, Face::python, Face::c}) one = without(one, face, scaled);
    add(list, OptionGroup::inner, {one});
  }
}

#undef HOSTLESS_AT

}  // namespace

std::vector<Option> list_options() {
  List list;
  add_method(list);
  add_ranks(list);
  add_work(list);
  add_ends(list);
  add_files(list);
  add_layout(list);
  add_inner(list);
  return list;
}

}  // namespace hostless
