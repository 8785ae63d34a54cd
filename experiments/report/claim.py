"""A claim of the course: parts that are true or not by a stated bound, the verdict that follows, and how it is told."""

from dataclasses import dataclass, field

YES, NO, OPEN = "yes", "no", "open"


def at_least(estimate, bound):
    """Yes or no when the whole interval lies on one side of the bound."""
    return YES if estimate.low >= bound else NO if estimate.high < bound else OPEN


def at_most(estimate, bound):
    return YES if estimate.high <= bound else NO if estimate.low > bound else OPEN


def above(estimate, bound):
    return YES if estimate.low > bound else NO if estimate.high <= bound else OPEN


def below(estimate, bound):
    return YES if estimate.high < bound else NO if estimate.low >= bound else OPEN


def number(value):
    """Three decimals below ten, fewer above; whole numbers that are counts as they are."""
    size = abs(value)
    if value == 0 or size >= 10 and value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.1f}" if size >= 10 else f"{value:.3f}" if size >= 0.01 else f"{value:.2g}"


def shown(estimate):
    if estimate is None:
        return "none"
    if estimate.count == 1 or estimate.low == estimate.high:
        return number(estimate.value)
    return f"{number(estimate.value)} [{number(estimate.low)}, {number(estimate.high)}]"


@dataclass
class Part:
    text: str     # a statement that is true or not; holds its own bound
    measure: str  # what was measured
    estimate: object
    answer: str
    study: str


@dataclass
class Claim:
    name: str        # C4
    said: str        # what the course says
    hypothesis: str
    workload: str
    measure: str
    study: str       # files that it rests on, for people
    axis: str = ""   # of the figure; "log " before it: a logarithmic one
    parts: list = field(default_factory=list)
    beside: list = field(default_factory=list)  # parts that the verdict does not rest on
    plot: list = field(default_factory=list)  # (label, estimate)
    remarks: list = field(default_factory=list)

    def part(self, text, measure, estimate, answer, study=None):
        self.parts.append(Part(text, measure, estimate, answer, study or self.study))

    def aside(self, text, measure, estimate, study=None):
        """What helps to read the claim, and is not what it says."""
        self.beside.append(Part(text, measure, estimate, "", study or self.study))

    def draw(self, labelled):
        self.plot += [(label, estimate) for label, estimate in labelled if estimate is not None]

    def remark(self, text):
        self.remarks.append(text)

    def verdict(self):
        answers = {part.answer for part in self.parts}
        if answers == {YES}:
            return "holds"
        if YES in answers:
            return "holds in part"
        return "does not hold" if NO in answers else "not settled"

    def figure(self):
        return f"c{int(self.name[1:]):02}" if self.name[1:].isdigit() else self.name

    def anchor(self):
        return f"{self.name}-{self.verdict()}".lower().replace(" ", "-")

    def text(self):
        lines = [f"## {self.name} {self.verdict()}", "", f"> {self.said}", "",
                 f"- **Hypothesis.** {self.hypothesis}",
                 f"- **Workload.** {self.workload}",
                 f"- **Measure.** {self.measure}",
                 f"- **From.** {self.study}", "",
                 "| part of the claim | measured | | true? |", "|---|---|---:|---|"]
        lines += [f"| {part.text} | {part.measure} | {shown(part.estimate)} | {part.answer} |" for part in self.parts]
        lines += [f"| beside it: {part.text} | {part.measure} | {shown(part.estimate)} | |" for part in self.beside]
        if self.remarks:
            lines += [""] + self.remarks
        if self.plot:
            lines += ["", f"![{self.axis.removeprefix('log ')}](results/{self.figure()}.svg)"]
        return "\n".join(lines) + "\n"

    def points(self):
        """Of plots.csv."""
        for label, estimate in self.plot:
            yield [self.figure(), self.axis, label, *(f"{x:.6g}" for x in (estimate.value, estimate.low, estimate.high))]

    def rows(self):
        """Of claims.csv."""
        for part in self.parts + self.beside:
            estimate = part.estimate
            numbers = [""] * 3 if estimate is None else [f"{x:.6g}" for x in (estimate.value, estimate.low, estimate.high)]
            yield [self.name, self.hypothesis, part.measure, *numbers, self.verdict(), part.study, part.text, part.answer]


CSV_HEADER = ["claim", "hypothesis", "measure", "value", "low", "high", "verdict", "study", "part", "answer"]
