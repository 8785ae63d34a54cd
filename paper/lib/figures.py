"""The figures that are plots, as pgfplots; pictures of arenas are made by `vramlab heatmap` (see paper/typeset)."""

from lib import data, numbers

# Colours that the colour-blind can tell apart (Okabe and Ito), and a mark, for each backend.
STYLE = {"best": ("black", "*"), "tlsf": ("blue", "square*"), "segregated": ("green", "triangle*"),
         "first": ("sky", "diamond*"), "slab": ("orange", "o"), "caching": ("vermilion", "x"),
         "buddy": ("purple", "square"), "trim": ("purple", "square*"), "naive": ("grey", "triangle"), "fixed": ("grey", "+"),
         "worst": ("grey", "diamond"), "next": ("grey", "o")}


def points(pairs):
    return " ".join(f"({x:g},{y:.5g})" for x, y in pairs)


def axis(options, plots):
    return "\n".join([r"\begin{tikzpicture}", rf"\begin{{axis}}[{', '.join(options)}]", *plots, r"\end{axis}",
                      r"\end{tikzpicture}", ""])


def curve(key, pairs):
    colour, mark = STYLE[key]
    return (rf"\addplot[draw={colour}, mark={mark}, mark options={{{colour}}}] coordinates {{{points(pairs)}}};"
            rf"\addlegendentry{{{data.TITLE[key]}}}")


def beside(left, right, key):
    """Two panels with one key below them."""
    return f"{left.rstrip()}\\hfill\n{right}\n\\smallskip\n\\pgfplotslegendfromname{{{key}}}\n"


def reserved(out):
    """Bars a recording: what PyTorch reserved, what best fit needs, what a buddy needs; all over peak live."""
    kinds = [("PyTorch reserved", "vermilion", "{}.reserved.ratio"), ("best fit needs", "black", "fit.best.{}"),
             ("buddy needs", "purple", "fit.buddy.{}")]
    names = [(name.split("_")[0], key) for name, key, _ in data.RECORDINGS]
    plots = [rf"\addplot[fill={colour}, draw={colour}] coordinates {{"
             + " ".join(f"({name},{out.value[form.format(key)] - 1:.4f})" for name, key in names)
             + rf"}};\addlegendentry{{{title}}}" for title, colour, form in kinds]
    return axis(["paperplot", "ybar", "bar width=3.4pt", "ymin=0", "enlarge x limits=0.09",
                 rf"symbolic x coords={{{','.join(name for name, _ in names)}}}", "xtick=data",
                 "x tick label style={rotate=30, anchor=east, font=\\scriptsize}",
                 "ylabel={memory over peak live}", r"yticklabel={\pgfmathparse{\tick+1}\pgfmathprintnumber[fixed]{\pgfmathresult}}",
                 "legend columns=1", "legend pos=north east"], plots)


def frontier(out):
    """Two panels: how many recordings are served whole, and the share of requests refused."""
    found = numbers.frontier()
    keys = [key for _, key, _ in data.BACKENDS if any(backend == key for backend, _ in found)]
    arenas = sorted({arena for _, arena in found})
    panels = []
    for ylabel, extra, value in (
            ("recordings served whole", ["ymin=-0.2", rf"ymax={len(data.RECORDINGS)}.3",
                                         rf"ytick={{0,...,{len(data.RECORDINGS)}}}", "legend to name=frontierkey",
                                         "legend columns=5"],
             lambda shares: sum(share == 1 for share in shares)),
            ("mean share refused, \\%", ["ymode=log", "ymin=0.0005", "ymax=100"],
             lambda shares: 100 * (1 - sum(shares) / len(shares)))):
        plots = []
        for key in keys:
            pairs = [(arena / 100, value(found[key, arena])) for arena in arenas]
            if "ymode=log" in extra:
                pairs = [(x, y) for x, y in pairs if y > 0]
            line = curve(key, pairs)
            plots.append(line if "ymode=log" not in extra else line.split(r"\addlegendentry")[0])
        panels.append(axis(["paperplot", "xlabel={arena over peak live}", rf"ylabel={{{ylabel}}}", "xmin=0.88",
                            "xmax=2.52", *extra], plots))
    return beside(*panels, "frontierkey")


def space_speed(out):
    """A point a backend: what its mean smallest arena has beyond peak live, against time and instructions."""
    panels = []
    for kind, ylabel, extra in (
            ("speed", "ns an operation, net", ["ytick={5,10,20,50,100,200}", "legend columns=5",
                                               "legend to name=speedkey"]),
            ("instructions", "instructions, net", ["ytick={20,50,100,200,500,1000,2000}"])):
        plots = []
        for key in STYLE:
            if f"{kind}.{key}" not in out.value or out.value[f"fit.{key}.missing"] > 0:
                continue
            point = 100 * (out.value[f"fit.{key}"] - 1), out.value[f"{kind}.{key}"]
            plot = curve(key, [point]).replace(r"\addplot[", r"\addplot[only marks, ")
            plots.append(plot if kind == "speed" else plot.split(r"\addlegendentry")[0])
        panels.append(axis(["paperplot", "xmode=log", "ymode=log", "xlabel={smallest arena beyond peak live, \\%}",
                            rf"ylabel={{{ylabel}}}", "xmin=4.5", "xmax=300", "xtick={5,10,20,50,100,200}",
                            "log ticks with fixed point", "xmajorgrids", "mark size=2.2pt", *extra], plots))
    return beside(*panels, "speedkey")


def scan(out):
    costs = numbers.scan_costs()
    titles = {"scan": ("as the course writes it", "vermilion", "*"), "bitmap": ("with a bitmap", "black", "square*")}
    plots = [rf"\addplot[draw={colour}, mark={mark}, mark options={{{colour}}}] coordinates "
             rf"{{{points(sorted((live, ns) for (name, live), ns in costs.items() if name == search))}}};"
             rf"\addlegendentry{{{title}}}" for search, (title, colour, mark) in titles.items()]
    return axis(["paperplot", "xmode=log", "ymode=log", "xlabel={blocks in the pool}", "ylabel={ns an operation, net}",
                 "legend pos=north west", "log ticks with fixed point"], plots)


FIGURES = {"reserved": reserved, "frontier": frontier, "space_speed": space_speed, "scan": scan}
