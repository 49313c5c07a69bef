"""See cupy beside this."""

import cupy
import numpy as np
import scipy.sparse as sp


class csr_matrix:
    def __init__(self, given, dtype=None):
        if isinstance(given, cupy.ndarray):
            given = sp.csr_matrix(given.look())
        if isinstance(given, csr_matrix):
            self.shape, self.indptr, self.indices, self.data = given.shape, given.indptr, given.indices, given.data
            return
        self.shape = given.shape
        self.indptr, self.indices = cupy.asarray(given.indptr), cupy.asarray(given.indices)
        self.data = cupy.asarray(given.data if dtype is None else given.data.astype(dtype))

    def tocsr(self):
        return self

    def copy(self):
        made = csr_matrix(self)
        made.data = self.data.copy()
        return made

    def sum_duplicates(self):
        rows = sp.csr_matrix((self.data.look(), self.indices.look(), self.indptr.look()), shape=self.shape)
        rows.sum_duplicates()
        self.__init__(rows)
