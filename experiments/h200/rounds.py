"""Times a model on several allocators, so that what disturbs one disturbs all.

    rounds.py OUT MODEL... [--allocators native,tlsf,list] [--crews N] [--seconds S]

Two crews of one process for each allocator (train.py) are started at once and stay on the card. In a
round every process makes the same few steps, one after the other, with the others idle; who begins
moves on from round to round. Each round thus compares the same work within a few seconds, and the
two crews show what differs from process to process. All are bound to the same processors.

Adds to OUT/rounds.csv a row for each process and round, and to OUT/train.csv one for each process in
all. Exit status 1 when a process fails: of that model there are no rows then."""

import argparse
import csv
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))

# Steps of a round, so that a process takes somewhat less than a second, and seconds of all rounds.
# More for what was noisier in the first results. Starting should take about 40 s a model.
MODELS = {
    "gpt2_train": (8, 60),
    "resnet50_train": (40, 45),
    "bert_infer": (16, 70),
    "llm_generate": (1, 120),
}
ROUND_COLUMNS = ("model", "allocator", "crew", "round", "place", "steps", "seconds", "steps_per_second")
TRAIN_COLUMNS = ("model", "allocator", "steps", "seconds", "steps_per_second", "result", "memory_needed_bytes",
                 "peak_live_bytes", "spilled", "stream_waits")
PROCESSORS = 4


class Failed(Exception):
    """A process ended before its time."""


class Member:
    """A process that trains when it is told to."""

    def __init__(self, worker, model, allocator, crew):
        self.model, self.allocator, self.crew = model, allocator, crew
        self.steps = self.seconds = 0
        self.process = subprocess.Popen([*worker, model, allocator], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def hear(self, word):
        """What follows the word on the line that begins with it; what else a library prints is passed on."""
        for line in self.process.stdout:
            if line.split(maxsplit=1)[:1] == [word]:
                return line[len(word):].strip()
            sys.stderr.write(line)
        raise Failed(f"{self.model} on {self.allocator} ended with status {self.process.wait()}")

    def work(self, steps):
        try:
            self.process.stdin.write(f"{steps}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # hear tells how it ended
        seconds = float(self.hear("TOOK"))
        self.steps += steps
        self.seconds += seconds
        return seconds

    def finish(self):
        """Its row of train.csv."""
        self.process.stdin.close()
        found = self.hear("END").split(",")
        self.process.wait()
        return [self.model, self.allocator, self.steps, f"{self.seconds:.4f}", f"{self.steps / self.seconds:.3f}", *found]

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def append(path, header, rows):
    is_new = not os.path.exists(path)
    with open(path, "a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(header)
        writer.writerows(rows)


def rounds_of(members, steps, seconds):
    """Rows of rounds.csv, until the seconds are over; three rounds at least."""
    rows = []
    began = time.monotonic()
    number = 0
    while number < 3 or time.monotonic() - began < seconds:
        for place in range(len(members)):
            member = members[(number + place) % len(members)]
            took = member.work(steps)
            rows.append([member.model, member.allocator, member.crew, number + 1, place + 1, steps, f"{took:.6f}",
                         f"{steps / took:.4f}"])
        number += 1
    return rows


def measure(model, options):
    steps, seconds = MODELS[model]
    members = []
    rows, totals = [], []
    try:
        for crew in range(1, options.crews + 1):
            for allocator in options.allocators.split(","):
                members.append(Member(options.worker, model, allocator, crew))
        for member in members:
            member.hear("READY")
        rows = rounds_of(members, steps, seconds if options.seconds is None else options.seconds)
        totals = [member.finish() for member in members]
    finally:
        for member in members:
            member.stop()
    append(os.path.join(options.out, "rounds.csv"), ROUND_COLUMNS, rows)
    append(os.path.join(options.out, "train.csv"), TRAIN_COLUMNS, totals)


def main():
    parser = argparse.ArgumentParser(description="steps a second of PyTorch on several allocators, in turns")
    parser.add_argument("out")
    parser.add_argument("models", nargs="+", choices=MODELS)
    parser.add_argument("--allocators", default="native,tlsf,list")
    parser.add_argument("--crews", type=int, default=2)
    parser.add_argument("--seconds", type=float, help="of rounds, for each model")
    parser.add_argument("--worker", nargs="+", default=[sys.executable, os.path.join(HERE, "train.py")])
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:PROCESSORS])
    status = 0
    for model in options.models:
        try:
            measure(model, options)
        except Failed as why:
            print(f"rounds: {why}", file=sys.stderr)
            status = 1
    return status


sys.exit(main())
