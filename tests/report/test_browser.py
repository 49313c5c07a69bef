"""The page in headless Chromium: nothing on its console, every figure has a size, no label on another, nothing too wide.

Skipped, with the reason, where Chromium is not installed (`tools/setup.sh pictures`).
"""

import base64
import json
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import picture_case
from picture_case import MISSING, WHY_SKIPPED

if not MISSING:
    from hostless.report import make_page  # the checkout's

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

# Looks at the page as it was laid out and leaves what it saw in it. The page itself forbids scripts: the copy that is
# looked at allows this one.
PROBE = """<script>
const box = it => { const r = it.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
const svgs = [...document.querySelectorAll("svg")];
const colour = it => getComputedStyle(it).color;
const seen = {
  figures: svgs.map(svg => ({box: box(svg), texts: [...svg.querySelectorAll("text")].map(
    text => ({words: text.textContent.trim(), box: box(text)}))})),
  width: [document.documentElement.scrollWidth, innerWidth],
  background: getComputedStyle(document.body).backgroundColor, ink: colour(document.body),
  svgInk: [...new Set([...document.querySelectorAll("svg text")].filter(text => !/^\\d+ %$/.test(text.textContent.trim()))
    .map(text => getComputedStyle(text).fill))],  // shares stand on bars
  text: document.body.innerText,
};
const pre = document.createElement("pre");
pre.id = "seen";
pre.textContent = btoa(unescape(encodeURIComponent(JSON.stringify(seen))));
document.body.append(pre);
</script>"""


def brightness(colour: str) -> float:
    """Of rgb(r, g, b), from 0 to 1."""
    red, green, blue = map(float, re.findall(r"[\d.]+", colour)[:3])
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255


def overlap(one, other) -> float:
    """The area that two boxes share, in square pixels."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, width) * max(0.0, height)


@unittest.skipIf(MISSING, WHY_SKIPPED)
@unittest.skipIf(CHROMIUM is None, "chromium is not installed: no page is opened")
class Browser(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hostless-", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def chromium(self, *words):
        """Standard output, after a look at what came on the console."""
        done = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                               "--enable-logging=stderr", f"--user-data-dir={self.folder / 'profile'}", *words],
                              capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line for line in done.stderr.splitlines() if "CONSOLE" in line], [])
        return done.stdout

    def opened(self, page, width=1100, dark=False):
        """What the probe saw."""
        path = self.folder / "page.html"
        path.write_text(page.replace("default-src 'none';", "default-src 'none'; script-src 'unsafe-inline';")
                        .replace("</body>", PROBE + "</body>"))
        dom = self.chromium(f"--window-size={width},1400", f"--blink-settings=preferredColorScheme={0 if dark else 1}",
                            "--dump-dom", path.as_uri())
        return json.loads(base64.b64decode(re.search(r'<pre id="seen">([^<]+)</pre>', dom).group(1)))

    def looks_right(self, seen, figures):
        self.assertEqual(len(seen["figures"]), figures)
        self.assertLessEqual(*seen["width"])
        for figure in seen["figures"]:
            left, top, right, bottom = figure["box"]
            self.assertGreater(right - left, 200)
            self.assertGreater(bottom - top, 50)
            texts = [text for text in figure["texts"] if text["words"]]
            self.assertGreater(len(texts), 2)
            for k, text in enumerate(texts):
                x0, y0, x1, y1 = text["box"]
                self.assertTrue(left - 1 <= x0 and x1 <= right + 1 and top - 1 <= y0 and y1 <= bottom + 1, text)
                for other in texts[:k]:
                    self.assertLess(overlap(text["box"], other["box"]), 4, (text, other))

    def test_a_solve_on_four_ranks(self):
        result = picture_case.solved()
        page = make_page([result])
        for width, dark in ((1100, False), (1100, True), (420, False)):
            with self.subTest(width=width, dark=dark):
                seen = self.opened(page, width, dark)
                self.looks_right(seen, figures=4)
                for words in ("Summary", "converged", f"{result['iterations']} iterations", "Convergence",
                              "Where the time goes", "Share of memory bandwidth", "Who sends what to whom",
                              "What was chosen, and why", f"{result['true_relative_residual']:.3e}"):
                    self.assertIn(words, seen["text"])
                self.assertEqual(brightness(seen["background"]) < 0.2, dark)
                for ink in (seen["ink"], *seen["svgInk"]):
                    self.assertGreater(abs(brightness(ink) - brightness(seen["background"])), 0.3, ink)

    def test_many_files_beside_each_other(self):
        one, other = picture_case.solved(), picture_case.solved("--method", "pipelined-cg", "--preconditioner", "jacobi")
        gpus = picture_case.as_if_on_gpus(other)
        page = make_page([{**one, "label": "a name that is longer than the place which it has beside a bar"}, other, gpus,
                          picture_case.planned(), picture_case.planned(20), picture_case.measured(1), picture_case.measured(2)])
        self.looks_right(self.opened(page), figures=3 + 5 + 1)

    def test_ways_of_solving(self):
        seen = self.opened(make_page([picture_case.measured(2)]))
        self.looks_right(seen, figures=1)
        self.assertIn("pipelined-cg, graph", seen["text"])

    def test_a_picture_and_paper(self):
        path = self.folder / "page.html"
        path.write_text(make_page([picture_case.solved(), picture_case.measured(2)]))
        self.chromium("--window-size=1100,3000", f"--screenshot={self.folder / 'page.png'}", path.as_uri())
        self.assertGreater((self.folder / "page.png").stat().st_size, 50_000)
        self.chromium(f"--print-to-pdf={self.folder / 'page.pdf'}", path.as_uri())
        self.assertTrue((self.folder / "page.pdf").read_bytes().startswith(b"%PDF"))


if __name__ == "__main__":
    unittest.main()
