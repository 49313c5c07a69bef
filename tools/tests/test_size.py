"""What check_size.py counts, and what it says when that is too much."""

import unittest

from tests.checkout import run

import check_size


class Functions(unittest.TestCase):
    def found(self, source):
        return [(name, line, length, parameters) for name, line, length, parameters in check_size.cpp_functions(source)]

    def test_where_they_begin_and_end(self):
        source = """namespace a {
struct B : C<int> {
  B(int x, double y) : C<int>{x}, y_(y), z_{y} {
    call({1, 2}, [&] { return "}"; });
  }
  int size() const noexcept { return '{'; }
  std::vector<int> list{1, 2};
};

template <class T, class U>
auto both(std::pair<T, U> const& p, std::function<void(int, int)> f) -> T {
  if (p.first) {
    f(1, 2);  // }
  }
  return p.first;
}
}  // namespace a
"""
        self.assertEqual(self.found(source), [("B", 3, 3, 2), ("size", 6, 1, 0), ("both", 10, 7, 2)])

    def test_qualified_and_with_types_behind(self):
        for head in ("int A::f(int a) &", "int A::f(int a) const&", "int A::f(int a) && noexcept", "auto f(int a) -> std::function<void(int)>",
                     "auto f(int a) -> std::function<void(std::function<int(int)>)>", "auto f(int a) -> decltype(g(1))"):
            self.assertEqual(self.found(head + " {\n  g();\n}\n"), [("f", 1, 3, 1)], head)

    def test_branches_of_an_if(self):
        two = "#if A\nint f(int a) {\n#else\nint f(int a, int b) {\n#endif\n  return 0;\n}\nint g() {\n  return 1;\n}\n"
        self.assertEqual(self.found(two), [("f", 2, 6, 1), ("g", 8, 3, 0)])
        whole = "#ifdef A\nint f() { return 0; }\n#elif B\nint g() { return 1; }\n#else\nint h() { return 2; }\n#endif\nint i() { return 3; }\n"
        self.assertEqual([name for name, *_ in self.found(whole)], ["f", "g", "h", "i"])
        face = '#ifdef __cplusplus\nextern "C" {\n#endif\nint f() { return 0; }\n#ifdef __cplusplus\n}\n#endif\n'
        self.assertEqual([name for name, *_ in self.found(face)], ["f"])
        inner = "int f() {\n#if A\n#if B\n  if (b) {\n#else\n  if (c) {\n#endif\n#else\n  if (a) {\n#endif\n  }\n}\nint g() { return 0; }\n"
        self.assertEqual([name for name, *_ in self.found(inner)], ["f", "g"])

    def test_what_is_none(self):
        for source in ("int list[] = {f(1), 2};\n", "enum class A { b, c };\n", "#define F(x) { x }\n",
                       "extern \"C\" {\nint f(int);\n}\n", "struct A {\n  int b(int c) const;\n};\n"):
            self.assertEqual(self.found(source), [], source)


class Limits(unittest.TestCase):
    LONG = "int f() {\n" + "  call();\n" * 90 + "}\n"

    def test_small_things_pass(self):
        self.assertEqual(run(check_size, {"src/a/a.cpp": "int f(int a) {\n  return a;\n}\n", "tools/t.py": "def f():\n    pass\n"}),
                         (0, "check_size: 2 files, ok\n"))

    def test_lists_of_mpi_are_as_long_as_they_are(self):
        nine = "(int a, int b, int c, int d, int e, int g, int h, int i, int j) { return 0; }\n"
        self.assertEqual(run(check_size, {"src/a/a.cpp": "int hostless_neighbor_alltoallv_init" + nine})[0], 0)
        self.assertEqual(run(check_size, {"src/a/a.cpp": "int hostless_neighbor_alltoallv_start" + nine})[0], 1)

    def test_each_limit(self):
        cases = {"src/a/a.cpp:1: function f has 92, at most 80": {"src/a/a.cpp": self.LONG},
                 "tools/t.py:1: function f has 91, at most 80": {"tools/t.py": "def f():\n" + "    call()\n" * 90},
                 "src/a/a.cpp: file src/a/a.cpp has 501, at most 500": {"src/a/a.cpp": "int a;\n" * 501},
                 "files: files 95-of-100 has 301, at most 300": {f"src/{k}/a.cpp": "int a;\n" * 301 for k in range(3)},
                 "src/a/a.cpp:1: parameters f has 9, at most 8": {
                     "src/a/a.cpp": "int f(int a, int b, int c, int d, int e, int g, int h, int i, int j) { return 0; }\n"},
                 "src/a: folder src/a has 31, at most 30": {f"src/a/{k}.cpp": "" for k in range(31)},
                 "conditions src-and-include has 100, at most 50": {"src/a/a.cpp": "#if A\n#endif\n" + "\n" * 498, "src/a/b.cpp": "\n" * 500}}
        for said, files in cases.items():
            code, printed = run(check_size, files)
            self.assertEqual(code, 1, said)
            self.assertIn(said, printed)

    def test_braces_that_nothing_closes(self):
        code, printed = run(check_size, {"src/a/a.cpp": "#if A\nvoid f() {\n#endif\n" + self.LONG})
        self.assertEqual(code, 1)
        self.assertIn("src/a/a.cpp: braces open that nothing closes", printed)

    def test_exceptions_go(self):
        listed = "# why\nfunction src/a/a.cpp f {}\n"
        self.assertEqual(run(check_size, {"src/a/a.cpp": self.LONG, "tools/size_exceptions.txt": listed.format(92)})[0], 0)
        self.assertIn("has 92, at most 91", run(check_size, {"src/a/a.cpp": self.LONG, "tools/size_exceptions.txt": listed.format(91)})[1])
        code, printed = run(check_size, {"src/a/a.cpp": "int f() { return 0; }\n", "tools/size_exceptions.txt": listed.format(92)})
        self.assertEqual(code, 1)
        self.assertIn("keeps the limit now", printed)


if __name__ == "__main__":
    unittest.main()
