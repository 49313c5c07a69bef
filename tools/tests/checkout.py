"""A small checkout for the tools to look at, and a way to run one of them there."""

import contextlib
import io
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


@contextlib.contextmanager
def checkout(contents: dict):
    """A temporary folder holding `contents` (name -> text); no git repository, so every file counts."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, content in contents.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content, encoding="utf-8")
        yield root


def run(tool, contents: dict, *options: str) -> tuple:
    """(exit code, everything printed) of tool.main on a checkout with these contents."""
    printed = io.StringIO()
    with checkout(contents) as root, contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = tool.main(["--root", str(root), *options])
    return code, printed.getvalue()
