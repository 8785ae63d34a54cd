"""The claims that only a card can settle, from the results of one (experiments/h200/results)."""

from claim import Claim, NO, OPEN, YES, above, at_least, number
from results import Missing, chosen, exactly, summary

KERNEL_NS = 5e6  # of the kernel that is in flight in the workload `busy` of `vramlab bench`
MIB, GIB = 2.0**20, 2.0**30
ONE_CARD = "One NVIDIA H200 (experiments/h200/README.md): "


def called(rows, workload, backend, column):
    """A number of `vramlab bench`."""
    text = chosen(rows, workload=workload, backend=backend)[0][column]
    if not text:
        raise Missing(f"bench.csv: {workload}, {backend}: {column} is empty")
    return exactly(text)


def one_call_or_many(results):
    bench = results.card("bench")
    times = {(w, b): called(bench, w, b, "alloc_total_ns").times(1e-6)
             for w in ("one", "many") for b in ("cudamalloc", "cudaasync", "tlsf")}
    one, many = times["one", "cudamalloc"], times["many", "cudamalloc"]
    factor = exactly(many.value / one.value)
    claim = Claim("C1", "1 GB in one cudaMalloc takes about 0.3 ms; in 1,000 calls of 1 MB about 15 ms: 50 times as long.",
                  "Taking 1 GiB in one call is at least 50 times as fast as taking it in 1,024.",
                  ONE_CARD + "1 GiB in one cudaMalloc, and in 1,024 of 1 MiB, nothing else in flight.",
                  "Time of all calls, once.", "h200/results/bench.csv", "log ms for 1 GiB")
    claim.part("1,024 calls take at least 50 times as long as one", "times as long", factor, at_least(factor, 50))
    for what, time, said_ms in (("one call takes", one, 0.3), ("1,024 calls take", many, 15)):
        claim.part(f"{what} {said_ms} ms, within a factor of three", "ms", time,
                   YES if said_ms / 3 <= time.value <= said_ms * 3 else NO)
    claim.remark(f"The gap is {number(factor.value)} times here. In an arena that is there already tlsf gives the 1,024 blocks in "
                 f"{number(times['many', 'tlsf'].value)} ms: less than the one cudaMalloc.")
    claim.draw((f"{b}, {'1 call' if w == 'one' else '1,024 calls'}", times[w, b]) for b in ("cudamalloc", "cudaasync", "tlsf")
               for w in ("one", "many"))
    return claim


def implicit_wait(results):
    bench = results.card("bench")
    backends = ("cudamalloc", "cudaasync", "tlsf")
    times = {(b, what): called(bench, "busy", b, f"{what}_p50_ns").times(1e-3) for b in backends for what in ("alloc", "free")}
    claim = Claim("C2", "cudaMalloc synchronises implicitly and breaks the overlap of streams.",
                  "With a kernel of 5 ms in flight a call returns only when it has ended.",
                  ONE_CARD + "calls while a kernel of 5 ms runs on another stream.",
                  "Median time of a call in us.", "h200/results/bench.csv", "log median us a call, a kernel of 5 ms in flight")
    half_us = KERNEL_NS / 2 / 1e3
    for what, name in (("alloc", "cudaMalloc"), ("free", "cudaFree")):
        claim.part(f"{name} takes at least half as long as the kernel", f"{name}, us", times["cudamalloc", what],
                   at_least(times["cudamalloc", what], half_us))
    worst = called(bench, "busy", "cudamalloc", "alloc_max_ns").times(1e-3)
    claim.remark(f"It is the release that waits, not the request: the slowest cudaMalloc took {number(worst.value)} us while the "
                 "kernel ran. A program that frees in its hot path loses the overlap all the same.")
    claim.draw((f"{b}, {'allocate' if what == 'alloc' else 'free'}", times[b, what]) for b in backends for what in ("alloc", "free"))
    return claim


def with_rounds(rows):
    """Each run with its round: a native run opens one, and the other allocators follow it."""
    seen = 0
    for row in rows:
        seen += row["allocator"] == "native"
        yield dict(row, round=seen)


def speed_against_native(train, model, allocator):
    """Steps a second over native's in the same round, as the machine's state drifts between rounds; median."""
    runs = list(with_rounds(chosen(train, model=model)))
    native = {row["round"]: float(row["steps_per_second"]) for row in chosen(runs, allocator="native")}
    speeds = [{"model": model, "speed": float(row["steps_per_second"]) / native[row["round"]]} for row in chosen(runs, allocator=allocator)]
    return summary(speeds, "speed", by="model", statistic="median")[model]


def serving(results):
    train, verify = results.card("train"), results.card("verify")
    bert = chosen(train, model="bert_infer")
    needed = {r["allocator"]: float(r["memory_needed_bytes"]) / float(r["peak_live_bytes"]) for r in bert}
    memory = exactly(needed["native"] / needed["tlsf"])
    speed = speed_against_native(train, "bert_infer", "tlsf")
    trace = "bert_infer_varlen.pickle.gz"
    ns = {b: float(chosen(verify, trace=trace, backend=b)[0]["ns_per_op"]) for b in ("tlsf", "cudamalloc")}
    time = exactly(ns["cudamalloc"] / ns["tlsf"])
    requests = exactly(chosen(results.study("c07replay"), trace=trace)[0]["requests"])
    claim = Claim("C3", "BERT serving, on demand against preallocated with reuse: driver calls 12,847 a minute against 3 in all; peak "
                  "memory 3.2 against 2.1 GB; mean allocation 0.8 ms against 0.002 ms; 1,200 against 1,850 requests a second.",
                  "Preallocation needs 3.2 / 2.1 = 1.52 times less memory, allocates 400 times faster and serves 1.54 times as much.",
                  ONE_CARD + "BERT inference of varying batch and length in PyTorch, on its own cache and on one arena; "
                  "and the recording of such a run replayed on the driver's own calls and on tlsf.",
                  "Memory needed; steps a second; ns an operation.",
                  "h200/results/train.csv, h200/results/verify.csv", "memory needed over peak live, bert_infer")
    claim.part("on demand needs more memory, by half", "memory of PyTorch's cache over one arena's, times", memory,
               at_least(memory, 3.2 / 2.1))
    claim.part("on demand needs more memory", "the same", memory, above(memory, 1))
    claim.part("an operation takes at least 100 times as long on cudaMalloc", "cudaMalloc's time over tlsf's", time, at_least(time, 100))
    claim.part("one arena serves at least 1.54 times as much", "steps a second over those of PyTorch's cache", speed, at_least(speed, 1.54))
    claim.part("on demand the driver is called for each request", "requests in the recording, each a cudaMalloc", requests, at_least(requests, 1000))
    claim.remark("PyTorch never allocates on demand: its cache holds on to what it once took. So memory and speed are those of one "
                 "pool against another, and only the time of an operation is that of the driver's own calls. It ran once: no interval.")
    claim.draw(needed_of(bert))
    return claim


def needed_of(rows):
    for row in rows:
        yield row["allocator"], exactly(float(row["memory_needed_bytes"]) / float(row["peak_live_bytes"]))


def twice_as_fast(results):
    train = results.card("train")
    claim = Claim("C15", "Taking cudaMalloc out of the hot path at least doubles the program's speed.",
                  "A program that calls the driver for each request takes at least twice as long as one on an arena.",
                  ONE_CARD + "the recordings with the driver's time for each operation added to their own, which is reckoned, not measured; "
                  "beside it four models in PyTorch on tlsf against PyTorch's own cache.",
                  "The recording's time with the driver's calls over without; steps a second, each run over native's of its round, median.",
                  "h200/results/verify.csv, h200/results/train.csv, results/speed.csv", "times as long with the driver's calls, at least")
    slower = slowdowns(results)
    for row in slower:
        time = exactly(row["slower_ratio"])
        name = row["trace"].removesuffix(".pickle.gz")
        claim.part(f"{name} takes at least twice as long", "times as long, at least", time, YES if time.value >= 2 else OPEN)
        claim.draw([(name, time)])
    claim.aside("all recordings", "geometric mean", summary(slower, "slower_ratio", by="all")["all"])
    for model in dict.fromkeys(row["model"] for row in train):
        claim.aside(f"{model} on one arena, over PyTorch's cache", "times as fast", speed_against_native(train, model, "tlsf"), "h200/results/train.csv")
    claim.remark("The waits of cudaFree for kernels in flight (C2) come on top, so a figure below two leaves the claim open there. PyTorch's cache has "
                 "taken cudaMalloc out of the hot path already: against it one arena gains memory, not speed. To measure a program on the driver itself, "
                 "run experiments/h200/train.py with PYTORCH_NO_CUDA_MEMORY_CACHING=1 on a card.")
    return claim


def slowdowns(results):
    """Of each recording: its time with each operation on the driver, over its time."""
    verify = results.card("verify")
    rows = []
    for row in chosen(results.study("speed"), stack="tlsf", repetition="1"):
        driver_ns = float(chosen(verify, trace=row["trace"], backend="cudamalloc")[0]["ns_per_op"])
        span_ns = float(row["recorded_span_ns"])
        rows.append({"trace": row["trace"], "all": "all", "slower_ratio": 1 + float(row["operations"]) * driver_ns / span_ns})
    return rows


CLAIMS = (one_call_or_many, implicit_wait, serving, twice_as_fast)
