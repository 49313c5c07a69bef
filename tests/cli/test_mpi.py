"""The command under mpirun of both MPIs: it uses MPI by itself, and a killed rank ends the job."""

import json
import os
import signal
import time
import unittest

from hostless_command import COMMAND, ENDLESS, PATIENT, SLOWEST, Command, kill, launcher_of, market, market_vector, chain, ranks_of

PROBLEM = ("--generate", "poisson2d", "--size", "30", "--partition", "metis")


class Mpi:
    """What holds for each MPI; `vendor` is the subclass's."""
    vendor = ""

    def mpirun(self, ranks):
        words, why = launcher_of(self.vendor, ranks)
        if words is None:
            self.skipTest(why)
        return words

    def test_mpi_by_itself(self):
        result = self.solve(*PROBLEM, "--output", "mpi.npy", launcher=self.mpirun(2))
        choices = result["choices"]
        self.assertEqual((choices["transport"], choices["ranks"], result["status"]), ("mpi", "2", "converged"))
        threads = self.solve(*PROBLEM, "--output", "threads.npy", "--ranks", 2)
        self.assertEqual(result["residual_history"], threads["residual_history"])
        self.assertEqual(self.content("mpi.npy"), self.content("threads.npy"))

    def test_options_that_need_mpi(self):
        result = self.solve(*PROBLEM, "--reduction", "fast", launcher=self.mpirun(2))
        self.assertEqual(result["choices"]["reduction"], "fast")
        self.assertEqual(result["status"], "converged")

    def test_every_way_to_sum_is_measured(self):
        report = self.json_of("bench", "allreduce", "--values", "2", "--steps", "20", "--repeat", "2", "--warm-up", "3",
                              launcher=self.mpirun(2))
        self.assertEqual((report["transport"], report["ranks"]), ("mpi", 2))
        self.assertEqual([row["reduction"] for row in report["allreduce"]], ["ordered", "fast", "library"])
        for row in report["allreduce"]:
            self.assertGreater(row["best_us"], 0)

    def test_mpirun_is_started_where_asked_for(self):
        self.mpirun(2)
        result = self.solve(*PROBLEM, "--transport", "mpi", "--ranks", 3, environment={"HOSTLESS_MPI": self.vendor})
        self.assertEqual((result["choices"]["transport"], result["choices"]["ranks"]), ("mpi", "3"))

    def test_nodes_share_memory_inside_and_have_equal_bits(self):
        """Four ranks as two nodes, and three as one of two and one of one."""
        self.mpirun(2)
        for ranks in (3, 4):
            environment = {"HOSTLESS_MPI": self.vendor, "HOSTLESS_COMPOSITE_RANKS_PER_NODE": "2"}
            words = (*PROBLEM, "--ranks", ranks, "--route", "two_step", "--ranks-per-node", 2)
            result = self.solve(*words, "--output", "nodes.npy", "--transport", "composite", environment=environment)
            self.assertEqual((result["choices"]["transport"], result["status"]), ("composite", "converged"))
            threads = self.solve(*words, "--output", "threads.npy")
            self.assertEqual(result["residual_history"], threads["residual_history"])
            self.assertEqual(self.content("nodes.npy"), self.content("threads.npy"))

    def test_nodes_have_a_number_of_ranks(self):
        wrong = {"HOSTLESS_MPI": self.vendor, "HOSTLESS_COMPOSITE_RANKS_PER_NODE": "two"}
        done = self.run_it("solve", *PROBLEM, "--transport", "composite", environment=wrong, launcher=self.mpirun(2), code=2)
        self.assertEqual(done.stderr.count("HOSTLESS_COMPOSITE_RANKS_PER_NODE='two'"), 1, done.stderr)

    def test_a_misspelt_variable_is_told_once_whoever_starts_mpirun(self):
        words = (*PROBLEM, "--no-bandwidth", "--quiet")
        wrong = {"HOSTLESS_SIZECHECK": "1", "HOSTLESS_MPI": self.vendor}
        for done in (self.run_it("solve", *words, environment=wrong, launcher=self.mpirun(2)),
                     self.run_it("solve", *words, "--transport", "mpi", "--ranks", 2, environment=wrong)):
            self.assertEqual(done.stderr.count("HOSTLESS_SIZECHECK"), 1, done.stderr)

    def test_what_is_told_mpirun_and_its_group_is_told_once(self):
        """As `timeout` does it: an mpirun that is told twice leaves its ranks."""
        self.mpirun(2)
        for _ in range(3):
            # Open MPI's kills ranks a second after it has told them, which busy machines may need to end them in order.
            for kills_after_s in ("1", "10") if self.vendor == "openmpi" else ("1",):
                process = self.start("solve", *ENDLESS, "--checkpoint", "c", "--checkpoint-every", 20, "--output", "x.npy",
                                     "--no-bandwidth", "--ranks", 2, "--transport", "mpi", start_new_session=True,
                                     environment={"HOSTLESS_MPI": self.vendor, "OMPI_MCA_odls_base_sigkill_timeout": kills_after_s})
                self.wait_for_file("c", process)
                process.send_signal(signal.SIGTERM)
                os.killpg(process.pid, signal.SIGTERM)
                out, err = process.communicate(timeout=SLOWEST)
                (self.folder / "c").unlink()
                if "aborted after" in out:
                    break
            self.assertEqual(process.returncode, 4, err)
            self.assertIn("aborted after", out)
            (self.folder / "x.npy").unlink()

    def test_files_are_read_and_written_by_all(self):
        self.write("A.mtx", market(chain(50), 50))
        for name in ("x.npy", "x.mtx", "x.petsc"):
            self.solve("A.mtx", "--output", name, launcher=self.mpirun(3))
            self.solve("A.mtx", "--output", f"threads.{name}", "--ranks", 3)
            self.assertEqual(self.content(name), self.content(f"threads.{name}"))

    def test_resumed_under_mpi(self):
        self.solve(*PROBLEM, "--ranks", 2, "--output", "whole.npy")
        self.solve(*PROBLEM, "--checkpoint", "c", "--checkpoint-every", 20, "--max-iterations", 30, code=1,
                   launcher=self.mpirun(2))
        self.solve(*PROBLEM, "--resume", "c", "--output", "rest.npy", launcher=self.mpirun(2))
        self.assertEqual(self.content("rest.npy"), self.content("whole.npy"))

    def ends_with(self, code, says, *words):
        done = self.run_it("solve", *words, code=code, launcher=self.mpirun(2))
        lines = [line for line in done.stderr.splitlines() if line.startswith("hostless: ")]
        self.assertTrue(lines, done.stderr)
        self.assertIn(says, lines[0])
        return lines

    def test_not_converged(self):
        self.assertEqual(self.solve_without_words("--max-iterations", 3)["status"], "iteration_limit")

    def solve_without_words(self, *words):
        """A solve that fails: mpirun may add words of its own, so the result goes to a file."""
        self.run_it("solve", *PROBLEM, *words, "--json", "result.json", "--no-bandwidth", code=1, launcher=self.mpirun(2))
        return json.loads(self.content("result.json"))

    def test_usage(self):
        self.side_by_side(self.ends_with, ((2, "among 2 processes", *PROBLEM, "--ranks", 3),
                                           (2, "under mpirun", *PROBLEM, "--transport", "threads"),
                                           (2, "gmres", *PROBLEM, "--method", "gmres")))

    def refused_apart(self, code, says, first, second):
        """Two ranks with command lines of their own: one line, exit code `code`, long before any deadline."""
        one = self.mpirun(1)
        words = [str(word) for word in (*first, ":", *one[one.index("-n"):], COMMAND, *second)]
        began = time.monotonic()
        done = self.run_it(*words, code=code, launcher=one, environment=PATIENT)
        self.assertLess(time.monotonic() - began, SLOWEST / 2)
        lines = [line for line in done.stderr.splitlines() if line.startswith("hostless: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertRegex(lines[0], says)

    def test_ranks_with_other_options_are_refused(self):
        words, cases = ("solve", *PROBLEM), []
        for more, says in ((("--method", "minres"), "--method minres; rank 0 no --method"),
                           (("--preconditioner", "jacobi"), "--preconditioner jacobi; rank 0 no"),
                           (("--rtol", "1e-3"), "--rtol 1e-3; rank 0 no"), (("--output", "x.npy"), "--output x.npy; rank 0 no"),
                           (("--json", "r.json"), "--json r.json; rank 0 no"), (("--time-limit", 9), "--time-limit 9; rank 0 no"),
                           (("--transport", "composite"), "--transport composite; rank 0 no"), (("--quiet",), "--quiet; rank 0 no"),
                           (("--checkpoint", "c", "--checkpoint-every", 5), "--checkpoint c; rank 0 no")):
            cases += [(2, f"rank 1 is given {says}", words, (*words, *more)), (2, "rank 1 is given no ", (*words, *more), words)]
        for option, one, two in (("--json", "r.json", "s.json"), ("--output", "x.npy", "y.npy"), ("--slices", 8, 16)):
            cases.append((2, f"rank 1 is given {option} {two}; rank 0 {option} {one} ", (*words, option, one), (*words, option, two)))
        self.side_by_side(self.refused_apart, cases)
        self.assertEqual(list(self.folder.glob("*.npy")), [])

    def test_numbers_are_compared_by_value(self):
        one, words = self.mpirun(1), ("solve", *PROBLEM, "--json", "r.json")
        same = (*words, "--rtol", "1e-8", "--time-limit", 500, ":", *one[one.index("-n"):], COMMAND, *words, "--rtol", "1.0e-08",
                "--time-limit", "0500.0")
        self.run_it(*(str(word) for word in same), launcher=one, environment=PATIENT)
        loose = ("solve", *PROBLEM, "--rtol", "1e16", ":", *one[one.index("-n"):], COMMAND, "solve", *PROBLEM, "--rtol", 10**16)
        self.run_it(*(str(word) for word in loose), launcher=one, environment=PATIENT)
        self.refused_apart(2, "rank 1 is given --rtol 1.00e-8; rank 0 --rtol 1e-7 ", (*words, "--rtol", "1e-7"), (*words, "--rtol", "1.00e-8"))

    def test_other_commands_and_stencils_are_refused(self):
        stencil = ("stencil", "--problem", "heat", "--size", "9,9", "--steps", 3)
        self.side_by_side(self.refused_apart, (
            (2, "rank 1 is given the command hostless stencil; rank 0 the command hostless solve", ("solve", *PROBLEM), stencil),
            (2, "rank 1 is given --output f.npy; rank 0 no --output", stencil, (*stencil, "--output", "f.npy")),
            (2, "rank 1 is given --output g.npy; rank 0 --output f.npy", (*stencil, "--output", "f.npy"), (*stencil, "--output", "g.npy")),
            (2, "rank 1 is given --values 4; rank 0 --values 2", ("bench", "allreduce", "--values", 2), ("bench", "allreduce", "--values", 4))))

    def test_ranks_that_read_other_files_are_refused(self):
        n, other = 50, "rank 1 reads another file than rank 0, of the same .* but other content"
        self.write("A.mtx", market(chain(n), n))
        self.write("A9.mtx", market({**chain(n), (40, 40): 19.0}, n))  # 12.0 in A
        self.write("b.mtx", market_vector([1.0] * n))
        self.write("b9.mtx", market_vector([1.0] * (n - 1) + [9.0]))
        self.write("p", "0\n" * 25 + "1\n" * 25)
        self.write("p9", "1\n" * 25 + "0\n" * 25)
        self.side_by_side(self.refused_apart, (
            (3, f"A9.mtx: {other}", ("solve", "A.mtx"), ("solve", "A9.mtx")),
            (3, f"b9.mtx: {other}", ("solve", "A.mtx", "b.mtx"), ("solve", "A.mtx", "b9.mtx")),
            (3, f"b9.mtx: {other}", ("solve", "A.mtx", "b.mtx", "b.mtx"), ("solve", "A.mtx", "b.mtx", "b9.mtx")),
            (3, "p9: rank 1 reads another partition than rank 0", ("solve", "A.mtx", "--partition", "file:p"),
             ("solve", "A.mtx", "--partition", "file:p9")),
            (2, "rank 1 is given the number of files 2; rank 0 the number of files 1", ("solve", "A.mtx"), ("solve", "A.mtx", "b.mtx"))))

    def refused_in_folders(self, code, says, *words):
        """Two ranks of equal words, each in a folder of its own, as on nodes with disks of their own."""
        one = (*self.mpirun(1), "-wdir")
        again = one[one.index("-n"):]
        done = self.run_it(*map(str, words), ":", *again, self.folder / "b", COMMAND, *map(str, words), code=code,
                           launcher=(*one, self.folder / "a"), environment=PATIENT)
        lines = [line for line in done.stderr.splitlines() if line.startswith("hostless: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertRegex(lines[0], f"^hostless: {says}")

    def folders(self):
        for name in ("a", "b"):
            (self.folder / name).mkdir()
            yield self.folder / name

    def test_checkpoints_on_disks_of_their_own(self):
        other = "rank 1 reads another file than rank 0, of .*\\. Give all ranks the same file"
        for folder, size, steps in zip(self.folders(), ("9x11", "12x7"), (3, 4)):
            stencil = ("stencil", "--problem", "heat", "--quiet")
            self.run_it(*stencil, "--size", size, "--steps", 3, "--checkpoint", folder / "grid", "--output", folder / "grid.npy")
            self.run_it(*stencil, "--size", "9x9", "--steps", 0, "--output", folder / "zero.npy")
            (folder / "zero.npy").write_bytes(self.content(folder / "zero.npy")[:-81 * 8] + bytes(81 * 8))  # equal after any steps
            self.run_it(*stencil, "--initial", folder / "zero.npy", "--steps", steps, "--checkpoint", folder / "later")
            self.run_it("solve", *PROBLEM, "--contrast", steps, "--checkpoint", folder / "system", "--checkpoint-every", 20, "--max-iterations", 30,
                        "--no-bandwidth", code=1, launcher=self.mpirun(2))
        heat = ("stencil", "--problem", "heat", "--steps", 9)
        self.refused_in_folders(3, f"grid: {other}", *heat, "--resume", "grid")
        self.refused_in_folders(3, "grid: is of a grid of 12 x 7, and this run has 9 x 11", *heat, "--resume", "grid", "--size", "9x11")
        for size in ((), ("--size", "9x9")):
            self.refused_in_folders(3, f"later: {other}", *heat, "--resume", "later", *size)
        self.refused_in_folders(3, f"grid.npy: {other}", *heat, "--initial", "grid.npy")
        self.refused_in_folders(3, "system: a checkpoint of another solve: another matrix", "solve", *PROBLEM, "--contrast", 3, "--resume", "system")

    def test_a_file_that_not_all_ranks_see_names_rank_and_folder(self):
        a, b = self.folders()
        says = f"x.npy: rank 1 in {b} does not see what rank 0 has created for it in {a} \\("
        self.refused_in_folders(4, says, "solve", *PROBLEM, "--output", "x.npy", "--no-bandwidth")
        self.refused_in_folders(4, says, "stencil", "--problem", "heat", "--size", "9x9", "--steps", 3, "--output", "x.npy")
        self.assertEqual((list(a.iterdir()), list(b.iterdir())), ([], []))

    def test_a_rank_that_ends_before_mpi_starts_is_not_awaited_for_ever(self):
        one = self.mpirun(1)
        # The rank's own exit code: MPICH's mpiexec now and then ends with 1, whatever its ranks did.
        tells = ["sh", "-c", '"$0" "$@"; code=$?; echo $code > code; exit $code']
        began = time.monotonic()
        done = self.run_it("solve", *PROBLEM, ":", *one[one.index("-n"):], "true", code=None, launcher=[*one, *tells],
                           environment={"HOSTLESS_DEADLINE_SCALE": "0.01"})
        self.assertLess(time.monotonic() - began, 240)  # of three starts at most
        self.assertNotEqual(done.returncode, 0)
        if self.vendor == "mpich":  # Open MPI ends the job by itself
            self.assertEqual(self.content("code"), b"4\n", done.stderr)
            self.assertIn("hostless: MPI_Init_thread has not returned for 10 s", done.stderr)

    def test_equal_files_may_lie_in_different_places(self):
        one = self.mpirun(1)
        for name in ("A.mtx", "copy.mtx"):
            self.write(name, market(chain(50), 50))
        self.run_it("solve", "A.mtx", ":", *one[one.index("-n"):], COMMAND, "solve", "copy.mtx", launcher=one)

    def test_what_one_process_does_is_refused_once(self):
        made = self.folder / "z.mtx"
        cases = [("plan", *PROBLEM), ("info", *PROBLEM[:4]), ("generate", "poisson2d", "--size", 9, "-o", made.name), ("options",),
                 ("machine", "show", "lassen")]
        self.side_by_side(self.refused_by_two, cases)
        self.assertFalse(made.exists())
        for words in cases:
            self.run_it(*words, launcher=self.mpirun(1))
        self.assertTrue(made.exists())

    def refused_by_two(self, *words):
        done = self.run_it(*words, code=2, launcher=self.mpirun(2))
        lines = [line for line in done.stderr.splitlines() if line.startswith("hostless: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertRegex(lines[0], f"^hostless: hostless {words[0]}( show)? by 2 processes of mpirun \\(")
        self.assertEqual(done.stdout, "")

    def test_bad_input_is_told_once(self):
        self.write("bad.mtx", market(chain(4), 4).replace("1 1 2.0", "1 1 x"))
        lines = self.ends_with(3, "bad.mtx:3: ", "bad.mtx")
        self.assertEqual(len(lines), 1)

    def test_a_result_that_cannot_be_written_ends_all_ranks_alike(self):
        lines = self.ends_with(4, "/dev/full", *PROBLEM, "--json", "/dev/full")
        self.assertEqual(len(lines), 1, lines)

    def test_a_killed_rank(self):
        job = self.start("solve", *ENDLESS, "--checkpoint", "c", "--checkpoint-every", 20, "--json", "result.json",
                         "--no-bandwidth", launcher=self.mpirun(3), environment=PATIENT)
        self.wait_for_file("c", job)
        ranks = ranks_of(job)
        self.assertEqual(len(ranks), 3)
        kill(sorted(ranks)[1], signal.SIGKILL)
        out, err = job.communicate(timeout=SLOWEST)
        # peer_lost of the others, or the MPI's own abort: 128 + 9 (Open MPI), 9 (MPICH) or, where MPICH's mpiexec itself
        # fails for ranks that have gone while it looks, its 1, 255 or SIGPIPE. Never 0, never a result.
        self.assertIn(job.returncode, (4, 137) if self.vendor == "openmpi" else (4, 9, 1, 255, -signal.SIGPIPE), err)
        self.assertNotIn("converged", out)
        if (self.folder / "result.json").exists():
            self.assertEqual(json.loads(self.content("result.json"))["status"], "peer_lost")
        self.wait_until_gone(ranks)


class OpenMpi(Mpi, Command):
    vendor = "openmpi"


class Mpich(Mpi, Command):
    vendor = "mpich"


if __name__ == "__main__":
    unittest.main()
