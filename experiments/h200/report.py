"""The tables of a run on a card, and what must hold. Exit status 1 when something does not, or is not shown
to; 2 when it cannot be told. Medians and intervals come from `vramlab stats` (VRAMLAB: the command)."""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "report"))
import results  # noqa: E402

if len(sys.argv) != 2 or not os.path.isdir(sys.argv[1]):
    results.fail("a folder with results is expected: report.py experiments/h200/results")
folder = sys.argv[1]
broken = []

FEWEST_PAIRS = 6  # of fewer, an interval says little
SHARE_OF_NATIVE = 0.98


def rows_of(name):
    path = os.path.join(folder, name)
    return results.read(path) if os.path.exists(path) else []


def must(holds, what):
    """holds: True, False, or None when the measurements do not settle it."""
    print({True: "  holds: ", False: "  DOES NOT HOLD: ", None: "  NOT SETTLED: "}[holds] + what)
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


MIXES = {"idle": "nothing in flight, requests of 4 KiB to 16 MiB",
         "large": "nothing in flight, requests of 2 to 64 MiB in steps of 2 MiB",
         "busy": "a kernel of 5 ms in flight"}


def report_bench(rows):
    for workload, title in MIXES.items():
        body = [[r["backend"], us(r["alloc_p50_ns"]), us(r["alloc_p99_ns"]), us(r["alloc_max_ns"]),
                 us(r["free_p50_ns"]), us(r["free_p99_ns"]), us(r["free_max_ns"]),
                 us(r["pair_mean_ns"]), r["driver_calls"], r["refused"]]
                for r in rows if r["workload"] == workload]
        if body:
            table(f"Time of a call in us, {title} ({rows[0]['machine']})",
                  ["backend", "alloc p50", "p99", "max", "free p50", "p99", "max", "pair",
                   "driver calls", "refused"], body)
    table("1 GiB in one call and in 1024, in us",
          ["backend", "once", "1024 times"],
          [[r["backend"], us(r["alloc_total_ns"]),
            us(next(m["alloc_total_ns"] for m in rows
                    if m["workload"] == "many" and m["backend"] == r["backend"]))]
           for r in rows if r["workload"] == "one"])
    pair, _ = pairs_of(rows, "idle")
    asynchronous = min(ns for name, ns in pair.items() if name.startswith("cudaasync"))
    must(asynchronous >= 10 * pair["tlsf"],
         f"a pair on tlsf is 10 times faster than cudaMallocAsync + cudaFreeAsync"
         f" ({asynchronous / pair['tlsf']:.1f} times)")
    report_driver_pairs(rows)


def pairs_of(rows, workload):
    """Of each backend, the ns of an allocation and a free: by medians, and by means."""
    chosen = [r for r in rows if r["workload"] == workload]
    return ({r["backend"]: float(r["alloc_p50_ns"]) + float(r["free_p50_ns"]) for r in chosen},
            {r["backend"]: float(r["pair_mean_ns"]) for r in chosen})


def report_driver_pairs(rows):
    """cudaMalloc and cudaFree against tlsf. The target was set for pairs of 55 us, which are those of
    requests that the driver cannot cut out of pages it holds; without these, the mix has to do."""
    has_large = any(r["workload"] == "large" for r in rows)
    for workload, sizes in (("large", "2 to 64 MiB"), ("idle", "4 KiB to 16 MiB")):
        median, mean = pairs_of(rows, workload)
        if not median:
            continue
        factor = median["cudamalloc"] / median["tlsf"]
        what = (f"requests of {sizes}: a pair on tlsf is 500 times faster than cudaMalloc + cudaFree of"
                f" {us(median['cudamalloc'])} us ({factor:.0f} times by medians,"
                f" {mean['cudamalloc'] / mean['tlsf']:.0f} by means)")
        if workload == "large" or not has_large:
            must(factor >= 500, what)
        else:
            print("  beside it, " + what.replace("is 500 times faster than", "against"))


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


def speeds(model, train, rounds):
    """Steps a second by what they may be compared within, {(crew, round): {allocator: steps}}. Results
    without rounds.csv have a row of train.csv a round, which a native run opens."""
    found, seen = {}, 0
    for row in rounds or train:
        if row["model"] != model:
            continue
        seen += row["allocator"] == "native"
        key = (row["crew"], row["round"]) if rounds else ("", seen)
        found.setdefault(key, {})[row["allocator"]] = float(row["steps_per_second"])
    return found


def against_native(model, train, rounds):
    """Rows for `vramlab stats`: what each allocator reached of native's speed, pair by pair."""
    return [{"allocator": name, "crew": crew, "of_native": f"{steps / pair['native']:.6f}"}
            for (crew, _), pair in speeds(model, train, rounds).items() if "native" in pair
            for name, steps in pair.items()]


def must_be_as_fast(model, name, share):
    if share.count < FEWEST_PAIRS or share.low < SHARE_OF_NATIVE <= share.high:
        holds = None
    else:
        holds = share.low >= SHARE_OF_NATIVE
    must(holds, f"{model} on {name}: steps a second at least {SHARE_OF_NATIVE} of native"
         f" ({share.value:.3f}, {share.low:.3f} to {share.high:.3f}, median of {share.count} {'pair' if share.count == 1 else 'pairs'})")


def report_train(train):
    rounds = rows_of("rounds.csv")
    body = []
    for model in dict.fromkeys(r["model"] for r in train):
        of_model = [r for r in train if r["model"] == model]
        ratios = against_native(model, train, rounds)
        shares = results.summary(ratios, "of_native", by="allocator", statistic="median") if ratios else {}
        steps = results.summary([r for r in rounds or train if r["model"] == model], "steps_per_second",
                                by="allocator", statistic="median")
        expected = [float(r["result"]) for r in of_model if r["allocator"] == "native"]
        for name in dict.fromkeys(r["allocator"] for r in of_model):
            runs = [r for r in of_model if r["allocator"] == name]
            share = shares.get(name)
            crews = [results.summary([r for r in ratios if r["crew"] == crew], "of_native", by="allocator",
                                     statistic="median")[name].value
                     for crew in dict.fromkeys(r["crew"] for r in ratios if r["crew"] and r["allocator"] == name)]
            ratio = max(float(r["memory_needed_bytes"]) / float(r["peak_live_bytes"]) for r in runs)
            body.append([model, name, f"{steps[name].value:.2f}", *(
                [f"{share.value:.3f}", f"{share.low:.3f} to {share.high:.3f}", str(share.count)] if share else ["-"] * 3),
                " ".join(f"{value:.3f}" for value in crews) or "-",
                f"{max(float(r['memory_needed_bytes']) for r in runs) / 2**30:.3f}", f"{ratio:.3f}",
                str(sum(int(r["spilled"]) for r in runs)), runs[0]["result"]])
            if name in ("native", "expandable") or not expected or share is None:
                continue
            scale = max(1e-9, abs(expected[0]))
            difference = max(abs(float(r["result"]) - expected[0]) for r in runs)
            must_be_as_fast(model, name, share)
            must(difference <= 1e-3 * scale, f"{model} on {name}: the result is native's"
                 f" (off by {difference / scale:.1e})")
            if model == "gpt2_train":
                must(ratio <= 1.05, f"{model} on {name}: at most 1.05 of peak live ({ratio:.3f})")
    table("PyTorch: steps a second, and of native's within the same round: median and 95 % interval",
          ["model", "allocator", "steps/s", "of native", "interval", "pairs", "by crew", "GiB needed", "of live",
           "spilled", "result"], body)


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


try:
    for name, report in (("bench.csv", report_bench), ("verify.csv", report_verify), ("layer.csv", report_layer),
                         ("streams.csv", report_streams), ("train.csv", report_train)):
        found = rows_of(name)
        if found:
            report(found)
except results.Missing as why:
    results.fail(str(why))
if os.path.exists(os.path.join(folder, "record.txt")):
    print()
    with open(os.path.join(folder, "record.txt"), encoding="utf-8") as file:
        print("The preloaded recorder: " + file.read())
sys.exit(1 if broken else 0)
