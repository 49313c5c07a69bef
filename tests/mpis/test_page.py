"""What docs/howto/from-gpu-aware-mpi.md shows is what jacobi.cpp, which is executed, has between its marks."""

import pathlib
import re
import textwrap
import unittest

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "howto" / "from-gpu-aware-mpi.md"


class Page(unittest.TestCase):
    def test_blocks_are_those_of_the_program(self):
        program = (HERE / "jacobi.cpp").read_text()
        parts = re.findall(r"// \[([\w ]+)\n(.*?)[ ]*// \1\]", program, re.DOTALL)
        self.assertEqual([name for name, _ in parts], ["before", "stream halo", "all at once"])
        shown = re.findall(r"```cpp\n(.*?)```", PAGE.read_text(), re.DOTALL)
        self.assertEqual(shown, [re.sub(r"  // bounded: [^\n]*", "", textwrap.dedent(text)) for _, text in parts])


if __name__ == "__main__":
    unittest.main()
