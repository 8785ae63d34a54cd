"""check.py LIBRARY STAND_IN TRACE: experiments/torch/vramlab_torch.py on a torch and a runtime that stand in."""

import ctypes
import os
import sys

library, stand_in, trace = sys.argv[1:]
os.environ.update(VRAMLAB_TORCH_LIBRARY=library, VRAMLAB_CUDART=stand_in, VRAMLAB_BACKEND="buddy")

import torch  # noqa: E402
import vramlab_torch  # noqa: E402

MIB = 1 << 20


def refused(call, kind, said):
    try:
        call()
    except kind as why:
        assert said in str(why), why
        return
    raise AssertionError(f"{said}: nothing was raised")


refused(vramlab_torch.stats, RuntimeError, "call vramlab_torch.use()")

os.environ["VRAMLAB_TORCH_LIBRARY"] = "/nowhere/libvramlab_torch.so"
refused(vramlab_torch.use, FileNotFoundError, "/nowhere/libvramlab_torch.so")
os.environ["VRAMLAB_TORCH_LIBRARY"] = library

torch.HOOKS.remove("set_record_stream_fn")
refused(vramlab_torch.use, RuntimeError, "streams would not be safe")
torch.HOOKS.append("set_record_stream_fn")

allocator = vramlab_torch.use("list", arena="cuda:64MiB", trace=trace)
assert torch.taken is allocator
refused(vramlab_torch.use, RuntimeError, "already initialized")

streams = []
for _ in range(2):
    streams.append(ctypes.c_void_p())
    assert ctypes.CDLL(stand_in).cudaStreamCreateWithFlags(ctypes.byref(streams[-1]), 1) == 0
first, second = streams
block = allocator.malloc(10 * MIB, 0, first)
assert block
record_stream = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(allocator.addresses["set_record_stream_fn"])
record_stream(block, second)
allocator.free(block, 10 * MIB, 0, first)
ctypes.CFUNCTYPE(None)(allocator.addresses["set_reset_fn"])()
stats = vramlab_torch.stats()
assert stats["backend"].startswith("list"), "an argument goes before the environment"
assert stats["arena_bytes"] == 64 * MIB
assert (stats["allocations"], stats["frees"], stats["delayed"], stats["streams"]) == (1, 1, 1, 2), stats
