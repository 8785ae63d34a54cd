"""PyTorch on any vramlab backend, in one line before anything touches CUDA:

    import torch, vramlab_torch; vramlab_torch.use("tlsf", arena="cuda:70%")

Needs libvramlab_torch.so beside this file, in a build folder of the project, or named by
VRAMLAB_TORCH_LIBRARY. Only the standard library and torch.
"""

import ctypes
import glob
import json
import os

_library = None


def _find_library():
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.environ.get("VRAMLAB_TORCH_LIBRARY", ""), os.path.join(here, "libvramlab_torch.so")]
    places += sorted(glob.glob(os.path.join(here, "..", "..", "build", "*", "libvramlab_torch.so")))
    for place in places:
        if place and os.path.exists(place):
            return os.path.abspath(place)
    raise FileNotFoundError("libvramlab_torch.so: build the project, or set VRAMLAB_TORCH_LIBRARY")


def use(backend=None, arena=None, on_full=None, trace=None, stats=None):
    """Makes a vramlab backend the CUDA allocator of this process. Arguments override the
    environment (VRAMLAB_BACKEND, VRAMLAB_ARENA, VRAMLAB_ON_FULL, VRAMLAB_TRACE, VRAMLAB_STATS)."""
    global _library
    import torch

    for name, value in (("BACKEND", backend), ("ARENA", arena), ("ON_FULL", on_full),
                        ("TRACE", trace), ("STATS", stats)):
        if value is not None:
            os.environ["VRAMLAB_" + name] = value
    path = _find_library()
    _library = ctypes.CDLL(path)
    allocator = torch.cuda.memory.CUDAPluggableAllocator(path, "vramlab_malloc", "vramlab_free")
    hooks = allocator.allocator()
    for setter, name in (("set_record_stream_fn", "vramlab_record_stream"),
                         ("set_reset_fn", "vramlab_empty_cache"),
                         ("set_memory_fraction_fn", "vramlab_memory_fraction")):
        if hasattr(hooks, setter):
            address = ctypes.cast(getattr(_library, name), ctypes.c_void_p).value
            getattr(hooks, setter)(address)
        elif setter == "set_record_stream_fn":
            raise RuntimeError("this PyTorch has no set_record_stream_fn: streams would not be safe")
    torch.cuda.memory.change_current_allocator(allocator)
    return allocator


def stats():
    """The library's figures so far, as a dict."""
    text = ctypes.create_string_buffer(2048)
    _library.vramlab_stats(text, ctypes.c_size_t(len(text)))
    return json.loads(text.value)
