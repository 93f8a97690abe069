"""What is registered: metrics, dataset readers and encoders."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from crosslens.analyze import ANALYSES
from crosslens.core import FINDING_KINDS, Entry
from crosslens.data import READERS
from crosslens.encode import ENCODERS, PAIR_SCORERS
from crosslens.metrics import METRICS
from crosslens.perturbations import IMAGE_PERTURBATIONS, PERTURBATIONS, SEVERITIES
from crosslens.pipeline import PROTOCOLS
from crosslens.rank import SCORES
from crosslens.report import EXPORTS
from crosslens.similarity import SIMILARITIES
from reference_pages.markdown import cell, cleaned, shared_rows, tidy, word

FIGURES = {
    "mean": "the mean over queries",
    "median": "the median over queries",
    "floor-median": "the floored median over queries",
}
METRICS_INTRO = """# Metrics

A metric is written `Family[options]@cutoff`: `Hit@5`, `MedR[floor]`, `MRR`. A direction in front asks for one direction
only: `t2i/Hit@5`. In results every metric carries its direction. Case alone is no error:
`hit@5` is `Hit@5`. `R@5` is accepted, means `Hit@5`, and says so: see
[Which recall?](../explanation/which-recall.md). Values are fractions in files, JSON and Python, percent in tables.
Where a section says nothing else, the figure is the mean over queries, its range is 0 to 1, and higher is better.
`crosslens metrics` prints this list."""
PROTOCOLS_INTRO = """# Protocols

What `--protocol NAME` sets, on the command line, as `protocol = "NAME"` under `[options]` in a recipe, and as
`protocol="NAME"` in Python. `crosslens protocols` prints this list.
[How to use them](../how-to/repeat.md#protocols-of-papers). [Add your own](../how-to/extend.md)."""
SCORES_INTRO = """# Score functions

How two embeddings are compared: `--score NAME` on the command line, `score=` in Python and in recipes. Options go into
brackets: `smooth-chamfer[alpha=8]`. Without a name, the kind of the embeddings decides: one vector per item (*single*),
several (*multi*), or a mean with a variance (*probabilistic*). [Add your own](../how-to/extend.md)."""
EXPORTS_INTRO = """# Export formats

`crosslens export RUN --to NAME` prints one file. A format with a file per direction writes them into the current
folder, named after the run's: `clip-b32.i2t.run` and `clip-b32.t2i.run` for `runs/clip-b32`. `-o` names them
otherwise. A different file of that name is replaced only with `--overwrite`. [Add your own](../how-to/extend.md)."""
READERS_INTRO = """# Readers

`--dataset NAME` on the command line and `crosslens.load_dataset(NAME, …)` in Python choose a reader; its options are
`--captions`, `--images`, `--instances`, `--split` or, for any other, `-D key=value`. `crosslens data formats` prints
this list. In place of a reader's name, a path is accepted: a dataset folder that crosslens wrote, or a plain table."""
ENCODERS_INTRO = """# Encoders

`--model KIND:SOURCE` on the command line, `crosslens.encode.load_encoder("KIND:SOURCE")` in Python.
`crosslens encode --list` prints this list. A source is a name on the Hugging Face hub or a path, unless the kind says
otherwise. [How to use them](../how-to/encode.md). [Add your own](../how-to/extend.md)."""


PAIR_SCORERS_INTRO = """## Pair scorers

`--rerank KIND:SOURCE` on the command line, `crosslens.encode.load_pair_scorer("KIND:SOURCE")` in Python: models that
look at an image and a text together, and re-rank the top of every list.
[How to use them](../how-to/encode.md). [Add your own](../how-to/extend.md)."""


SIMILARITIES_INTRO = """# Similarities

φ(G, c), a caption against an image's captions: `--phi NAME` on the command line, the φ of metrics such as `NCS[cider]`,
`crosslens.relevance_matrix(dataset, NAME)` in Python. What follows a colon is the source; other options go through
`crosslens.similarity.load_similarity(NAME, option=…)`. `crosslens similarity --list` prints this list.
[How to use them](../how-to/similarity.md), [which one](../explanation/similarity.md).
[Add your own](../how-to/extend.md)."""


IMAGE_PERTURBATIONS_INTRO = """# Image perturbations

Changes of pictures, each in five severities: `blur@3` is the blur of severity 3, and `blur` means the same.
[How to use them](../how-to/perturb.md#images), and
[what each severity costs in dB](../benchmarks.md#strength-of-the-severities). [Add your own](../how-to/extend.md)."""


def registered() -> dict[str, list[Entry[Any]]]:
    """Page → the entries it must describe."""
    return {
        "metrics.md": list(METRICS),
        "protocols.md": list(PROTOCOLS),
        "readers.md": list(READERS),
        "encoders.md": list(ENCODERS),
        "similarities.md": list(SIMILARITIES),
        "perturbations.md": list(PERTURBATIONS),
        "image-perturbations.md": list(IMAGE_PERTURBATIONS),
    }


_USUAL = (f"| figure | {FIGURES['mean']} |", "| range | 0 to 1; higher is better |")
"""What the introduction says of all metrics whose sections say nothing else."""


def metrics() -> str:
    """One section per metric family."""
    entries = registered()["metrics.md"]
    shared = shared_rows(map(_option_rows, entries), 2)
    table = "\n".join(["| option of several metrics | |", "|---|---|", *shared.values()])
    return "\n\n".join([METRICS_INTRO, table, *(_metric(entry, shared) for entry in entries)]) + "\n"


def _option_rows(entry: Entry[Any]) -> dict[str, str]:
    options = {f"`[{_option(option)}]`": cell(cleaned(option.explained)) for option in entry.value.options}
    return {name: f"| {name} | {text} |" for name, text in options.items()}


def _metric(entry: Entry[Any], shared: Mapping[str, str]) -> str:
    family = entry.value
    forms = {"required": [f"{entry.name}@k"], "optional": [entry.name, f"{entry.name}@k"], "none": [entry.name]}
    written = ", ".join(f"`{form}`" for form in forms[family.cutoff])
    low, high = (f"{bound:g}".replace("inf", "∞").replace("-", "−") for bound in family.range)
    rows = [
        f"| written | {written} |",
        f"| definition | {cell(family.definition)} |",
        f"| figure | {FIGURES[family.statistic]}{', over both directions' if family.across else ''} |",
        f"| range | {low} to {high}; {'higher' if family.higher_is_better else 'lower'} is better |",
    ]
    rows = [row for row in rows if row not in _USUAL]
    options = _option_rows(entry)
    rows += [row for name, row in options.items() if row != shared.get(name)]
    common = [name for name, row in options.items() if row == shared.get(name)]
    rows += [f"| options, as above | {', '.join(common)} |"] if common else []
    rows += [f"| source | {cell(family.source)} |"] if family.source else []
    return "\n".join([f"## {entry.name}\n", cleaned(family.__doc__ or entry.summary), "", "| | |", "|---|---|", *rows])


def protocols() -> str:
    """One section per protocol."""
    return "\n\n".join([PROTOCOLS_INTRO, *(_protocol(entry) for entry in registered()["protocols.md"])]) + "\n"


def _protocol(entry: Entry[Any]) -> str:
    protocol = entry.value
    names = ", ".join(f"`{name}`" for name in protocol.metrics)
    lines = [f"## {entry.name}", "", f"{protocol.summary} {protocol.paper}.", "", f"Metrics: {names}.", ""]
    lines += [f"- φ `{name}`: {tokens}" for name, tokens in protocol.phi.items()]
    for command, settings in protocol.settings.items():
        listed = "; ".join(
            f"{key} = {', '.join(f'`{part}`' for part in (value if isinstance(value, tuple) else (value,)))}"
            for key, value in settings.items()
        )
        lines.append(f"- {command}: {listed}")
    lines += ["", "| what | here | |", "|---|---|---|"]
    lines += [
        f"| {cell(convention.key)} | {cell(convention.value)} | {cell(convention.about)} |"
        for convention in protocol.conventions
    ]
    return "\n".join(lines)


def _option(option: Any) -> str:
    return {"setting": f"{option.name}=…", "name": f"<{option.name}>"}.get(option.kind, str(option.name))


def readers() -> str:
    """One section per dataset reader."""
    return "\n\n".join([READERS_INTRO, *(_reader(entry) for entry in registered()["readers.md"])]) + "\n"


def _reader(entry: Entry[Any]) -> str:
    text, described = split_parameters(entry.value)
    rows = [
        f"| `{option.name}` | {cell(_kind(option))} | {_default(option)} | {cell(described.get(option.name, ''))} |"
        for option in inspect.signature(entry.value).parameters.values()
    ]
    table = "\n".join(["| option | value | default | |", "|---|---|---|---|", *rows])
    first, _, rest = text.partition("\n\n")
    return "\n\n".join(part for part in (f"## {entry.name}", first, table, rest) if part)


def _kind(parameter: inspect.Parameter) -> str:
    text = tidy(word(parameter.annotation)).replace(" | None", "").replace("str | Path", "path")
    words = {"str": "text", "int": "integer", "float": "number", "bool": "true or false"}
    return re.sub(r"\b(str|int|float|bool)\b", lambda match: words[match[0]], text)


def _default(parameter: inspect.Parameter) -> str:
    if parameter.kind is parameter.VAR_KEYWORD or parameter.default is None:
        return ""
    return "**required**" if parameter.default is parameter.empty else f"`{parameter.default}`"


def encoders() -> str:
    """One section per kind of encoder, and the kinds of pair scorers."""
    scorers = [PAIR_SCORERS_INTRO, *(_encoder(entry, "###") for entry in PAIR_SCORERS)]
    return "\n\n".join([ENCODERS_INTRO, *(_encoder(entry) for entry in registered()["encoders.md"]), *scorers]) + "\n"


def _encoder(entry: Entry[Any], level: str = "##") -> str:
    extra = entry.details.get("extra")
    installed = f"; `pip install 'crosslens[{extra}]'`" if extra else ""
    source = f":{entry.details['example']}" if entry.details.get("example") else ""
    example = f"Example: `{entry.name}{source}`{installed}"
    return "\n\n".join([f"{level} {entry.name}", cleaned(inspect.cleandoc(entry.value.__doc__ or "")), example])


def similarities() -> str:
    """One section per φ."""
    entries = registered()["similarities.md"]
    shared = shared_rows(map(_similarity_rows, entries), 2)
    shared.pop("source", None)  # what stands behind the colon: another thing for each φ
    table = "\n".join(["| option of several similarities | |", "|---|---|", *shared.values()])
    return "\n\n".join([SIMILARITIES_INTRO, table, *(_similarity(entry, shared) for entry in entries)]) + "\n"


def _similarity_rows(entry: Entry[Any]) -> dict[str, str]:
    return {name: f"| `{name}` | {cell(text)} |" for name, text in split_parameters(entry.value)[1].items()}


def _similarity(entry: Entry[Any], shared: Mapping[str, str]) -> str:
    rows = _similarity_rows(entry)
    special = [row for name, row in rows.items() if row != shared.get(name)]
    common = [f"`{name}`" for name, row in rows.items() if row == shared.get(name)]
    extra = entry.details.get("extra")
    facts = [
        f"Options, as above: {', '.join(common)}" if common else "",
        f"Example: `{entry.details.get('example', entry.name)}`",
        f"`pip install 'crosslens[{extra}]'`" if extra else "",
    ]
    parts = [
        f"## {entry.name}",
        split_parameters(entry.value)[0],
        "\n".join(["| option | |", "|---|---|", *special]) if special else "",
        "; ".join(fact for fact in facts if fact),
    ]
    return "\n\n".join(part for part in parts if part)


def image_perturbations() -> str:
    """One section per change of pictures."""
    sections = (_image_perturbation(entry) for entry in registered()["image-perturbations.md"])
    return "\n\n".join([IMAGE_PERTURBATIONS_INTRO, *sections]) + "\n"


def _image_perturbation(entry: Entry[Any]) -> str:
    amounts = " | ".join(f"{amount:g}" for amount in entry.details["amounts"])
    rows = [
        f"| severity | {' | '.join(map(str, SEVERITIES))} |",
        "|---" * (len(SEVERITIES) + 1) + "|",
        f"| {cell(entry.details['unit'])} | {amounts} |",
    ]
    moved = ["Boxes of objects move with it."] if entry.details["move"] else []
    return "\n\n".join(
        [f"## {entry.name}", cleaned(inspect.cleandoc(entry.value.__doc__ or "")), *moved, "\n".join(rows)]
    )


def scores() -> str:
    """One row per score function."""
    rows = ["| name | for | options | |", "|---|---|---|---|"]
    for entry in SCORES:
        options = ", ".join(f"`{key}={value:g}`" for key, value in vars(entry.details["options"]()).items())
        about = cell(cleaned(entry.value.__doc__ or ""))
        rows.append(f"| `{entry.name}` | {entry.details['kind']} | {options} | {about} |")
    return f"{SCORES_INTRO}\n\n" + "\n".join(rows) + "\n"


def exports() -> str:
    """One row per export format."""
    rows = ["| name | ending | several runs | |", "|---|---|---|---|"]
    for entry in EXPORTS:
        several = "yes" if entry.details.get("several") else ""
        rows.append(f"| `{entry.name}` | `{entry.details['suffix']}` | {several} | {cell(cleaned(entry.summary))} |")
    return f"{EXPORTS_INTRO}\n\n" + "\n".join(rows) + "\n"


def split_parameters(function: Any, more: Collection[str] = ()) -> tuple[str, dict[str, str]]:
    """A docstring without its ``parameter: meaning`` lines, and those by parameter.

    ``more`` are parameters that it describes without having them: those of the classes that extend it.
    """
    names = {*inspect.signature(function).parameters, *more}
    kept: list[str] = []
    described: dict[str, str] = {}
    current = ""
    for line in inspect.cleandoc(function.__doc__ or "").splitlines():
        match = re.match(r"\*{0,2}(\w+): (.*)", line)
        if match and match[1] in names:
            current = match[1]
            described[current] = match[2]
        elif current and line.startswith("    "):
            described[current] += " " + line.strip()
        else:
            current = ""
            kept.append(line)
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept))
    return cleaned(text), {name: cleaned(meaning) for name, meaning in described.items()}


_ANALYSES = """What looks for them, each in one run: a stage of audits, and `crosslens analyze run ANALYSIS RUN`.
[How to add one](../how-to/extend.md#an-analysis-and-its-findings).
"""
_FINDINGS = """# Kinds of findings

What an audit may conclude ([how, and how sure](../explanation/findings.md)). Each kind has a sentence, the stage that
looks for it, and a plant: the defect itself, put into a dataset or a model, by which tests, `make claims` and
[`crosslens calibrate`](../how-to/audit.md#what-could-this-audit-have-noticed) prove the sentence. An unsound input is
said first, and silences what depends on it.

"""


def _strengths(words: str, strengths: Iterable[float]) -> str:
    """``2 %, 5 % of the captions in German``."""
    varying = re.search(r"\S*\{\S*\}\S*", words)
    if varying is None:
        return words
    amounts = ", ".join(varying[0].format(strength).replace("%", " %") for strength in strengths)
    return words.replace(varying[0], amounts)


def findings() -> str:
    """Every kind of finding, with its sentence, its stage and its plant."""
    rows = [f"| `{entry.name}` | {cell(cleaned(entry.summary))} |" for entry in ANALYSES]
    parts = ["\n".join([_ANALYSES, "| analysis | |", "|---|---|", *rows])]
    first: dict[str, str] = {}
    for entry in FINDING_KINDS:
        details = entry.details
        same = first.setdefault(details["sentence"], entry.name)
        sentence = f"“{details['sentence']}”" if same == entry.name else f"The sentence of [`{same}`](#{same})."
        rows = [f"## {entry.name}", sentence, f"Looked for by the stage `{details['stage']}`."]
        strengths = _strengths(details["strength_words"], details["strengths"])
        rows.append(f"Planted: {cleaned(entry.summary)} Strengths: {strengths}.")
        silenced = ["what is said of the model" if name == "*" else f"`{name}`" for name in details["silences"]]
        if silenced:
            rows.append(f"Where it is settled, silent: {', '.join(silenced)}.")
        parts.append("\n\n".join(rows))
    return _FINDINGS + "\n\n".join(parts) + "\n"
