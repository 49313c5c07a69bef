"""What was to be printed and could not be is an error, whoever says it."""

import json
import os
import subprocess
import time
import unittest
from pathlib import Path

from hostless_command import COMMAND, SLOWEST, Command, chain, market, surroundings

SMALL = ("--generate", "poisson2d", "--size", "12")
PRINTING = (("--help",), ("--version",), (), ("bench",), ("solve", "--help"),
            ("solve", *SMALL), ("solve", *SMALL, "--json", "-"), ("solve", *SMALL, "--max-iterations", "1"),
            ("solve", *SMALL, "--ranks", "2", "--transport", "processes"), ("solve", *SMALL, "--ranks", "2"),
            ("solve", *SMALL, "--ranks", "2", "--transport", "processes", "--max-iterations", "1"),
            ("info", *SMALL), ("info", *SMALL, "--json", "-"), ("plan", *SMALL), ("plan", *SMALL, "--json", "-"),
            ("doctor", "--seconds", "0.001"), ("doctor", "--seconds", "0.001", "--json", "-"),
            ("bench", "solve", *SMALL, "--iterations", "3"), ("bench", "solve", *SMALL, "--iterations", "3", "--json", "-"),
            ("bench", "halo", *SMALL, "--steps", "1"), ("bench", "allreduce", "--steps", "1"),
            ("bench", "pingpong", "--ranks", "2", "--sizes", "8", "--steps", "1"),
            ("generate", "poisson1d", "--size", "5", "-o", "A.mtx"))


class Lost(Command):
    def with_output(self, words, **how):
        return subprocess.run([COMMAND, *words], stderr=subprocess.PIPE, text=True, cwd=self.folder, timeout=SLOWEST,
                              env=surroundings(), stdin=subprocess.DEVNULL, **how)

    def is_lost(self, done):
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("hostless: standard output cannot be written", done.stderr)

    def test_a_full_device(self):
        for words in PRINTING:
            with self.subTest(words=words), open("/dev/full", "w") as full:
                self.is_lost(self.with_output(words, stdout=full))

    def test_a_reader_that_takes_its_time(self):
        """Whoever writes waits for it, and nobody waits for whoever writes: not with the deadline of the others."""
        words = ("solve", "--generate", "poisson2d", "--size", "400", "--rtol", "0", "--max-iterations", "6000", "--ranks", "2",
                 "--no-bandwidth", "--json", "-")
        # The iterations have their own deadline, which is too short then for a busy machine: they are made before.
        self.run_it(*words, "--checkpoint", "c", "--checkpoint-every", "5999", code=1)
        for _ in range(5):  # of the last one, too, the machine may be too busy
            with subprocess.Popen([COMMAND, *words, "--resume", "c"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
                                  stdin=subprocess.DEVNULL, env={**surroundings(), "HOSTLESS_DEADLINE_SCALE": "0.02"}) as process:
                begin = os.read(process.stdout.fileno(), 1).decode()  # the rest is more than a pipe holds
                time.sleep(14)  # 12 s is what a collective has now
                out, err = process.communicate(timeout=SLOWEST)
            if begin and json.loads(begin + out)["status"] != "peer_lost":
                break
        self.assertEqual((process.returncode, err), (1, ""))
        self.assertGreater(len(out), 1 << 16)

    def test_a_closed_standard_output(self):
        for words in PRINTING:
            with self.subTest(words=words):
                self.is_lost(self.with_output(words, preexec_fn=lambda: os.close(1)))

    def test_nothing_printed_nothing_lost(self):
        words = ("solve", *SMALL, "--quiet", "--json", "r.json", "--output", "x.npy", "--no-bandwidth")
        with open("/dev/full", "w") as full:
            self.assertEqual((self.with_output(words, stdout=full).returncode), 0)
        done = self.with_output(words, preexec_fn=lambda: [os.close(stream) for stream in (0, 1)])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(json.loads(self.content("r.json"))["status"], "converged")  # and nothing else went in there

    def test_what_was_computed_is_written_all_the_same(self):
        with open("/dev/full", "w") as full:
            self.is_lost(self.with_output(("solve", *SMALL, "--output", "x.npy", "--no-bandwidth"), stdout=full))
        self.assertTrue((self.folder / "x.npy").exists())

    def test_a_worse_fault_keeps_its_code(self):
        self.write("bad.mtx", market(chain(4), 4).replace("1 1 2.0", "1 1 x"))
        for words, code in ((("solve", "--unknown"), 2), (("info", "bad.mtx"), 3)):
            with self.subTest(words=words), open("/dev/full", "w") as full:
                self.assertEqual(self.with_output(words, stdout=full).returncode, code)

    def test_a_reader_that_leaves(self):
        for words in (("plan", *SMALL), ("doctor", "--seconds", "0.001"), ("bench", "solve", *SMALL, "--iterations", "3")):
            with self.subTest(words=words):
                reader, writer = os.pipe()
                os.close(reader)
                done = self.with_output(words, stdout=writer)
                os.close(writer)
                self.assertEqual((done.returncode, done.stderr), (-13, ""))  # SIGPIPE, as cat and its like
        reader, writer = os.pipe()
        os.close(reader)
        done = self.with_output(("solve", *SMALL, "--ranks", "2", "--transport", "processes"), stdout=writer)
        os.close(writer)
        self.is_lost(done)  # a rank that died of it would be missed by the others

    def test_a_reader_that_leaves_keeps_no_file_from_being_written(self):
        stencil = ("stencil", "--problem", "heat", "--size", "20,20", "--steps", "3000", "--every", "1")
        life = ("bench", "life", "--size", "16", "--ranks", "2", "--steps", "1", "--repeat", "1", "--warm-up", "1")
        for words, names in (((*stencil, "--output", "u.npy", "--json", "j.json", "--checkpoint", "c"), ("c", "j.json", "u.npy")),
                             (("solve", *SMALL, "--output", "x.npy", "--json", "j.json"), ("j.json", "x.npy")),
                             (("bench", "solve", *SMALL, "--iterations", "3", "--json", "j.json"), ("j.json",)),
                             ((*life, "--json", "j.json"), ("j.json",)), (("plan", *SMALL, "--save", "p.json"), ("p.json",))):
            with self.subTest(words=words):
                reader, writer = os.pipe()
                os.close(reader)
                done = self.with_output(words, stdout=writer)
                os.close(writer)
                self.is_lost(done)
                self.assertEqual(sorted(name for name in os.listdir(self.folder) if name != "cache"), sorted(names))
                for name in names:
                    (self.folder / name).unlink()


class Names(Command):
    """Names of files are bytes; JSON is UTF-8."""

    def test_that_are_no_utf_8(self):
        name = b"a\xff.mtx"
        (Path(os.fsdecode(self.folder)) / os.fsdecode(name)).write_text(market(chain(4), 4))
        for words in (("info", name), ("bench", "solve", name, "--iterations", "3"), ("bench", "halo", name, "--steps", "1"), ("plan", name)):
            with self.subTest(words=words):
                done = subprocess.run([COMMAND, *words, "--json", "-"], capture_output=True, cwd=self.folder, timeout=SLOWEST,
                                      env=surroundings(), stdin=subprocess.DEVNULL)
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                json.loads(done.stdout)


class Limits(Command):
    def test_files_that_may_not_become_so_long(self):
        """The signal that says so would end the program with its temporary files left behind."""
        for words, code in ((("solve", "--generate", "poisson2d", "--size", "60", "--output", "x.npy", "--no-bandwidth"), 4),
                            (("generate", "poisson2d", "--size", "60", "-o", "A.mtx"), 4)):
            with self.subTest(words=words):
                done = self.run_it(*words, code=code, launcher=("bash", "-c", 'ulimit -f 1; exec "$@"', "bash"))
                self.assertIn("File too large", done.stderr)
                self.assertEqual(os.listdir(self.folder), [])

    def test_figures_that_cannot_be_written_are_measured_and_printed_all_the_same(self):
        for ranks in ("1", "2"):
            done = self.run_it("bench", "solve", *SMALL, "--iterations", "3", "--repeat", "1", "--ranks", ranks, "--json", "j.json", code=4,
                               launcher=("bash", "-c", 'ulimit -f 1; exec "$@"', "bash"))
            self.assertEqual(done.stderr.count("File too large"), 1, done.stderr)
            for method in ("cg", "pipelined-cg"):
                for run in ("host", "persistent", "graph"):
                    self.assertRegex(done.stdout, rf"(?m)^{method} +{run} ")
            self.assertNotIn("j.json", os.listdir(self.folder))


class WithoutSys(Command):
    """In a container without /sys hwloc finds little, and says so on standard error unless it is kept from it."""

    SPACE = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs none /sys && exec "$@"', "sh")

    def test_nothing_is_complained_of(self):
        if subprocess.run([*self.SPACE, "true"], capture_output=True).returncode:
            self.skipTest("no namespace of its own can be made here")
        for words in (("solve", *SMALL, "--no-bandwidth"), ("doctor", "--seconds", "0.001")):
            with self.subTest(words=words):
                self.assertEqual(self.run_it(*words, launcher=self.SPACE).stderr, "")


if __name__ == "__main__":
    unittest.main()
