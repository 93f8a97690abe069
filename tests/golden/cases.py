"""What is called: every command, with the options that change what it shows, and with every kind of file it writes.

A case is called on terminals of 80 and 120 columns and with ``--json``. Its files (``files``, below ``out/``) are
written by the first and the last of these calls; each of ``also`` is a further call for the files alone.
"""
# ruff: noqa: E501  a command is read best in one line

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import crosslens as cl
from tests.golden.study import IMP, RECOS

SLOW_PARTS = ("training", "builds", "audits", "demos", "studies")
"""Parts that take seconds to prepare: what is shown of them has tests of its own (studies: ``tests/cli``)."""
PICTURES = (".svg", ".png", ".pdf")
NO_OUTPUT = {
    "crosslens serve": "a server, whose pages have tests of their own",
    "crosslens doctor": "describes the machine; see tests/cli/test_doctor.py",
}
"""Commands without a case, and why."""


@dataclass(frozen=True)
class Case:
    """A command as it is typed after ``crosslens``, and what is recorded of it."""

    name: str
    words: str
    files: str = ""
    also: tuple[str, ...] = ()
    part: str = "scenes"
    forms: tuple[str, ...] = ("80", "120", "json")
    slow: bool = False
    code: int = 0
    colour: bool = False
    seldom: tuple[str, ...] = ()
    """Forms that are left to ``make test-all``: another case of the command has them."""
    keeps: tuple[str, ...] = ()
    """Patterns of files that are recorded although they are not below ``out/``."""

    @property
    def calls(self) -> tuple[str, ...]:
        """The name of each call: a form, or the words that are added for files alone."""
        return (*self.forms, *self.also)

    def typed(self, call: str) -> str:
        """The words of a call."""
        added = {self.forms[0]: self.files, "json": f"{self.files} --json", "120": ""}
        return f"{self.words} {added.get(call, call)}".strip()

    def is_slow(self, call: str) -> bool:
        """Whether a call is left to ``make test-all``: its part takes long, or it repeats a computation for another form."""
        seldom = call in (*self.also, *self.seldom)
        return self.slow or self.part in SLOW_PARTS or seldom or (call == "120" and self.part != "")


def figure(flag: str, name: str, *endings: str) -> tuple[str, ...]:
    """A call for each kind of picture that plots have."""
    return tuple(f"{flag} out/{name}{ending}" for ending in endings or PICTURES)


_MODELS = "runs/tiny runs/noisy runs/noisier"
_RESAMPLES = "--resamples 50"

CASES: dict[str, tuple[Case, ...]] = {
    "demo": (Case("demo", "demo --images 12 -o demo", part="demos"),),
    "audit": (
        Case("list", "audit --list", part=""),
        Case("tiny", "audit --dataset scenes --model tiny --quick -o audits/tiny", part="audits"),
    ),
    "calibrate": (
        Case("tiny", "calibrate audits/tiny --only blank-vectors --only better --only colour --repeats 2", part="audits"),
    ),
    "evaluate": (
        Case("model", f"evaluate --dataset scenes --model tiny {_RESAMPLES}", files="-o out/run"),
        Case(
            "protocol", f"evaluate --dataset scenes --model tiny {_RESAMPLES} --protocol recos --direction t2i"
        ),
        Case(
            "graded",
            "evaluate --dataset scenes --image-embeddings noisy/images --caption-embeddings noisy/captions "
            f"--metrics 'NCS[cider]@10 SR[cider,m=5]@5 mAP@R MedR CappedRecall@5 DCGcm@10' {_RESAMPLES}",
        ),
    ),
    "encode": (
        Case("list", "encode --list", part=""),
        Case("tiny", "encode --model tiny --dataset few -o out/vectors"),
    ),
    "show": (
        Case("run", "show runs/tiny", files="--write out/run.html --write out/run.csv --write out/run.tex --write out/run.md"),
        Case("groups", "show runs/tiny --by style --metrics 't2i/Hit@1 t2i/MedR'", files="--write out/groups.html --write out/groups.csv"),
        Case("groups-default", "show runs/tiny --by task", forms=("80",)),
        Case("side-by-side", f"show {_MODELS}", files="--write out/runs.html --write out/runs.tex", also=figure("--write", "runs", ".svg")),
        Case("side-by-side-groups", f"show {_MODELS} --by task --metrics t2i/Hit@1", files="--write out/groups.html --write out/groups.md"),
        Case("columns", "show runs/tiny --columns difficulty.parquet --by difficulty", part="tables"),
        Case("study", "show runs/rob", part="studies"),
        Case("study-tables", "show runs/rob-few --tables 'words captions seeds groups overlap'", part="studies", forms=("80", "120")),
        Case("studies", "show runs/rob runs/rob-few", part="studies"),
        Case("studies-by-dataset", "show runs/rob runs/rob-few --by dataset", part="studies"),
        Case("study-columns", "show runs/rob --columns difficulty.parquet --by difficulty", part="studies"),
    ),
    "plot": (
        Case(
            "groups", f"plot {_MODELS} --by task", files="--write out/plot.html --write out/plot.csv --write out/plot.tex",
            also=figure("--write", "plot"), forms=("80", "json"),
        ),
        Case("whole", "plot runs/tiny", files="--write out/plot.html", forms=("80", "json")),
        Case("study", "plot runs/rob", files="--write out/map.html", also=figure("--write", "map"), part="studies", forms=("80", "json")),
        Case(
            "studies", "plot runs/rob runs/rob-few", files="--write out/map.html", also=figure("--write", "map"), part="studies",
            forms=("80", "json"),
        ),
    ),
    "compare": (
        Case("two", "compare runs/tiny runs/noisy --permutations 500", files="--changes --write out/changes.html --show 4"),
        Case("i2t", "compare runs/tiny runs/noisier --permutations 500 --metrics i2t/Hit@1", also=("--changes --write out/changes.html --direction i2t --show 3",), forms=("80",)),
        Case("all-pairs", f"compare {_MODELS} --all-pairs --permutations 500", files="--write out/pairs.tex --write out/pairs.html", seldom=("json",)),
        Case("against-first", f"compare {_MODELS} --permutations 500 --metrics 't2i/Hit@1 i2t/Hit@1' --correction bh"),
        Case("groups", "compare runs/tiny runs/noisy --by style --metrics t2i/Hit@1 --permutations 500"),
        Case("two-files", "compare runs/tiny runs/noisy --permutations 500 --write out/two.tex --write out/two.csv", forms=("80",)),
    ),
    "report": (
        Case("runs", "report runs/tiny runs/noisy --title 'Two models' --queries 2 -o out/report.html", forms=("80", "json")),
        Case("one", "report runs/noisy --queries 2 -o out/report.html", forms=("80",), slow=True),
        Case("figures", "report runs/tiny --queries 2 -o report.html --figures out/figures", forms=("80",), slow=True),
        Case("audit", "report audits/tiny --queries 2 -o out/report.html", part="audits", forms=("80", "json")),
    ),
    "leaderboard": (
        Case("datasets", f"leaderboard {_MODELS} runs/few --permutations 500", files="--write out/leaderboard.html --write out/leaderboard.tex --write out/leaderboard.csv"),
        Case("metrics", f"leaderboard {_MODELS} --metrics 't2i/Hit@1 t2i/MedR i2t/Hit@5' --permutations 500"),
    ),
    "check": (
        Case(
            "unmet", "check runs/tiny --require 't2i/Hit@1 >= 0.2' --require 'worst(task, t2i/Hit@1) >= 99%' "
            "--require 'gap(t2i/Hit@1) >= -1' --baseline runs/noisy", code=7,
        ),
        Case("drops", "check runs/tiny --robustness runs/rob --require 'drop(char_swap, t2i/Hit@1) <= 90' --confident", part="studies"),
        Case("github", "check runs/tiny --require 't2i/Hit@1 >= 2%' --require 't2i/MedR <= 0' --github", code=7, forms=("80",)),
        Case("audit", "check audits/tiny --require 't2i/Hit@1 >= 0.2'", part="audits"),
    ),
    "caption-sets": (
        Case("styles", f"caption-sets --dataset scenes --by style --before sparse --after detailed --model tiny {_RESAMPLES}", seldom=("json",)),
        Case("wide", f"caption-sets --dataset scenes --by style --before sparse --after detailed --model tiny {_RESAMPLES} --no-granularity --wide", forms=("80", "120"), slow=True),
    ),
    "curve": (
        Case("m", f"curve runs/tiny runs/noisy --m 1,2,5,10 {_RESAMPLES}", files="--write out/curve.html", also=figure("--write", "curve")),
        Case("protocol", f"curve runs/tiny --protocol five --phi cider --m 1,5 {_RESAMPLES}", slow=True),
        Case(
            "gallery", f"curve {_MODELS} --over gallery --metrics 't2i/Hit@1 t2i/MedR' --sizes 5,10,24,100 {_RESAMPLES}",
            files="--write out/sizes.html", slow=True,
        ),
        Case("gallery-one", f"curve runs/tiny --over gallery --metrics t2i/Hit@1 {_RESAMPLES} --write out/sizes.svg", forms=("80",)),
    ),
    "plan": (
        Case("billion", "plan --images 1e9 --captions 1e9 --dim 768 --device h200 --nodes 64", part=""),
        Case("small", "plan --images 5000 --captions 25000 --dim 512 --device h200 --queries 1000", part="", forms=("80",)),
    ),
    "export": tuple(
        Case(form, f"export runs/tiny runs/noisy --to {form} --metrics 'Hit@1 MedR'", also=(f"-o out/{form}.{ending}",), forms=("80", "json"))
        for form, ending in (("latex", "tex"), ("csv", "csv"), ("markdown", "md"))
    ) + tuple(
        Case(form, f"export runs/tiny --to {form}", files=f"-o out/{form}{ending}", forms=("80",))
        for form, ending in (("trec", ".run"), ("ranx", ".json"), ("mteb", ".json"), ("clip-benchmark", ".json"))
    ) + (
        Case("model-index", "export runs/tiny runs/few --to model-index", forms=("80", "json")),
        Case("direction", "export runs/tiny --to trec --direction i2t", forms=("80",)),
        *(
            Case(f"studies-{form}", f"export runs/rob runs/rob-few --to {form}", part="studies", forms=("80",))
            for form in ("latex", "csv", "markdown")
        ),
        Case("studies-by-dataset", "export runs/rob runs/rob-few --by dataset --to latex", part="studies", forms=("80",)),
    ),
    "run": (
        Case("again", "run runs/noisy"),
        Case("written", "run runs/noisy/recipe.toml -o out/again", forms=("80",)),
    ),
    "metrics": (Case("all", "metrics", part=""), Case("one", "metrics NCS", part="")),
    "protocols": (Case("all", "protocols", part=""), Case("one", "protocols five", part="")),
    "synth": (
        Case("v0", "synth --images 3 --tasks colour,count --workers 1 -o out/scenes", part=""),
        Case("v2", "synth --images 3 --tasks object --version v2 --gallery 9 --workers 1 -o out/scenes", part="", forms=("80", "json")),
    ),
    "similarity": (
        Case("list", "similarity --list", part=""),
        Case("matrix", "similarity --dataset scenes --phi cider", files="-o out/cider.npy"),
        Case("pairs", "similarity --dataset scenes --phi cider --pairs pairs.csv", also=("-o out/scores.csv",), part="tables", forms=("80", "json")),
    ),
    "agreement": (
        Case(
            "cider", f"agreement --dataset scenes --judgements judgements.csv --phi cider {_RESAMPLES}",
            files="--write out/agreement.html", also=figure("--write", "agreement"), part="tables",
        ),
        Case("pooled", f"agreement --dataset scenes --judgements judgements.csv --phi cider --without-references --kendall c {_RESAMPLES}", part="tables", forms=("80", "120")),
    ),
    "hard-negatives": (
        Case(
            "perturbed", f"hard-negatives --dataset scenes --perturb antonym,number_change,color_all --model tiny --blind shorter {_RESAMPLES}",
            files="--write out/plot.html --write out/table.md --write out/table.tex --write out/table.csv -o out/cases.csv --write-dataset out/dataset",
            also=("-o out/cases.parquet", *figure("--write", "plot")), seldom=("json",),
        ),
        Case("two", f"hard-negatives --dataset scenes --perturb number_change --model tiny --model tiny --failures 1 {_RESAMPLES}", forms=("80", "120"), slow=True),
    ),
    "perturb": (
        Case("list", "perturb --list", part=""),
        Case("changes", "perturb --dataset few --name char_swap,synonym_noun --show 2 --threads 1", files="--write out/changes.html --write out/changes.md --write out/changes.csv"),
        Case("colour", "perturb --dataset few --name char_swap --show 1 --threads 1", forms=("80",), colour=True),
        Case("written", "perturb --dataset few --name char_swap,blur@3 --threads 1 -o out/perturbed", files="--sheet out/sheet.png", forms=("80", "json"), seldom=("json",)),
    ),
    "robustness": (
        Case(
            "resumed", "robustness --dataset scenes --model tiny --perturbations char_swap,synonym_noun,shuffle_trigrams,blur@3 "
            "--metrics 'Hit@1 MRR Rsum' --permutations 200 --resamples 50 -o runs/rob",
            files="--write out/map.html", also=figure("--write", "map"), part="studies", forms=("80", "json"), seldom=("json",),
        ),
        Case(
            "lists", "robustness --dataset scenes --runs none=lists/none-t2i.run --runs char_swap=lists/char_swap-t2i.run "
            "--permutations 200 --resamples 50 --tables 'models drops metrics changes'", part="tables",
        ),
        Case(
            "by-column", "robustness --dataset scenes --runs none=lists/none-t2i.run --runs char_swap=lists/char_swap-t2i.run "
            "--permutations 200 --resamples 50 --columns difficulty.parquet --by difficulty", part="tables",
        ),
    ),
    "counterfactual": (
        Case("sample", "counterfactual --dataset few --model tiny --sample 4 --budget 20 --perturbations char_swap,synonym_noun --threads 1", files="--write out/flips.html --write out/flips.tex"),
        Case("colour", "counterfactual --dataset few --model tiny --sample 2 --budget 20 --perturbations char_swap --threads 1", forms=("80",), colour=True, slow=True),
    ),
    "explain": (
        Case("query", "explain runs/noisy --query 102 --query 101", files="--write out/why.html"),
        Case("image", "explain runs/noisy --direction i2t --query 13", forms=("80",)),
        Case(
            "failures", "explain runs/noisy", files="--write out/atlas.html -o out/why", also=figure("--write", "atlas"),
        ),
        Case("protocol", "explain runs/noisy --protocol expl --depth 6 --show 3", forms=("80", "120")),
        Case("compare", "explain runs/noisy --compare runs/tiny"),
        Case("groups", "explain runs/noisy --by style", seldom=("json",), slow=True),
        Case("several", f"explain {_MODELS}", slow=True),
        Case("several-files", f"explain {_MODELS}", files="--write out/several.csv --write out/several.tex --write out/several.md", forms=("80",), slow=True),
    ),
    "gallery": (
        Case("two", "gallery runs/tiny runs/noisy --hardest 2 --random 1 --k 3", files="--write out/gallery.html"),
        Case("images", "gallery runs/tiny --direction i2t --random 2 --k 3", files="--write out/gallery.html", forms=("80", "json")),
    ),
    "missing-positives": (
        Case("cider", "missing-positives --dataset scenes --phi cider", files="-o out/completed.qrels --table out/missing.csv", also=("-o out/completed.json", "-o out/completed.jsonl")),
    ),
    "judge": (
        Case("project", "judge 1 --model vlm --endpoint {endpoint} --workers 1 --max-requests 3 --price 1 2", part="judging"),
        Case("table", "judge pairs.csv --task pairs --dataset scenes --image-folder scenes --model vlm --endpoint {endpoint} --workers 1 --max-requests 2 -o out/answers.jsonl", part="judging", forms=("80", "json")),
        Case("dry-run", "judge 1 --model vlm --dry-run", part="judging", forms=("80",)),
    ),
    "train": (
        Case("list", "train --list", part="", seldom=("120",)),
        Case("list-words", "train --list 'flickr8k vse'", part="", forms=("80",), slow=True),
        Case("small", "train small.toml --data flickr8k --device cpu --threads 1 -o models/small", part="training", keeps=("models/small/*.html",)),
    ),
    "sweep": (
        Case("losses", "sweep --list-losses", part=""),
        Case("dry-run", "sweep small.toml --data flickr8k --device cpu --set loss=triplet,sam-random --seeds 3 --dry-run -o sweeps/loss", part="training"),
        Case(
            "loss", "sweep small.toml --data flickr8k --device cpu --set loss=triplet,sam-random --seeds 2 -o sweeps/loss",
            files="--write out/curves.html", also=figure("--write", "curves"), part="training", keeps=("sweeps/loss/*.*",),
        ),
    ),
    "data describe": (Case("scenes", "data describe scenes"), Case("jsonl", "data describe captions.jsonl", part="tables", forms=("80",))),
    "data convert": tuple(
        Case(form, f"data convert few out/{file} --to {form}", forms=forms)
        for form, file, forms in (
            ("coco", "few.json", ("80", "json")), ("plain", "few.csv", ("80",)), ("karpathy", "karpathy.json", ("80",)), ("folder", "few", ("80", "json")),
        )
    ),
    "data formats": (Case("all", "data formats", part=""), Case("one", "data formats coco", part="")),
    "data known": (
        Case("all", "data known", part=""),
        Case("one", "data known flickr30k", part=""),
    ),
    "analyze run": (
        Case("list", "analyze run --list", part=""),
        Case("soundness", "analyze run soundness runs/tiny", files="--write out/soundness.html"),
    ),
    "analyze granularity": (
        Case(
            "styles", f"analyze granularity --dataset scenes --by style --threads 1 {_RESAMPLES}", files="--write out/plot.html -o out/captions.csv",
            also=("-o out/captions.parquet", *figure("--write", "plot")), seldom=("json",),
        ),
        Case("protocol", f"analyze granularity --dataset scenes --protocol brit --threads 1 {_RESAMPLES}"),
        Case("two", f"analyze granularity --dataset scenes --dataset few --threads 1 {_RESAMPLES}", forms=("80", "120"), slow=True),
    ),
    "analyze discriminability": (
        Case(
            "tiny", f"analyze discriminability --dataset scenes --model tiny --show 2 {_RESAMPLES}", files="--write out/plot.html -o out/dis.csv",
            also=("-o out/dis.parquet", *figure("--write", "plot")),
        ),
        Case("two", f"analyze discriminability --dataset scenes --dataset few --model tiny --show 1 --k 5 {_RESAMPLES}", forms=("80", "120"), slow=True),
    ),
    "analyze labels": (
        Case(
            "runs", "analyze labels runs/tiny runs/noisy --show 4", files="-o out/review.csv --qrels out/new.qrels --leave-out out/queries.txt --write out/labels.html --write out/labels.csv",
            also=("-o out/review.jsonl", "-o out/review.parquet"),
        ),
        Case("reviewed", "analyze labels --dataset scenes --apply review.csv --cleaned out/cleaned --qrels out/reviewed.qrels", part="tables", forms=("80", "json")),
    ),
    "analyze polysemy": (
        Case(
            "two", f"analyze polysemy --dataset scenes --dataset few --model tiny --sizes 1,5,10 {_RESAMPLES}",
            files="--write out/plot.html -o out/curves.csv --per-image out/images.csv",
            also=("-o out/curves.parquet --per-image out/images.parquet", *figure("--write", "plot")), seldom=("json",),
        ),
        Case(
            "clusters", f"analyze polysemy --dataset scenes --model tiny --sizes 1,5 --min-cluster-size 3 --umap-neighbours 5 --clusters --purity-by task {_RESAMPLES}",
            files="--write out/clusters.html", slow=True,
        ),
    ),
    "analyze difficulty": (
        Case(
            "panel", f"analyze difficulty --runs {_MODELS} --calibration self --stability 2 --show 3",
            files="-o out/levels.csv --write out/levels.html --save-thresholds out/thresholds.json",
            also=("-o out/levels.parquet", *figure("--write", "levels")), seldom=("json",),
        ),
        Case(
            "disagree", f"analyze difficulty --runs {_MODELS} --calibration self --disagree tiny noisy --beside difficulty.parquet --show 2",
            files="--write out/disagreements.html", part="tables", seldom=("json",), slow=True,
        ),
    ),
    "analyze filter-loss": (
        Case(
            "tiny", "analyze filter-loss difficulty.parquet --model tiny --threshold 0.7 0.8", files="--write out/loss.html -o out/loss.csv",
            also=("-o out/loss.parquet", *figure("--write", "loss")), part="tables",
        ),
    ),
    "analyze categories": (
        Case(
            "levels", f"analyze categories runs/tiny runs/noisy --difficulty difficulty.parquet {_RESAMPLES}", files="--write out/plot.html -o out/levels.csv",
            also=("-o out/levels.parquet", "--write out/levels.tex", *figure("--write", "plot")), part="tables",
        ),
        Case("negatives", f"analyze categories runs/tiny --difficulty scenes/captions.parquet --by style --metrics Hit@1 --negatives 1 {_RESAMPLES}", seldom=("json",), slow=True),
    ),
    "analyze scorers": (
        Case(
            "cider", f"analyze scorers runs/tiny --phi cider --difficulty scenes/captions.parquet --by style --show 2 {_RESAMPLES}",
            files="--write out/plot.html -o out/pairs.csv",
            also=("-o out/pairs.parquet", *figure("--write", "plot")),
        ),
    ),
    "judging new": (Case("project", "judging new Relevance --task relevance"),),
    "judging import": (
        Case("run", "judging import 2 runs/tiny --limit 4", part="judging"),
        Case("again", "judging import 1 runs/noisy --limit 12", part="judging", forms=("80",), slow=True),
    ),
    "judging export": (
        Case(
            "qrels", "judging export 1 -o out/judgements.parquet --dataset scenes", part="judging", forms=("80", "json"),
        ),
        Case("answers", "judging export 1 -o out/answers.csv", part="judging", forms=("80",)),
        Case("lines", "judging export 1 -o out/answers.jsonl", part="judging", forms=("80",)),
        Case("label-studio", "judging export 1 -o out/tasks.json --interface out/interface.xml", part="judging", forms=("80",)),
    ),
    "judging invite": (Case("project", "judging invite 1 --uses 2", part="judging"),),
    "judging members": (Case("project", "judging members 1", part="judging"),),
    "judging accounts": (Case("all", "judging accounts", part="judging"), Case("close", "judging accounts --close ann", part="judging", forms=("80", "json"))),
    "judging audit": (Case("project", "judging audit 1", part="judging"),),
    "judging status": (Case("all", "judging status", part="judging"), Case("project", "judging status 1", part="judging", seldom=("json",))),
    "build recos": (Case("scenes", f"{RECOS} -o out/bench", part="builds"),),
    "build imp": (
        Case("done", IMP, files="--map --write out/map.html", also=figure("--map --write", "map"), part="builds", keeps=("bench/imp/*.html", "bench/imp/*.md")),
        Case("waiting", IMP.replace("bench/imp", "bench/waiting"), part="builds", keeps=("bench/waiting/*.html", "bench/waiting/*.md")),
    ),
    "build clean": (
        Case(
            "titles", "build clean titles.txt --minimum-words 3", files="-o out/cleaned.csv",
            also=("-o out/cleaned.parquet", "-o out/kept.txt"), part="tables",
        ),
    ),
}  # fmt: skip
"""The cases of each command."""


def _runs() -> list[cl.Run]:
    return [cl.Run.load(f"runs/{name}") for name in ("tiny", "noisy", "noisier")]


def _polysemy() -> object:
    vectors = {part: cl.Embeddings.load(f"vectors/{part}") for part in ("images", "captions")}
    return cl.polysemy(cl.load_dataset("scenes"), **vectors, sizes=(1, 5), resamples=50)


OF_STUDIES = ("robustness", "robustness-table")
"""Printed results that need robustness studies."""
PRINTED: dict[str, Callable[[], object]] = {
    "run": lambda: _runs()[0],
    "metric-values": lambda: _runs()[0]["t2i/Hit@1"],
    "dataset": lambda: cl.load_dataset("few"),
    "description": lambda: cl.describe(cl.load_dataset("few")),
    "groups": lambda: cl.by(_runs()[0], "style", "t2i/Hit@1"),
    "comparison": lambda: cl.compare(*_runs()[:2], metrics="t2i/Hit@1", permutations=500),
    "leaderboard": lambda: cl.leaderboard(
        {(run.name, "scenes"): run for run in _runs()}, "t2i/Hit@1", permutations=500
    ),
    "robustness": lambda: cl.Robustness.load("runs/rob"),
    "robustness-table": lambda: cl.robustness_table({"rob": cl.Robustness.load("runs/rob")}),
    "gallery-curve": lambda: cl.gallery_curve(_runs()[:1], "t2i/Hit@1", sizes=(5, 24), resamples=50),
    "explanation": lambda: cl.explain("runs/noisy", "102"),
    "failures": lambda: cl.explain("runs/noisy"),
    "difficulty": lambda: cl.read_difficulty("difficulty.parquet"),
    "polysemy": _polysemy,
    "missing-positives": lambda: cl.missing_positives(cl.load_dataset("few"), "cider"),
    "label-quality": lambda: cl.label_quality(cl.load_dataset("scenes"), _runs()[1]),
    "granularity": lambda: cl.granularity(cl.load_dataset("few")),
    "plan": lambda: cl.plan(5000, 25000, 512, device="h200"),
}
"""Results of Python, as ``print`` shows them; of one without a text of its own, that it has none."""
