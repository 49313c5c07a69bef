"""Kernels of stencils compiled at run time by NVRTC, and launched through the driver."""

from __future__ import annotations

import ctypes
import functools
import glob
import os
import sys
from typing import Any, Optional

from .errors import MachineError

#: As for the processor: nothing that may change a bit. Division and square roots are rounded correctly without being asked to.
FLAGS = ("--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")
THREADS = 256
VERSIONS = (13, 12, 11)


@functools.lru_cache(maxsize=None)
def nvrtc() -> Optional[Any]:
    """The library: what the loader finds, beside CUDA_HOME, or NVIDIA's Python packages. None: there is none."""
    names = [f"libnvrtc.so.{version}" for version in VERSIONS]
    folders = [os.path.join(os.environ[home], "lib64") for home in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(home)] + ["/usr/local/cuda/lib64"]
    places = names + [os.path.join(folder, name) for folder in folders for name in names]
    for path in sys.path:
        places += sorted(glob.glob(os.path.join(path, "nvidia", "*", "lib", "libnvrtc.so.*")), reverse=True)
    for place in places:
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    return None


def compiled(source: str, capability: tuple, what: str) -> bytes:
    """The cubin of a text for GPUs of a compute capability, (9, 0).

    MachineError: no NVRTC, one that does not know the GPU, or a text that it does not compile.
    """
    library = nvrtc()
    if library is None:
        raise MachineError(f"{what} on a GPU: no libnvrtc.so was found (it compiles stencils there). Install CUDA's, or pip install "
                           "nvidia-cuda-nvrtc.")
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    options = [word.encode() for word in (*FLAGS, f"--gpu-architecture=sm_{capability[0]}{capability[1]}")]
    if library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"stencil.cu", 0, None, None) != 0:
        raise MachineError(f"{what} on a GPU: NVRTC takes no program. Look at its installation.")
    try:
        if library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)) != 0:
            library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            library.nvrtcGetProgramLog(program, log)
            raise MachineError(f"{what} on a GPU: NVRTC fails ({log.value.decode(errors='replace').strip()[:500]}). Look at its version.")
        library.nvrtcGetCUBINSize(program, ctypes.byref(size))
        image = ctypes.create_string_buffer(size.value)
        library.nvrtcGetCUBIN(program, image)
        return image.raw
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


class Driver:
    """libcuda, in the context that the arrays' package has made current."""

    def __init__(self, what: str):
        self.what = what
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as problem:
            raise MachineError(f"{what} on a GPU: {problem} (kernels are launched through it). Install NVIDIA's driver.") from None

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            raise MachineError(f"{self.what} on a GPU: {name} fails with code {code} (nothing is known of the cells). Look at the GPU.")

    def capability(self) -> tuple:
        major_of, minor_of = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
        device, found = ctypes.c_int(), []
        self.call("cuCtxGetDevice", ctypes.byref(device))
        for attribute in (major_of, minor_of):
            number = ctypes.c_int()
            self.call("cuDeviceGetAttribute", ctypes.byref(number), attribute, device)
            found.append(number.value)
        return tuple(found)

    def function(self, image: bytes) -> Any:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), image)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"hostless_step")
        return function

    def launch(self, function: Any, threads: int, stream: int, arguments: list) -> None:
        """arguments: structures of ctypes, as the kernel takes them."""
        pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.cast(ctypes.pointer(one), ctypes.c_void_p) for one in arguments))
        self.call("cuLaunchKernel", function, (threads + THREADS - 1) // THREADS, 1, 1, THREADS, 1, 1, 0, ctypes.c_void_p(stream), pointers, None)

    def wait(self, stream: int) -> None:
        self.call("cuStreamSynchronize", ctypes.c_void_p(stream))
