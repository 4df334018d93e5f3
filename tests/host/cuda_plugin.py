"""The plugin as a file, and as a Python process with everything RTLD_LOCAL loads it.

usage: cuda_plugin.py LIBEXPHIL PLUGIN      PLUGIN empty: left out
"""
import ctypes
import os
import re
import subprocess
import sys

UNSUPPORTED, OK = -5, 0
SYSTEM = r"lib(c|m|dl|rt|pthread)\.so\.\d|ld-linux.*"


class Error(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("status", ctypes.c_int32), ("native", ctypes.c_int32), ("message", ctypes.c_char * 240)]


class Config(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("hooks", ctypes.c_void_p * 7), ("device", ctypes.c_char_p), ("isa", ctypes.c_char_p),
                ("backend_path", ctypes.c_char_p), ("memory_limit", ctypes.c_size_t), ("threads", ctypes.c_int32),
                ("log_level", ctypes.c_int32)]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ, LC_ALL="C")).stdout


def look_at(plugin):
    """It shows one name, needs the C library alone (no cuBLASLt, no driver, no C++), binds at once and stays."""
    dynamic = output("readelf", "-dW", plugin)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    foreign = [name for name in needed if not re.fullmatch(SYSTEM, name)]
    assert not foreign, f"needs {foreign}"
    flags = re.search(r"\(FLAGS_1\) +Flags: (.*)", dynamic)[1].split()
    assert {"NOW", "NODELETE"} <= set(flags), flags
    assert not re.search(r"\((RPATH|RUNPATH)\)", dynamic), "has a path of its own"
    shown = [line.split()[-1] for line in output("nm", "-D", "--defined-only", plugin).splitlines()]
    assert shown == ["xph_backend_query"], shown
    wanted = [line.split()[-1] for line in output("nm", "-D", "--undefined-only", plugin).splitlines()]
    assert not [name for name in wanted if re.match("exphil_|xph_|cu[A-Z]|cuda|cublas|_ZS", name)], wanted
    print(f"{os.path.getsize(plugin) / 2**20:.1f} MiB, needs {', '.join(needed)}")


def open_on(library, device, folder):
    config, error, context = Config(), Error(), ctypes.c_void_p()
    config.size, error.size = ctypes.sizeof(config), ctypes.sizeof(error)
    config.device, config.backend_path, config.threads = device, folder, 1
    status = library.exphil_context_create(ctypes.byref(config), ctypes.byref(context), ctypes.byref(error))
    if status == OK:
        library.exphil_context_destroy(context)
    return status, error.message.decode()


def load(libexphil, plugin):
    library = ctypes.CDLL(libexphil, mode=os.RTLD_LOCAL | os.RTLD_NOW)
    library.exphil_context_destroy.argtypes = [ctypes.c_void_p]
    for folder in (os.path.dirname(plugin).encode(), None):  # None: it lies beside the library
        status, message = open_on(library, b"cuda", folder)
        assert status == OK or status == UNSUPPORTED and "no device: cudaError" in message, (status, message)
        assert open_on(library, b"auto", folder)[0] == OK
    print("cuda:", message or "there is a device")
    names = ctypes.CDLL(None)
    assert not hasattr(names, "xph_backend_query") and not hasattr(names, "exphil_context_create"), "names are global"


def main():
    libexphil, plugin = (sys.argv[1:3] + [""])[:2]  # CMake drops an empty word
    if not plugin:
        print("SKIPPED: EXPHIL_CUDA is not PLUGIN")
        return
    look_at(plugin)
    load(libexphil, plugin)


main()
