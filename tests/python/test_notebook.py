"""docs/getting-started.ipynb is executed, and what its cells computed is compared with scipy's direct solver."""

import pathlib

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import splu

import hostless

PATH = pathlib.Path(__file__).resolve().parents[2] / "docs" / "getting-started.ipynb"

#: Runs behind the last cell: carries what the cells before have computed to this process.
CARRY = """
np.savez({path!r}, x=x, x4=x4, u=u, columns=columns, difference=difference, info=info, indefinite=indefinite,
         same_bits=same_bits, same_bits_of_runs=same_bits_of_runs, set_ups=set_ups, steps=len(iterations),
         iterations=[told.iterations for told in results], sent=plan.traffic.sum(),
         halo=four.bytes["halo_per_iteration"], refused=refused, on_gpu=x_gpu is not None,
         lines=[len(line.get_xdata()) for line in axes.lines])
"""


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """(the notebook with its outputs, by name what its cells computed)"""
    reason = "what executes notebooks is not installed (nbclient, ipykernel, matplotlib)"
    for package in ("ipykernel", "matplotlib"):
        pytest.importorskip(package, reason=reason)
    nbclient = pytest.importorskip("nbclient", reason=reason)
    import nbformat

    notebook = nbformat.read(PATH, 4)
    nbformat.validate(notebook)
    values = tmp_path_factory.mktemp("notebook") / "values.npz"
    notebook.cells.append(nbformat.v4.new_code_cell(CARRY.format(path=str(values))))
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    with np.load(values) as read:
        return notebook, dict(read)


def test_its_answers_are_those_of_a_direct_solver(executed):
    _, values = executed
    A = hostless.generate("elasticity-hex8", 12)
    b = np.random.default_rng(7).standard_normal(A.shape[0])
    right = splu(A.tocsc()).solve(b)
    for x in (values["x"], values["x4"]):
        assert np.linalg.norm(A @ x - b) <= 1.001e-8 * np.linalg.norm(b)
        assert np.linalg.norm(x - right) <= 1e-5 * np.linalg.norm(right)
    assert values["info"] == 0 and values["difference"] < 1e-5


def test_its_time_steps_are_those_of_a_direct_solver(executed):
    _, values = executed
    heat = hostless.generate("poisson2d", 60, contrast=1)
    step = splu((scipy.sparse.identity(3600) + 0.5 * heat).tocsc())
    u = np.zeros(3600)
    u[1830] = 1.0
    for _ in range(10):
        u = step.solve(u)
    assert np.allclose(values["u"], u, rtol=0, atol=1e-9) and u.max() > 1e-3
    assert np.allclose(values["columns"], step.solve(np.eye(3600, 3)), rtol=0, atol=1e-4)
    assert values["set_ups"] == 1 and values["steps"] == 10


def test_what_it_says_is_so(executed):
    _, values = executed
    assert values["same_bits"] and values["same_bits_of_runs"]
    assert values["indefinite"] == -1 and "not symmetric" in str(values["refused"])
    none, jacobi, block_jacobi, chebyshev = values["iterations"]
    assert none > jacobi > block_jacobi > chebyshev > 0
    assert values["halo"] == 8 * values["sent"] > 0
    # Each curve has a point for every iteration and one before them; each true residual is a dot.
    assert list(values["lines"][0::2]) == [count + 1 for count in values["iterations"]]
    assert set(values["lines"][1::2]) == {1}


def test_it_shows_results_and_pictures(executed):
    notebook, values = executed
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    data = [output["data"] for output in shown if "data" in output]
    assert sum("image/png" in one for one in data) == 3
    assert any("<svg" in one.get("text/html", "") and "converged" in one["text/html"] for one in data)
    printed = "".join(output["text"] for output in shown if output["output_type"] == "stream" and output["name"] == "stdout")
    if hostless._core.visible_gpus() == 0:
        assert "skipped: no GPU can be used" in printed and not values["on_gpu"]
    else:
        assert "the bits of the processor: True" in printed
