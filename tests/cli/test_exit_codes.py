"""Every exit code that the command documents, and one clear line with each refusal."""

import json
import os
import subprocess
import unittest

from hostless_command import COMMAND, ENDLESS, SLOWEST, Command, chain, limited, market, surroundings

SANITIZERS = {"ASAN_OPTIONS", "TSAN_OPTIONS"}  # they need all addresses
PROBLEM = ("solve", "--generate", "poisson2d", "--size", "12")


class ExitCodes(Command):
    def test_0_converged(self):
        self.assertIn("converged after", self.run_it(*PROBLEM).stdout)

    def test_1_not_converged(self):
        done = self.run_it(*PROBLEM, "--max-iterations", 3, code=1)
        self.assertTrue(done.stdout.startswith("iteration_limit after 3 iterations"), done.stdout)

    def test_1_every_numerical_ending_is_told(self):
        indefinite = chain(5)
        indefinite[2, 2] = -7.0
        self.write("A.mtx", market(indefinite, 5))
        self.assertEqual(self.solve("A.mtx", code=1)["status"], "indefinite_matrix")
        self.assertEqual(self.solve("A.mtx", "--preconditioner", "jacobi", code=1)["status"],
                         "indefinite_preconditioner")

    def test_2_usage(self):
        for words, says in (
                (("melt",), "'melt' is no subcommand of hostless"),
                (("solve",), "nothing to solve"),
                (("solve", "--unknown"), "--unknown"),
                (("solve", "--ranks"), "--ranks"),
                (("solve", "--preset", "moon"), "moon"),
                (("solve", "--generate", "moon"), "moon"),
                (("solve", "--generate", "poisson7", "--preset", "flan"), "--preset"),
                (("solve", "--preset", "flan", "--size", "3"), "--scale"),
                (("solve", "a", "b", "c", "d"), "d"),
                (("solve", "--generate", "poisson7", "b", "x0", "more"), "'more'"),
                (("solve", "A.mtx", "b.npy", "--manufactured"), "--manufactured"),
                ((*PROBLEM, "--method", "gmres"), "gmres"),
                ((*PROBLEM, "--run", "away"), "away"),
                ((*PROBLEM, "--run", "stream"), "--gpus"),
                ((*PROBLEM, "--lanes", "2"), "persistent"),
                ((*PROBLEM, "--preconditioner", "ilu"), "ilu"),
                ((*PROBLEM, "--reduction", "slow"), "slow"),
                ((*PROBLEM, "--null-space", "all"), "all"),
                ((*PROBLEM, "--transport", "pigeons"), "pigeons"),
                ((*PROBLEM, "--partition", "fair"), "fair"),
                ((*PROBLEM, "--partition", "file:"), "file:"),
                ((*PROBLEM, "--format", "coo"), "coo"),
                ((*PROBLEM, "--format", "bsr3", "--block-size", "2"), "contradict"),
                ((*PROBLEM, "--columns", "17"), "17"),
                ((*PROBLEM, "--block-size", "5"), "5"),
                ((*PROBLEM, "--route", "scenic"), "scenic"),
                ((*PROBLEM, "--boundary", "fence"), "fence"),
                ((*PROBLEM, "--output", "x.xls"), "x.xls"),
                ((*PROBLEM, "--checkpoint", "c"), "--checkpoint-every"),
                ((*PROBLEM, "--checkpoint-every", "3"), "--checkpoint"),
                (("generate", "poisson2d"), "--output"),
                (("generate", "poisson2d", "-o", "A.txt"), "A.txt"),
                (("solve", "A.mtx", "b.npy", "x0.npy", "--resume", "c"), "a first guess with --resume"),
                (("plan",), "--load"),
                (("plan", "--generate", "poisson2d", "A.mtx"), "one of"),
                (("info",), "--generate"),
                (("doctor", "--seconds", "0"), "--seconds"),
        ):
            with self.subTest(words=words):
                self.assertIn(says, self.refused(2, *words))

    def test_2_what_does_not_go_together_is_said_to_be_refused(self):
        self.write("A.mtx", market(chain(9), 9))
        lattice = ("--generate", "poisson1d", "--size", 9)
        for words in ((*PROBLEM, "--method", "minres", "--preconditioner", "chebyshev"), (*PROBLEM, "--chebyshev-degree", 3),
                      (*PROBLEM, "--matrix-precision", "fp32", "--method", "cr"), (*PROBLEM, "--matrix-precision", "fp32", "--preconditioner", "chebyshev"),
                      (*PROBLEM, "--lanes", 2), (*PROBLEM, "--run", "stream"), (*PROBLEM, "--run", "graph", "--check-interval", 2), (*PROBLEM, "--tune", "yes"),
                      (*PROBLEM, "--host-waits", "every_sum"), (*PROBLEM, "--longest-launch-s", 3), (*PROBLEM, "--gpu-transport", "nccl"),
                      (*PROBLEM, "--oversubscribe"), (*PROBLEM, "--format", "diagonals"), (*PROBLEM, "--format", "bsr3", "--block-size", 2),
                      (*PROBLEM, "--profile", "t.json"), (*PROBLEM, "--generate-on", "gpu"), (*PROBLEM, "--symmetry-tolerance", 1e-6),
                      (*PROBLEM, "--rhs-columns", 2), ("solve", "A.mtx", "--size", 3), ("solve", "A.mtx", "b", "x0", "--resume", "c"),
                      ("solve", "A.mtx", "b", "--manufactured"), ("solve", "--preset", "flan", "--size", 3), ("solve", *lattice, "--scale", 0.5),
                      ("predict", *lattice, "--machine", "frontier", "--nodes", 1, "--seed", 3),
                      ("predict", *lattice, "--machine", "frontier", "--nodes", 1, "--gpus-per-node", 1, "--ranks-per-node", 1),
                      ("predict", "collective", "--pattern", "allreduce", "--machine", "frontier", "--nodes", 2, "--radius", 2),
                      ("bench", "solve", *lattice, "--overlap", "--rhs-columns", 2, "--gpus", 1),
                      ("stencil", "--problem", "heat", "--size", "9,9", "--steps", 1, "--initial", "u.npy", "--resume", "c")):
            with self.subTest(words=words):
                self.assertRegex(self.refused(2, *words), r"^[^(]+ (\(lanes\) with the host run )?(is|are) refused \([^)]+\)")

    def test_2_numbers_out_of_range(self):
        for option in ("--ranks", "--lanes", "--check-interval", "--checkpoint-every"):
            for value in ("0", "-1", "1.5", "many", "99999999999999999999", ""):
                with self.subTest(option=option, value=value):
                    self.assertIn(option, self.refused(2, *PROBLEM, option, value))
        for option in ("--max-iterations", "--slices", "--ranks-per-node", "--seed"):
            for value in ("-1", "0.5", "99999999999999999999"):
                with self.subTest(option=option, value=value):
                    self.assertIn(option, self.refused(2, *PROBLEM, option, value))
        for value in ("0.5", "1e101"):
            self.assertIn("a number from 1 to 1e+100", self.refused(2, *PROBLEM, "--divergence-limit", value))
        for option in ("--rtol", "--atol", "--time-limit", "--divergence-limit"):
            endless = ("inf", "1e999") if option in ("--time-limit", "--divergence-limit") else ()
            for value in ("-1", "nan", "-inf", "small", "", *endless):
                with self.subTest(option=option, value=value):
                    self.assertIn(option, self.refused(2, *PROBLEM, option, value))

    def test_2_the_rule_that_a_number_breaks_is_said_whole(self):
        for words, says in ((("--slices", 2**31), "'2147483648' (a whole number from 0 to 2^31 - 1 is needed)"),
                            (("--seed", "010"), "to 9223372036854775807 is needed, without leading zeros)"),  # no octal one
                            (("--max-iterations", "0500"), "'0500' (a whole number from 0 to 2^63 - 1 is needed, without leading zeros)"),
                            (("--seed", 2**63), "from 0 to 9223372036854775807 is needed"),
                            (("--max-iterations", -1), "'-1' (a whole number from 0 to 2^63 - 1 is needed)"),
                            (("--rtol", "-1"), "--rtol: '-1' (a number from 0 to inf is needed)"),
                            (("--chebyshev-upper", "inf"), "'inf' (a finite number from 0 on is needed)"),
                            (("--time-limit", "inf"), "'inf' (a finite number above 0 is needed)")):
            with self.subTest(words=words):
                self.assertIn(says, self.refused(2, *PROBLEM, *words))

    def test_2_help_names_all_files_that_are_read(self):
        for command in ("info", "plan", "solve"):
            self.assertIn(".npz", self.run_it(command, "--help").stdout)

    def test_2_an_option_that_ends_with_its_equals_sign(self):
        # The parser took the next word for its value: a vector to be read became the file to write.
        self.write("b.npy", "mine")
        text = self.refused(2, "solve", "--generate", "poisson1d", "--size", 9, "--output=", "b.npy")
        self.assertEqual((text, self.content("b.npy")), ("--output= (nothing follows the =). Give a value, or drop it.", b"mine"))

    def test_2_a_seed_that_settings_cannot_hold(self):
        self.refused(2, "solve", "--generate", "poisson7", "--size", 3, "--seed", 2**63)
        settings = self.solve("--generate", "poisson7", "--size", 3, "--seed", 2**63 - 1)["settings"]
        self.assertEqual(settings["seed"], str(2**63 - 1))

    def test_2_more_ranks_than_any_machine_should_start(self):
        few = (*limited("-v", 4_000_000), *limited("-n", 64))  # a failure of this test starts hundreds at most
        if SANITIZERS & os.environ.keys():
            few = ()
        for words in ((*PROBLEM, "--ranks", 4097), (*PROBLEM, "--ranks", 4097, "--transport", "processes"),
                      ("plan", *PROBLEM[1:], "--ranks", 4097), ("generate", "poisson1d", "-o", "A.mtx", "--ranks", 4097),
                      (*PROBLEM, "--run", "persistent", "--lanes", 4097)):
            with self.subTest(words=words):
                self.assertIn("4096", self.refused(2, *words, launcher=few))

    def test_2_more_threads_of_a_rank_than_can_meet(self):
        one = ("taskset", "-c", str(min(os.sched_getaffinity(0))))
        for words in ((), ("--time-limit", 2)):
            says = self.refused(2, *PROBLEM, "--run", "persistent", "--lanes", 65, *words, launcher=one)
            self.assertRegex(says, r"^65 threads a rank \(lanes\) on 1 processor are refused .* Use at most 64\.$")

    def test_2_environment_variables_that_would_be_ignored(self):
        for name, values in (("HOSTLESS_ISA", ("foo", "V3")), ("HOSTLESS_DEADLINE_SCALE", ("abc", "0", "-1", "2x", "inf", "1e308", "1000001"))):
            for value in values:
                for words in (PROBLEM, (*PROBLEM, "--transport", "processes", "--ranks", 2), ("doctor",)):
                    with self.subTest(name=name, value=value, words=words):
                        says = self.refused(2, *words, environment={name: value})
                        self.assertTrue(says.startswith(f"{name}='{value}'"), says)
            self.run_it(*PROBLEM, "--no-bandwidth", environment={name: ""})  # as good as not set

    def test_2_switches_that_are_neither_on_nor_off(self):
        for name in ("SIZE_CHECK", "PROGRESS", "GPU_GUARD", "GPU_HOST_WAITS", "GPU_OVERLAP", "GPU_WHILE", "MPI_DEVICE_MEMORY"):
            name = "HOSTLESS_" + name
            for value in ("off", "2", "00", "true"):
                with self.subTest(name=name, value=value):
                    says = self.refused(2, *PROBLEM, environment={name: value})
                    self.assertTrue(says.startswith(f"{name}='{value}' (a switch: 1 is on, 0 is off)"), says)
            for value in ("", "0", "1"):
                with self.subTest(name=name, value=value):
                    self.run_it(*PROBLEM, "--no-bandwidth", environment={name: value})

    def test_environment_variables_that_nothing_asks_for(self):
        wrong = {"HOSTLESS_SIZECHECK": "0"}
        for words in ((*PROBLEM, "--quiet", "--no-bandwidth"), ("plan", *PROBLEM[1:], "--json", "-"),
                      (*PROBLEM, "--quiet", "--no-bandwidth", "--transport", "processes", "--ranks", 2)):
            with self.subTest(words=words):
                self.assertEqual(self.run_it(*words, environment=wrong).stderr,
                                 "hostless: HOSTLESS_SIZECHECK is no variable of hostless (it changes nothing). "
                                 "Did you mean 'HOSTLESS_SIZE_CHECK'?\n")
                self.assertEqual(self.run_it(*words, environment={"HOSTLESS_SIZE_CHECK": "1"}).stderr, "")

    def test_3_a_partition_of_a_single_rank_is_read_all_the_same(self):
        self.write("A.mtx", market(chain(6), 6))
        self.assertIn("no.txt", self.refused(3, "solve", "A.mtx", "--partition", "file:no.txt"))
        self.write("parts.txt", "0\n1\n" * 3)
        self.assertIn("parts.txt:2", self.refused(3, "solve", "A.mtx", "--partition", "file:parts.txt"))
        self.write("parts.txt", "0\n" * 6)
        self.solve("A.mtx", "--partition", "file:parts.txt")

    def test_2_generate_without_its_words(self):
        says = self.refused(2, "generate", "-o", "A.mtx")
        for word in ("Name a kind (", "poisson2d", "a preset (", "flan"):
            self.assertIn(word, says)
        self.assertIn("--output", self.refused(2, "generate", "poisson2d"))

    def test_2_files_that_would_replace_each_other(self):
        self.write("A.mtx", market(chain(6), 6))
        os.link(self.folder / "A.mtx", self.folder / "same.mtx")
        before = self.content("A.mtx")
        for words in (("--json", "a.mtx", "--output", "./a.mtx"), ("--json", "A.mtx"), ("--output", "A.mtx"),
                      ("--json", "same.mtx"), ("--checkpoint", "a", "--checkpoint-every", "1", "--json", "a")):
            with self.subTest(words=words):
                self.assertIn("are one file", self.refused(2, "solve", "A.mtx", *words))
        self.write("parts.txt", "0\n" * 6)
        for words in (("info", "A.mtx", "--json", "A.mtx"), ("plan", "A.mtx", "--save", "same.mtx"),
                      ("plan", "A.mtx", "--json", "A.mtx"), ("plan", "A.mtx", "--json", "a", "--save", "./a"),
                      ("bench", "solve", "A.mtx", "--json", "A.mtx"), ("bench", "halo", "A.mtx", "--json", "same.mtx"),
                      ("solve", "A.mtx", "--partition", "file:parts.txt", "--json", "parts.txt")):
            with self.subTest(words=words):
                self.assertIn("are one file", self.refused(2, *words))
        self.run_it("plan", "A.mtx", "--save", "plan.json")
        self.assertIn("are one file", self.refused(2, "plan", "--load", "plan.json", "--json", "plan.json"))
        for words in (("--json", ""), ("--output", "")):
            with self.subTest(words=words):
                self.assertIn("without a name", self.refused(2, "solve", "A.mtx", *words))
        for words, says in ((("A.mtx", ""), "file 2 of 2 has no name"), (("A.mtx", "", "b.npy"), "file 2 of 3 has no name"),
                            (("",), "file 1 of 1 has no name"), (("A.mtx", "--generate", ""), "--generate: a problem without a name"),
                            (("A.mtx", "--preset", ""), "--preset: a problem without a name")):
            with self.subTest(words=words):  # as a shell makes of a variable that is not set
                self.assertIn(says, self.refused(2, "solve", *words))
        self.assertEqual(self.content("A.mtx"), before)

    def test_errors_that_cannot_be_told_keep_their_code(self):
        self.write("A.mtx", market(chain(6), 6))
        for code, words in ((3, ("solve", "nowhere.mtx")), (2, ("solve", "A.mtx", "--bogus")), (2, ("solve", "A.mtx", "--slices", "-1")),
                            (3, ("solve", "nowhere.mtx", "--ranks", "2", "--transport", "processes"))):
            for closed in (False, True):
                with self.subTest(words=words, closed=closed), open("/dev/full", "w") as full:
                    done = subprocess.run([COMMAND, *words], stdout=subprocess.DEVNULL, stderr=full, cwd=self.folder, check=False,
                                          stdin=subprocess.DEVNULL, env=surroundings(), timeout=SLOWEST,
                                          preexec_fn=(lambda: os.close(2)) if closed else None)
                    self.assertEqual(done.returncode, code)

    def test_3_files_to_read_that_are_not_there(self):
        for words in (("solve", "no.mtx"), ("info", "no.mtx"), ("bench", "halo", "no.mtx"), ("plan", "--load", "no.json"),
                      (*PROBLEM, "--partition", "file:no.txt", "--ranks", 2), (*PROBLEM, "--resume", "no.checkpoint")):
            with self.subTest(words=words):
                says = self.refused(3, *words)
                self.assertTrue(says.startswith("no."), says)
                self.assertIn("(No such file or directory). Check the name.", says)

    def test_3_bad_files_with_file_and_line(self):
        good = market(chain(4), 4).splitlines()
        self.write("A.mtx", "\n".join(good) + "\n")
        bad = good.copy()
        bad[4] = "3 9 1.0"
        self.write("bad.mtx", "\n".join(bad) + "\n")
        self.write("b.mtx", "%%MatrixMarket matrix array real general\n4 1\n1\nzwei\n3\n4\n")
        self.write("short.npy", "\x93NUMPY")
        for words, where in ((("solve", "bad.mtx"), "bad.mtx:5: "), (("info", "bad.mtx"), "bad.mtx:5: "),
                             (("plan", "bad.mtx", "--ranks", "2"), "bad.mtx:5: "),
                             (("solve", "A.mtx", "b.mtx"), "b.mtx:4: "), (("solve", "A.mtx", "short.npy"), "short.npy"),
                             (("plan", "--load", "A.mtx"), "A.mtx"), (("solve", "A.mtx", "--resume", "A.mtx"), "A.mtx")):
            with self.subTest(words=words):
                self.assertTrue(self.refused(3, *words).startswith(where))

    def test_3_bad_files_are_told_once_by_several_ranks(self):
        bad = market(chain(4), 4).replace("1 1 2.0", "1 1 x")
        self.write("bad.mtx", bad)
        for transport in ("threads", "processes"):
            with self.subTest(transport=transport):
                self.assertIn("bad.mtx:3: ", self.refused(3, "solve", "bad.mtx", "--ranks", 3, "--transport", transport))

    def test_4_files_that_cannot_be_written(self):
        for name in ("no/such/folder.json", "/dev/full"):
            with self.subTest(name=name):
                self.assertIn(name, self.refused(4, *PROBLEM, "--quiet", "--json", name))
                self.assertIn(name, self.refused(4, "info", *PROBLEM[1:], "--json", name, quiet=False))

    def test_4_a_result_that_cannot_be_written_ends_all_ranks_alike(self):
        for transport in ("threads", "processes"):
            for words in ((*PROBLEM, "--quiet"), ("bench", *PROBLEM, "--methods", "cg", "--runs", "host", "--repeat", 1),
                          ("bench", "allreduce", "--steps", 2, "--repeat", 1)):
                with self.subTest(transport=transport, words=words):
                    says = self.refused(4, *words, "--json", "/dev/full", "--ranks", 3, "--transport", transport,
                                        quiet=False)
                    self.assertTrue(says.startswith("/dev/full"), says)

    def test_4_targets_that_cannot_be_written_are_told_before_the_solve(self):
        self.write("kept.json", "older")
        (self.folder / "folder.npy").mkdir()
        for words, name in ((("--json", "no/r.json"), "no/r.json"), (("--output", "no/x.npy"), "no/x.npy"),
                            (("--checkpoint", "no/c", "--checkpoint-every", "9"), "no/c"),
                            (("--json", "."), "."), (("--output", "folder.npy"), "folder.npy"),
                            (("--output", "new.npy", "--json", "kept.json", "--checkpoint", "no/c",
                              "--checkpoint-every", "9"), "no/c")):
            for transport in ("threads", "processes"):
                with self.subTest(words=words, transport=transport):  # the solve itself would never end
                    says = self.refused(4, "solve", *ENDLESS, *words, "--transport", transport, "--ranks", 2)
                    self.assertTrue(says.startswith(name), says)
        self.assertEqual(sorted(os.listdir(self.folder)), ["folder.npy", "kept.json"])
        self.assertEqual(self.content("kept.json"), b"older")

    def test_4_a_solution_that_cannot_be_written_keeps_summary_and_json(self):
        for transport in ("threads", "processes"):
            with self.subTest(transport=transport):
                done = self.run_it(*PROBLEM[:-1], 600, "--output", "x.npy", "--json", "r.json", "--ranks", 2,
                                   "--transport", transport, "--no-bandwidth", "--max-iterations", 3, code=4,
                                   launcher=limited("-f", 2000, ignoring="XFSZ"))  # 1 or 2 MB; x is 2.9 MB
                self.assertIn("iteration_limit after", done.stdout)
                self.assertNotIn("x.npy", done.stdout)
                self.assertEqual(json.loads(self.content("r.json"))["status"], "iteration_limit")
                self.assertEqual(done.stderr.count("x.npy"), 1, done.stderr)

    def test_4_a_checkpoint_that_cannot_be_written_keeps_everything_else(self):
        for transport in ("threads", "processes"):
            for every, made in ((2, 5), (3, 5)):  # none of them fits, those of later iterations neither
                with self.subTest(transport=transport, every=every):
                    done = self.run_it(*PROBLEM[:-1], 300, "--output", "x.npy", "--json", "r.json", "--ranks", 2, "--transport", transport,
                                       "--no-bandwidth", "--max-iterations", made, "--checkpoint", "c", "--checkpoint-every", every, code=4,
                                       launcher=("prlimit", f"--fsize={10**6}"))  # x is 720 kB, the checkpoint 3 MB
                    self.assertIn("iteration_limit after", done.stdout)
                    self.assertTrue(done.stderr.startswith("hostless: c: cannot "), done.stderr)
                    self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                    told = json.loads(self.content("r.json"))
                    self.assertEqual((told["status"], told["checkpoints"]), ("iteration_limit", 0))
                    mine = self.content("x.npy")
                    self.run_it(*PROBLEM[:-1], 300, "--output", "x.npy", "--max-iterations", made, "--ranks", 2, "--quiet", code=1)
                    self.assertEqual(mine, self.content("x.npy"))
                    self.assertEqual(sorted(os.listdir(self.folder)), ["r.json", "x.npy"])

    def test_4_no_gpu_whoever_asks_for_one(self):
        here = {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1", "ROCR_VISIBLE_DEVICES": "-1"}
        stencil = ("--problem", "heat", "--size", "9,9", "--steps", 1)
        for words in ((*PROBLEM, "--gpus", 1), ("stencil", *stencil, "--gpus", 1), ("bench", "allreduce", "--gpus", 2),
                      ("bench", "halo", *PROBLEM[1:], "--gpus", 2), ("bench", "life", "--size", 16, "--gpus", 2),
                      ("bench", "life", "--size", 16, "--gpus", 2, "--queue", "peer"), ("bench", "pingpong", "--queue", "peer", "--gpus", 2)):
            with self.subTest(words=words):
                self.assertIn("hostless: no GPU can be used", self.run_it(*words, code=4, environment=here).stderr)

    def test_4_out_of_memory(self):
        self.skip_under_sanitizers("a sanitizer needs all addresses")
        for transport in ("threads", "processes"):
            with self.subTest(transport=transport):
                says = self.refused(4, "solve", "--generate", "poisson1d", "--size", 5_000_000, "--transport", transport,
                                    launcher=limited("-v", 200000))
                self.assertIn("memory", says)

    def test_4_more_threads_than_fit(self):
        self.skip_under_sanitizers("a sanitizer needs all addresses")
        says = self.refused(4, *PROBLEM, "--ranks", 500, launcher=limited("-v", 400000))
        self.assertRegex(says, "only [0-9]+ of 500 threads can be started")

    def skip_under_sanitizers(self, reason):
        if SANITIZERS & os.environ.keys():
            self.skipTest(reason)

    def test_4_too_few_open_files(self):
        self.skip_under_sanitizers("a sanitizer looks at memory through pipes")
        codes = []
        for files in range(3, 40, 3):
            done = subprocess.run([*limited("-n", files), COMMAND, *PROBLEM, "--transport", "processes", "--ranks", "4",
                                   "--no-bandwidth"], capture_output=True, text=True, timeout=SLOWEST,
                                  env=surroundings())
            codes.append(done.returncode)
            if done.returncode == 4:
                self.assertIn("hostless: ", done.stderr)
                self.assertNotIn("converged", done.stdout)
        self.assertEqual(set(codes) - {127}, {0, 4}, codes)  # 127: not even the libraries can be opened
        self.assertEqual(codes[-1], 0)
        self.assertGreater(codes.count(4), 2)

    def test_4_aborted(self):
        self.assertEqual(self.solve(*PROBLEM[1:], "--time-limit", "1e-9", code=4)["status"], "aborted")


if __name__ == "__main__":
    unittest.main()
