"""As much of CuPy as hostless uses, over the GPU of the tests (fake_gpu.cpp): its memory cannot be read but by `get`,
which is counted."""

import ctypes
import glob
import os

import numpy as np

_library = ctypes.CDLL(glob.glob(os.path.join(os.environ["HOSTLESS_PLUGIN_DIR"], "libhostless_cuda.so"))[0])
_library.fake_gpu_take.restype = ctypes.c_void_p
_library.fake_gpu_take.argtypes = [ctypes.c_size_t]
_library.fake_gpu_give_back.argtypes = [ctypes.c_void_p]
for _copy in (_library.fake_gpu_put, _library.fake_gpu_get):
    _copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
_library.fake_gpu_make_room.argtypes = [ctypes.c_int64]
_library.fake_gpu_let_look.argtypes = [ctypes.c_int64]
_library.fake_gpu_room.restype = ctypes.c_int64
_library.fake_gpu_put_later.argtypes = [ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]

def make_room(size):
    """So many bytes are free for what hostless copies from the host."""
    _library.fake_gpu_make_room(size)


def room():
    """How many of them are left."""
    return _library.fake_gpu_room()


def let_look(times):
    """There is memory for so many looks at rows, and then none; below 0: for all."""
    _library.fake_gpu_let_look(times)


#: Bytes that `get` has brought to the host, by dtype.
brought: dict = {}


class Block:
    def __init__(self, size):
        self.ptr = _library.fake_gpu_take(max(size, 1))

    def __del__(self):
        _library.fake_gpu_give_back(self.ptr)


class Device:
    id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class cuda:
    class Stream:
        """What is put while it is in use is done when somebody waits for the stream."""

        current = None

        def __init__(self, ptr):
            self.ptr = ptr

        def __enter__(self):
            self.before, cuda.Stream.current = cuda.Stream.current, self
            return self

        def __exit__(self, *_):
            cuda.Stream.current = self.before

    @staticmethod
    def get_current_stream():
        return cuda.Stream.current or cuda.Stream(1)


class ndarray:
    device = Device()

    def __init__(self, shape, dtype, block=None, offset=0, strides=None):
        self.shape, self.dtype = tuple(np.atleast_1d(shape)), np.dtype(dtype)
        self.size = int(np.prod(self.shape))
        self._block = block or Block(self.size * self.dtype.itemsize)
        self.ptr = self._block.ptr + offset
        self.strides = strides or np.empty(self.shape, self.dtype).strides

    def view_of(self, offset, shape, strides):
        return ndarray(shape, self.dtype, self._block, self.ptr - self._block.ptr + offset, strides)

    def __getitem__(self, rows):
        first, end, _ = rows.indices(self.shape[0])
        return self.view_of(first * self.strides[0], (max(0, end - first), *self.shape[1:]), self.strides)

    def reshape(self, *shape):
        return self.view_of(0, np.empty(self.shape, np.uint8).reshape(*shape).shape, None)

    @property
    def __cuda_array_interface__(self):
        return {"shape": tuple(int(n) for n in self.shape), "typestr": self.dtype.str, "data": (self.ptr, False),
                "version": 3, "strides": self.strides, "stream": cuda.get_current_stream().ptr}

    def put(self, values):
        values = np.ascontiguousarray(values, dtype=self.dtype)
        stream = cuda.Stream.current
        if stream is None:
            _library.fake_gpu_put(self.ptr, values.ctypes.data, values.nbytes)
        else:
            _library.fake_gpu_put_later(stream.ptr, self.ptr, values.ctypes.data, values.nbytes)

    def get(self):
        brought[self.dtype.name] = brought.get(self.dtype.name, 0) + self.size * self.dtype.itemsize
        return self.look()

    def look(self):
        """`get`, uncounted."""
        low = min(0, sum((n - 1) * step for n, step in zip(self.shape, self.strides) if step < 0))
        high = sum((n - 1) * step for n, step in zip(self.shape, self.strides) if step > 0) + self.dtype.itemsize
        raw = np.empty(max(high - low, 1), np.uint8)
        if self.size:
            _library.fake_gpu_get(raw.ctypes.data, self.ptr + low, high - low)
        return np.ndarray(self.shape, self.dtype, raw, -low, self.strides).copy()

    def astype(self, dtype):
        return asarray(self.look().astype(dtype))

    def copy(self):
        return asarray(self.look())


def empty(shape, dtype=np.float64):
    return ndarray(shape, dtype)


def asarray(values):
    values = np.asarray(values)
    made = ndarray(values.shape, values.dtype)
    made.put(values)
    return made
