"""In PyTorch's place, where there is none: what vramlab_torch.py uses of it, in the same order and with the same demands."""

import ctypes
import types

taken = None


class CUDAPluggableAllocator:
    def __init__(self, path, malloc, free):
        library = ctypes.CDLL(path)
        self.malloc, self.free = getattr(library, malloc), getattr(library, free)
        self.malloc.restype = ctypes.c_void_p
        self.malloc.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
        self.free.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
        self.hooks = types.SimpleNamespace(**{name: self.setter(name) for name in HOOKS})
        self.addresses = {}

    def setter(self, name):
        def set_address(address):
            if not isinstance(address, int) or address == 0:
                raise TypeError(f"{name} takes the address of a function, not {address!r}")
            self.addresses[name] = address
        return set_address

    def allocator(self):
        return self.hooks


def change_current_allocator(allocator):
    global taken
    if taken is not None:
        raise RuntimeError("Can't swap an already initialized allocator")
    taken = allocator


HOOKS = ["set_record_stream_fn", "set_reset_fn", "set_memory_fraction_fn"]
cuda = types.SimpleNamespace(memory=types.SimpleNamespace(
    CUDAPluggableAllocator=CUDAPluggableAllocator, change_current_allocator=change_current_allocator))
