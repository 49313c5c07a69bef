"""Random symmetric positive definite systems, and the same matrix in many kinds."""

import numpy as np
import scipy.sparse as sp


def random_spd(rng, rows, *, density=0.2, whole=False):
    """Symmetric bit for bit, strictly diagonally dominant: positive definite whatever the numbers are."""
    dense = np.zeros((rows, rows))
    for row in range(rows):
        for column in range(row):
            if rng.random() < density:
                value = float(rng.integers(-3, 4)) if whole else rng.standard_normal()
                dense[row, column] = dense[column, row] = value
    np.fill_diagonal(dense, np.ceil(np.abs(dense).sum(axis=1)) + 1)
    return dense


def shuffled_csr(dense, rng, kind=sp.csr_array):
    """Compressed rows whose columns do not rise, and every entry in two parts at one place."""
    row, column = np.nonzero(dense)
    values = dense[row, column]
    part = np.round(values / 3)
    row, column, values = np.r_[row, row], np.r_[column, column], np.r_[part, values - part]
    order = rng.permutation(len(row))
    order = order[np.argsort(row[order], kind="stable")]
    offsets = np.r_[0, np.cumsum(np.bincount(row, minlength=len(dense)))]
    return kind((values[order], column[order], offsets), shape=dense.shape)
