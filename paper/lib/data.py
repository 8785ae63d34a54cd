"""What the studies wrote: reading it, and the one place that knows file names, recordings and backends."""

import csv
import hashlib
import json
import os
import subprocess

ROOT = os.environ.get("PAPER_ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RESULTS = "experiments/results"
CARD = "experiments/h200/results"

# Every file that a number, a table or a figure comes from, and the command that writes it.
SOURCES = {f"{RESULTS}/{name}.csv": f"vramlab sweep experiments/studies/{name}.ini"
           for name in ("fit", "minimalloc", "frontier", "speed", "fixedscan", "workloads")}
SOURCES.update({f"{RESULTS}/{name}.csv": f"paper/measure {name}"
                for name in ("recordings", "validate", "worst", "instructions")})
SOURCES[f"{RESULTS}/claims.csv"] = "experiments/claims"
SOURCES.update({f"{CARD}/{name}.csv": "experiments/h200/run" for name in ("bench", "verify", "train", "layer")})
SOURCES["paper/constants.csv"] = "written by hand: definitions and figures of others, each with its source"

# File, key, and what runs: the order of the tables.
RECORDINGS = [
    ("resnet50_train", "resnet", "ResNet-50, training"),
    ("gpt2_train_varlen", "gpt", "GPT-2 small, training"),
    ("bert_infer_varlen", "bert", "BERT, inference"),
    ("video_pipeline_mixed", "video", "video frames, three sizes"),
    ("multi_stream", "streams", "tensors across streams"),
    ("unet_train_frames", "unet", "U-Net, training"),
    ("oom_fragmented", "oom", "random tensors, to OOM"),
]
KEY_OF = {f"{name}.pickle.gz": key for name, key, _ in RECORDINGS}

# Stack as in the results, key, and how the paper calls it.
BACKENDS = [
    ("offline", "offline", "offline plan"),
    ("two-ended", "hints", "two-ended, lifetime hints"),
    ("list:policy=best", "best", "best fit"),
    ("tlsf", "tlsf", "TLSF"),
    ("segregated", "segregated", "segregated pools"),
    ("list:policy=first", "first", "first fit"),
    ("slab", "slab", "slab"),
    ("caching:driver=arena", "caching", "PyTorch's rules in an arena"),
    ("list:policy=worst", "worst", "worst fit"),
    ("list:policy=next", "next", "next fit"),
    ("buddy", "buddy", "buddy"),
    ("buddy:trim=on", "trim", "buddy, tails trimmed"),
    ("naive", "naive", "whole blocks (course)"),
    ("fixed", "fixed", "equal blocks (course)"),
]
STACK_KEY = {stack: key for stack, key, _ in BACKENDS}
TITLE = {key: title for _, key, title in BACKENDS}
PLANNED = ("offline", "hints")  # know the future; no allocator


class Missing(Exception):
    """Data that the paper needs is absent or not as expected."""


def path_of(name):
    return os.path.join(ROOT, name)


def rows(name):
    """The rows of one source, as dictionaries."""
    if name not in SOURCES:
        raise Missing(f"{name} is not among the sources in paper/lib/data.py")
    if not os.path.exists(path_of(name)):
        raise Missing(f"{name} is absent; it comes from: {SOURCES[name]}")
    with open(path_of(name), encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    if not found:
        raise Missing(f"{name} has no rows")
    return found


def study(name):
    return rows(f"{RESULTS}/{name}.csv")


def card(name):
    return rows(f"{CARD}/{name}.csv")


def stats(name, *options):
    """Rows of `vramlab stats`: the medians, means and intervals that everybody else uses, too."""
    path = f"{RESULTS}/{name}.csv"
    rows(path)
    command = os.environ.get("VRAMLAB") or path_of("build/release/vramlab")
    try:
        done = subprocess.run([command, "stats", path_of(path), "--format", "json", *options],
                              capture_output=True, text=True, check=True)
    except FileNotFoundError as error:
        raise Missing(f"{command} is absent: experiments/build release vramlab_command") from error
    except subprocess.CalledProcessError as error:
        raise Missing(f"vramlab stats {path}: {error.stderr.strip()}") from error
    return json.loads(done.stdout)


def claim_title(name):
    """C4, or what stands for a claim that the course makes in passing."""
    return {"scan": "$O(1)$"}.get(name, name)


def traces():
    return [f"traces/data/{name}.pickle.gz" for name, _, _ in RECORDINGS]


def texts():
    """The paper's own files: what is typeset, and what makes numbers."""
    found = ["paper/vramlab.tex", "paper/references.bib", "paper/numbers", "paper/typeset"]
    for folder in ("paper/lib", "paper/text"):
        found += [f"{folder}/{name}" for name in sorted(os.listdir(path_of(folder)))
                  if name.endswith((".py", ".tex"))]
    return found


def fingerprints():
    """The content of everything that the paper is made from: path to SHA-256."""
    found = {}
    for name in [*SOURCES, *traces(), *texts()]:
        if not os.path.exists(path_of(name)):
            raise Missing(f"{name} is absent; it comes from: {SOURCES.get(name, 'the repository')}")
        with open(path_of(name), "rb") as file:
            found[name] = hashlib.sha256(file.read()).hexdigest()
    return found
