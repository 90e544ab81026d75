"""Finds and loads libpawl.so, and checks that its version matches the package.

PAWL_LIBRARY sets its path. Otherwise it is the library in the package's folder, the one that `make` builds in
build/ if the package is used from a source tree, or the one that the system's loader finds. A session without
a cluster also needs the `pawl` command. PAWL_COMMAND sets its path; otherwise the library looks for it beside
itself, in bin/ and on the PATH. """

import ctypes
import os
from pathlib import Path

from . import _abi


def _candidates():
    chosen = os.environ.get("PAWL_LIBRARY")
    if chosen:
        return [chosen]
    here = Path(__file__).resolve().parent
    beside = [here / "libpawl.so", here.parent.parent / "build" / "libpawl.so"]
    return [str(path) for path in beside if path.exists()] + ["libpawl.so." + _abi.VERSION]


def _load():
    reasons = []
    for path in _candidates():
        try:
            return path, ctypes.CDLL(path)
        except OSError as error:
            reasons.append(str(error))
    raise ImportError(
        "pawl: cannot load libpawl.so (%s). Build it with make, install it with make install, or set PAWL_LIBRARY to "
        "its path." % "; ".join(reasons)
    )


def _declare(path, library):
    for name, result, arguments in _abi.signatures():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(
                "pawl: %s does not have the function %s, which this package (for libpawl %s) needs; it is another version"
                % (path, name, _abi.VERSION)
            ) from None
        function.restype, function.argtypes = result, arguments


def _check_version(path, library):
    library.pawl_version.restype = ctypes.c_char_p
    version = library.pawl_version().decode()
    if version.split(".")[:2] != _abi.VERSION.split("."):
        raise ImportError(
            "pawl: %s is version %s, but this package needs libpawl %s.x. Set PAWL_LIBRARY to a library of that "
            "version, or use the package that came with yours." % (path, version, _abi.VERSION)
        )


def _check_layout(path, library):
    """Checks where the library writes the defaults of its structs. Detects a build between two versions."""
    room, pattern = 2048, b"\xa5"
    for struct, init, expected in (
        (_abi.VectorOptions, library.pawl_vector_options_init_sized, {"type": 1, "width": 1, "size": _abi.KEY_END, "layout": 0}),
        (_abi.SessionOptions, library.pawl_session_options_init_sized, {"address": None, "replicas": 0, "timeout_ns": 0}),
        (_abi.ReduceOptions, library.pawl_reduce_options_init_sized, {"graph": None, "seed": 1, "narrow": 0, "first": 0}),
    ):
        memory = ctypes.create_string_buffer(pattern * room, room)
        init(ctypes.cast(memory, ctypes.c_void_p), ctypes.sizeof(struct))
        options = struct.from_buffer(memory)
        size = ctypes.sizeof(struct)
        found = {name: getattr(options, name) for name in expected}
        if memory.raw[size:] != pattern * (room - size) or found != expected:
            raise ImportError(
                "pawl: %s has another layout of structs than this package: they come from different sources. Rebuild the "
                "library, or use the package that came with it." % path
            )


path, lib = _load()
_check_version(path, lib)
_declare(path, lib)
_check_layout(path, lib)
