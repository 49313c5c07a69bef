"""What docs/howto/neighbour-collectives.md shows of C++ is what neighbours.cpp, which is executed, has between its marks."""

import pathlib
import re
import unittest

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "howto" / "neighbour-collectives.md"


class Page(unittest.TestCase):
    def test_the_block_is_that_of_the_program(self):
        program = (HERE / "uses_hostless" / "neighbours.cpp").read_text()
        part = re.search(r"// \[plan\n(.*?)[ ]*// plan\]", program, re.DOTALL)
        shown = re.findall(r"```cpp\n(.*?)```", PAGE.read_text(), re.DOTALL)
        self.assertEqual(shown[:1], [part[1] + "  return true;\n}\n"])


if __name__ == "__main__":
    unittest.main()
