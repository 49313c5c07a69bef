"""hostless/exchange/kernel_exchange.hpp in a user's kernel: by NVRTC, nvcc and hipcc, with this project's include folder and
nothing else. Compilers that are not here are skipped, and the test says so."""

import ctypes
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

INCLUDE = Path(__file__).resolve().parents[3] / "include"
KERNEL = """#include "hostless/exchange/kernel_exchange.hpp"
extern "C" __global__ void exchange_only(hostless::kernel::KernelExchange const exchange, double* items, int steps) {
  static_assert(sizeof(hostless::kernel::KernelExchange) == SIZE);
  for (int step = 0; step < steps; ++step)
    if (!hostless::kernel::start(exchange, items) || !hostless::kernel::await(exchange, items)) return;
}
"""


def size_on_the_host() -> int:
    """Of the kernel's parameter, by the compiler of the library."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "size.cpp", Path(folder) / "size"
        source.write_text('#include "hostless/exchange/kernel_view.hpp"\n#include <cstdio>\n'
                          'int main() { std::printf("%zu", sizeof(hostless::kernel::KernelExchange)); }\n')
        subprocess.run([os.environ.get("CXX", "c++"), "-std=c++17", f"-I{INCLUDE}", str(source), "-o", str(program)], check=True)
        return int(subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout)


def nvcc():
    return os.environ.get("HOSTLESS_NVCC") or shutil.which("nvcc")


def nvrtc():
    """The library, or None."""
    folders = [""] if nvcc() is None else [f"{Path(nvcc()).resolve().parents[1]}/lib64/", ""]
    for name in (f"{folder}libnvrtc.so{version}" for folder in folders for version in (".13", ".12", "")):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


class KernelHeader(unittest.TestCase):
    def setUp(self):
        self.text = KERNEL.replace("SIZE", str(size_on_the_host()))

    def compiled_by_nvrtc(self, text: str):
        """(0 or an error, the log)."""
        library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
        self.assertEqual(library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"own.cu", 0, None, None), 0)
        options = [b"--gpu-architecture=compute_90", b"--std=c++17", f"-I{INCLUDE}".encode()]
        code = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        library.nvrtcDestroyProgram(ctypes.byref(program))
        return code, log.value.decode()

    @unittest.skipIf(nvrtc() is None, "there is no NVRTC here")
    def test_by_nvrtc(self):
        self.assertEqual(self.compiled_by_nvrtc(self.text), (0, ""))
        code, log = self.compiled_by_nvrtc(self.text.replace("start(exchange, items)", "start(exchange)"))
        self.assertNotEqual(code, 0)
        self.assertIn("too few arguments", log)

    def compiled_by(self, *command):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "own.cu"
            source.write_text(self.text)
            done = subprocess.run([*command, f"-I{INCLUDE}", str(source)], cwd=folder, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipIf(nvcc() is None, "there is no nvcc here")
    def test_by_nvcc(self):
        self.compiled_by(nvcc(), "-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", "-ptx", "-o", "own.ptx")

    @unittest.skipIf(shutil.which("hipcc") is None, "there is no hipcc here")
    def test_by_hipcc(self):
        self.compiled_by("hipcc", "-x", "hip", "-std=c++17", "--offload-arch=gfx90a", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                         "-include", "hip/hip_runtime.h", "-Wno-unused-command-line-argument")


if __name__ == "__main__":
    unittest.main()
