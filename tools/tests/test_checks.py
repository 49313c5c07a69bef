"""Each check is shown something good and something bad; a check that cannot fail checks nothing."""

import contextlib
import io
import json
import unittest

from tests.checkout import checkout, run

import check_clones
import check_docs
import check_format
import check_layers
import check_style
import check_vendor
import count_tests
import plot_convergence


class Layers(unittest.TestCase):
    def test_follows_the_arrows(self):
        code, printed = run(check_layers, {
            "include/hostless/base/a.hpp": "",
            "include/hostless/plan/p.hpp": '#include "hostless/base/a.hpp"\n#include <vector>\n',
            "src/solve/s.cpp": '#include "hostless/plan/p.hpp"\n#include "s.impl.hpp"\n#include "solve/s.impl.hpp"\n',
            "src/solve/s.impl.hpp": "",
            "apps/hostless/main.cpp": '#include <hostless/solve/s.hpp>\n#include "hostless/hostless.hpp"\n'})
        self.assertEqual((code, printed), (0, "check_layers: 5 files, ok\n"))

    def test_names_the_line_against_an_arrow(self):
        code, printed = run(check_layers, {
            "include/hostless/base/a.hpp": "#pragma once\n#  include <hostless/plan/p.hpp>\n"})
        self.assertEqual(code, 1)
        self.assertIn("include/hostless/base/a.hpp:2: base includes plan", printed)

    def test_plan_must_not_see_a_group(self):
        code, _ = run(check_layers, {"src/plan/p.cpp": '#include "hostless/transport/group.hpp"\n'})
        self.assertEqual(code, 1)

    def test_headers_of_src_follow_the_arrows_too(self):
        down = {"src/run/engine.hpp": "", "src/solve/s.cpp": '#include "run/engine.hpp"\n'}
        self.assertEqual(run(check_layers, down)[0], 0)
        code, printed = run(check_layers, {"src/solve/s.hpp": "", "src/run/r.cpp": '#include "solve/s.hpp"\n'})
        self.assertEqual(code, 1)
        self.assertIn("src/run/r.cpp:1: run includes solve", printed)

    def test_an_include_by_a_way_round_is_one(self):
        files = {"src/exchange/x.hpp": "", "src/solve/deep/y.hpp": "", "src/solve/y.cpp": '#include "deep/../deep/y.hpp"\n#include "../exchange/x.hpp"\n'}
        self.assertEqual(run(check_layers, files)[0], 0)
        code, printed = run(check_layers, {"src/exchange/x.hpp": "", "src/transport/t.cpp": '#include "../exchange/x.hpp"\n'})
        self.assertEqual(code, 1)
        self.assertIn("src/transport/t.cpp:1: transport includes exchange (../exchange/x.hpp)", printed)

    def test_nothing_below_includes_the_faces(self):
        code, _ = run(check_layers, {"src/solve/s.cpp": '#include "hostless/hostless.hpp"\n'})
        self.assertEqual(code, 1)

    def test_an_unknown_layer_is_no_layer(self):
        code, printed = run(check_layers, {"src/utils/u.cpp": "\n"})
        self.assertEqual(code, 1)
        self.assertIn("'utils' is not in the table", printed)

    def test_binding_programs_and_tests_are_looked_at(self):
        lower = {"src/run/engine.hpp": "", "src/solve/s.hpp": ""}
        for path in ("python/binding/b.cpp", "bench/b.cpp", "tests/contract/c.cpp", "tests/unit/solve/s_test.cpp"):
            self.assertEqual(run(check_layers, {**lower, path: '#include "run/engine.hpp"\n'})[0], 0, path)
        code, printed = run(check_layers, {**lower, "tests/unit/run/r_test.cpp": '#include "solve/s.hpp"\n'})
        self.assertEqual(code, 1)
        self.assertIn("tests/unit/run/r_test.cpp:1: run includes solve", printed)
        code, printed = run(check_layers, {"python/binding/b.hpp": "", "src/solve/s.cpp": '#include "hostless/apps/a.hpp"\n'})
        self.assertIn("solve includes apps", printed)

    def test_headers_of_libraries_have_their_folders(self):
        self.assertEqual(run(check_layers, {"src/transport/mpi/w.cpp": "#include <mpi.h>\n"})[0], 0)
        for path, header in (("src/transport/group.cpp", "mpi.h"), ("src/solve/s.cpp", "hwloc.h"), ("apps/hostless/a.cpp", "nanobind/nanobind.h")):
            code, printed = run(check_layers, {path: f"#include <{header}>\n"})
            self.assertEqual(code, 1, path)
            self.assertIn(f"{path}:1: {header} is included outside", printed)

    def test_what_is_linked_follows_the_arrows(self):
        layer = "hostless_layer(run SOURCES engine.cpp\n  LAYERS base {}\n  LIBRARIES solve::x)"
        self.assertEqual(run(check_layers, {"src/run/CMakeLists.txt": layer.format("plan exchange")})[0], 0)
        code, printed = run(check_layers, {"src/run/CMakeLists.txt": layer.format("plan solve")})
        self.assertEqual(code, 1)
        self.assertIn("src/run/CMakeLists.txt: run links solve", printed)
        for path, text in (("src/run/CMakeLists.txt", "target_link_libraries(hostless_run\n  PRIVATE {})"),
                           ("src/run/CMakeLists.txt", "hostless_layer(run SOURCES a.cpp LIBRARIES {})"),
                           ("src/run/CMakeLists.txt", "target_link_libraries(a_plugin PUBLIC fmt::fmt {})"),
                           ("src/CMakeLists.txt", "target_link_libraries(hostless_run PRIVATE {})"),
                           ("tests/unit/run/CMakeLists.txt", "hostless_test(run SOURCES t.cpp LIBRARIES {})")):
            for good in ("hostless_run", "hostless_flags hostless_exchange"):
                self.assertEqual(run(check_layers, {path: text.format(good) + "  # not hostless_solve\n"})[0], 0, text)
            code, printed = run(check_layers, {path: text.format("hostless_plan hostless_solve")})
            self.assertEqual(code, 1, text)
            self.assertIn(f"{path}: run links solve, against", printed)

    def test_what_is_imported_follows_the_arrows(self):
        good = {"python/hostless/_rows.py": "import numpy\nfrom .errors import warn\n", "python/hostless/_matrix.py": "from . import _core\n",
                "python/hostless/report/page.py": "from . import figures\nfrom .. import plots\n", "bench/b.py": "import hostless\n"}
        self.assertEqual(run(check_layers, good)[0], 0)
        for path, line, module in (("python/hostless/_rows.py", "from ._matrix import Matrix", "_matrix"),
                                   ("python/hostless/plots.py", "def f():\n    from . import _core", "_core"),
                                   ("python/hostless/report/page.py", "from .._result import Result", "_result"),
                                   ("bench/b.py", "import hostless._core", "_core")):
            code, printed = run(check_layers, {path: line + "\n"})
            self.assertEqual(code, 1, path)
            self.assertIn(f"imports hostless.{module}, against the arrows", printed)
        self.assertIn("not in the table", run(check_layers, {"python/hostless/_new.py": ""})[1])

    def test_a_solver_names_no_transport(self):
        for line in ('#include "transport/peer/epochs.hpp"', "auto t = GpuTransport::nccl;", 'refuse("not by NCCL");'):
            code, printed = run(check_layers, {"src/transport/peer/epochs.hpp": "", "src/solve/s.cpp": line + "\n"})
            self.assertEqual(code, 1, line)
            self.assertIn("src/solve/s.cpp:1: names a transport", printed)
        below = {"src/transport/memory/m.hpp": "", "src/transport/t.cpp": "auto t = GpuTransport::nccl;\n",
                 "src/solve/s.cpp": '#include "transport/memory/m.hpp"\nauto t = GpuTransport::automatic;\n'}
        self.assertEqual(run(check_layers, below)[0], 0)

    def test_the_table_has_no_cycle(self):
        for layer, seen in check_layers.ALLOWED.items():
            for lower in seen:
                self.assertNotIn(layer, check_layers.ALLOWED[lower], f"{layer} and {lower} see each other")


class Style(unittest.TestCase):
    def problems(self, name, line):
        return check_style.problems_of(name, line.splitlines())

    def test_good_lines_pass(self):
        for line in ("int x = 0;  // why it is 0", "MPI_Iallgather(a, b);", "#if defined(__x86_64__)",
                     'puts("MPI_Wait(");', "MPI_Barrier(c);  // bounded: the watchdog thread ends the process",
                     "exchange.wait(stage, deadline);"):
            self.assertEqual(self.problems("src/run/a.cpp", line), [], line)

    def test_bad_lines_fail(self):
        for line in ("// TO" + "DO: later", "#if defined(__CUDACC__)", "#elif __HIPCC__", "std::barrier b(3);",
                     "  MPI_Waitall(n, r, s);", "PMPI_Barrier(c);", "MPI_Wait (r, s);", "MPI_Allreduce(a, b);",
                     "std::condition_variable ready;", "word.wait(0, std::memory_order_acquire);",
                     'open("/home/somebody/A.mtx");', "MPI_Barrier(c);  // bounded:",
                     "// from " + "py" + "pi.org"):
            self.assertEqual(len(self.problems("src/run/a.cpp", line)), 1, line)

    SYSTEM = "#include <unistd.h>\n"

    def test_every_spelling_of_waiting(self):
        for line in ("HOSTLESS_GPU(StreamSynchronize)(stream);", "check(HOSTLESS_GPU(DeviceSynchronize)(), what);",
                     "cudaEventSynchronize(e);", "thread.join();", "thread_->join();", "waitpid(child, &status, 0);",
                     "wait4(-1, &s, 0, &usage);", "std::system(line);", "FILE* f = popen(line, mode);",
                     "::open(path, O_RDONLY);", "::read(file, to, 8);", "::flock(file, LOCK_EX);",
                     "fcntl(f, F_SETLKW, &lock);", "std::ifstream file(path);", "std::fopen(path, mode);"):
            for name in ("src/files/a.cpp", "apps/hostless/a.cpp", "python/binding/a.cpp", "bench/a.cpp", "include/a.hpp"):
                self.assertEqual(len(self.problems(name, line)), 1, f"{name}: {line}")
                self.assertEqual(self.problems(name, line + "  // bounded: a reason"), [])
                self.assertEqual(self.problems(name, "// bounded: a reason\n" + line), [])
                self.assertEqual(len(self.problems(name, line + "  // bounded:")), 1)
                self.assertEqual(len(self.problems(name, "x();  // bounded: of another line\n" + line)), 1)

    def test_the_systems_calls_without_their_colons(self):
        for line in ("poll(&one, 1, -1);", "select(n, &r, 0, 0, 0);", "epoll_wait(e, all, 8, -1);", "n = read(f, to, 8);",
                     "recv(s, to, 8, 0);", "accept(door, 0, 0);", "while (connect(s, to, n) != 0) {", "int f = open(path, 0);",
                     "flock(file, LOCK_EX);"):
            self.assertEqual(len(self.problems("src/files/a.cpp", self.SYSTEM + line)), 1, line)
            self.assertEqual(self.problems("src/plan/a.cpp", line), [], f"a function of this project: {line}")

    def test_what_only_looks_or_is_a_member_waits_for_nothing(self):
        for line in ("waitpid(child, &status, WNOHANG);", "file.open(path);", "socket->connect(there);", "Text::open(path);",
                     "text.read(8);", "std::string joined = join(words);", "ready(poll_ms);", "// thread.join();"):
            self.assertEqual(self.problems("src/files/a.cpp", self.SYSTEM + line), [], line)

    def test_waits_are_a_matter_of_the_product(self):
        self.assertEqual(self.problems("tests/unit/run/a_test.cpp", "std::barrier b(3);"), [])

    def test_the_vendor_files_may_ask(self):
        for name in ("include/hostless/base/host_device.hpp", "src/run/gpu/vendor_product.gpu.cpp"):
            self.assertEqual(self.problems(name, "#if defined(__CUDACC__)"), [])
        self.assertEqual(len(self.problems("src/solve/gpu/library.gpu.cpp", "#if defined(__CUDACC__)")), 1)

    def test_old_words_are_refused_as_identifiers(self):
        for line in ("int lane = 0;", "on_lanes(engine);", "class LaneBarrier {", "meeting.meet(3);", "std::unique_ptr<Carrier> carrier_;",
                     "HostCarriage carriage;", "bool is_carried();", "Word word{};", "int first_leaf = leaves[k];", "std::int64_t place_of(int item);",
                     "struct Places {};", "state.best_truth = 1;", "Judge{}(state);", "HOSTLESS_ANYWHERE void f();", "Reach reach;", "Free free;",
                     "RowSurveyor surveyor;", "run_crew(3);", "Desk desk_;", "Seat seat;", "p = forming(q);", "shows(r);", "Kept kept;",
                     "double const* inverse;", "Offload gpu;"):
            for name in ("src/plan/a.cpp", "include/hostless/solve/a.hpp", "tests/unit/plan/a_test.cpp", "apps/hostless/a.cpp"):
                found = self.problems(name, line)
                self.assertTrue(found and all("old word (docs/glossary.md). Say " in one for one in found), f"{name}: {line}: {found}")

    def test_old_words_where_they_mean_something_else(self):
        for name, line in (("src/run/gpu/a.gpu.hpp", "int lane = threadIdx.x % 32;"), ("src/operate/a.cpp", "int lane = 0;"),
                           ("include/hostless/hostless.h", "int lanes;"), ("src/plan/a.cpp", "// a lane, a meeting and a leaf"),
                           ("src/plan/a.cpp", 'fail("lanes", "leaves");'), ("src/plan/a.cpp", "level.in_place = true;"),
                           ("src/plan/a.cpp", "all.emplace_back(replaced);"), ("src/plan/a.cpp", "prepare_in_place();"),
                           ("tests/unit/plan/a_test.cpp", "TEST(File, AFailureLeavesTheOldOne) {"), ("src/plan/a.cpp", "int plane = planes;")):
            self.assertEqual(self.problems(name, line), [], f"{name}: {line}")

    def test_old_words_are_refused_as_names_of_files(self):
        for name in ("src/solve/gpu/odd_carrier.gpu.cpp", "src/run/gpu/odd_meeting.gpu.hpp", "docs/decisions/0012-a-leaf.md",
                     "bench/odd_carriers.py", "tests/unit/operate/odd_places_test.cpp"):
            code, printed = run(check_style, {name: "\n"})
            self.assertEqual(code, 1, name)
            self.assertIn(f"{name}: its name has an old word", printed)
        for name in ("src/solve/solver_in_place.cpp", "tests/data/files/meeting.mtx", "src/operate/lanes.hpp", "src/plan/planes.cpp"):
            self.assertEqual(run(check_style, {name: "\n"})[0], 0, name)

    def test_long_files(self):
        code, printed = run(check_style, {"src/run/a.cpp": "int x;\n" * 401})
        self.assertEqual(code, 0)
        self.assertIn("warning: src/run/a.cpp: 401 lines", printed)
        code, printed = run(check_style, {"src/run/a.cpp": "int x;\n" * 801})
        self.assertEqual(code, 1)
        self.assertIn("801 lines (at most 800)", printed)

    def test_what_was_fetched_is_not_ours(self):
        code, printed = run(check_style, {".headers/lib/a.hpp": "int x;\n" * 900, "build-x/a.cpp": "// TO" + "DO\n"})
        self.assertEqual((code, printed), (0, "check_style: 0 files, ok\n"))


class Vendor(unittest.TestCase):
    HEADER = "src/device/runtime.hpp"

    def count(self, text):
        return len(check_vendor.vendor_lines(text.splitlines()))

    def test_names_of_one_vendor_count(self):
        for line in ("cudaMalloc(&p, 8);", "hipFree(p);", "#include <cuda_runtime.h>", "#include <hip/hip_runtime.h>",
                     "x = __shfl_xor_sync(m, x, 1);", "return __ldg(p);", 'asm volatile("x" ::: "memory");',
                     "cuStreamWaitValue32(s, p, 1, 0);", "__hip_atomic_store(p, 1, 0, 0);", "cusparseSpMV(h);",
                     "bool b = defined(__CUDA_ARCH__);", "void f(__grid_constant__ int const a);"):
            self.assertEqual(self.count(line), 1, line)

    def test_what_both_understand_does_not(self):
        for line in ("HOSTLESS_GPU(Malloc)(&p, 8);", "__syncthreads();", "__global__ void f();", "int i = threadIdx.x;",
                     'find("cuda"), find("hip")', "// cudaMalloc", "", "int hip = 0, current = 0, cumulative = 1;",
                     "__shared__ double a[3];", "std::any_of(a, b, c);", "double d = __longlong_as_double(v);"):
            self.assertEqual(self.count(line), 0, line)

    def test_everything_inside_a_vendors_if_counts(self):
        self.assertEqual(self.count("#if defined(__CUDACC__)\nint a;\n\n// why\n#if defined(B)\nint b;\n#endif\n"
                                    "#else\nint c;\n#endif\nint d;\n#ifdef OTHER\nint e;\n#endif\n"), 8)
        self.assertEqual(self.count("#ifdef A\nint a;\n#elif __HIPCC__\nint b;\n#endif\n"), 3)

    def test_one_header_and_one_source_file_may_have_them(self):
        good = {self.HEADER: "cudaA();\n", check_vendor.SOURCE: "cudaB();\n", "src/run/a.cpp": "int a;\n"}
        code, printed = run(check_vendor, good)
        self.assertEqual(code, 0, printed)
        self.assertIn("2 vendor lines in all", printed)
        for name in ("src/device/graph.gpu.cpp", "src/run/c.gpu.hpp", "include/hostless/run/d.hpp", "apps/hostless/e.cpp"):
            code, printed = run(check_vendor, {**good, name: "int a;\nhipB();\n"})
            self.assertEqual(code, 1, name)
            self.assertIn(":2: 1 lines that one vendor's", printed)

    def test_the_word_for_both_names_no_vendor(self):
        both = "include/hostless/base/host_device.hpp"
        self.assertEqual(run(check_vendor, {both: "#if defined(HOSTLESS_GPU_COMPILER)\n#define A __host__\n#endif\n"})[0], 0)
        self.assertEqual(run(check_vendor, {both: "#if defined(__CUDACC__)\n#define A __host__\n#endif\n"})[0], 1)

    def test_too_many_fail(self):
        self.assertEqual(run(check_vendor, {self.HEADER: "cudaA();\n" * 310})[0], 0)
        code, printed = run(check_vendor, {self.HEADER: "cudaA();\n" * 311})
        self.assertEqual(code, 1)
        self.assertIn("311 vendor lines (at most 310)", printed)


LINES = "".join(f"  value_{k} = compute(value_{k + 1}, {k});\n" for k in range(6))


class Clones(unittest.TestCase):
    def test_finds_a_copy_with_other_spaces_and_comments(self):
        other = LINES.replace(" = ", "=").replace(");\n", ");  // copied\n\n")
        code, printed = run(check_clones, {"src/a/a.cpp": "int a;\n" + LINES, "src/b/b.cpp": "int b;\n" + other})
        self.assertEqual(code, 1)
        self.assertIn("src/a/a.cpp:2-7 stands again at src/b/b.cpp:2", printed)
        self.assertIn("clone rate 85.71 % of 14 lines", printed)

    def test_five_lines_are_no_copy(self):
        short = "".join(LINES.splitlines(keepends=True)[:5])
        code, printed = run(check_clones, {"src/a/a.cpp": short, "src/b/b.cpp": short})
        self.assertEqual(code, 0)
        self.assertIn("clone rate 0.00 % of 10 lines", printed)

    def test_finds_a_copy_in_the_same_file(self):
        code, printed = run(check_clones, {"src/a/a.cpp": LINES + "int between;\n" + LINES})
        self.assertEqual(code, 1)
        self.assertIn("src/a/a.cpp:1-6 stands again at src/a/a.cpp:8", printed)

    def test_one_line_repeated_is_a_table_not_a_copy(self):
        code, printed = run(check_clones, {"src/a/a.cpp": "row();\n" * 9})
        self.assertEqual(code, 0, printed)

    def test_tests_and_includes_do_not_count(self):
        code, _ = run(check_clones, {"tests/a.cpp": LINES, "tests/b.cpp": LINES,
                                     "src/a/a.cpp": "#include <vector>\n" * 9, "src/b/b.cpp": "#include <vector>\n" * 9})
        self.assertEqual(code, 0)

    def test_the_limit_can_be_chosen(self):
        both = {"src/a/a.cpp": LINES, "src/b/b.cpp": LINES}
        self.assertEqual(run(check_clones, both, "--most", "100")[0], 0)
        self.assertEqual(run(check_clones, both, "--window", "7")[0], 0)


class Docs(unittest.TestCase):
    def test_a_header_without_doc_strings_fails(self):
        code, printed = run(check_docs, {"include/hostless/base/a.hpp": "struct A {\n};\n"})
        self.assertEqual(code, 1)
        self.assertIn("a.hpp: no /// at all", printed)

    def test_types_without_doc_strings_are_named(self):
        code, printed = run(check_docs, {
            "include/hostless/base/a.hpp": "/// Why.\ntemplate <class T>\nstruct A {\n};\n\nstruct B {\n};\nclass C;\n"})
        self.assertEqual(code, 0)
        self.assertIn("B has no ///", printed)
        self.assertNotIn("A has no ///", printed)
        self.assertNotIn("C has no ///", printed)

    def test_dead_links(self):
        code, printed = run(check_docs, {"docs/a.md": "[b](b.md) [c](c.md#part) [w](https://example.org)\n",
                                         "docs/b.md": "text\n"})
        self.assertEqual(code, 1)
        self.assertIn("docs/a.md:1: the link leads to no file: c.md", printed)
        self.assertNotIn("b.md ", printed)

    def test_what_is_cited_is_in_the_repository(self):
        there = {"docs/rules.md": "# Rules\n", "docs/decisions/0001-sums.md": "# One\n", "src/solve/solver.cpp": "//\n",
                 "tests/unit/run/words_test.cpp": "//\n", "bench/gpu/compare.py": "#\n"}
        cited = ("// rules.md, docs/rules.md, (docs/decisions/0001), `src/solve`, src/solve/*.cpp, tests/unit/*/words_test.cpp",
                 "#include \"solve/solver.hpp\"  // solve/solver.cpp, tests/FILE, tests/<name>/x, ${folder}/tests/none.cpp",
                 "bench/gpu/compare.py > table.md; report --markdown page.md; see https://example.org/src/none.cpp",
                 "tests/unit/run/words_test.cpp: 12 tests. Half of src/solve, and/or build/none.cpp")
        self.assertEqual(run(check_docs, {**there, "tools/fine.py": "\n".join(cited)})[0], 0)
        for outside in ("protocols.md", "docs/protocols.md", "papers/000", "design/rules.md", "../shared/data/a.mtx",
                        "shared/papers", "src/solve/gone.cpp", "src/solve/none_*.cpp", "tests/unit/run/words", "docs/decisions/0002"):
            with self.subTest(outside):
                code, printed = run(check_docs, {**there, "src/run/a.hpp": f"// As it stands there ({outside}, part 2).\n"})
                self.assertEqual(code, 1)
                self.assertIn(f"src/run/a.hpp:1: cites {outside}, which is not in the repository", printed)

    def test_notebooks(self):
        def printed(*cells):
            return run(check_docs, {"docs/a.ipynb": json.dumps({"cells": cells}), "docs/b.md": "text\n"})

        words = {"cell_type": "markdown", "source": ["see [b](b.md)\n", "and [c](c.md)"]}
        code = {"cell_type": "code", "source": ["1"], "outputs": [], "execution_count": None}
        self.assertEqual(printed({**words, "source": ["see [b](b.md)"]}, code), (0, "check_docs: 2 files, ok\n"))
        self.assertIn("cell 1 of docs/a.ipynb:2: the link leads to no file: c.md", printed(words, code)[1])
        for kept in ({"outputs": [{"output_type": "stream"}]}, {"execution_count": 1}):
            self.assertIn("cell 2 of docs/a.ipynb: outputs are kept", printed(words, {**code, **kept})[1])
        self.assertIn("no notebook", run(check_docs, {"docs/a.ipynb": "{}"})[1])


class Format(unittest.TestCase):
    def test_says_what_it_would_change_and_changes_it(self):
        tool, reason = check_format.formatter()
        if not tool:
            self.skipTest(reason)
        bad = {".clang-format": "BasedOnStyle: Google\n", "src/a/a.cpp": "int   x  ;\n"}
        code, printed = run(check_format, bad)
        self.assertEqual(code, 1)
        self.assertIn("src/a/a.cpp:1: clang-format would change it", printed)
        self.assertEqual(run(check_format, bad, "--fix")[0], 0)
        self.assertEqual(run(check_format, {**bad, "src/a/a.cpp": "int x;\n"})[0], 0)


class PlotConvergence(unittest.TestCase):
    """What is drawn has its tests with the package (tests/report/test_plots.py)."""

    def drawn(self, root, *words):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(plot_convergence.main([*words, "--output", str(root / "picture.svg")]), 0)
        return said.getvalue(), (root / "picture.svg").read_bytes()

    def test_what_cannot_be_drawn_is_named(self):
        for content in ("{}", "no json", '{"residual_history": []}', '{"residual_history": [0.0]}'):
            with checkout({"result.json": content}) as root, self.assertRaises(SystemExit) as left:
                plot_convergence.main([str(root / "result.json"), "--output", str(root / "picture.svg")])
            self.assertRegex(str(left.exception), "result.json:|matplotlib is missing")
            self.assertNotEqual(left.exception.code, 0)

    def test_the_picture_is_reproducible(self):
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            self.skipTest("no matplotlib on this machine")
        result = json.dumps({"residual_history": [1.0, 0.1, 0.01], "true_relative_residual": 0.011})
        with checkout({"one.json": result}) as root:
            pictures = [self.drawn(root, str(root / "one.json")) for _ in range(2)]
        self.assertEqual(*pictures)
        self.assertIn("1 curve\n", pictures[0][0])
        for words in (b"iteration", b"one: true residual 1.1e-02"):
            self.assertIn(words, pictures[0][1])


class Help(unittest.TestCase):
    def test_every_check_explains_itself(self):
        for tool in (check_clones, check_docs, check_format, check_layers, check_style, check_vendor,
                     plot_convergence, count_tests):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), self.assertRaises(SystemExit) as left:
                tool.main(["--help"])
            self.assertEqual(left.exception.code, 0)
            self.assertIn(tool.__doc__.split()[0], printed.getvalue())


if __name__ == "__main__":
    unittest.main()
