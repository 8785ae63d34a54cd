"""Does the preloaded recorder see what PyTorch asks of the driver? `make` is the program that is
recorded (run with PyTorch's caching off); `check` looks for its sizes in the trace."""

import sys

SIZES = [(1 << 20) + i * 4096 for i in range(500)]
KEPT = 50


def make():
    import torch

    kept = []
    for i, size in enumerate(SIZES):
        tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
        if i < KEPT:
            kept.append(tensor)
    torch.cuda.synchronize()
    print("made", len(SIZES), "tensors on", torch.cuda.get_device_name(0))


def check(path):
    sizes = {}
    live = {}
    freed = 0
    with open(path, encoding="utf-8") as trace:
        for line in trace:
            words = line.split()
            if words[0] == "a":
                live[words[1]] = int(words[2])
                sizes[int(words[2])] = sizes.get(int(words[2]), 0) + 1
            elif words[0] == "f":
                size = live.pop(words[1], None)
                freed += size is not None and size in SIZES
    found = sum(1 for size in SIZES if sizes.get(size, 0) >= 1)
    print(f"{found} of {len(SIZES)} sizes found, {freed} of them freed")
    sys.exit(0 if found == len(SIZES) and freed >= len(SIZES) - KEPT else 1)


if sys.argv[1] == "make":
    make()
else:
    check(sys.argv[2])
