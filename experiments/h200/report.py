"""The tables of a run on a card, and what must hold. Exit status 1 when something does not."""

import csv
import math
import os
import statistics
import sys

folder = sys.argv[1]
broken = []


def rows_of(name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def must(holds, what):
    print(("  holds: " if holds else "  DOES NOT HOLD: ") + what)
    if not holds:
        broken.append(what)


def table(title, header, body):
    print(f"\n{title}")
    cells = [header] + body
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for row in cells:
        print("  " + "  ".join(text.ljust(widths[0]) if i == 0 else text.rjust(widths[i])
                               for i, text in enumerate(row)))


def us(ns):
    return f"{float(ns) / 1000:.2f}" if ns else "-"


def report_bench(rows):
    for workload in ("idle", "busy"):
        body = [[r["backend"], us(r["alloc_p50_ns"]), us(r["alloc_p99_ns"]), us(r["alloc_max_ns"]),
                 us(r["free_p50_ns"]), us(r["free_p99_ns"]), us(r["free_max_ns"]),
                 us(r["pair_mean_ns"]), r["driver_calls"], r["refused"]]
                for r in rows if r["workload"] == workload]
        title = "nothing in flight" if workload == "idle" else "a kernel of 5 ms in flight"
        table(f"Time of a call in us, {title} ({rows[0]['machine']})",
              ["backend", "alloc p50", "p99", "max", "free p50", "p99", "max", "pair",
               "driver calls", "refused"], body)
    table("1 GiB in one call and in 1024, in us",
          ["backend", "once", "1024 times"],
          [[r["backend"], us(r["alloc_total_ns"]),
            us(next(m["alloc_total_ns"] for m in rows
                    if m["workload"] == "many" and m["backend"] == r["backend"]))]
           for r in rows if r["workload"] == "one"])
    pair = {r["backend"]: float(r["alloc_p50_ns"]) + float(r["free_p50_ns"])
            for r in rows if r["workload"] == "idle"}
    asynchronous = min(ns for name, ns in pair.items() if name.startswith("cudaasync"))
    must(asynchronous >= 10 * pair["tlsf"],
         f"a pair on tlsf is 10 times faster than cudaMallocAsync + cudaFreeAsync"
         f" ({asynchronous / pair['tlsf']:.1f} times)")
    mean = {r["backend"]: float(r["pair_mean_ns"]) for r in rows if r["workload"] == "idle"}
    must(pair["cudamalloc"] >= 500 * pair["tlsf"],
         "requests of 256 B to 1 MiB: a pair on tlsf is 500 times faster than cudaMalloc + cudaFree"
         f" ({pair['cudamalloc'] / pair['tlsf']:.0f} times by medians,"
         f" {mean['cudamalloc'] / mean['tlsf']:.0f} by means)")


def report_verify(rows):
    traces = sorted({r["trace"] for r in rows})
    backends = sorted({r["backend"] for r in rows})
    table("Verified replays on the card: requests refused (0: all served)", ["trace"] + backends,
          [[t] + [next((r["refused"] for r in rows if r["trace"] == t and r["backend"] == b), "-")
                  for b in backends] for t in traces])
    must(len(traces) >= 6, f"{len(traces)} recordings replayed with --verify (`run` fails on a wrong answer or byte)")
    report_driver(rows, traces)


def report_driver(rows, traces):
    """The driver's own calls on the recordings, beside tlsf: real sizes, real order."""
    ns = {(r["trace"], r["backend"]): float(r["ns_per_op"]) for r in rows if r["ns_per_op"]}
    body, factors = [], []
    for trace in traces:
        if any((trace, b) not in ns for b in ("tlsf", "cudamalloc", "cudaasync")):
            continue
        tlsf = ns[trace, "tlsf"]
        factors.append(ns[trace, "cudamalloc"] / tlsf)
        body.append([trace, f"{tlsf:.0f}", f"{ns[trace, 'cudaasync']:.0f}",
                     f"{ns[trace, 'cudaasync'] / tlsf:.0f}", f"{ns[trace, 'cudamalloc']:.0f}",
                     f"{factors[-1]:.0f}"])
    table("An operation on real recordings in ns, and times tlsf's",
          ["trace", "tlsf", "cudaasync", "times", "cudamalloc", "times"], body)
    if factors:
        mean = math.exp(sum(map(math.log, factors)) / len(factors))
        below = sum(factor < 500 for factor in factors)
        must(mean >= 500, f"recordings: tlsf is 500 times faster than cudaMalloc and cudaFree"
             f" (geometric mean {mean:.0f}; below 500 on {below} of {len(factors)})")


def with_rounds(rows):
    """Each row with its round: a native run opens one, and the other allocators follow it."""
    seen = 0
    for row in rows:
        seen += row["allocator"] == "native"
        yield seen, row


def report_train(rows):
    body = []
    for model in dict.fromkeys(r["model"] for r in rows):
        of_model = list(with_rounds([r for r in rows if r["model"] == model]))
        native = {number: r for number, r in of_model if r["allocator"] == "native"}
        for name in dict.fromkeys(r["allocator"] for _, r in of_model):
            runs = [(number, r) for number, r in of_model if r["allocator"] == name]
            speed = statistics.median(float(r["steps_per_second"]) for _, r in runs)
            # Against the native run of the same round: the machine's state drifts between rounds.
            shares = [float(r["steps_per_second"]) / float(native[number]["steps_per_second"])
                      for number, r in runs if number in native]
            share = statistics.median(shares) if shares else 0
            spread = f"{min(shares):.3f} to {max(shares):.3f}" if shares else "-"
            row = runs[0][1]
            ratio = (max(float(r["memory_needed_bytes"]) for _, r in runs)
                     / float(row["peak_live_bytes"]))
            body.append([model, name, str(len(runs)), f"{speed:.2f}",
                         f"{share:.3f}" if shares else "-", spread,
                         f"{float(row['memory_needed_bytes']) / 2**30:.3f}", f"{ratio:.3f}",
                         str(sum(int(r["spilled"]) for _, r in runs)), row["result"]])
            if name in ("native", "expandable") or not shares:
                continue
            expected = float(native[min(native)]["result"])
            scale = max(1e-9, abs(expected))
            difference = max(abs(float(r["result"]) - expected) for _, r in runs)
            must(share >= 0.98, f"{model} on {name}: steps a second at least 0.98 of native"
                 f" ({share:.3f}, median of {len(shares)}, {spread})")
            must(difference <= 1e-3 * scale, f"{model} on {name}: the result is native's"
                 f" (off by {difference / scale:.1e})")
            if model == "gpt2_train":
                must(ratio <= 1.05, f"{model} on {name}: at most 1.05 of peak live ({ratio:.3f})")
    table("PyTorch: medians of the rounds, each set against native in the same round",
          ["model", "allocator", "rounds", "steps/s", "of native", "least to most", "GiB needed",
           "of live", "spilled", "result"], body)


def report_streams(rows):
    table("Streams that read late, under PyTorch", list(rows[0]), [list(r.values()) for r in rows])
    must(all(r["stale"] == "0" for r in rows), "no stale byte on any stream of PyTorch")


def report_layer(rows):
    table("Streams that read late, backends alone and under the layer `stream`", list(rows[0]),
          [list(r.values()) for r in rows])
    layered = [r for r in rows if r["backend"].endswith("+stream")]
    bare = [r for r in rows if r not in layered]
    must(all(r["stale"] == "0" for r in layered), "no stale byte under the layer")
    must(any(r["stale"] != "0" for r in bare), "without it there are: the test can fail")


for name, report in (("bench.csv", report_bench), ("verify.csv", report_verify),
                     ("layer.csv", report_layer), ("streams.csv", report_streams), ("train.csv", report_train)):
    rows = rows_of(name)
    if rows:
        report(rows)
if os.path.exists(os.path.join(folder, "record.txt")):
    print()
    with open(os.path.join(folder, "record.txt"), encoding="utf-8") as file:
        print("The preloaded recorder: " + file.read())
sys.exit(1 if broken else 0)
