#!/usr/bin/env python3
"""Records the memory history of PyTorch loads as snapshots that vramlab reads.

    record.py default                 the seven of traces/data, one after another in one process
    record.py churn_tight             one load, with the allocator settings that go with it
    record.py --list                  all loads

Writes DIR/NAME.pickle and, beside it, NAME.json with what torch.cuda.memory_stats said and the
machine it ran on. Needs a CUDA card and torch 2.11 or near; sizes differ a little on other cards.
The same history from a program of your own: torch.cuda.memory._record_memory_history() before it,
torch.cuda.memory._dump_snapshot(path) behind it.
"""

import argparse
import gc
import json
import os
import sys
import time

STATS = [
    "allocated_bytes.all.peak",
    "reserved_bytes.all.peak",
    "active_bytes.all.peak",
    "requested_bytes.all.peak",
    "allocation.all.allocated",
    "segment.all.allocated",
    "num_alloc_retries",
    "num_ooms",
    "num_device_alloc",
    "num_device_free",
    "num_sync_all_streams",
    "allocated_bytes.all.current",
    "reserved_bytes.all.current",
]


def start(torch, frames):
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()
    torch.cuda.memory._record_memory_history(
        enabled="all",
        context="alloc" if frames else None,
        stacks="python",
        max_entries=400000,
    )


def record(torch, name, load, frames, folder):
    """Runs one load under recording; running out of memory is part of some of them."""
    start(torch, frames)
    began = time.time()
    error = ""
    try:
        load()
        torch.cuda.synchronize()
    except torch.OutOfMemoryError as failure:
        error = str(failure)
    seconds = time.time() - began
    stats = torch.cuda.memory_stats()
    path = os.path.join(folder, name + ".pickle")
    torch.cuda.memory._dump_snapshot(path)
    torch.cuda.memory._record_memory_history(enabled=None)
    facts = {key: stats.get(key) for key in STATS}
    facts.update(
        conf=os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""),
        error=error,
        seconds=seconds,
        torch=torch.__version__,
        device=torch.cuda.get_device_name(0),
    )
    with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as out:
        json.dump(facts, out, indent=1)
    print(
        f"{name}: {os.path.getsize(path):,} bytes, peak allocated"
        f" {facts['allocated_bytes.all.peak']:,}, reserved {facts['reserved_bytes.all.peak']:,},"
        f" retries {facts['num_alloc_retries']}, out of memory {facts['num_ooms']},"
        f" {seconds:.1f} s"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a load, or `default`")
    parser.add_argument("--out", default=".", metavar="DIR", help="where to write (default: here)")
    parser.add_argument("--list", action="store_true", help="name the loads and their settings")
    arguments = parser.parse_args()
    if not arguments.names and not arguments.list:
        parser.error("name a load, `default`, or --list")
    try:
        import torch
        import loads
    except ImportError as missing:
        sys.exit(f"record.py: {missing}; it records PyTorch, so torch must be installed")
    if arguments.list:
        for name, (_, conf, frames) in loads.LOADS.items():
            print(f"{name:24}{conf}{' with stack frames' if frames else ''}")
        return
    names = []
    for name in arguments.names:
        names += list(loads.DEFAULT) if name == "default" else [name]
    unknown = [name for name in names if name not in loads.LOADS]
    if unknown:
        parser.error(f"no load is called {unknown[0]}; --list names them")
    confs = {loads.LOADS[name][1] for name in names}
    if len(confs) > 1:
        parser.error("these loads need different allocator settings: record them one at a time")
    if not torch.cuda.is_available():
        sys.exit("record.py: torch finds no CUDA device here")
    conf = confs.pop()
    if os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "") != conf:  # must be set before torch starts
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = conf
        os.execv(sys.executable, [sys.executable] + sys.argv)
    os.makedirs(arguments.out, exist_ok=True)
    torch.manual_seed(0)
    torch.empty(1, device=loads.DEVICE)
    for name in names:
        load, _, frames = loads.LOADS[name]
        record(torch, name, load, frames, arguments.out)


if __name__ == "__main__":
    main()
