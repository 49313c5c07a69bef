#!/usr/bin/env python3
"""What CuPy (and torch, where it is installed) has on a GPU is solved where it is. Needs a GPU, CuPy and SciPy.

  PYTHONPATH=FOLDER_OF_THE_PACKAGE tests/device/cupy_in_place.py [--gpus N]

For several kinds of matrices: the bits of the solve from the host, scipy's answer, and that neither pattern nor values
have come to the host (but the pattern where METIS deals rows out): bytes that CuPy and the GPU library have copied are
counted. Rows of the host that are copied to a GPU and laid out there; then vectors of every shape and type, work
that is still queued on the producer's stream, new values, what is refused. With --gpus N the same on N GPUs, with arrays
on the last of them. Prints one line a case; exit code 1: one failed, 3: no GPU, no CuPy, or no package.
"""

import argparse
import contextlib
import sys
import traceback

try:
    import cupy
    import numpy as np
    import scipy.sparse as sp
    from cupyx.scipy import sparse as gpu_sparse
    from scipy.sparse.linalg import cg as scipy_cg

    cupy.cuda.runtime.getDeviceCount()
    import hostless
    import hostless._matrix
    from hostless import _core
except Exception as problem:  # whatever CuPy says where it cannot be used
    print(f"skipped: no CuPy, no GPU, or no package ({problem})")
    sys.exit(3)

CASES = []
brought = {}
hostless._matrix.COPIES = False  # what all is compared with is laid out by the host


def case(function):
    CASES.append(function)
    return function


class Counting:
    """Counts what CuPy brings to the host, by dtype."""

    def __enter__(self):
        import hostless._device
        import hostless._matrix
        import hostless._rows
        import hostless._vectors

        self.modules = [hostless._device, hostless._rows, hostless._vectors]
        self.before = [module.to_numpy for module in self.modules]

        def counted(array, plain=self.before[1]):
            if isinstance(array, cupy.ndarray):
                brought[array.dtype.name] = brought.get(array.dtype.name, 0) + array.nbytes
            return plain(array)

        for module in self.modules:
            module.to_numpy = counted
        brought.clear()
        self.library = _core.copied()
        return self

    def __exit__(self, *_):
        for module, plain in zip(self.modules, self.before):
            module.to_numpy = plain
        self.to_gpu, self.to_host, self.between = (now - was for now, was in zip(_core.copied(), self.library))


@contextlib.contextmanager
def copied_first():
    """Rows of the host are copied and laid out by the GPU."""
    hostless._matrix.COPIES = True
    try:
        yield
    finally:
        hostless._matrix.COPIES = False


def there(A):
    with cupy.cuda.Device(DEVICE):
        return gpu_sparse.csr_matrix(sp.csr_matrix(A))


def vector(b):
    with cupy.cuda.Device(DEVICE):
        return cupy.asarray(b)


def same(x, expected):
    assert isinstance(x, cupy.ndarray) and x.device.id == DEVICE, type(x)
    assert np.array_equal(x.get(), expected), f"differs by {np.abs(x.get() - expected).max():.3e}"


def uneven(rows=20000):
    rng = np.random.default_rng(8)
    A = sp.random_array((rows, rows), density=8 / rows, rng=rng)
    A = sp.csr_array(A + A.T + 40 * sp.eye_array(rows))
    A.sort_indices()
    return A


def slices_times_ghosts(A, block):
    """Of contiguous shares: a bit for each comes to the host."""
    n, ghosts = A.shape[0], 0
    first = [min(rank * ((n + 11) // 12) // GPUS * 12, n) for rank in range(GPUS)] + [n]
    for begin, end in zip(first, first[1:]):
        columns = np.unique(A.indices[A.indptr[begin]:A.indptr[end]] // block)
        ghosts += np.count_nonzero((columns < begin // block) | (columns >= end // block)) + 31
    return 264 * ghosts


MATRICES = {
    "5-point": lambda: hostless.generate("poisson2d", (300, 200)),
    "7-point": lambda: hostless.generate("poisson7", (40, 41, 42)),
    "hex8": lambda: hostless.generate("elasticity-hex8", (23, 24, 25)),
    "triangles": lambda: hostless.generate("poisson2d-tri", (200, 150)),
    "uneven": uneven,
}


@case
def small_matrices():
    """So small that compute-sanitizer has soon seen every kernel of a set-up: run it with --only small. The first call of
    all has its arrays on the last GPU, which hostless has not used yet."""
    for A in (hostless.generate("poisson2d", (25, 20)), hostless.generate("elasticity-hex8", (4, 5, 6)), uneven(300)):
        b = np.random.default_rng(6).standard_normal(A.shape[0])
        for format in ("auto", "sell", "csr"):
            for preconditioner in ("none", "jacobi"):
                how = dict(gpus=GPUS, rtol=0, maxiter=6, format=format, preconditioner=preconditioner, run="stream")
                same(hostless.cg(there(A), vector(b), **how)[0], hostless.cg(A, b, **how)[0])


@case
def bits_and_bytes():
    rng = np.random.default_rng(1)
    for name, make in MATRICES.items():
        A = make()
        b = rng.standard_normal(A.shape[0])
        A_there, b_there = there(A), vector(b)
        formats = ["auto", "sell", "csr"] + (["diagonals-full"] if name in ("5-point", "7-point") else [])
        for preconditioner in ("none", "jacobi", "block-jacobi", "chebyshev"):
            for format in formats if preconditioner == "none" else ["auto"]:
                for run in ("persistent", "graph", "stream") if preconditioner != "chebyshev" else ("auto",):
                    how = dict(gpus=GPUS, rtol=1e-8, format=format, preconditioner=preconditioner, run=run,
                               full_output=True)
                    expected, info, host = hostless.cg(A, b, **how)
                    with Counting() as count:
                        x, info_there, result = hostless.cg(A_there, b_there, **how)
                    what = f"{name}, {format}, {preconditioner}, {run}"
                    assert info == info_there == 0, what
                    same(x, expected)
                    assert np.array_equal(result.residual_history, host.residual_history), what
                    assert "in its memory" in result.choices["values"], what
                    assert not brought, f"{what}: CuPy brought {brought}"
                    # Words of the solve, its history, how many blocks each leaf has, and the diagonal blocks where they are
                    # inverted; a polynomial is bounded by a Lanczos run of the host, on vectors of its own.
                    n, block = A.shape[0], 3 if name == "hex8" else 1
                    inverse = n * 8 * block if "jacobi" in preconditioner else 0
                    steps = 32 * len(result.residual_history) * GPUS
                    limit = (8192 + n // 8) * GPUS + 9 * n // (2 * block)
                    dealt_out = "metis" in str(result.choices.get("partition"))
                    limit += 0 if dealt_out else slices_times_ghosts(A, block) // 8
                    assert dealt_out == (name == "uneven" and GPUS > 1), result.choices
                    pattern = 8 * (A.nnz + n + GPUS) if dealt_out else 0
                    if preconditioner != "chebyshev":
                        most = limit + steps + inverse + pattern
                        assert count.to_host <= most, f"{what}: {count.to_host} bytes came to the host, not {most}"
                        assert limit < 8 * n < 4 * A.nnz, f"{what}: nothing was shown of {n} rows"
            print(f"  {name}, {preconditioner}: {A.nnz} entries; to the host {count.to_host} bytes, to GPUs "
                  f"{count.to_gpu}, between them {count.between}; CuPy brought {brought}", flush=True)
        x, info = hostless.cg(A_there, b_there, gpus=GPUS, rtol=1e-10)
        rest = np.linalg.norm(b - A @ x.get()) / np.linalg.norm(b)
        assert info == 0 and rest < 1.01e-10, f"{name}: {rest:.3e}"
        if name != "hex8":  # where scipy takes half a minute
            reference, info = scipy_cg(A, b, rtol=1e-10)
            error = np.linalg.norm(x.get() - reference) / np.linalg.norm(reference)
            assert info == 0 and error < 1e-4, f"{name}: {error:.3e} from scipy's answer"


@case
def rows_of_the_host():
    matrices = dict(MATRICES, large=lambda: hostless.generate("poisson7", (128, 128, 128)))  # copied by several threads
    for name, make in matrices.items():
        A = make()
        b = np.random.default_rng(7).standard_normal(A.shape[0])
        for index in (np.int32, np.int64):
            A.indptr, A.indices = A.indptr.astype(index), A.indices.astype(index)
            arrays = A.indptr.nbytes + A.indices.nbytes + A.data.nbytes
            for preconditioner in ("none", "block-jacobi"):
                how = dict(gpus=GPUS, rtol=0, maxiter=40, preconditioner=preconditioner, full_output=True)
                expected, _, host = hostless.cg(A, b, **how)
                with copied_first(), Counting() as count, cupy.cuda.Device(DEVICE):
                    x, _, result = hostless.cg(A, b, **how)
                    assert cupy.cuda.runtime.getDevice() == DEVICE, "another GPU is in use"
                by_host = name == "uneven" and GPUS > 1  # METIS deals it out
                assert (by_host or count.to_gpu >= arrays) and "values" not in host.choices, name
                assert ("values" not in result.choices) == by_host, f"{name}: {result.choices}"
                assert isinstance(x, np.ndarray) and np.array_equal(x, expected), f"{name}, {preconditioner}"
                assert np.array_equal(result.residual_history, host.residual_history), f"{name}, {preconditioner}"
        with copied_first(), hostless.Matrix(A, gpus=GPUS) as matrix:
            for factor in (4, 1):
                matrix.update_values(sp.csr_array(factor * A))
                same(matrix.solve(vector(factor * b), rtol=0, maxiter=40, preconditioner="block-jacobi")[0], expected)


@case
def memory():
    A = hostless.generate("poisson7", (128, 128, 128))
    A_there, b = there(A), vector(np.ones(A.shape[0]))
    with cupy.cuda.Device(DEVICE):
        before = cupy.cuda.runtime.memGetInfo()[0]
        with hostless.Matrix(A_there, gpus=GPUS) as matrix:
            _, info, result = matrix.solve(b, rtol=1e-6, full_output=True)
            taken = before - cupy.cuda.runtime.memGetInfo()[0]
    told = result.to_dict() if hasattr(result, "to_dict") else __import__("json").loads(result.to_json())
    print(f"  values {8 * A.nnz * 1e-6:.0f} MB, vectors of 8 n {8e-6 * A.shape[0]:.0f} MB; taken on GPU {DEVICE} "
          f"{taken * 1e-6:.0f} MB; the result says: {told.get('device', told.get('gpu', ''))}")
    assert info == 0


@case
def vectors_of_every_shape_and_type():
    A = MATRICES["5-point"]()
    n = A.shape[0]
    B = np.random.default_rng(2).standard_normal((n, 3))
    with hostless.Matrix(there(A), gpus=GPUS) as matrix, hostless.Matrix(A, gpus=GPUS) as known:
        X, info = matrix.solve(vector(B), rtol=1e-8)
        expected, _ = known.solve(B, rtol=1e-8)
        assert info == 0
        same(X, expected)
        same(matrix.solve(vector(np.repeat(B[:, 0], 2))[::2], rtol=1e-8)[0], expected[:, 0])
        same(matrix.solve(vector(B[::-1, 0].copy())[::-1], rtol=1e-8)[0], expected[:, 0])
        for kind in (np.float32, np.float16, np.int32, np.int64):
            b = (100 * B[:, 0]).astype(kind)
            same(matrix.solve(vector(b), rtol=1e-8)[0], known.solve(b, rtol=1e-8)[0])
        guess = 1e-2 * B[:, 1]
        for x0 in (vector(guess), guess):
            same(matrix.solve(vector(B[:, 0]), x0)[0], known.solve(B[:, 0], guess)[0])
    single = A.astype(np.float32)
    b = B[:, 0].astype(np.float32)
    x, _ = hostless.cg(there(single), vector(b), gpus=GPUS)
    assert x.dtype == np.float32
    same(x, hostless.cg(single, b, gpus=GPUS)[0])


@case
def the_producers_stream():
    A = MATRICES["7-point"]()
    b = np.random.default_rng(3).standard_normal(A.shape[0])
    expected, _ = hostless.cg(A, b, gpus=GPUS, maxiter=1000)
    with cupy.cuda.Device(DEVICE):
        waiting = cupy.RawKernel("""extern "C" __global__ void waiting(long long cycles) {
            long long const begin = clock64(); while (clock64() - begin < cycles) {} }""", "waiting")
        waiting((1,), (1,), (1,))  # compiled
        for stream in (cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(), cupy.cuda.Stream.null):
            rows, halved, final = there(A), there(A / 2), vector(b)
            late = cupy.zeros(A.shape[0])
            rows.data.fill(0)
            cupy.cuda.runtime.deviceSynchronize()
            with stream:
                waiting((1,), (1,), (400_000_000,))  # a fifth of a second
                rows.data[...] = halved.data
                rows.data *= 2
                with hostless.Matrix(rows, gpus=GPUS) as matrix:
                    matrix.solve(final, maxiter=1000)  # bound: from here on nothing but b's stream is waited for
                    waiting((1,), (1,), (400_000_000,))
                    late[...] = final
                    x, info = matrix.solve(late, maxiter=1000)
                    twice = x * 2
            stream.synchronize()
            assert info == 0
            same(x, expected)
            same(twice, 2 * expected)
    with cupy.cuda.Device(DEVICE), cupy.cuda.Stream.ptds:
        same(hostless.cg(there(A), vector(b), gpus=GPUS, maxiter=1000)[0], expected)


@case
def new_values():
    A = MATRICES["5-point"]()
    b = np.random.default_rng(4).standard_normal(A.shape[0])
    shifted = sp.csr_array(A + 0.5 * sp.eye_array(A.shape[0]))
    with hostless.Matrix(there(A), gpus=GPUS) as matrix:
        for values in (A, shifted, A):
            matrix.update_values(there(values))
            same(matrix.solve(vector(b))[0], hostless.cg(values, b, gpus=GPUS)[0])
        assert matrix.set_ups == 1


@case
def what_is_not_symmetric_or_finite():
    A = MATRICES["5-point"]()
    A[5, 6] *= 1.5
    try:
        hostless.cg(there(A), vector(np.ones(A.shape[0])), gpus=GPUS)  # the method asks for symmetry
        raise AssertionError("not noticed")
    except hostless.BadInputError as error:
        assert "A[5, 6]" in str(error) or "A[6, 5]" in str(error), error
    A = MATRICES["5-point"]()
    b = np.ones(A.shape[0])
    b[77] = np.nan
    x, info, result = hostless.cg(there(A), vector(b), gpus=GPUS, full_output=True)
    assert info == -3 and "right-hand side" in result.message, result.message
    for scale, flipped in ((1e-170, 1), (1e200, 1), (1, -1)):
        b = np.full(A.shape[0], scale)
        M = sp.csr_array(flipped * A)
        for preconditioner in ("none", "jacobi"):
            ours = hostless.cg(there(M), vector(b), gpus=GPUS, full_output=True, preconditioner=preconditioner)
            host = hostless.cg(M, b, gpus=GPUS, full_output=True, preconditioner=preconditioner)
            assert ours[1] == host[1] != 0 and ours[2].message == host[2].message, (ours[2].message, host[2].message)


@case
def torch_too():
    try:
        import torch
    except ImportError:
        print("  no torch")
        return
    A = MATRICES["5-point"]()
    b = np.random.default_rng(5).standard_normal(A.shape[0])
    expected, _ = hostless.cg(A, b, gpus=GPUS)
    place = torch.device("cuda", DEVICE)
    rows = torch.sparse_csr_tensor(torch.from_numpy(A.indptr), torch.from_numpy(A.indices), torch.from_numpy(A.data),
                                   size=A.shape).to(place)
    for matrix in (rows, rows.to_sparse_coo()):
        x, info = hostless.cg(matrix, torch.from_numpy(b).to(place), gpus=GPUS)
        assert info == 0 and x.device == place and np.array_equal(x.cpu().numpy(), expected)


def main():
    global GPUS, DEVICE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    options = parser.parse_args()
    GPUS, DEVICE = options.gpus, options.gpus - 1
    if _core.visible_gpus() < GPUS:
        print(f"skipped: hostless sees {_core.visible_gpus()} GPUs")
        sys.exit(3)
    failed = 0
    for one in CASES:
        if options.only not in one.__name__:
            continue
        try:
            one()
            print(f"ok      {one.__name__}", flush=True)
        except Exception:
            failed += 1
            traceback.print_exc()
            print(f"FAILED  {one.__name__}", flush=True)
    print(f"{failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
