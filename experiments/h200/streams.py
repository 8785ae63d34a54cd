"""Streams that read late: does a backend under PyTorch ever hand out bytes that another stream may
still use? Prints a row of CSV; exit status 1 when a sum was wrong.

Each round writes a tensor on one stream and sums it on another, behind a kernel that sleeps, while
the tensor is deleted at once. Were its bytes reused before that sum, the sum would be another."""

import random
import sys

import torch
import vramlab_torch

backend = sys.argv[1]
vramlab_torch.use(backend, arena="cuda:4GiB", on_full="stop")

ROUNDS = 6000
draw = random.Random(7)
streams = [torch.cuda.Stream() for _ in range(4)]
sums = []
for i in range(ROUNDS):
    writer, reader = draw.choice(streams), draw.choice(streams)
    length = int(2 ** draw.uniform(8, 20))
    with torch.cuda.stream(writer):
        tensor = torch.full((length,), i % 251, dtype=torch.int64, device="cuda")
    reader.wait_stream(writer)
    with torch.cuda.stream(reader):
        if draw.random() < 0.3:
            torch.cuda._sleep(200000)
        total = tensor.sum()
    if reader is not writer:
        tensor.record_stream(reader)
    del tensor
    sums.append((total, length * (i % 251)))
torch.cuda.synchronize()
wrong = sum(1 for total, expected in sums if int(total) != expected)
figures = vramlab_torch.stats()
print(f"{backend},{len(sums)},{wrong},{figures['delayed']},{figures['reused']},"
      f"{figures['stream_waits']}")
sys.exit(1 if wrong else 0)
