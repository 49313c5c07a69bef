"""What a matrix is to scipy: a LinearOperator, where scipy is there."""

from typing import Any

import numpy as np

try:
    from scipy.sparse.linalg import LinearOperator as Base
except ImportError:  # NumPy alone is enough

    class Base:  # type: ignore[no-redef]
        """The part of scipy's LinearOperator that hostless.Matrix needs where scipy is not installed."""

        def __init__(self, dtype: Any, shape: tuple):
            self.dtype, self.shape = np.dtype(dtype), tuple(shape)

        def matvec(self, x: Any) -> np.ndarray:
            x = np.asarray(x)
            return self._matvec(x).reshape(x.shape)

        def matmat(self, X: Any) -> np.ndarray:
            return np.stack([self._matvec(column) for column in np.asarray(X).T], axis=1)

        def __matmul__(self, x: Any) -> np.ndarray:
            return self.matmat(x) if np.ndim(x) == 2 else self.matvec(x)
