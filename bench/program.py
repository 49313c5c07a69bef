"""Where the program is that a script was given."""

import shutil
from pathlib import Path


def program(name: str) -> str:
    """The whole path of a program, named by its path or as a shell finds it: for what runs it elsewhere."""
    return str(Path(shutil.which(name) or name).resolve())
