"""The table over all workloads: the smallest arena over peak live, of each backend on each, and what PyTorch reserved."""

from claim import shown
from results import chosen, exactly, summary
from space import workload_of

STACKS = ("offline", "two-ended", "list:policy=best", "list:policy=first", "tlsf", "slab", "segregated", "buddy", "buddy:trim=on", "caching:driver=arena", "naive")


def of_rows(rows, name):
    """A line: the workload, then each stack's ratio; the geometric mean of the seeds where there are some."""
    ratios = summary(rows, "smallest_ratio")
    return f"| {name} | " + " | ".join(shown(ratios[stack]) if stack in ratios else "" for stack in STACKS)


def table(results):
    recorded, generated = results.study("fit"), results.study("bounds") + results.study("workloads")
    lines = ["# Smallest arena over peak live", "",
             "Made by `experiments/claims` from fit.csv, workloads.csv and bounds.csv. Generated workloads: geometric mean of their seeds, with its 95 %",
             "bootstrap interval. `reserved` is what PyTorch had taken from the driver at its peak, over peak live. No figure: not measured.", "",
             "| workload | " + " | ".join(STACKS) + " | reserved |", "|---|" + "---:|" * (len(STACKS) + 1)]
    for trace in dict.fromkeys(row["trace"] for row in recorded):
        rows = chosen(recorded, trace=trace)
        reserved = float(rows[0]["recorded_reserved_bytes"]) / float(rows[0]["bound_bytes"])
        lines.append(of_rows(rows, trace.removesuffix(".pickle.gz")) + f" | {shown(exactly(reserved))} |")
    lines.append(of_rows(recorded, "**recordings**") + " | " + shown(reserved_mean(recorded)) + " |")
    for workload in dict.fromkeys(workload_of(row) for row in generated):
        rows = [row for row in generated if workload_of(row) == workload]
        lines.append(of_rows(rows, workload.removeprefix("generate:")) + " | |")
    lines.append(of_rows(generated, "**generated**") + " | |")
    return "\n".join(lines) + "\n"


def reserved_mean(rows):
    reserved = [{"stack": "reserved", "reserved_ratio": float(row["recorded_reserved_bytes"]) / float(row["bound_bytes"])}
                for row in chosen(rows, stack="list:policy=best")]
    return summary(reserved, "reserved_ratio")["reserved"]
