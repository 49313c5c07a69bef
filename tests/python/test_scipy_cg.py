"""scipy's own tests of cg, from the installed scipy, with hostless.cg in its place.

The installed file is read, its list of solvers is cut down to cg, and cg is hostless.cg; everything else is scipy's.
Tests of other methods are left out. What differs on purpose stands in EXCEPTIONS, each with its reason; conftest.py
skips those with it.
"""

import ast
import pathlib

import numpy as np
import pytest
import scipy.sparse.linalg
from scipy._lib import _array_api

import hostless

#: Part of a test's name -> why scipy's expectation is not hostless's.
EXCEPTIONS = {
    "rand-cmplx": "complex matrices are refused with a TypeError: the methods are for real ones "
                  "(test_inputs.py checks that)",
    "test_precond_inverse": "counts products with a LinearOperator: hostless makes two more, which sample its symmetry, "
                            "and one for the residual of the answer (the same is counted in test_cg.py)",
}

#: Of methods that hostless does not have.
OTHERS = ("test_show", "TestQMR", "TestGMRES")


def with_hostless(source: str) -> ast.Module:
    tree = ast.parse(source)
    body, changed = [], 0
    for node in tree.body:
        if getattr(node, "name", None) in OTHERS:
            continue
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_SOLVERS":
            body.append(ast.parse("from hostless import cg").body[0])
            node.value = ast.parse("[cg]", mode="eval").body
            changed += 1
        body.append(node)
    assert changed == 1, "scipy's list of solvers was not found: its tests have changed"
    tree.body = body
    return ast.fix_missing_locations(tree)


# From scipy 1.18 on tests look up in a table what a solver takes, and get the array library from a fixture of scipy's.
_table = getattr(_array_api, "xp_capabilities_table", {})
if scipy.sparse.linalg.cg in _table:
    _table[hostless.cg] = _table[scipy.sparse.linalg.cg]


@pytest.fixture
def xp():
    return np


_path = pathlib.Path(scipy.sparse.linalg.__file__).parent / "_isolve" / "tests" / "test_iterative.py"
exec(compile(with_hostless(_path.read_text(encoding="utf-8")), str(_path), "exec"))  # noqa: S102


def test_it_is_hostless_that_is_tested():
    assert _SOLVERS == [hostless.cg] and cg is hostless.cg  # noqa: F821
    assert any(case.solver is hostless.cg for case in cases)  # noqa: F821
