"""What check_registers.py reads out of a compiler's words, and what it fails on."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

from tests import checkout  # noqa: F401  (puts tools/ on the path)

import check_registers

NAME = "_ZN8hostless3gpu17persistent_kernelILi1ENS_2CgINS_18LeafPreconditionerILi1EEENS_11NoChebyshevEEEdLNS0_5RanksE1EEEvT0_"
LOG = f"""ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '{NAME}' for 'sm_90'
ptxas info    : Function properties for {NAME}
    48 bytes stack frame, 12 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 128 registers, used 1 barriers, 48 bytes cumulative stack size
ptxas info    : Compiling entry function '_Z5otherv' for 'sm_90'
ptxas info    : Function properties for _Z5otherv
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers
"""
KERNEL = ("Cg+LeafPreconditioner", "double", "1", "several", "sm_90")


class Registers(unittest.TestCase):
    def checked(self, log, *words, table=None, compiler="nvcc 1"):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "log").write_text(log)
            if table is not None:
                (root / "table").write_text(table)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                code = check_registers.main([str(root / "log"), "--table", str(root / "table"), "--compiler", compiler, *words])
            return code, printed.getvalue(), (root / "table").read_text() if (root / "table").exists() else ""

    def test_what_a_compiler_says(self):
        self.assertEqual(check_registers.kernels_of(LOG), {KERNEL: (128, 12, 24, 48)})

    def test_a_written_table_is_kept(self):
        code, _, table = self.checked(LOG, "--write")
        self.assertEqual(code, 0)
        self.assertEqual(check_registers.table_of(table), ("nvcc 1", {KERNEL: (128, 12, 24, 48)}))
        self.assertEqual(self.checked(LOG, table=table)[0], 0)
        self.assertEqual(self.checked(LOG.replace("12 bytes spill stores", "4 bytes spill stores"), table=table)[0], 0)

    def test_more_is_refused(self):
        table = self.checked(LOG, "--write")[2]
        for before, after in (("Used 128", "Used 136"), ("12 bytes spill stores", "16 bytes spill stores"), ("48 bytes stack", "56 bytes stack")):
            code, printed, _ = self.checked(LOG.replace(before, after), table=table)
            self.assertEqual(code, 1, after)
            self.assertIn("the table has 128 12 24 48", printed)
        other = LOG.replace("persistent_kernelILi1E", "persistent_kernelILi2E")
        code, printed, _ = self.checked(other, table=table)
        self.assertEqual(code, 1)
        self.assertIn("not in the table", printed)
        self.assertIn("was not compiled", printed)

    def test_of_two_instances_the_larger_counts(self):
        other = NAME.replace("EEEdLNS0_5RanksE1EEEvT0_", "EEEdLNS0_5RanksE1EEEvT1_")  # as the same kernel with another argument
        for first, second in ((128, 100), (100, 128)):
            log = LOG.replace("Used 128", f"Used {first}") + LOG.replace(NAME, other).replace("Used 128", f"Used {second}").replace(
                "12 bytes spill stores", "20 bytes spill stores")
            self.assertEqual(check_registers.kernels_of(log), {KERNEL: (128, 20, 24, 48)})

    def test_another_compiler_is_not_compared(self):
        table = self.checked(LOG, "--write")[2]
        code, printed, _ = self.checked(LOG.replace("Used 128", "Used 255"), table=table, compiler="nvcc 2")
        self.assertEqual(code, 0)
        self.assertIn("not compared", printed)

    def test_a_log_without_kernels_is_no_success(self):
        self.assertEqual(self.checked("nothing\n", table="# compiler: nvcc 1\n")[0], 1)


if __name__ == "__main__":
    unittest.main()
