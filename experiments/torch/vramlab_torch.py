"""PyTorch on any vramlab backend, in one line before anything touches CUDA:

    import torch, vramlab_torch; vramlab_torch.use("tlsf", arena="cuda:70%")

Takes the libvramlab_torch.so that VRAMLAB_TORCH_LIBRARY names, else the one beside this file, else that
of the project's build/release. Only the standard library and torch.
"""

import ctypes
import json
import os

_library = None


def _find_library():
    here = os.path.dirname(os.path.abspath(__file__))
    named = os.environ.get("VRAMLAB_TORCH_LIBRARY")
    places = [named] if named else [os.path.join(here, "libvramlab_torch.so"),
                                    os.path.join(here, "..", "..", "build", "release", "libvramlab_torch.so")]
    for place in places:
        if os.path.exists(place):
            return os.path.abspath(place)
    raise FileNotFoundError(f"{' and '.join(places)}: no such file; build the project, or set VRAMLAB_TORCH_LIBRARY")


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
    library = ctypes.CDLL(path)
    allocator = torch.cuda.memory.CUDAPluggableAllocator(path, "vramlab_malloc", "vramlab_free")
    hooks = allocator.allocator()
    for setter, name in (("set_record_stream_fn", "vramlab_record_stream"),
                         ("set_reset_fn", "vramlab_empty_cache"),
                         ("set_memory_fraction_fn", "vramlab_memory_fraction")):
        if hasattr(hooks, setter):
            address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
            getattr(hooks, setter)(address)
        elif setter == "set_record_stream_fn":
            raise RuntimeError("this PyTorch has no set_record_stream_fn: streams would not be safe")
    torch.cuda.memory.change_current_allocator(allocator)
    _library = library
    return allocator


def stats():
    """The library's figures so far, as a dict."""
    if _library is None:
        raise RuntimeError("there are no figures yet: call vramlab_torch.use() first")
    text = ctypes.create_string_buffer(2048)
    _library.vramlab_stats(text, ctypes.c_size_t(len(text)))
    return json.loads(text.value)
