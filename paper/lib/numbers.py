"""The numbers of the text: each has a key, a value, and how it is printed."""

import math
from lib import data

UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
WORDS = "no one two three four five six seven eight nine ten eleven twelve".split()


def ratio(value):
    value = float(value)
    return f"{value:.3f}" if value < 1.2 else f"{value:.2f}" if value < 9.995 else f"{value:.1f}"


def whole(value):
    return f"{round(float(value)):,}".replace(",", "{,}")


def binary(value, unit, digits=2):
    return f"{float(value) / UNITS[unit]:.{digits}f}"


def percent(value, digits=0):
    return f"{100 * float(value):.{digits}f}"


def short(value):
    """Three digits that count."""
    value = float(value)
    if value == 0 or abs(value) >= 1000 or abs(value) >= 10 and value == int(value):
        return whole(value)
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}" if abs(value) >= 0.01 else f"{value:.2g}"


def measured(row):
    """A value of claims.csv with its interval, where it has one."""
    if not row["value"]:
        return "none"
    interval = "" if row["low"] == row["high"] else f" [{short(row['low'])}, {short(row['high'])}]"
    return short(row["value"]) + interval


def geomean(values):
    values = [float(value) for value in values]
    return math.exp(sum(map(math.log, values)) / len(values))


def median(values):
    values = sorted(float(value) for value in values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


class Numbers:
    def __init__(self):
        self.text, self.value = {}, {}

    def put(self, key, value, text=None):
        """A number that the text may use; told apart by its key, which may be given once."""
        if key in self.text:
            raise data.Missing(f"two numbers are called {key}")
        self.value[key] = value
        self.text[key] = str(value) if text is None else text

    def count(self, key, value):
        """A small whole number: key prints digits, key.word a word."""
        self.put(key, value, whole(value))
        if 0 <= value < len(WORDS):
            self.put(f"{key}.word", value, WORDS[value])

    def range(self, key, values, show):
        values = [float(value) for value in values]
        self.put(f"{key}.least", min(values), show(min(values)))
        self.put(f"{key}.most", max(values), show(max(values)))


def constants(out):
    for row in data.rows("paper/constants.csv"):
        out.put(row["key"], row["value"], row["value"])


def recordings(out):
    model = {data.KEY_OF[row["recording"]]: row for row in data.study("validate")}
    info = {data.KEY_OF[row["trace"]]: row for row in data.study("recordings")}
    out.count("recordings", len(info))
    for key, row in info.items():
        live, reserved = int(row["peak_live_unit_bytes"]), int(row["peak_reserved_bytes"])
        out.put(f"{key}.live", live, binary(live, "GiB"))
        out.put(f"{key}.reserved", reserved, binary(reserved, "GiB"))
        out.put(f"{key}.reserved.ratio", reserved / live, ratio(reserved / live))
        out.put(f"{key}.unused.share", 1 - int(row["peak_allocated_bytes"]) / reserved,
                percent(1 - int(row["peak_allocated_bytes"]) / reserved))
    out.range("reserved.ratio", [out.value[f"{key}.reserved.ratio"] for key in info], ratio)
    mean = geomean(out.value[f"{key}.reserved.ratio"] for key in info)
    out.put("reserved.geomean", mean, ratio(mean))
    for total, column in (("addresses", "allocations"), ("addresses.equal", "allocations_equal"),
                          ("segments", "segment_events"), ("segments.equal", "segment_events_equal"),
                          ("model.events", "events")):
        out.put(total, sum(int(row[column]) for row in model.values()),
                whole(sum(int(row[column]) for row in model.values())))
    out.count("model.exact", sum(row["outcome"] == "exact" for row in model.values()))


def smallest_arenas(out):
    """fit.KEY is a backend's geometric mean over the recordings, fit.KEY.RECORDING one recording's."""
    for row in data.study("fit"):
        backend, recording = data.STACK_KEY.get(row["stack"]), data.KEY_OF.get(row["trace"])
        if backend and recording and row["smallest_ratio"]:
            out.put(f"fit.{backend}.{recording}", float(row["smallest_ratio"]), ratio(row["smallest_ratio"]))
            out.put(f"fit.{backend}.{recording}.bytes", int(row["smallest_arena_bytes"]),
                    binary(row["smallest_arena_bytes"], "GiB"))
            if float(row["no_failure_ratio"]) > float(row["smallest_ratio"]):
                out.put(f"fit.{backend}.{recording}.sure", float(row["no_failure_ratio"]),
                        ratio(row["no_failure_ratio"]))
    for row in data.stats("fit", "--against", "stack=list:policy=best"):
        key = data.STACK_KEY.get(row["stack"])
        if not key:
            continue
        out.put(f"fit.{key}", row["value"], ratio(row["value"]))
        out.put(f"fit.{key}.low", row["low"], ratio(row["low"]))
        out.put(f"fit.{key}.high", row["high"], ratio(row["high"]))
        out.put(f"fit.{key}.missing", row["missing"])
        out.put(f"fit.{key}.over.best", row["ratio"], ratio(row["ratio"]))
        out.put(f"fit.{key}.over.best.percent", row["ratio"] - 1, percent(row["ratio"] - 1, 1 if row["ratio"] < 1.2 else 0))
    out.put("fit.best.over.offline.percent", out.value["fit.best"] / out.value["fit.offline"] - 1,
            percent(out.value["fit.best"] / out.value["fit.offline"] - 1, 1))
    keys = [key for _, key, _ in data.RECORDINGS]
    over = [out.value[f"{key}.reserved.ratio"] / out.value[f"fit.best.{key}"] for key in keys]
    out.put("reserved.over.best", geomean(over), ratio(geomean(over)))
    out.put("reserved.over.best.percent", geomean(over) - 1, percent(geomean(over) - 1))
    saved = {key: out.value[f"{key}.reserved"] - out.value[f"fit.best.{key}.bytes"] for key in keys}
    for key, value in saved.items():
        out.put(f"{key}.saved", value, binary(value, "GiB"))
    out.count("saved.recordings", sum(value > 0 for value in saved.values()))
    out.range("fit.buddy", [out.value[f"fit.buddy.{key}"] for key in keys], ratio)
    out.range("fit.best", [out.value[f"fit.best.{key}"] for key in keys], ratio)
    apart = sum(float(row["no_failure_ratio"]) > float(row["smallest_ratio"])
                for row in data.study("fit") if row["smallest_ratio"])
    out.count("fit.apart", apart)
    out.count("fit.cells", len(data.study("fit")))


def offline_bounds(out):
    found = {}
    for row in data.study("minimalloc"):
        if row["smallest_arena_bytes"]:
            found.setdefault(data.STACK_KEY[row["stack"]], []).append(row)
    capacity = int(out.value["minimalloc.capacity"].replace("{,}", ""))
    for key, list_of in found.items():
        ratios = [float(row["smallest_ratio"]) for row in list_of]
        out.put(f"mini.{key}", geomean(ratios), ratio(geomean(ratios)))
        out.range(f"mini.{key}", ratios, ratio)
    out.count("mini", len(found["offline"]))
    out.count("mini.met", sum(int(row["smallest_arena_bytes"]) <= capacity for row in found["offline"]))
    worst = max(int(row["smallest_arena_bytes"]) for row in found["offline"]) / capacity
    out.put("mini.offline.over.capacity", worst, percent(worst - 1, 1))


def worst_cases(out):
    for row in data.study("worst"):
        key = data.STACK_KEY.get(row["backend"], row["backend"])
        method = {"any allocator, at least": "bound", "every sequence": "exact", "hill climbing": "climb",
                  "Robson's adversary": "robson"}[row["method"]]
        game = f"{row['live_units']}.{row['largest_units']}"
        out.put(f"worst.{key}.{game}.{method}", int(row["arena_units"]), row["arena_units"])
        if row["live_units"] == "64":
            out.put(f"worst.{key}.{game}.{method}.ratio", float(row["arena_ratio"]), ratio(row["arena_ratio"]))


def on_the_card(out):
    bench = {(row["workload"], row["backend"]): row for row in data.card("bench")}
    for name in ("tlsf", "cudamalloc", "cudaasync"):
        for load in ("idle", "busy"):
            for call in ("alloc", "free"):
                ns = float(bench[load, name][f"{call}_p50_ns"])
                out.put(f"card.{name}.{load}.{call}", ns, f"{ns / 1000:.2f}" if ns < 1e5 else whole(ns / 1000))
        pair = float(bench["idle", name]["alloc_p50_ns"]) + float(bench["idle", name]["free_p50_ns"])
        out.put(f"card.{name}.pair", pair, f"{pair / 1000:.2f}")
        for many in ("one", "many"):
            total = float(bench[many, name]["alloc_total_ns"]) / 1e6
            out.put(f"card.{name}.{many}", total, f"{total:.2f}")
    pair = out.value["card.cudamalloc.pair"] / out.value["card.tlsf.pair"]
    out.put("card.malloc.over.tlsf.pair", pair, whole(pair))
    pair = out.value["card.cudaasync.pair"] / out.value["card.tlsf.pair"]
    out.put("card.async.over.tlsf.pair", pair, whole(pair))
    many = out.value["card.cudamalloc.many"] / out.value["card.cudamalloc.one"]
    out.put("card.many.over.one", many, whole(many))
    ns = {(row["trace"], row["backend"]): float(row["ns_per_op"]) for row in data.card("verify")}
    for name in ("cudamalloc", "cudaasync"):
        factors = [ns[trace, name] / ns[trace, "tlsf"] for trace, backend in ns if backend == name]
        out.put(f"card.{name}.over.tlsf", geomean(factors), whole(geomean(factors)))
        out.range(f"card.{name}.over.tlsf", factors, whole)
    layer = data.card("layer")
    reads = sum(int(row["reads"]) for row in layer if "+stream" not in row["backend"])
    out.put("card.reads", reads, whole(reads))
    stale = sum(int(row["stale"]) for row in layer if "+stream" not in row["backend"])
    out.put("card.stale", stale, whole(stale))
    out.put("card.stale.layer", sum(int(row["stale"]) for row in layer if "+stream" in row["backend"]))


def training_rounds():
    """Rows of train.csv with the native row of their round, which comes first in it."""
    native = {}
    for row in data.card("train"):
        if row["allocator"] == "native":
            native[row["model"]] = row
        yield row, native[row["model"]]


def training(out):
    """train.MODEL.ALLOCATOR: memory over peak live, and steps a second over native in the same round."""
    speeds = {}
    for row, native in training_rounds():
        key = f"train.{row['model'].split('_')[0]}.{row['allocator']}"
        speeds.setdefault(key, []).append(float(row["steps_per_second"]) / float(native["steps_per_second"]))
        if f"{key}.ratio" not in out.value:
            needed = float(row["memory_needed_bytes"])
            out.put(f"{key}.ratio", needed / float(row["peak_live_bytes"]),
                    ratio(needed / float(row["peak_live_bytes"])))
            out.put(f"{key}.needed", needed, binary(needed, "GiB"))
    for key, found in speeds.items():
        out.put(f"{key}.speed", median(found), f"{median(found):.2f}")
        out.count(f"{key}.rounds", len(found))


def costs(out):
    """speed.KEY: ns an operation above null; speed.KEY.over.tlsf: of the same run, geometric mean. Of backends that
    serve every recording in that arena: a refusal is fast."""
    found = data.study("speed")
    out.put("speed.arena", found[0]["arena"], found[0]["arena"].rstrip("%"))
    refusing = {row["stack"] for row in found if row["outcome"] != "completes"}
    for row in data.stats("speed", "--value", "net_ns_per_op", "--statistic", "median", "--against", "stack=tlsf"):
        if row["stack"] in refusing:
            continue
        key = data.STACK_KEY[row["stack"]]
        out.put(f"speed.{key}", row["value"], f"{row['value']:.1f}")
        if row.get("ratio") is not None:
            out.put(f"speed.{key}.over.tlsf", row["ratio"], ratio(row["ratio"]))
            out.put(f"speed.{key}.over.tlsf.low", row["ratio_low"], ratio(row["ratio_low"]))
            out.put(f"speed.{key}.over.tlsf.high", row["ratio_high"], ratio(row["ratio_high"]))
    counted = {}
    for row in data.study("instructions"):
        counted.setdefault(data.STACK_KEY[row["backend"]], []).append(float(row["net_instructions_per_op"]))
    for key, counts in counted.items():
        out.put(f"instructions.{key}", median(counts), whole(median(counts)))
        out.range(f"instructions.{key}", counts, whole)


def worth_choosing(out):
    """The backends that serve every recording and that no other beats in both time and space."""
    keys = [key for _, key, _ in data.BACKENDS
            if f"speed.{key}.over.tlsf" in out.value and out.value[f"fit.{key}.missing"] == 0]
    at = {key: (out.value[f"fit.{key}"], out.value[f"speed.{key}.over.tlsf"]) for key in keys}
    best = [key for key in keys if not any(at[other][0] < at[key][0] and at[other][1] < at[key][1] for other in keys)]
    names = [data.TITLE[key] for key in sorted(best, key=lambda key: at[key])]
    out.put("speed.front", len(names), ", ".join(names[:-1]) + (" and " if names[1:] else "") + names[-1])


def share_served(out):
    """served.KEY.ARENA: mean share of requests served; completes.KEY.ARENA: recordings served whole."""
    for (key, arena), found in frontier().items():
        out.put(f"served.{key}.{arena}", sum(found) / len(found), percent(sum(found) / len(found), 2))
        out.put(f"completes.{key}.{arena}", sum(share == 1 for share in found))


def frontier():
    """(backend, arena in percent of peak live): the share served of each recording."""
    found = {}
    for row in data.study("frontier"):
        key = data.STACK_KEY[row["stack"]], int(float(row["arena"].rstrip("%")))
        found.setdefault(key, []).append(int(row["served"]) / int(row["requests"]))
    return found


def fixed_scan(out):
    """scan.SEARCH.BLOCKS: ns an operation above null."""
    for (search, live), ns in scan_costs().items():
        out.put(f"scan.{search}.{live}", ns, f"{ns:.1f}")
    most = max(live for _, live in scan_costs())
    out.put("scan.blocks", most, whole(most))
    factor = scan_costs()["scan", most] / scan_costs()["bitmap", most]
    out.put("scan.factor", factor, whole(factor))


def scan_costs():
    found = {}
    for row in data.study("fixedscan"):
        live = int(row["trace"].split("live=")[1].split(",")[0])
        found.setdefault((row["options"].split("search=")[1], live), []).append(float(row["net_ns_per_op"]))
    return {key: median(ns) for key, ns in found.items()}


def verdicts(out):
    """claim.C4.true and claim.C4.parts: how many parts of it are true, and how many there are."""
    parts = {}
    for row in data.study("claims"):
        if row["answer"]:
            parts.setdefault(row["claim"], []).append(row)
    for claim, of in parts.items():
        out.put(f"claim.{claim}.true", sum(row["answer"] == "yes" for row in of))
        out.put(f"claim.{claim}.parts", len(of))
    out.count("claims", sum(claim[0] == "C" for claim in parts))
    for verdict in ("holds", "holds in part", "does not hold", "not settled"):
        names = [data.claim_title(claim) for claim, of in parts.items() if of[0]["verdict"] == verdict]
        key = "claims." + verdict.replace(" ", ".")
        out.count(key, len(names))
        out.put(f"{key}.names", len(names), ", ".join(names) or "none")


def generated(out):
    for row in data.stats("workloads"):
        key = data.STACK_KEY.get(row["stack"])
        if key:
            out.put(f"work.{key}", row["value"], ratio(row["value"]))
    out.count("work.traces", len({row["trace"].split(",seed=")[0] for row in data.study("workloads")}))


def everything():
    out = Numbers()
    for part in (constants, recordings, smallest_arenas, offline_bounds, worst_cases, on_the_card, training,
                 costs, worth_choosing, share_served, fixed_scan,
                 verdicts, generated):
        part(out)
    return out


def as_tex(out):
    lines = ["% Written by paper/numbers."]
    lines += [f"\\setnumber{{{key}}}{{{text}}}" for key, text in sorted(out.text.items())]
    return "\n".join(lines) + "\n"
