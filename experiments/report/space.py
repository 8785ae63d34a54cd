"""The claims that a processor can settle, from the studies in experiments/studies: what fits, and where."""

from claim import Claim, NO, YES, above, at_least, at_most, below, number, shown
from results import Estimate, against, chosen, exactly, summary

COURSE = "segregated:classes=2KiB/8KiB/32KiB/128KiB/512KiB,shares="  # the course's five classes
EVERYTHING = "the seven recordings and three random workloads of 512 B to 4 MiB"
FIT = "Smallest arena that serves every request over peak live; geometric mean, and of the ratios pair by pair."
FIT_AXIS = "smallest arena over peak live"
NEAR = 1.1  # within a tenth of another counts as equal to it
NEAR_ZERO = 0.05


def plainly(estimates):
    """Labels of a figure: the course's classes by their name."""
    return ((stack.replace(COURSE, "the course's five, shares="), estimate) for stack, estimate in estimates.items())


def whole_blocks(results):
    rows = results.study("c04")
    ratio, change = summary(rows, "smallest_ratio"), against(rows, "smallest_ratio", "naive")
    to_list = against(rows, "smallest_ratio", "list:policy=best")
    both = "naive:bins=hash,round=pow2"
    claim = Claim("C4", "With arbitrary sizes a first-fit list of whole blocks fragments soon; rounding to powers of two and a hash by "
                  "size mend it.", "The list of whole blocks needs over half as much again as is live; rounded and hashed, no more than "
                  "a list that splits and merges.", EVERYTHING, FIT, "results/c04.csv", FIT_AXIS)
    claim.part("a list of whole blocks needs at least 1.5 of peak live", "naive", ratio["naive"], at_least(ratio["naive"], 1.5))
    claim.part("powers of two and a hash together need less", "both, over naive", change[both].ratio, below(change[both].ratio, 1))
    for only, name in (("naive:round=pow2", "powers of two"), ("naive:bins=hash", "a hash")):
        claim.aside(f"{name} alone", f"{name}, over naive", change[only].ratio)
    claim.part("mended: within a tenth of a list that splits and merges", "both, over list", to_list[both].ratio, at_most(to_list[both].ratio, NEAR))
    claim.remark(f"The two only help together: a hash finds exact sizes, which arbitrary sizes seldom repeat. What mends it is to split and merge: "
                 f"{shown(ratio['list:policy=best'])} against {shown(ratio[both])} of peak live.")
    claim.draw(ratio.items())
    return claim


def large_and_small(results):
    rows, peak = results.study("c05"), results.study("c05replay")
    ratio, change = summary(rows, "smallest_ratio"), against(rows, "smallest_ratio", "naive")
    inside = summary(peak, "internal_at_peak", statistic="median")
    to_list = against(rows, "smallest_ratio", "list:policy=best")
    apart = "segregated:general=naive"
    claim = Claim("C5", "Mixed in one list, a 4 KiB request can take a whole 1 MiB block; keeping large and small apart prevents the waste.",
                  "Pools for small requests beside the list of whole blocks bring the arena down to what a list that splits needs.",
                  EVERYTHING, FIT + " Share of the granted bytes lost inside blocks, at the peak, in an arena of six times that.",
                  "results/c05.csv, results/c05replay.csv", FIT_AXIS)
    claim.part("in one list at least a tenth is lost inside blocks", "naive, inside blocks", inside["naive"], at_least(inside["naive"], 0.1), "results/c05replay.csv")
    claim.part("apart needs less than in one list", "apart, over naive", change[apart].ratio, below(change[apart].ratio, 1), "results/c05.csv")
    claim.part("the waste is prevented: within a tenth of a list that splits and merges", "apart, over list", to_list[apart].ratio,
               at_most(to_list[apart].ratio, NEAR), "results/c05.csv")
    claim.remark(f"Apart still loses {shown(inside[apart])} inside blocks: most bytes of these workloads are in large requests, which take "
                 "each other's blocks as before.")
    claim.draw(ratio.items())
    return claim


def long_service(results):
    rows = results.study("c06")
    outside = summary(rows, "external_at_peak", statistic="median")
    inside = summary(rows, "internal_at_peak", statistic="median")
    served = summary(rows, "served_ratio", statistic="median")
    claim = Claim("C6", "A service that ran for hours on cudaMalloc went above 30 % fragmentation; a fixed-size pool brought it to zero.",
                  "A general allocator leaves over 30 % of what is free outside the largest span; a fixed pool, none, and serves as much.",
                  "Generated services (inference in bursts, a language model's caches in one piece) and random requests, long, five seeds each, in an arena of 1.5 of peak live.",
                  "External fragmentation at the peak (1 - largest free / all free), internal (lost inside blocks), share of requests served; medians.",
                  "results/c06.csv", "external fragmentation at the peak")
    for stack in ("list:policy=first", "list:policy=best"):
        claim.part("a list is above 30 %", f"{stack}, external", outside[stack], above(outside[stack], 0.3))
    claim.part("a fixed pool has none", "fixed, external", outside["fixed"], at_most(outside["fixed"], 0))
    claim.aside("the fixed pool loses inside blocks", "fixed, internal", inside["fixed"])
    for stack in ("fixed", "list:policy=best"):
        claim.aside(f"requests that {stack} serves", "share", served[stack])
    claim.remark("Fragmentation by itself hurts nobody: the lists serve all in the same arena. The fixed pool reaches zero by moving the loss into its "
                 "blocks, and serves the fewer for it.")
    claim.draw(outside.items())
    return claim


def segregated_pools(results):
    rows, example = results.study("c07replay"), results.study("c07example")[0]
    outside, inside = (summary(rows, key, statistic="median") for key in ("external_at_peak", "internal_at_peak"))
    fit = summary(results.study("c07"), "smallest_ratio")
    pooled, default, plain = "segregated:classes=16,large=1GiB", "segregated", "list:policy=best"
    lost = (float(example["peak_granted_bytes"]) - float(example["peak_live_bytes"])) / float(example["peak_live_bytes"]) * 10
    claim = Claim("C7", "Segregated pools have near zero external fragmentation; the price is rounding (10 KiB from the 32 KiB class wastes 22 KiB).",
                  "At the peak the largest free span holds at least 95 % of what is free, and more is lost inside blocks than in a list.",
                  "The seven recordings in an arena of 1.25 of peak live; 10 KiB requests in the course's five classes.",
                  "External and internal fragmentation at the peak, medians; smallest arena over peak live.",
                  "results/c07replay.csv, results/c07.csv, results/c07example.csv", FIT_AXIS)
    for stack, what in ((pooled, "pools for all sizes"), (default, "pools up to 1 MiB, a list beyond")):
        claim.part(f"{what}: external at most {NEAR_ZERO:.0%}", f"{stack}, external", outside[stack], at_most(outside[stack], NEAR_ZERO), "results/c07replay.csv")
    claim.part("pools for all sizes lose more inside blocks than a list", "internal", inside[pooled], above(inside[pooled], inside[plain].value), "results/c07replay.csv")
    claim.part("10 KiB from the class of 32 KiB wastes 22 KiB", "KiB lost a block", exactly(lost), YES if abs(lost - 22) < 0.01 else NO, "results/c07example.csv")
    claim.remark("No request fails within a class because its free blocks lie apart: in that sense a pool has no external fragmentation. But what is free in "
                 "one class cannot serve another, and counted over the arena it is as scattered as a list's "
                 f"({shown(outside[plain])}). With equal shares the five classes need {shown(fit[COURSE + 'equal'])} of peak live, "
                 f"with shares from the trace {shown(fit[COURSE + 'trace'])}, a list {shown(fit[plain])}.")
    claim.draw(plainly(fit))
    return claim


def video_frames(results):
    rows = results.study("c08")
    use = {stack: ratio.inverse() for stack, ratio in summary(rows, "smallest_ratio").items()}
    pools, cache, plain = "segregated:classes=16,large=1GiB", "caching:driver=arena", "list:policy=best"
    claim = Claim("C8", "Video frames of 720p, 1080p and 4K: a pool for each took memory use from 85 % to 92 %, and no request failed for fragmentation.",
                  "A pool for each size uses at least 92 % of its arena, and more than allocators without pools.",
                  "A recording of convolutions over frames of three resolutions; five generated pipelines of such frames.",
                  "Use: peak live over the smallest arena; geometric mean.", "results/c08.csv", "use: peak live over the smallest arena")
    to_cache, to_list = (against(rows, "smallest_ratio", first)[pools].ratio for first in (cache, plain))
    claim.part("pools use at least 92 %", "16 classes", use[pools], at_least(use[pools], 0.92))
    claim.part("more than PyTorch's cache", "arena of 16 classes over the cache's", to_cache, below(to_cache, 1))
    claim.part("more than a list that splits and merges", "arena of 16 classes over the list's", to_list, below(to_list, 1))
    claim.remark(f"Three pools are too few: frames bring buffers of other sizes with them, and use falls to {shown(use['segregated:classes=3,large=1GiB'])}. "
                 f"The list uses {shown(use[plain])} with no pool at all, PyTorch's cache {shown(use[cache])}.")
    claim.draw(use.items())
    return claim


def class_counts(results):
    rows, times = results.study("c09"), results.study("c09time")
    stack = "segregated:classes={}".format
    space = against(rows, "smallest_ratio", stack(6))
    time = against(times, "net_ns_per_op", stack(6))
    claim = Claim("C9", "4 to 6 classes are best; more than 8 cost more and lower each pool's use.",
                  "Both fewer than 4 and more than 8 classes need a larger arena than 6, or more time.",
                  "The seven recordings, classes derived from each.", "Smallest arena and time of an operation, null taken off, over those of 6 classes, pair by pair.",
                  "results/c09.csv, results/c09time.csv", "smallest arena over that of 6 classes")
    for count in (2, 3):
        claim.part(f"{count} classes need more memory than 6", f"{count} over 6 classes", space[stack(count)].ratio, above(space[stack(count)].ratio, 1), "results/c09.csv")
    claim.part("4 need no more than a hundredth more than 6", "4 over 6 classes", space[stack(4)].ratio, at_most(space[stack(4)].ratio, 1.01), "results/c09.csv")
    for count in (12, 16):
        claim.part(f"{count} need more memory than 6", f"{count} over 6 classes", space[stack(count)].ratio, above(space[stack(count)].ratio, 1), "results/c09.csv")
        claim.part(f"{count} take more time than 6", f"{count} over 6 classes, time", time[stack(count)].ratio, above(time[stack(count)].ratio, 1), "results/c09time.csv")
    claim.remark("More classes do no harm when their shares come from the trace, and little good: on these recordings most bytes are in requests above the largest class.")
    claim.draw((name, pair.ratio) for name, pair in space.items())
    return claim


def between_runs(rows):
    """Run i of a workload gives the peak that is planned for, run j must live in what that allows: needed over planned."""
    pairs = []
    for mine in rows:
        for other in rows:
            if (mine["stack"] == other["stack"] and mine["seed"] != other["seed"]
                    and workload_of(mine) == workload_of(other)):
                pairs.append({"stack": mine["stack"], "workload": workload_of(mine),
                              "needed_ratio": float(other["smallest_arena_bytes"]) / float(mine["bound_bytes"])})
    return pairs


def workload_of(row):
    return row["trace"].replace(f",seed={row['seed']}", "")


def a_fifth_more(results):
    own = chosen(results.study("fit"), stack=("list:policy=best", "tlsf", "slab", "segregated", "buddy", "caching:driver=arena"))
    runs = between_runs(results.study("c10"))
    worst = {"own": {}, "runs": {}}
    for row in own:
        worst["own"][row["stack"]] = max(worst["own"].get(row["stack"], 0), float(row["smallest_ratio"]))
    for row in runs:
        worst["runs"][row["stack"]] = max(worst["runs"].get(row["stack"], 0), row["needed_ratio"])
    best = "list:policy=best"
    claim = Claim("C10", "Working set + 20 % suffices (3 GB reserved, 2.5 GB used, 2.8 GB later: no change was needed but the sizes).",
                  "An arena of 1.2 of the peak serves a workload, and another run of the same service.",
                  "The seven recordings, each in an arena planned from itself; five generated services, each run planned from every other one.",
                  "The largest arena needed over the peak that was planned for, and the geometric mean.", "results/fit.csv, results/c10.csv",
                  "arena needed over the peak of another run, geometric mean")
    own_most = exactly(worst["own"][best])
    claim.part(f"1.2 of its own peak serves every recording on {best}", "most needed", own_most, at_most(own_most, 1.2), "results/fit.csv")
    claim.part(f"1.2 of one run's peak serves every other run on {best}", "most needed", exactly(worst["runs"][best]), at_most(exactly(worst["runs"][best]), 1.2), "results/c10.csv")
    for stack in ("tlsf", "slab", "segregated", "buddy", "caching:driver=arena"):
        claim.aside(f"the same on {stack}", "most needed, recordings", exactly(worst["own"][stack]), "results/fit.csv")
        claim.aside(f"the same on {stack}", "most needed, other runs", exactly(worst["runs"][stack]), "results/c10.csv")
    inside = [row for row in runs if row["stack"] == best]
    enough = sum(row["needed_ratio"] <= 1.2 for row in inside)
    by_workload = {name: max(row["needed_ratio"] for row in inside if row["workload"] == name) for name in dict.fromkeys(row["workload"] for row in inside)}
    claim.remark(f"From one run to another 1.2 suffices in {enough} of {len(inside)} pairs on {best}; the most that a pair needs is, by service, "
                 + ", ".join(f"{name.removeprefix('generate:')} {number(value)}" for name, value in by_workload.items())
                 + ". The margin that suffices depends on the allocator as much as on the workload: `vramlab advise` measures it.")
    claim.draw(summary(runs, "needed_ratio").items())
    return claim


def emergency_reserve(results):
    rows = [dict(row, held=f"{row['stack']} in {row['arena']}") for row in results.study("c11")]
    served = summary(rows, "served_ratio", by="held")
    claim = Claim("C11", "An emergency reserve of 5 to 10 % absorbs the extreme cases.",
                  "An arena of which a share is kept back serves more requests than the same arena without.",
                  "The seven recordings and ten generated services in arenas of 1.00 to 1.10 of peak live, which do not always suffice.",
                  "Share of requests served, the same arena with and without the reserve, pair by pair.", "results/c11.csv",
                  "share of requests served in an arena of 1.03 of peak live")
    for base in ("list:policy=first", "buddy"):
        compared = against(chosen(rows, backend=base.split(":")[0]), "served_ratio", base)
        for share in ("5%", "10%"):
            pair = compared[f"{base}+reserve:share={share}"]
            claim.part(f"a reserve of {share} serves more on {base}", f"served with it over without ({pair.more} more, {pair.equal} equal, {pair.less} less)",
                       pair.ratio, above(pair.ratio, 1))
        kept, bare, less = served[f"{base}+reserve:share=10% in 110%"], served[f"{base} in 110%"], served[f"{base} in 100%"]
        claim.remark(f"`{base}` serves {shown(less)} of the requests in an arena of peak live. A tenth more raises that to {shown(bare)} when it is open to all, "
                     f"to {shown(kept)} when it is kept back for what fails.\n")
    claim.remark("A reserve is no more memory: it is the same memory under a rule. What absorbs the extreme cases is the room, not that it was kept back.")
    claim.draw((name.removesuffix(" in 103%"), estimate) for name, estimate in served.items() if name.endswith(" in 103%"))
    return claim


def defragmentation(results):
    rows = [row for name in ("c12none", "c12", "c12often") for row in results.study(name)]
    change = against(rows, "smallest_ratio", "c12none", by="study", pairs="trace,seed,stack")
    ratio = summary(rows, "smallest_ratio", by="study")
    names = {"c12none": "no pass", "c12": "a pass every 10,000 events", "c12often": "a pass every 100 events"}
    claim = Claim("C12", "A defragmentation pass every 10,000 requests keeps long runs healthy.",
                  "With a pass every 10,000 events a workload fits in a smaller arena than without.",
                  "Three recordings, three random workloads and three services, long, on list (first, best fit) and tlsf.", FIT,
                  "results/c12.csv, results/c12none.csv, results/c12often.csv", FIT_AXIS)
    seldom, often = change["c12"], change["c12often"]
    counted = "arena with it over without ({0.less} less, {0.equal} equal, {0.more} more)".format
    claim.part(f"{names['c12']} needs a smaller arena", counted(seldom), seldom.ratio, below(seldom.ratio, 1))
    claim.aside(names["c12often"], counted(often), often.ratio)
    left = exactly((ratio["c12"].value - 1) / (ratio["c12none"].value - 1))
    claim.part("it saves at least half of what is lost without", "share of the loss that is left", left, at_most(left, 0.5))
    claim.remark(f"Without any pass these runs need {shown(ratio['c12none'])} of peak live: they are healthy without one. "
                 "A pass helps only when the peak comes soon after it.")
    claim.draw((names[name], estimate) for name, estimate in ratio.items())
    return claim


def three_designs(results):
    use = {stack: ratio.inverse() for stack, ratio in summary(results.study("fit"), "smallest_ratio").items() if ratio is not None}
    outside = summary(results.study("c07replay"), "external_at_peak", statistic="median")
    plain = "list:policy=best"
    claim = Claim("C13", "Fixed pool 0 % fragmentation and low use of memory; segregated near 0 % and middling; start-up preallocation controllable and high.",
                  "External fragmentation: fixed 0, segregated near 0. Use: fixed below half, segregated between, an arena with a general allocator at least 90 %.",
                  "The seven recordings.", "External fragmentation at the peak in 1.25 of peak live, median; use, peak live over the smallest arena, geometric mean.",
                  "results/fit.csv, results/c07replay.csv", "use: peak live over the smallest arena")
    claim.part("fixed: no external fragmentation", "fixed, external", outside["fixed"], at_most(outside["fixed"], 0), "results/c07replay.csv")
    claim.part("fixed: uses less than half", "fixed, use", use["fixed"], below(use["fixed"], 0.5), "results/fit.csv")
    claim.part(f"segregated: external at most {NEAR_ZERO:.0%}", "segregated, external", outside["segregated"], at_most(outside["segregated"], NEAR_ZERO), "results/c07replay.csv")
    claim.part("segregated: uses less than nine tenths", "segregated, use", use["segregated"], below(use["segregated"], 0.9), "results/fit.csv")
    claim.part("one arena with a list: uses at least nine tenths", f"{plain}, use", use[plain], at_least(use[plain], 0.9), "results/fit.csv")
    claim.remark("Controllable is no measure, so it is not judged. Segregated pools with shares from the trace use as much as a list; with equal shares see C7.")
    claim.draw((name, estimate) for name, estimate in use.items() if name in ("fixed", "naive", "buddy", "slab", "segregated", plain, "tlsf"))
    return claim


def any_size(results):
    rows = results.study("c14")
    ratio, to_buddy = summary(rows, "smallest_ratio"), against(rows, "smallest_ratio", "buddy")
    claim = Claim("C14", "From 1 KiB to 1 GiB at random segregated pools fail and buddy or slab serve.",
                  "Segregated pools need over twice peak live, buddy and slab at most 1.25.",
                  "Random requests of 1 KiB to 1 GiB, log-uniform, ten seeds.", FIT, "results/c14.csv", FIT_AXIS)
    for shares, what in (("equal", "in equal shares"), ("trace", "with shares from the trace")):
        claim.part(f"the five classes {what} need at least twice peak live", f"shares={shares}", ratio[COURSE + shares], at_least(ratio[COURSE + shares], 2))
    for stack in ("buddy", "slab"):
        claim.part(f"{stack} needs at most 1.25", stack, ratio[stack], at_most(ratio[stack], 1.25))
    better = to_buddy[COURSE + "trace"].ratio
    claim.part("buddy needs less than the five classes with shares from the trace", "buddy over these", better.inverse(), below(better.inverse(), 1))
    claim.remark("Which pools fail is a matter of their shares, not of their classes. buddy pays for powers of two: "
                 f"{shown(ratio['buddy'])}, and {shown(ratio['buddy:trim=on'])} when it gives the rounded tails back.")
    claim.draw(plainly(ratio))
    return claim


def linear_scan(results):
    rows = [dict(row, live=row["trace"].split("live=")[1]) for row in results.study("fixedscan")]
    scan, bitmap = "fixed:search=scan", "fixed:search=bitmap"
    lives = list(dict.fromkeys(row["live"] for row in rows))
    few, many = lives[0], lives[-1]
    slower = {live: against(chosen(rows, live=live), "net_ns_per_op", bitmap)[scan].ratio for live in lives}
    grows = Estimate(slower[many].value / slower[few].value, slower[many].low / slower[few].high,
                     slower[many].high / slower[few].low, slower[many].count)
    nulls = [dict(row, null_ratio=float(row["net_ns_per_op"]) / float(row["null_ns_per_op"])) for row in chosen(rows, stack=bitmap)]
    flat = summary(nulls, "null_ratio", by="live")
    growth = Estimate(flat[many].value / flat[few].value, flat[many].low / flat[few].high, flat[many].high / flat[few].low, flat[many].count)
    claim = Claim("scan", "A fixed-size pool allocates in O(1) (the code shown looks at one flag after another).",
                  "The time of an operation does not grow with the number of blocks.",
                  f"Blocks of 64 KiB freed at random, {few} to {many} of them live.",
                  "Time of an operation, null taken off, of the course's search over that of a bitmap in the same run; paired, geometric mean.",
                  "results/fixedscan.csv", "log time of the course's search over a bitmap's")
    claim.part(f"the course's search costs no more than twice as much with {many} live as with {few}", "times as much, a bitmap's time in the same run being 1", grows, at_most(grows, 2))
    claim.remark(f"Here the course is wrong: its pool is linear. With {many} blocks live its search takes {shown(slower[many])} times as long as one over a bitmap, which finds the "
                 "same block, the lowest free one, in a number of steps that does not depend on theirs: its time grows "
                 f"{shown(growth)} times from {few} to {many} blocks, which is the processor's caches.")
    claim.draw((f"{live} live", estimate) for live, estimate in slower.items())
    return claim


CLAIMS = (whole_blocks, large_and_small, long_service, segregated_pools, video_frames, class_counts, a_fifth_more,
          emergency_reserve, defragmentation, three_designs, any_size, linear_scan)
