"""What pages show of C++ is what a program, which is executed, has between its marks: docs/howto/neighbour-collectives.md of neighbours.cpp, and
docs/howto/queue.md of halo.cpp."""

import pathlib
import re
import textwrap
import unittest

HERE = pathlib.Path(__file__).parent
PAGES = HERE.parents[1] / "docs" / "howto"


def marked(program, mark):
    return re.search(rf"// \[{mark}\n(.*?)[ ]*// {mark}\]", (HERE / "uses_hostless" / program).read_text(), re.DOTALL)[1]


def shown(page):
    return re.findall(r"```cpp\n(.*?)```", (PAGES / page).read_text(), re.DOTALL)


class Page(unittest.TestCase):
    def test_the_block_is_that_of_the_program(self):
        self.assertEqual(shown("neighbour-collectives.md")[:1], [marked("neighbours.cpp", "plan") + "  return true;\n}\n"])

    def test_the_halo_is_that_of_the_program(self):
        blocks = [block for block in shown("queue.md") if "QueueHalo" in block]
        self.assertEqual(blocks, ['#include "hostless/queue/halo.hpp"\n\n' + textwrap.dedent(marked("halo.cpp", "halo"))])


if __name__ == "__main__":
    unittest.main()
