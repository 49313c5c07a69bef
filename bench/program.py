"""What scripts are given: where a program is, and where a picture goes."""

import argparse
import importlib.util
import shutil
from pathlib import Path


def program(name: str) -> str:
    """The whole path of a program, named by its path or as a shell finds it: for what runs it elsewhere."""
    return str(Path(shutil.which(name) or name).resolve())


def picture(name: str) -> Path:
    """A picture to be; refused before anything is measured where nothing can draw it."""
    if importlib.util.find_spec("matplotlib") is None:
        raise argparse.ArgumentTypeError(f"{name}: pictures need matplotlib, which this Python has not")
    return Path(name)
