"""The tables, as booktabs. A table's text is here, its numbers come from the studies."""

from lib import data, numbers

KEYS = [key for _, key, _ in data.RECORDINGS]


def tex(text):
    """Plain text as TeX."""
    for plain, escaped in (("\\", r"\textbackslash{}"), ("&", r"\&"), ("%", r"\%"), ("#", r"\#"), ("_", r"\_"),
                           ("{", r"\{"), ("}", r"\}"), ("^", r"\^{}"), ("~", r"\~{}"), ("<", "$<$"), (">", "$>$")):
        text = text.replace(plain, escaped)
    return text


def breakable(text):
    """Plain text as TeX, in which a specification such as list:policy=best may be broken."""
    return tex(text).replace(":", r":\allowbreak{}").replace("=", r"=\allowbreak{}").replace(r"\_", r"\_\allowbreak{}")


def table(columns, head, body):
    """The rows of a tabular; a body row that is None is a rule, one that is a string stands as it is."""
    lines = [f"\\begin{{tabular}}{{@{{}}{columns}@{{}}}}", r"\toprule"]
    lines += [row if isinstance(row, str) else " & ".join(row) + r" \\" for row in head]
    lines.append(r"\midrule")
    for row in body:
        lines.append(r"\midrule" if row is None else row if isinstance(row, str) else " & ".join(row) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def boldest(cells, texts):
    """The texts, the least of the cells in bold."""
    least = min(cell for cell in cells if cell is not None)
    return [rf"\textbf{{{text}}}" if cell is not None and text == numbers.ratio(least) else text
            for cell, text in zip(cells, texts)]


def recordings(out):
    info = {data.KEY_OF[row["trace"]]: row for row in data.study("recordings")}
    model = {data.KEY_OF[row["recording"]]: row for row in data.study("validate")}
    body = []
    for name, key, what in data.RECORDINGS:
        row, exact = info[key], model[key]
        body.append([rf"\texttt{{{tex(name)}}}", what,
                     numbers.binary(row["peak_live_unit_bytes"], "GiB", 3),
                     numbers.binary(row["peak_allocated_bytes"], "GiB", 3),
                     numbers.binary(row["peak_reserved_bytes"], "GiB", 3),
                     out.text[f"{key}.reserved.ratio"], out.text[f"fit.best.{key}.bytes"],
                     out.text[f"fit.best.{key}"],
                     f"{numbers.whole(exact['allocations_equal'])} of {numbers.whole(exact['allocations'])}"])
    return table("llrrrrrrr",
                 [["", "", "peak", r"\multicolumn{3}{c}{PyTorch, GiB}", r"\multicolumn{2}{c}{best fit, GiB}",
                   "addresses"],
                  r"\cmidrule(lr){4-6}\cmidrule(lr){7-8}",
                  ["recording", "what runs", "live, GiB", "allocated", "reserved", "of live", "arena",
                   "of live", "reproduced"]], body)


def smallest_arenas(out):
    keys = [key for _, key, _ in data.BACKENDS if key not in data.PLANNED]
    best = {column: min(out.value[f"fit.{key}.{column}"] for key in keys if f"fit.{key}.{column}" in out.value)
            for column in KEYS}

    def line(key, title):
        cells = []
        for column in KEYS:
            text = out.text.get(f"fit.{key}.{column}", "--")
            bold = out.value.get(f"fit.{key}.{column}") == best[column] and key not in data.PLANNED
            cells.append(rf"\textbf{{{text}}}" if bold else text)
        mean = f"{out.text[f'fit.{key}']} & {out.text[f'fit.{key}.low']}--{out.text[f'fit.{key}.high']}"
        return [title, *cells, mean if out.value[f"fit.{key}.missing"] == 0 else r"-- & \emph{some do not fit}"]

    ranked = sorted(keys, key=lambda key: (out.value[f"fit.{key}.missing"], out.value[f"fit.{key}"]))
    body = [[r"PyTorch, as recorded"] + [out.text[f"{column}.reserved.ratio"] for column in KEYS]
            + [out.text["reserved.geomean"], ""], None]
    body += [line(key, data.TITLE[key]) for key in data.PLANNED] + [None]
    body += [line(key, data.TITLE[key]) for key in ranked]
    heads = [name.split("_")[0] for name, _, _ in data.RECORDINGS]
    return table("l" + "r" * len(KEYS) + "rr",
                 [["", *[rf"\texttt{{{tex(name)}}}" for name in heads], "mean",
                   rf"{out.text['confidence']}\,\% interval"]], body)


def minimalloc(out):
    found = {}
    for row in data.study("minimalloc"):
        found.setdefault(row["trace"].split("google_")[1][0], {})[data.STACK_KEY[row["stack"]]] = row
    keys = ["offline", "hints", "best", "first", "tlsf", "buddy"]
    body = [[name] + [numbers.ratio(of[key]["smallest_ratio"]) if of[key]["smallest_ratio"] else "--" for key in keys]
            for name, of in sorted(found.items())]
    body += [None, ["mean"] + [out.text[f"mini.{key}"] for key in keys]]
    return table("l" + "r" * len(keys), [["", "offline", "hints", "best fit", "first fit", "TLSF", "buddy"]], body)


def small_games(out):
    games = list(dict.fromkeys((row["live_units"], row["largest_units"]) for row in data.study("worst")
                               if row["method"] == "every sequence"))
    body = [[f"{live}", f"{largest}"] + [out.text[key.format(f"{live}.{largest}")] for key in
             ("worst.first.{}.bound", "worst.first.{}.exact", "worst.best.{}.exact")] for live, largest in games]
    return table("rrrrr", [["live", "block", "any, at", "first", "best"], ["most", "most", "least", "fit", "fit"]], body)


def large_game(out):
    keys = list(dict.fromkeys(data.STACK_KEY[row["backend"]] for row in data.study("worst")
                              if row["live_units"] == "64"))
    body = []
    for key in sorted(keys, key=lambda key: out.value[f"worst.{key}.64.16.climb"]):
        body.append([data.TITLE[key], out.text[f"worst.{key}.64.16.robson"], out.text[f"worst.{key}.64.16.climb"],
                     out.text[f"worst.{key}.64.16.climb.ratio"]])
    return table("lrrr", [["backend", "Robson", "climbed", "of live"]], body)


def speed(out):
    keys = [key for _, key, _ in data.BACKENDS if f"speed.{key}" in out.text]
    body = []
    for key in sorted(keys, key=lambda key: out.value[f"speed.{key}.over.tlsf"]):
        body.append([data.TITLE[key], out.text[f"speed.{key}"],
                     f"{out.text[f'speed.{key}.over.tlsf']}",
                     f"{out.text[f'speed.{key}.over.tlsf.low']}--{out.text[f'speed.{key}.over.tlsf.high']}",
                     out.text.get(f"instructions.{key}", "--")])
    return table("lrrrr", [["", r"net", r"\multicolumn{2}{c}{of TLSF's, same run}", "net"],
                           r"\cmidrule(lr){3-4}",
                           ["backend", "ns", "mean", rf"{out.text['confidence']}\,\%", "instr."]], body)


def driver_calls(out):
    ns = {(data.KEY_OF[row["trace"]], row["backend"]): float(row["ns_per_op"]) for row in data.card("verify")}
    body = []
    for name, key, _ in data.RECORDINGS:
        tlsf = ns[key, "tlsf"]
        body.append([rf"\texttt{{{tex(name.split('_')[0])}}}", f"{tlsf:.0f}"]
                    + [text for backend in ("cudaasync", "cudamalloc")
                       for text in (numbers.whole(ns[key, backend]), numbers.whole(ns[key, backend] / tlsf))])
    body += [None, ["mean", "", "", out.text["card.cudaasync.over.tlsf"], "", out.text["card.cudamalloc.over.tlsf"]]]
    return table("lrrrrr", [["", "TLSF", r"\multicolumn{2}{c}{\texttt{MallocAsync}}",
                             r"\multicolumn{2}{c}{\texttt{cudaMalloc}}"],
                            r"\cmidrule(lr){3-4}\cmidrule(l){5-6}",
                            ["recording", "ns", "ns", "times", "ns", "times"]], body)


def training(out):
    titles = {"gpt2": "GPT-2, training", "resnet50": "ResNet-50, training", "bert": "BERT, inference",
              "llm": "LLM, generation"}
    names = [("native", "native"), ("expandable", "expandable"), ("tlsf", "TLSF"), ("list", "best fit")]
    body = []
    for model, title in titles.items():
        if body:
            body.append(None)
        for allocator, shown in names:
            key = f"train.{model}.{allocator}"
            body.append([title if allocator == "native" else "", shown, out.text[f"{key}.needed"],
                         out.text[f"{key}.ratio"], out.text[f"{key}.speed"], out.text[f"{key}.rounds"]])
    return table("llrrrr", [["", "allocator", "GiB", "of live", "speed", "runs"]], body)


def claims_of(names):
    """A row a part of a claim that was judged: what would have to be true, what was measured, and the answer."""
    body, before = [], None
    for row in data.study("claims"):
        if row["claim"] not in names or not row["answer"]:
            continue  # without an answer it was measured for comparison; experiments/CLAIMS.md shows it
        first = row["claim"] != before
        if first and before:
            body.append(r"\addlinespace[1.5pt]")
        before = row["claim"]
        name = rf"\textbf{{{data.claim_title(row['claim'])}}} {tex(row['verdict'])}" if first else ""
        body.append([name, breakable(row["part"]), breakable(row["measure"]), numbers.measured(row), row["answer"]])
    return table(r"L{0.12\textwidth}L{0.41\textwidth}L{0.22\textwidth}ll",
                 [["claim", "part of it", "measured", "", "true?"]], body)


def claims_in_two():
    """The claims, cut where half of the rows are done: a page holds no more."""
    judged = [row["claim"] for row in data.study("claims") if row["answer"]]
    names = list(dict.fromkeys(judged))
    early = [name for name in names if judged.index(name) < len(judged) / 2]
    return early, [name for name in names if name not in early]


def claims(out):
    return claims_of(claims_in_two()[0])


def more_claims(out):
    return claims_of(claims_in_two()[1])


def commands(out):
    """Which results settle which claim."""
    studies = {}
    for row in data.study("claims"):
        names = [name.replace("h200/results/", "h200/").replace("results/", "").replace(".csv", "")
                 for name in row["study"].split(", ")]
        studies.setdefault(data.claim_title(row["claim"]), []).extend(names)
    body = [[claim, ", ".join(rf"\texttt{{{tex(study)}}}" for study in dict.fromkeys(of))]
            for claim, of in studies.items()]
    return table(r"lL{0.78\columnwidth}", [["claim", "rests on"]], body)


ORIGINS = [("tab:recordings", "recordings, validate, fit"), ("tab:fit", "fit"), ("fig:reserved", "fit"),
           ("fig:frontier", "frontier"), ("tab:minimalloc", "minimalloc"), ("tab:speed", "speed, instructions"),
           ("fig:speed", "fit, speed, instructions"), ("tab:driver", "h200/verify"), ("tab:training", "h200/train"),
           ("tab:games", "worst"), ("tab:attack", "worst"), ("tab:claims", "claims"), ("tab:more", "claims"), ("fig:scan", "fixedscan")]


def origins(out):
    kind = {"tab": "Table", "fig": "Figure"}
    body = [[f"{kind[label[:3]]}~\\ref{{{label}}}", rf"\texttt{{{tex(files)}}}"] for label, files in ORIGINS]
    body.append([r"Figure~\ref{fig:arenas}", r"\texttt{vramlab heatmap} (\texttt{paper/typeset})"])
    return table("ll", [["", "from"]], body)


TABLES = {"recordings": recordings, "fit": smallest_arenas, "minimalloc": minimalloc, "games": small_games,
          "attack": large_game, "speed": speed, "driver": driver_calls, "training": training, "claims": claims,
          "more_claims": more_claims,
          "commands": commands, "origins": origins}
