"""Rows of results, and what they say: every median, geometric mean and interval comes from `vramlab stats`."""

import csv
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass

HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VRAMLAB = os.environ.get("VRAMLAB", os.path.join(HOME, "build/release/vramlab"))


class Missing(Exception):
    """A file, a column or rows that a claim rests on are not there."""


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % interval; one that rests on a single value has none."""
    value: float
    low: float
    high: float
    count: int = 1

    def inverse(self):
        return Estimate(1 / self.value, 1 / self.high, 1 / self.low, self.count)

    def times(self, factor):
        return Estimate(self.value * factor, self.low * factor, self.high * factor, self.count)


@dataclass(frozen=True)
class Paired:
    """The same cells measured twice: the second over the first, and in how many it is less, equal and more."""
    ratio: Estimate
    less: int
    equal: int
    more: int


def exactly(value):
    return Estimate(float(value), float(value), float(value))


def read(path):
    if not os.path.exists(path):
        raise Missing(f"{path} is not there")
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path, header, rows):
    """Beside and renamed: a file is whole or as it was."""
    with open(path + ".part", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    os.replace(path + ".part", path)


def write_text(path, text):
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".part", path)


class Results:
    """The folders with the studies' CSV files, and with those of a card."""

    def __init__(self, folder, card_folder):
        self.folder, self.card_folder = folder, card_folder

    def study(self, name):
        return [dict(row, set=set_of(row["trace"])) for row in read(os.path.join(self.folder, name + ".csv"))]

    def card(self, name):
        return read(os.path.join(self.card_folder, name + ".csv"))


def set_of(trace):
    """A recording, or generated."""
    return "generated" if trace.startswith("generate:") else "recordings"


def chosen(rows, **wanted):
    """The rows with these values; a tuple stands for any of its members."""
    def fits(row):
        return all(row[key] in (value if isinstance(value, tuple) else (value,)) for key, value in wanted.items())
    found = [row for row in rows if fits(row)]
    if not found:
        raise Missing(f"no row has {wanted}")
    return found


def _run(rows, arguments):
    keys = list(rows[0])
    with tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, keys, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        file.flush()
        done = subprocess.run([VRAMLAB, "stats", file.name, "--format", "csv", *arguments], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise Missing(done.stderr.strip())
    return list(csv.DictReader(done.stdout.splitlines()))


def _estimate(row, value, low, high):
    if not row[value]:
        return None
    return Estimate(float(row[value]), float(row[low]), float(row[high]), int(row["count"]))


def summary(rows, value, by="stack", statistic=None):
    """{what the column `by` holds: Estimate or None}."""
    arguments = ["--value", value, "--by", by] + (["--statistic", statistic] if statistic else [])
    return {row[by]: _estimate(row, "value", "low", "high") for row in _run(rows, arguments)}


def against(rows, value, first, by="stack", pairs="trace,arena,seed,repetition"):
    """{what the column `by` holds: Paired}, each against the rows where it holds `first`."""
    arguments = ["--value", value, "--by", by, "--against", f"{by}={first}", "--pairs", pairs]
    return {row[by]: Paired(_estimate(row, "ratio", "ratio_low", "ratio_high"),
                            *(int(row[key]) for key in ("less", "equal", "more")))
            for row in _run(rows, arguments)}


def fail(message):
    print(f"{os.path.basename(sys.argv[0])}: {message}", file=sys.stderr)
    sys.exit(2)
