"""What is called: every command, with the options that change what it shows, and with every kind of file of its own.

A case is called with ``--json``, and what its result shows is recorded by its figures; ``screens`` are the columns of the
terminals whose whole text is recorded as well: one or two of each kind of output are enough. Files (``files``, below
``out/``) are written by the first of these calls; each of ``also`` is a further call for the files alone.
"""
# ruff: noqa: E501  a command is read best in one line

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import crosslens as cl
from crosslens.core import Presented
from tests.golden.study import IMP, RECOS

SLOW_PARTS = ("training", "builds", "audits", "demos", "studies")
"""Parts that take seconds to prepare: what is shown of them has tests of its own (studies: ``tests/cli``)."""
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
    screens: tuple[int, ...] = ()
    json: bool = True
    """Not of what prints a text that is itself the product, such as a file of another tool."""
    slow: bool = False
    code: int = 0
    colour: bool = False
    keeps: tuple[str, ...] = ()
    """Patterns of files that are recorded although they are not below ``out/``."""

    @property
    def forms(self) -> tuple[str, ...]:
        return (*(("json",) if self.json else ()), *map(str, self.screens))

    @property
    def calls(self) -> tuple[str, ...]:
        """The name of each call: a form, or the words that are added for files alone."""
        return (*self.forms, *self.also)

    def typed(self, call: str) -> str:
        """The words of a call."""
        files = self.files if call == self.forms[0] else call if call in self.also else ""
        return f"{self.words} {files} {'--json' if call == 'json' else ''}".strip()

    def is_slow(self, call: str) -> bool:
        """Whether a call is left to ``make test-all``: its part takes long, or it repeats a computation for a file."""
        return self.slow or self.part in SLOW_PARTS or call in self.also


_MODELS = "runs/tiny runs/noisy runs/noisier"
_RESAMPLES = "--resamples 50"

CASES: dict[str, tuple[Case, ...]] = {
    "demo": (Case("demo", "demo --images 12 -o demo", part="demos"),),
    "audit": (
        Case("list", "audit --list", part=""),
        Case("tiny", "audit --dataset scenes --model tiny --quick -o audits/tiny", part="audits", screens=(80,)),
    ),
    "calibrate": (
        Case("tiny", "calibrate audits/tiny --only blank-vectors --only better --only colour --repeats 2", part="audits"),
    ),
    "evaluate": (
        Case("model", f"evaluate --dataset scenes --model tiny {_RESAMPLES}", files="-o out/run", screens=(80,)),
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
        Case("run", "show runs/tiny", screens=(80,)),
        Case("groups", "show runs/tiny --by style --metrics 't2i/Hit@1 t2i/MedR'"),
        Case("groups-default", "show runs/tiny --by task", screens=(80,), json=False),
        Case("side-by-side", f"show {_MODELS}", screens=(80,)),
        Case("side-by-side-groups", f"show {_MODELS} --by task --metrics t2i/Hit@1"),
        Case("columns", "show runs/tiny --columns difficulty.parquet --by difficulty", part="tables"),
        Case("study", "show runs/rob", part="studies"),
        Case("study-tables", "show runs/rob-few --tables 'words captions seeds groups overlap'", part="studies"),
        Case("studies", "show runs/rob runs/rob-few", part="studies"),
        Case("studies-by-dataset", "show runs/rob runs/rob-few --by dataset", part="studies"),
        Case("study-columns", "show runs/rob --columns difficulty.parquet --by difficulty", part="studies"),
    ),
    "plot": (
        Case(
            "groups", f"plot {_MODELS} --by task",
        ),
        Case("whole", "plot runs/tiny"),
        Case("study", "plot runs/rob", part="studies"),
        Case(
            "studies", "plot runs/rob runs/rob-few", part="studies",
        ),
    ),
    "compare": (
        Case("two", "compare runs/tiny runs/noisy --permutations 500 --changes --show 4", screens=(80, 120)),
        Case("i2t", "compare runs/tiny runs/noisier --permutations 500 --metrics i2t/Hit@1 --changes --direction i2t --show 3"),
        Case("all-pairs", f"compare {_MODELS} --all-pairs --permutations 500"),
        Case("against-first", f"compare {_MODELS} --permutations 500 --metrics 't2i/Hit@1 i2t/Hit@1' --correction bh"),
        Case("groups", "compare runs/tiny runs/noisy --by style --metrics t2i/Hit@1 --permutations 500"),
    ),
    "report": (
        Case("runs", "report runs/tiny runs/noisy --title 'Two models' --queries 2 -o out/report.html", screens=(80,)),
        Case("one", "report runs/noisy --queries 2 -o out/report.html", slow=True),
        Case("figures", "report runs/tiny --queries 2 -o report.html --figures out/figures", slow=True),
        Case("audit", "report audits/tiny --queries 2 -o out/report.html", part="audits"),
    ),
    "leaderboard": (
        Case("datasets", f"leaderboard {_MODELS} runs/few --permutations 500", screens=(80,)),
        Case("metrics", f"leaderboard {_MODELS} --metrics 't2i/Hit@1 t2i/MedR i2t/Hit@5' --permutations 500"),
    ),
    "check": (
        Case(
            "unmet", "check runs/tiny --require 't2i/Hit@1 >= 0.2' --require 'worst(task, t2i/Hit@1) >= 99%' "
            "--require 'gap(t2i/Hit@1) >= -1' --baseline runs/noisy", code=7, screens=(80,)),
        Case("drops", "check runs/tiny --robustness runs/rob --require 'drop(char_swap, t2i/Hit@1) <= 90' --confident", part="studies"),
        Case("github", "check runs/tiny --require 't2i/Hit@1 >= 2%' --require 't2i/MedR <= 0' --github", code=7, screens=(80,), json=False),
        Case("audit", "check audits/tiny --require 't2i/Hit@1 >= 0.2'", part="audits"),
    ),
    "caption-sets": (
        Case("styles", f"caption-sets --dataset scenes --by style --before sparse --after detailed --model tiny {_RESAMPLES}"),
        Case("wide", f"caption-sets --dataset scenes --by style --before sparse --after detailed --model tiny {_RESAMPLES} --no-granularity --wide", slow=True),
    ),
    "curve": (
        Case("m", f"curve runs/tiny runs/noisy --m 1,2,5,10 {_RESAMPLES}"),
        Case("protocol", f"curve runs/tiny --protocol five --phi cider --m 1,5 {_RESAMPLES}", slow=True),
        Case(
            "gallery", f"curve {_MODELS} --over gallery --metrics 't2i/Hit@1 t2i/MedR' --sizes 5,10,24,100 {_RESAMPLES}", slow=True,
        ),
        Case("gallery-one", f"curve runs/tiny --over gallery --metrics t2i/Hit@1 {_RESAMPLES}"),
    ),
    "plan": (
        Case("billion", "plan --images 1e9 --captions 1e9 --dim 768 --device h200 --nodes 64", part="", screens=(80,)),
        Case("small", "plan --images 5000 --captions 25000 --dim 512 --device h200 --queries 1000", part=""),
    ),
    "export": (
        *(
            Case(form, f"export runs/tiny runs/noisy --to {form} --metrics 'Hit@1 MedR'", screens=(80,), json=False)
            for form in ("latex", "csv", "markdown")
        ),
        *(
            Case(form, f"export runs/tiny --to {form}", files=f"-o out/{form}{ending}", screens=(80,), json=False)
            for form, ending in (("trec", ".run"), ("ranx", ".json"), ("mteb", ".json"), ("clip-benchmark", ".json"))
        ),
        Case("model-index", "export runs/tiny runs/few --to model-index"),
        Case("direction", "export runs/tiny --to trec --direction i2t", files="-o out/direction.run", screens=(80,), json=False),
        *(
            Case(f"studies-{form}", f"export runs/rob runs/rob-few --to {form}", part="studies", screens=(80,), json=False)
            for form in ("latex", "csv", "markdown")
        ),
        Case("studies-by-dataset", "export runs/rob runs/rob-few --by dataset --to latex", part="studies", screens=(80,), json=False),
    ),
    "run": (
        Case("again", "run runs/noisy"),
        Case("written", "run runs/noisy/recipe.toml -o out/again"),
    ),
    "metrics": (Case("all", "metrics", part=""), Case("one", "metrics NCS", part="", screens=(80,))),
    "protocols": (Case("all", "protocols", part=""), Case("one", "protocols five", part="")),
    "synth": (
        Case("v0", "synth --images 3 --tasks colour,count --workers 1 -o out/scenes", part=""),
        Case("v2", "synth --images 3 --tasks object --version v2 --gallery 9 --workers 1 -o out/scenes", part=""),
    ),
    "similarity": (
        Case("list", "similarity --list", part=""),
        Case("matrix", "similarity --dataset scenes --phi cider", files="-o out/cider.npy"),
        Case("pairs", "similarity --dataset scenes --phi cider --pairs pairs.csv", also=("-o out/scores.csv",), part="tables", screens=(80,), json=False),
    ),
    "agreement": (
        Case(
            "cider", f"agreement --dataset scenes --judgements judgements.csv --phi cider {_RESAMPLES}", part="tables",
        ),
        Case("pooled", f"agreement --dataset scenes --judgements judgements.csv --phi cider --without-references --kendall c {_RESAMPLES}", part="tables"),
    ),
    "hard-negatives": (
        Case(
            "perturbed", f"hard-negatives --dataset scenes --perturb antonym,number_change,color_all --model tiny --blind shorter {_RESAMPLES}",
            files="-o out/cases.csv --write-dataset out/dataset",
            also=("-o out/cases.parquet",),
        ),
        Case("two", f"hard-negatives --dataset scenes --perturb number_change --model tiny --model tiny --failures 1 {_RESAMPLES}", slow=True),
    ),
    "perturb": (
        Case("list", "perturb --list", part=""),
        Case("changes", "perturb --dataset few --name char_swap,synonym_noun --show 2 --threads 1", screens=(80,)),
        Case("colour", "perturb --dataset few --name char_swap --show 1 --threads 1", colour=True, screens=(80,), json=False),
        Case("written", "perturb --dataset few --name char_swap,blur@3 --threads 1 -o out/perturbed", files="--sheet out/sheet.png"),
    ),
    "robustness": (
        Case(
            "resumed", "robustness --dataset scenes --model tiny --perturbations char_swap,synonym_noun,shuffle_trigrams,blur@3 "
            "--metrics 'Hit@1 MRR Rsum' --permutations 200 --resamples 50 -o runs/rob", part="studies", screens=(80,)),
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
        Case("sample", "counterfactual --dataset few --model tiny --sample 4 --budget 20 --perturbations char_swap,synonym_noun --threads 1"),
        Case("colour", "counterfactual --dataset few --model tiny --sample 2 --budget 20 --perturbations char_swap --threads 1", colour=True, screens=(80,), json=False, slow=True),
    ),
    "explain": (
        Case("query", "explain runs/noisy --query 102 --query 101", screens=(80,)),
        Case("image", "explain runs/noisy --direction i2t --query 13"),
        Case(
            "failures", "explain runs/noisy", files="-o out/why",
        ),
        Case("protocol", "explain runs/noisy --protocol expl --depth 6 --show 3"),
        Case("compare", "explain runs/noisy --compare runs/tiny"),
        Case("groups", "explain runs/noisy --by style", slow=True),
        Case("several", f"explain {_MODELS}", slow=True),
    ),
    "gallery": (
        Case("two", "gallery runs/tiny runs/noisy --hardest 2 --random 1 --k 3", screens=(80,)),
        Case("images", "gallery runs/tiny --direction i2t --random 2 --k 3"),
    ),
    "missing-positives": (
        Case("cider", "missing-positives --dataset scenes --phi cider", files="-o out/completed.qrels --table out/missing.csv", also=("-o out/completed.json", "-o out/completed.jsonl")),
    ),
    "judge": (
        Case("project", "judge 1 --model vlm --endpoint {endpoint} --workers 1 --max-requests 3 --price 1 2", part="judging"),
        Case("table", "judge pairs.csv --task pairs --dataset scenes --image-folder scenes --model vlm --endpoint {endpoint} --workers 1 --max-requests 2 -o out/answers.jsonl", part="judging"),
        Case("dry-run", "judge 1 --model vlm --dry-run", part="judging", screens=(80,), json=False),
    ),
    "train": (
        Case("list", "train --list", part=""),
        Case("list-words", "train --list 'flickr8k vse'", part="", slow=True),
        Case("small", "train small.toml --data flickr8k --device cpu --threads 1 -o models/small", part="training", keeps=("models/small/*.html",)),
    ),
    "sweep": (
        Case("losses", "sweep --list-losses", part=""),
        Case("dry-run", "sweep small.toml --data flickr8k --device cpu --set loss=triplet,sam-random --seeds 3 --dry-run -o sweeps/loss", part="training"),
        Case(
            "loss", "sweep small.toml --data flickr8k --device cpu --set loss=triplet,sam-random --seeds 2 -o sweeps/loss", part="training", keeps=("sweeps/loss/*.*",),
        ),
    ),
    "data describe": (Case("scenes", "data describe scenes", screens=(80,)), Case("jsonl", "data describe captions.jsonl", part="tables")),
    "data convert": tuple(
        Case(form, f"data convert few out/{file} --to {form}")
        for form, file in (("coco", "few.json"), ("plain", "few.csv"), ("karpathy", "karpathy.json"), ("folder", "few"))
    ),
    "data formats": (Case("all", "data formats", part=""), Case("one", "data formats coco", part="")),
    "data known": (
        Case("all", "data known", part=""),
        Case("one", "data known flickr30k", part=""),
    ),
    "analyze run": (
        Case("list", "analyze run --list", part=""),
        Case("soundness", "analyze run soundness runs/tiny"),
    ),
    "analyze granularity": (
        Case(
            "styles", f"analyze granularity --dataset scenes --by style --threads 1 {_RESAMPLES}", files="-o out/captions.csv",
            also=("-o out/captions.parquet",),
        ),
        Case("protocol", f"analyze granularity --dataset scenes --protocol brit --threads 1 {_RESAMPLES}"),
        Case("two", f"analyze granularity --dataset scenes --dataset few --threads 1 {_RESAMPLES}", slow=True),
    ),
    "analyze discriminability": (
        Case(
            "tiny", f"analyze discriminability --dataset scenes --model tiny --show 2 {_RESAMPLES}", files="-o out/dis.csv",
            also=("-o out/dis.parquet",),
        ),
        Case("two", f"analyze discriminability --dataset scenes --dataset few --model tiny --show 1 --k 5 {_RESAMPLES}", slow=True),
    ),
    "analyze labels": (
        Case(
            "runs", "analyze labels runs/tiny runs/noisy --show 4", files="-o out/review.csv --qrels out/new.qrels --leave-out out/queries.txt",
            also=("-o out/review.jsonl", "-o out/review.parquet"),
        ),
        Case("reviewed", "analyze labels --dataset scenes --apply review.csv --cleaned out/cleaned --qrels out/reviewed.qrels", part="tables"),
    ),
    "analyze polysemy": (
        Case(
            "two", f"analyze polysemy --dataset scenes --dataset few --model tiny --sizes 1,5,10 {_RESAMPLES}",
            files="-o out/curves.csv --per-image out/images.csv",
            also=("-o out/curves.parquet --per-image out/images.parquet",),
        ),
        Case(
            "clusters", f"analyze polysemy --dataset scenes --model tiny --sizes 1,5 --min-cluster-size 3 --umap-neighbours 5 --clusters --purity-by task {_RESAMPLES}", slow=True,
        ),
    ),
    "analyze difficulty": (
        Case(
            "panel", f"analyze difficulty --runs {_MODELS} --calibration self --stability 2 --show 3",
            files="-o out/levels.csv --save-thresholds out/thresholds.json",
            also=("-o out/levels.parquet",),
        ),
        Case(
            "disagree", f"analyze difficulty --runs {_MODELS} --calibration self --disagree tiny noisy --beside difficulty.parquet --show 2", part="tables", slow=True,
        ),
    ),
    "analyze filter-loss": (
        Case(
            "tiny", "analyze filter-loss difficulty.parquet --model tiny --threshold 0.7 0.8", files="-o out/loss.csv",
            also=("-o out/loss.parquet",), part="tables",
        ),
    ),
    "analyze categories": (
        Case(
            "levels", f"analyze categories runs/tiny runs/noisy --difficulty difficulty.parquet {_RESAMPLES}", files="-o out/levels.csv",
            also=("-o out/levels.parquet",), part="tables",
        ),
        Case("negatives", f"analyze categories runs/tiny --difficulty scenes/captions.parquet --by style --metrics Hit@1 --negatives 1 {_RESAMPLES}", slow=True),
    ),
    "analyze scorers": (
        Case(
            "cider", f"analyze scorers runs/tiny --phi cider --difficulty scenes/captions.parquet --by style --show 2 {_RESAMPLES}",
            files="-o out/pairs.csv",
            also=("-o out/pairs.parquet",),
        ),
    ),
    "judging new": (Case("project", "judging new Relevance --task relevance"),),
    "judging import": (
        Case("run", "judging import 2 runs/tiny --limit 4", part="judging"),
        Case("again", "judging import 1 runs/noisy --limit 12", part="judging", slow=True),
    ),
    "judging export": (
        Case(
            "qrels", "judging export 1 -o out/judgements.parquet --dataset scenes", part="judging",
        ),
        Case("answers", "judging export 1 -o out/answers.csv", part="judging"),
        Case("lines", "judging export 1 -o out/answers.jsonl", part="judging"),
        Case("label-studio", "judging export 1 -o out/tasks.json --interface out/interface.xml", part="judging"),
    ),
    "judging invite": (Case("project", "judging invite 1 --uses 2", part="judging"),),
    "judging members": (Case("project", "judging members 1", part="judging"),),
    "judging accounts": (Case("all", "judging accounts", part="judging"), Case("close", "judging accounts --close ann", part="judging")),
    "judging audit": (Case("project", "judging audit 1", part="judging"),),
    "judging status": (Case("all", "judging status", part="judging"), Case("project", "judging status 1", part="judging", screens=(80,))),
    "build recos": (Case("scenes", f"{RECOS} -o out/bench", part="builds"),),
    "build imp": (
        Case("done", IMP, files="--map", part="builds", keeps=("bench/imp/*.html", "bench/imp/*.md")),
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


def _polysemy() -> Presented:
    vectors = {part: cl.Embeddings.load(f"vectors/{part}") for part in ("images", "captions")}
    return cl.polysemy(cl.load_dataset("scenes"), **vectors, sizes=(1, 5), resamples=50)


OF_STUDIES = ("robustness", "robustness-table")
"""Printed results that need robustness studies."""
PRINTED: dict[str, Callable[[], Presented]] = {
    "run": lambda: _runs()[0],
    "description": lambda: cl.describe(cl.load_dataset("few")),
    "groups": lambda: cl.group_metrics(_runs()[0], "style", "t2i/Hit@1"),
    "comparison": lambda: cl.compare(*_runs()[:2], metrics="t2i/Hit@1", permutations=500),
    "leaderboard": lambda: cl.leaderboard(
        {(run.name, "scenes"): run for run in _runs()}, "t2i/Hit@1", permutations=500
    ),
    "robustness": lambda: cl.Robustness.load("runs/rob"),
    "robustness-table": lambda: cl.pipeline.drop_table({"rob": cl.Robustness.load("runs/rob")}),
    "gallery-curve": lambda: cl.pipeline.gallery_curve(_runs()[:1], "t2i/Hit@1", sizes=(5, 24), resamples=50),
    "explanation": lambda: cl.explain("runs/noisy", "102"),
    "failures": lambda: cl.explain("runs/noisy"),
    "difficulty": lambda: cl.analyze.read_difficulty("difficulty.parquet"),
    "polysemy": _polysemy,
    "missing-positives": lambda: cl.analyze.find_missing_positives(cl.load_dataset("few"), "cider"),
    "label-quality": lambda: cl.analyze.assess_label_quality(cl.load_dataset("scenes"), _runs()[1]),
    "granularity": lambda: cl.granularity(cl.load_dataset("few")),
    "plan": lambda: cl.planning.plan_evaluation(5000, 25000, 512, device="h200"),
}
"""Results of Python that ``print`` shows."""
