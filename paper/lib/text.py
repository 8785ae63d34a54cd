"""What the paper's text may not do: carry a number that was typed in, or use what is not there."""

import os
import re

from lib import data

# Arguments that are names or lengths, not prose.
SILENT = re.compile(
    r"\\(?:num|ref|label|input|piece|heatmap|eqref|pageref|texttt|path|url)\{[^{}]*\}"
    r"|\\cite[tp]?(?:\[[^\]]*\])?\{[^{}]*\}"
    r"|\\begin\{[^{}]*\}(?:\[[^\]]*\])?")
WORDS = re.compile(r"\b(?:four|five|six|seven|eight|nine|ten|eleven|twelve|dozens?|twenty|thirty|forty|fifty|hundreds?|"
                   r"thousands?|millions?|billions?|per cent|twice|threefold|tenfold|doubled?|halved?|a half)\b", re.I)
PREMISE = re.compile(r"^% holds: *(\S+) *(<=|>=|<|>|==) *(\S+) *$")


def allowed_names():
    """Names that hold digits, one regular expression a line; what follows two spaces says why."""
    with open(data.path_of("paper/names"), encoding="utf-8") as file:
        lines = [line.split("  ")[0].strip() for line in file if line.strip() and not line.startswith("#")]
    return re.compile("|".join(f"(?:{line})" for line in lines))


def uncommented(line):
    return re.sub(r"(?<!\\)%.*", "", line.rstrip("\n"))


def body_files():
    folder = data.path_of("paper/text")
    return [f"paper/text/{name}" for name in sorted(os.listdir(folder)) if name.endswith(".tex")]


def value_of(word, out):
    return float(out.value[word]) if word in out.value else float(word)


def premise(line, out):
    """What is wrong with a line `% holds: KEY < KEY-or-NUMBER`, or None."""
    left, relation, right = PREMISE.match(line).groups()
    try:
        a, b = value_of(left, out), value_of(right, out)
    except ValueError as error:
        return f"a premise names no number: {error}"
    holds = {"<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b, "==": a == b}[relation]
    return None if holds else f"what follows rests on {left} {relation} {right}, but they are {a:g} and {b:g}"


def faults(out, pieces, pictures):
    """Every fault as (file, line, what). `pieces` are the tables and figures there are, `pictures` the images."""
    names, found, used = allowed_names(), [], set()
    for path in body_files():
        with open(data.path_of(path), encoding="utf-8") as file:
            lines = file.readlines()
        for number, line in enumerate(lines, 1):
            if PREMISE.match(line):
                wrong = premise(line, out)
                found += [(path, number, wrong)] if wrong else []
                continue
            line = uncommented(line)
            for key in re.findall(r"\\num\{([^{}]*)\}", line):
                if key not in out.text:
                    found.append((path, number, f"no study wrote a number called {key}"))
            for name in re.findall(r"\\piece\{([^{}]*)\}", line):
                used.add(name)
                if name not in pieces:
                    found.append((path, number, f"there is no table or figure called {name}"))
            for name in re.findall(r"\\heatmap(?:\[[^\]]*\])?\{([^{}]*)\}", line):
                used.add(name)
                if name not in pictures:
                    found.append((path, number, f"there is no picture called {name}"))
            if re.search(r"\\(?:begin\{tabular|includegraphics|addplot)", line):
                found.append((path, number, "a table or figure that is not made from data: use \\piece or \\heatmap"))
            prose = names.sub("", SILENT.sub("", line))
            for typed in re.findall(r"[^\s]*[0-9][^\s]*", prose):
                found.append((path, number, f"a number is typed in: {typed} (take it by \\num, or name it in paper/names)"))
            for word in WORDS.findall(prose):
                found.append((path, number, f"a number is typed in, as a word: {word}"))
    for name in sorted({*pieces, *pictures} - used):
        found.append(("paper/lib", 0, f"{name} is made but nowhere used"))
    return found
