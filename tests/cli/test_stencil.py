"""`hostless stencil`: every cell has the bits of one step at a time, whoever steps it; files and errors."""

import json
import os
import random
import unittest

import stencil_oracle as oracle
from hostless_command import Command

SHAPES = {"jacobi2d": [(13, 19)], "jacobi3d": [(7, 9, 8)], "heat": [(14, 11), (6, 7, 9)], "wave": [(11, 13), (7, 6, 8)],
          "life": [(12, 15)], "gray_scott": [(10, 13)]}
#: How one grid is dealt out; all of them give the same bits.
WAYS = [(), ("--ranks", 2, "--depth", 3, "--block-steps", 2), ("--ranks", 3, "--depth", 2), ("--ranks", 4, "--depth", 2, "--block-steps", 1),
        ("--ranks", 4, "--route", "two_step", "--ranks-per-node", 2), ("--ranks", 6, "--depth", 1, "--route", "three_step", "--ranks-per-node", 3),
        ("--ranks", 4, "--depth", 2, "--route", "split", "--ranks-per-node", 2), ("--ranks", 6, "--route", "leader", "--ranks-per-node", 3),
        ("--ranks", 2, "--transport", "processes", "--depth", 2), ("--ranks", 3, "--transport", "processes")]


class Stencil(Command):
    def stencil(self, problem, *words, **how):
        """The JSON of a run."""
        return self.json_of("stencil", "--problem", problem, *words, **how)

    def give(self, problem, shape, kind="fp64", seed=1, **how):
        """Fields of the oracle, and the words that give them to the command."""
        chance = random.Random(seed)
        values = [[float(chance.random() < 0.4) if problem == "life" else oracle.ROUND[kind](chance.random())
                   for _ in range(len(oracle.initial(problem, shape)[0]))] for _ in oracle.initial(problem, (1,) * len(shape))]
        words = []
        for number, field in enumerate(values):
            (self.folder / f"u{number}.npy").write_bytes(oracle.npy(field, shape, kind, **how))
            words += ["--initial", f"u{number}.npy"]
        return values, words

    def outputs(self, fields):
        return [word for number in range(fields) for word in ("--output", f"v{number}.npy")]

    def expect(self, grid, shape, kind):
        for number, field in enumerate(grid.fields):
            self.assertEqual(self.content(f"v{number}.npy"), oracle.npy(field, shape, kind), f"field {number}")


class Stable(Stencil):
    def test_steps_that_grow_are_warned_of_and_no_others(self):
        for problem, size, most in (("heat", "12,13", 1 / 4), ("heat", "8,9,7", 1 / 6), ("wave", "12,13", 1 / 2), ("wave", "8,9,7", 1 / 3)):
            for k in (most, 1.3 * most, -0.01):  # on a grid so small the limit lies a tenth higher
                with self.subTest(problem=problem, size=size, k=k):
                    done = self.run_it("stencil", "--problem", problem, "--size", size, "--parameter", f"k={k!r}", "--steps", 500, "--every", 500,
                                       "--json", "-", "--quiet")
                    largest = json.loads(done.stdout)["history"][0]["largest"][0]
                    if k == most:
                        self.assertEqual(done.stderr, "")
                        self.assertLess(largest, 4)
                    else:
                        self.assertRegex(done.stderr, rf"^hostless: k={k:g} of {problem} on .* stable from 0 to {most:.6g}: .*\.\n$")
                        self.assertGreater(largest, 1e3)
        both = self.run_it("stencil", "--problem", "gray_scott", "--size", "30,30", "--steps", 1, "--ranks", 2, "--transport", "processes", "--parameter",
                           "diffusion_u=0.3", "--parameter", "diffusion_v=0.26", "--quiet")
        self.assertEqual([line.split("=")[0] for line in both.stderr.splitlines()], ["hostless: diffusion_u", "hostless: diffusion_v"])


class Bits(Stencil):
    steps = 7

    def compare(self, problem, shape, boundary, kind, ways):
        values, words = self.give(problem, shape, kind)
        grid = oracle.Grid(problem, shape, boundary, kind, values)
        grid.steps(self.steps)
        for way in ways:
            with self.subTest(problem=problem, shape=shape, boundary=boundary, kind=kind, way=way):
                self.run_it("stencil", "--problem", problem, *words, "--boundary", ",".join(boundary), "--steps", self.steps,
                            *self.outputs(len(values)), "--quiet", *way)
                self.expect(grid, shape, kind)

    def all_of(self, problem):
        turn = 0
        for shape in SHAPES[problem]:
            axes = len(shape)
            mixtures = [("dirichlet", "neumann", "periodic")[:axes], ("periodic", "dirichlet", "neumann")[:axes]]
            for boundary in [(one,) * axes for one in ("dirichlet", "neumann", "periodic")] + mixtures:
                for kind in ("fp32", "fp64"):
                    ways = [WAYS[(turn + k) % len(WAYS)] for k in range(3)]
                    turn += 3
                    self.compare(problem, shape, boundary, kind, ways)

    def test_jacobi2d(self):
        self.all_of("jacobi2d")

    def test_jacobi3d(self):
        self.all_of("jacobi3d")

    def test_heat(self):
        self.all_of("heat")

    def test_wave(self):
        self.all_of("wave")

    def test_life(self):
        self.all_of("life")

    def test_gray_scott(self):
        self.all_of("gray_scott")

    def test_boxes_that_somebody_names(self):
        values, words = self.give("heat", (12, 15))
        grid = oracle.Grid("heat", (12, 15), ("periodic",) * 2, "fp64", values, {"k": 0.1})
        grid.steps(9)
        for along, boxes in (("1x6", [1, 6]), ("6,1", [6, 1]), ("2x3", [2, 3])):
            result = self.stencil("heat", *words, "--boundary", "periodic", "--parameter", "k=0.1", "--steps", 9, "--ranks", 6,
                                  "--ranks-along", along, *self.outputs(1))
            self.assertEqual((result["ranks_along"], result["parameters"]), (boxes, {"k": 0.1}))
            self.expect(grid, (12, 15), "fp64")


class Files(Stencil):
    def test_initial_arrays_of_every_order(self):
        values, _ = self.give("heat", (6, 7, 9))
        grid = oracle.Grid("heat", (6, 7, 9), ("dirichlet",) * 3, "fp64", values)
        grid.steps(3)
        for how in ({"fortran": True}, {"descr": ">f8"}, {"fortran": True, "descr": ">f8"}):
            for ranks in (1, 4):
                _, words = self.give("heat", (6, 7, 9), **how)
                self.run_it("stencil", "--problem", "heat", *words, "--size", "6,7,9", "--steps", 3, "--ranks", ranks,
                            *self.outputs(1), "--quiet")
                self.expect(grid, (6, 7, 9), "fp64")

    def test_what_a_run_begins_with(self):
        for problem, shapes in SHAPES.items():
            for shape in [*shapes, *([(45, 50)] if len(shapes[0]) == 2 else [])]:
                for kind in ("fp32", "fp64"):
                    fields = oracle.initial(problem, shape)
                    result = self.stencil(problem, "--size", "x".join(map(str, shape)), "--type", kind, "--steps", 0, "--ranks", 2,
                                          *self.outputs(len(fields)))
                    self.assertEqual((result["steps"], result["status"], result["type"]), (0, "steps_done", kind))
                    self.expect(oracle.Grid(problem, shape, (), kind, fields), shape, kind)

    def test_json_says_what_was_done(self):
        result = self.stencil("wave", "--size", "20x30", "--steps", 12, "--every", 4, "--ranks", 2, "--depth", 3, "--block-steps", 2,
                              "--boundary", "periodic,neumann", *self.outputs(2))
        self.assertEqual({key: result[key] for key in ("version", "problem", "size", "type", "boundary", "parameters", "fields", "transport",
                                                       "ranks", "ranks_along", "route", "depth", "block_steps", "shares_cells", "resumed_at", "steps",
                                                       "status", "message", "checkpoints", "output")},
                         {"version": 1, "problem": "wave", "size": [20, 30], "type": "fp64", "boundary": ["periodic", "neumann"],
                          "parameters": {"k": 0.25}, "fields": ["u", "before"], "transport": "threads", "ranks": 2,
                          "ranks_along": result["ranks_along"], "route": "direct", "depth": 3, "block_steps": 2, "shares_cells": False, "resumed_at": 0,
                          "steps": 12, "status": "steps_done", "message": "", "checkpoints": 0, "output": ["v0.npy", "v1.npy"]})
        self.assertEqual(sorted(result["ranks_along"]), [1, 2])
        self.assertAlmostEqual(result["microseconds_per_step"], 1e6 * result["seconds"] / 12, delta=1e-6)
        self.assertAlmostEqual(result["cells_per_second"] * result["microseconds_per_step"], 600 * 1e6, delta=1)
        self.assertEqual([look["step"] for look in result["history"]], [4, 8, 12])
        self.assertEqual(result["provenance"]["options_given"]["--every"], "4")
        done = self.run_it("stencil", "--problem", "heat", "--size", "20x30", "--steps", 8, "--every", 4, "--json", "r.json")
        self.assertEqual([line.split()[:2] for line in done.stdout.splitlines()[:3]],
                         [["step", "4"], ["step", "8"], ["steps_done", "after"]])
        self.assertEqual(json.loads(self.content("r.json"))["steps"], 8)
        quiet = self.run_it("stencil", "--problem", "heat", "--size", "20x30", "--steps", 8, "--every", 4, "--quiet")
        self.assertEqual((quiet.stdout, quiet.stderr), ("", ""))

    def test_an_output_that_cannot_be_written_is_an_error_before_the_steps(self):
        text = self.refused(4, "stencil", "--problem", "heat", "--size", "9x9", "--steps", 1, "--output", "no/v.npy")
        self.assertIn("no/v.npy", text)


class Changes(Stencil):
    def test_history_is_the_change_of_a_step_on_any_ranks(self):
        values, words = self.give("gray_scott", (10, 13))
        grid = oracle.Grid("gray_scott", (10, 13), ("periodic",) * 2, "fp64", values)
        looks = {}
        for step in range(1, 13):
            norms, largest = grid.change()
            looks[step] = norms, largest
        first = None
        for way in ((), ("--ranks", 3, "--depth", 2), ("--ranks", 2, "--transport", "processes", "--checkpoint", "c", "--checkpoint-every", 5)):
            history = self.stencil("gray_scott", *words, "--boundary", "periodic", "--steps", 12, "--every", 3, *way)["history"]
            first = first or history
            self.assertEqual(history, first)
        self.assertEqual([look["step"] for look in first], [3, 6, 9, 12])
        for look in first:
            norms, largest = looks[look["step"]]
            self.assertEqual(look["largest"], largest)
            for mine, theirs in zip(look["norm"], norms):
                self.assertAlmostEqual(mine, theirs, delta=1e-13 * theirs)

    def test_boxes_say_how_many_ranks_there_are(self):
        result = self.stencil("heat", "--size", "12x12", "--steps", 3, "--ranks-along", "3x2")
        self.assertEqual((result["ranks"], result["ranks_along"], result["transport"]), (6, [3, 2], "threads"))
        result = self.stencil("heat", "--size", "12x12", "--steps", 3, "--ranks-along", "1x2", "--transport", "processes")
        self.assertEqual((result["ranks"], result["ranks_along"], result["transport"]), (2, [1, 2], "processes"))

    def test_a_checkpoint_knows_its_grid(self):
        words = ("--size", "9x12", "--type", "fp32", "--boundary", "periodic,neumann", "--parameter", "k=0.2")
        self.stencil("wave", *words, "--steps", 20, "--output", "a0.npy", "a1.npy")
        self.stencil("wave", *words, "--steps", 11, "--checkpoint", "c")
        for way in ((), ("--ranks", 2, "--transport", "processes"), ("--boundary", "periodic,neumann")):
            rest = self.stencil("wave", "--steps", 20, "--resume", "c", *self.outputs(2), *way)
            self.assertEqual([rest[key] for key in ("resumed_at", "size", "type", "boundary", "parameters")],
                             [11, [9, 12], "fp32", ["periodic", "neumann"], {"k": 0.2}])
            for number in range(2):
                self.assertEqual(self.content(f"v{number}.npy"), self.content(f"a{number}.npy"))
        for more, says in ((("--boundary", "dirichlet"), "has the boundary periodic,neumann, and this run has dirichlet,dirichlet"),
                           (("--parameter", "k=0.25"), "has the parameters 0.2, and this run has 0.25"),
                           (("--size", "9x12"), "holds cells in fp32, and this run has fp64")):
            self.assertIn(says, self.refused(3, "stencil", "--problem", "wave", "--steps", 20, "--resume", "c", *more))
        self.assertIn("c: is of the stencil wave, and this run has heat", self.refused(3, "stencil", "--problem", "heat", "--steps", 20, "--resume", "c"))
        (self.folder / "short").write_bytes((self.folder / "c").read_bytes()[:60])
        self.assertIn("short: ends early", self.refused(3, "stencil", "--problem", "wave", "--steps", 20, "--resume", "short"))

    def test_tolerance(self):
        result = self.stencil("jacobi2d", "--size", "9x9", "--steps", 5000, "--every", 10, "--tolerance", "1e-6", "--ranks", 2)
        self.assertEqual(result["status"], "steady")
        self.assertLess(result["steps"], 5000)
        self.assertEqual(result["steps"] % 10, 0)
        norms = [look["norm"][0] for look in result["history"]]
        self.assertTrue(norms[-1] <= 1e-6 < norms[-2], norms)

    def test_what_is_not_finite(self):
        words = ("--size", "9x9", "--parameter", "k=40", "--steps", 1000, "--boundary", "periodic")
        for ranks in (1, 2):
            result = self.stencil("heat", *words, "--ranks", ranks, "--every", 10, "--checkpoint", "c", "--checkpoint-every", 10, code=1)
            self.assertEqual(result["status"], "not_finite")
            self.assertIn("NaN or infinity", result["message"])
            self.assertLess(result["steps"], 400)
            rest = self.stencil("heat", *words, "--resume", "c", "--every", 10, code=1)  # the last finite one
            self.assertEqual((rest["resumed_at"], rest["steps"]), (result["steps"] - 10, result["steps"]))
            (self.folder / "c").unlink()
            unseen = self.stencil("heat", *words, "--ranks", ranks, "--checkpoint", "c", "--checkpoint-every", 10, code=1)  # as if it were looked at
            self.assertEqual((unseen["status"], unseen["steps"], unseen["history"]), ("not_finite", result["steps"], []))
            late = self.stencil("heat", *words, "--ranks", ranks, code=1)  # no clock decides
            self.assertEqual((late["status"], late["steps"]), ("not_finite", 1000))
        self.assertIn("not_finite after", self.run_it("stencil", "--problem", "heat", *words, code=1).stdout)


class Refused(Stencil):
    heat = ("stencil", "--problem", "heat", "--steps", 5)

    def test_words(self):
        size = ("--size", "9x9")
        for words, parts in (
                (("stencil", "--problem", "heta", "--steps", 5, *size), ("heta", "Did you mean 'heat'?")),
                (("stencil", "--steps", 5, *size), ("--problem is required",)),
                (("stencil", "--problem", "heat", *size), ("--steps is required",)),
                (("stencil", "--problem", "heat", *size, "--steps", -3), ("--steps", "'-3'")),
                ((*self.heat,), ("unknown size", "--size", "--initial")),
                ((*self.heat, "--size", "9"), ("heat on a grid of 1 axis", "2 or 3 axes")),
                (("stencil", "--problem", "jacobi2d", "--steps", 5, "--size", "9,9,9"), ("jacobi2d", "3 axes", "of 2 axes")),
                ((*self.heat, "--size", "9x0"), ("--size", "'0'")),
                ((*self.heat, "--size", "9x9x9x9"), ("--size", "three axes")),
                ((*self.heat, "--size", "99999999x99999999x9999"), ("--size", "2^53")),
                ((*self.heat, *size, "--boundary", "perodic"), ("--boundary", "perodic", "Did you mean 'periodic'?")),
                ((*self.heat, *size, "--boundary", "periodic,neumann,dirichlet"), ("periodic,neumann,dirichlet on 2 axes",)),
                ((*self.heat, *size, "--type", "fp16"), ("--type", "fp16")),
                ((*self.heat, *size, "--parameter", "kk=1"), ("kk=1", "it has k", "heat")),
                ((*self.heat, *size, "--parameter", "k"), ("--parameter k", "name=number")),
                ((*self.heat, *size, "--parameter", "k=nan"), ("k=nan", "no finite number")),
                ((*self.heat, *size, "--parameter", "k=0.1x"), ("k=0.1x", "no finite number")),
                ((*self.heat, *size, "--parameter", "k=1", "--parameter", "k=2"), ("k=2", "given twice")),
                (("stencil", "--problem", "gray_scott", "--steps", 5, *size, "--parameter", "fed=1"), ("Did you mean 'feed'?",)),
                ((*self.heat, *size, "--tolerance", "1e-3"), ("--tolerance without --every",)),
                ((*self.heat, *size, "--every", 0), ("--every", "'0'")),
                ((*self.heat, *size, "--checkpoint-every", 5), ("--checkpoint-every requires --checkpoint",)),
                ((*self.heat, *size, "--time-limit", 0), ("--time-limit", "'0'")),
                ((*self.heat, *size, "--route", "indirect"), ("--route", "indirect")),
                ((*self.heat, *size, "--ranks", 4, "--ranks-along", "3x1"), ("3 x 1 boxes for 4 ranks",)),
                ((*self.heat, *size, "--ranks", 99, "--ranks-along", "1x99"), ("99 ranks along axis 1 of ",)),
                ((*self.heat, "--size", "5x5", "--ranks", 40), ("40 ranks for a grid of 5 x 5 cells",)),
                ((*self.heat, *size, "--ranks", 4, "--ranks-along", "4"), ("--ranks-along 4 on 2 axes",)),
                ((*self.heat, *size, "--ranks", 2, "--depth", 30), ("30 steps between two exchanges",)),
                ((*self.heat, *size, "--block-steps", 3, "--depth", 2), ("3 steps in one pass",)),
                ((*self.heat, *size, "--output", "u.txt"), ("--output u.txt", ".npy")),
                ((*self.heat, *size, "--output", "a.npy", "b.npy"), ("--output names 2 files", "the fields u")),
                (("stencil", "--problem", "wave", "--steps", 5, *size, "--output", "a.npy"), ("names 1 file,", "u, before")),
                ((*self.heat, *size, "--output", "a.npy", "--json", "a.npy"), ("--output", "--json", "a.npy")),
                ((*self.heat, *size, "--ranks-per-node", -1), ("--ranks-per-node", "'-1'")),
                ((*self.heat, *size, "--block-steps", 2, "--depth", 1), ("2 steps in one pass, 1 between",)),
                ((*self.heat, "--size", "1x5", "--ranks", 6), ("6 ranks for a grid of 5 cells",)),
                ((*self.heat, "--size", "1x1", "--ranks", 2), ("2 ranks for a grid of 1 cell (",)),
                ((*self.heat, "--size", "x"), ("--size", "'x'")),
                ((*self.heat, "--size", "512x"), ("--size", "'512x'")),
                ((*self.heat, "--size", "9x9", "--ranks-along", "2x,"), ("--ranks-along", "'2x,'")),
                ((*self.heat, *size, "--stepps", 1), ("'--stepps' is no option", "Did you mean '--steps'?"))):
            with self.subTest(words=words):
                text = self.refused(2, *words)
                for part in parts:
                    self.assertIn(part, text)

    def test_files(self):
        ones = [1.0] * 81
        nan = [*ones[:30], float("nan"), *ones[31:]]
        for name, data in {"f8": oracle.npy(ones, (9, 9)), "f4": oracle.npy(ones, (9, 9), "fp32"), "other": oracle.npy(ones[:72], (8, 9)),
                           "i8": oracle.npy(ones, (9, 9), descr="<i8"), "nan": oracle.npy(nan, (9, 9)), "flat": oracle.npy(ones, (81,)),
                           "empty": oracle.npy([], (0, 9)), "short": oracle.npy(ones, (9, 9))[:-1], "text": b"1 2 3 4 5 6 7 8 9 10"}.items():
            (self.folder / f"{name}.npy").write_bytes(data)
        wave = ("stencil", "--problem", "wave", "--steps", 5)
        for code, words, parts in (
                (3, (*self.heat, "--initial", "i8.npy"), ("i8.npy: holds integers", "astype")),
                (3, (*self.heat, "--initial", "nan.npy"), ("nan.npy: the value at [3, 3] is nan",)),
                (3, (*self.heat, "--initial", "flat.npy"), ("flat.npy: heat on a grid of 1 axis",)),
                (3, (*self.heat, "--initial", "empty.npy"), ("empty.npy: is an array of shape (0, 9) (it has no cell",)),
                (3, (*self.heat, "--initial", "short.npy"), ("short.npy: holds 647 bytes of data but its shape (9, 9) asks for 648, 8 each",)),
                (3, (*self.heat, "--initial", "text.npy"), ("text.npy: does not begin as a NumPy array",)),
                (3, (*self.heat, "--initial", "none.npy"), ("none.npy: ",)),
                (3, (*self.heat, "--initial", "other.npy", "--size", "9x9"), ("other.npy: has 8 x 9 cells", "--size says 9 x 9")),
                (3, (*wave, "--initial", "f8.npy", "f4.npy"), ("f4.npy: 9 x 9 cells of 4 bytes", "f8.npy has")),
                (3, (*wave, "--initial", "f8.npy", "--initial", "other.npy"), ("other.npy: 8 x 9 cells",)),
                (2, (*wave, "--initial", "f8.npy"), ("--initial names 1 file,", "u, before")),
                (2, (*self.heat, "--initial", "f8.npy", "--type", "fp64"), ("--type with --initial",)),
                (2, (*self.heat, "--initial", "f8.npy", "--resume", "c"), ("--initial with --resume",)),
                (2, (*self.heat, "--initial", "f8.npy", "--output", "f8.npy"), ("--output and --initial are one file",)),
                (2, (*self.heat, "--size", "9x9", "--output="), ("--output= (nothing follows the =)",))):
            for way in ((), ("--ranks", 2, "--transport", "processes")):
                with self.subTest(words=words, way=way):
                    text = self.refused(code, *words, *way) if not way or code == 3 else self.refused(code, *words)
                    for part in parts:
                        self.assertIn(part, text)

    @unittest.skipIf(any(name in os.environ for name in ("ASAN_OPTIONS", "TSAN_OPTIONS")), "a sanitizer has memory of its own")
    def test_a_grid_that_fits_nowhere(self):
        text = self.refused(4, *self.heat, "--size", "9999999x9999999")
        for part in ("heat on 9999999 x 9999999 cells", "at least 1.6 PB of memory", "HOSTLESS_SIZE_CHECK"):
            self.assertIn(part, text)


if __name__ == "__main__":
    unittest.main()
