"""Every command of docs/reproduction.md on toy files: it runs, and its figures have the row's shape and units."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.extras import skip_without

skip_without("all", "torch", "transformers", "sentence_transformers", "spacy", "sqlalchemy", "eccv_caption")

from crosslens.cli.app import GROUPS, _command_of  # noqa: E402
from crosslens.train import load_training_recipe  # noqa: E402
from crosslens.values import Run, split_name  # noqa: E402
from tests.commands import Call, Outcome, call as call  # noqa: E402
from tests.encode import test_open_clip  # noqa: E402
from tests.reproduce.toy import MAKERS, STAND_INS, Toys, judge, succeed  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "reproduce"))
from reproduction import inputs, makers, needed, papers  # noqa: E402

sys.path.pop(0)

ROWS = {row.key: row.command for paper in papers() for row in paper.rows if row.command}
INPUTS = {entry.name: entry.command for entry in inputs() if entry.command.startswith("crosslens ")}
ROWS |= {f"input {name}": command for name, command in INPUTS.items()}
COMMANDS = {command: key for key, command in reversed(ROWS.items())}
"""Every different command, with the first row that has it."""
OUTPUTS = ("-o", "--output", "--page", "--plot", "--html", "--table", "--write")
WRITTEN = {
    words[at + 1]: command
    for command in COMMANDS
    for words in [shlex.split(command)]
    for at, word in enumerate(words)
    if (word == "-o" and words[1] in ("evaluate", "analyze", "robustness", "build", "synth"))
    or (words[1:3] == ["data", "convert"] and at == 3)
    if words[at + 1] not in MAKERS
}
"""What a row writes and others read."""
CHEAPER = {
    "--resamples": "20",
    "--permutations": "5",
    "--device": "cpu",
    "--threads": "1",
    "--workers": "1",
    "--umap-neighbours": "3",
}
"""What is added where the command knows the flag and the row does not have it."""
FITTING = {
    "build imp": ("--band", "0", "1", "--cluster-sizes", "2", "12"),
    "build recos": ("--k", "3", "--descriptions", "1"),
    "analyze polysemy": ("--sizes", "1..5"),
}
"""What the size of the toys requires."""
SMALLER = {"--images": "12", "--gallery": "30", "--m": "1..3", "--sizes": "1..5"}
"""Sizes that are replaced."""
TRAINED = {"dimension": 16, "word_dimension": 8, "similarity_dimension": 8, "concepts": 8}
"""Sizes of the models that are trained."""


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Toys:
    return Toys(tmp_path_factory.mktemp("toys"))


@pytest.fixture(autouse=True)
def place(toys: Toys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for one row, as deep as those of rows that others read; the cache of all; a library like open_clip."""
    folder = toys.folder / "rows" / tmp_path.name
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CROSSLENS_CACHE", str(toys.folder / "cache"))
    monkeypatch.setenv("CROSSLENS_OFFLINE", "1")
    library = types.ModuleType("open_clip")
    library.create_model_and_transforms = (  # type: ignore[attr-defined]
        lambda architecture, pretrained: (test_open_clip.Model(0), None, test_open_clip.transform)
    )
    library.get_tokenizer = lambda architecture: test_open_clip.tokenize  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "open_clip", library)


def files_read(command: str) -> list[str]:
    """Words of a command that can only be files or folders that it reads."""
    words = re.split(r"[\s=\"]+", command)
    flags = ("--data", "--images", "--folder", "--image-folder", "folder", "shards", "--candidates", "--captions")
    return [
        word
        for before, word in pairwise(words)
        if before not in OUTPUTS and ":" not in word and not word.startswith("-") and word != "coco"
        if ("/" in word and not is_metric(word))
        or (before in flags and not word.isdigit())
        or re.search(r"\.(?:json|jsonl|csv|parquet|txt|gz|npy)$", word)
    ]


def test_every_input_is_made_on_the_page() -> None:
    files_made = makers(papers())
    read = {(key, file) for key, line in ROWS.items() for command in line.split(" && ") for file in files_read(command)}
    assert len(read) > 80
    unmade = [
        (key, file) for key, file in read if not any(file == name or file.startswith(f"{name}/") for name in files_made)
    ]
    assert not unmade
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    for entry in inputs():
        assert entry.command or entry.source, entry.name
        assert f"\n| `{entry.name}` | " in page, entry.name
        assert any(needed(command, [entry.name]) for command in ROWS.values()), f"{entry.name} is read by nothing"


# From a row to words


def words_of(command: str, toys: Toys) -> list[str]:
    """The words of a command, with toy files in their places and stand-ins for the weights of models."""
    words = shlex.split(command)[1:]
    for at, word in enumerate(words):
        before = words[at - 1]
        names_no_input = before in OUTPUTS or (words[:2], at) in ((["data", "convert"], 3), (["build", "imp"], 1))
        for name in () if names_no_input else re.split(r"[\s=]", word):
            link(toys, name)
        words[at] = " ".join(stand_in(part, toys) for part in word.split(" "))
        if before in SMALLER and not (words[0] == "build" and before == "--images"):
            words[at] = SMALLER[before]
    accepted_flags = flags_of(words)
    for flag, value in CHEAPER.items():
        if flag in accepted_flags and flag not in words:
            words += [flag, value]
    fitting = FITTING.get(" ".join(words[:2]), ())
    return [*words, *(() if set(fitting) & set(words) else fitting)]


def flags_of(words: Sequence[str]) -> set[str]:
    return {flag for parameter in _command_of(list(words)).params for flag in parameter.opts}


def link(toys: Toys, name: str) -> None:
    """A toy file under its name here, or the folder that it is in: made for these tests, or what another row writes."""
    for target in (Path(name), *Path(name).parents):
        if target != Path() and target.exists():
            return
        if str(target) in MAKERS or str(target) in ("scenes", "images"):
            source = toys.path(str(target))
        elif str(target) in WRITTEN:
            source = made_by_its_row(toys, str(target))
        else:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(source)
        link(toys, "images")
        return


def made_by_its_row(toys: Toys, name: str) -> Path:
    """What the row that names this output writes, made once."""
    place = toys.folder / "written" / name.replace("/", "-")
    if not place.exists():
        place.mkdir(parents=True)
        with chdir(place):
            run_row(WRITTEN[name], toys, succeed)
    return place / name


def stand_in(word: str, toys: Toys) -> str:
    """``clip:openai/…`` as a tiny model of the same architecture."""
    kind, colon, _ = word.partition(":")
    if kind == "openclip":
        return "openclip:ViT-tiny/toy"
    if kind == "blip2":  # builds ask for a model that tells pictures apart
        return "tiny"
    if colon and kind in STAND_INS:
        return toys.model(kind)
    if kind == "path":  # an earlier part of the row has trained it
        return word
    assert not re.fullmatch(r"\w+:[\w-]+/[\w.-]+", word), f"{word}: no stand-in for models of this kind"
    return word


def with_small_recipe(words: list[str], toys: Toys) -> list[str]:
    """The same recipe with smaller layers, and a tiny model where it adapts one."""
    recipe = load_training_recipe(words[1])
    sizes = {name: size for name, size in TRAINED.items() if name in recipe.model_settings}
    lines = [f'base = "{words[1]}"', "[model]", *(f"{name} = {size}" for name, size in sizes.items())]
    if "encoder" in recipe.data:
        lines += ["[data]", f'encoder = "{stand_in(str(recipe.data["encoder"]), toys)}"']
    Path("small.toml").write_text("\n".join(lines) + "\n")
    return ["train", "--recipe", "small.toml", *words[2:], "--epochs", "1", "--batch-size", "10"]


def run_row(command: str, toys: Toys, call: Callable[..., Any], *more: str) -> Any:
    """The row's commands, one after the other; people judge before results of a project are asked for."""
    outcome = None
    for part in command.split(" && "):
        if part.startswith("cp -r "):
            *sources, target = shlex.split(part)[2:]
            for source in sources:
                link(toys, source)
                shutil.copytree(source, Path(target) / Path(source).name)
            continue
        words = words_of(part, toys)
        if words[:2] in (["judging", "status"], ["judging", "export"]):
            folder = Path(words[words.index("--folder") + 1])
            if not folder.exists():  # an earlier row makes the project
                judging_row = next(
                    row for row in ROWS.values() if "judging new" in row and f"--folder {folder} " in row
                )
                run_row(judging_row.rpartition(" && ")[0], toys, call)
            judge(folder)
        if words[0] == "train":
            words = with_small_recipe(words, toys)
        if "ID" in words:
            words[words.index("ID")] = a_failure(words[1])
        outcome = call(*words, *(flag for flag in more if flag in flags_of(words)))
        if isinstance(outcome, Outcome):
            assert outcome.code == 0, f"{shlex.join(words)}\n{outcome.err}"
    return outcome


def a_failure(folder: str) -> str:
    hits = next(values for name, values in Run.load(folder).values.items() if split_name(name)[1] == "Hit@1")
    return next(query for query, hit in zip(hits.query_ids, hits.values, strict=True) if not hit)


# Units and shapes

SHARES = ("share", "applied_share", "changed_share", "main_share", "precision", "recall", "f1")
"""What JSON calls shares, wherever it occurs; text shows them in percent."""
NAMES = {
    "FIVE Table 1": ("pearson", "spice", "cider", "non-gt"),
    "FIVE Table 2": ("Rsum", "i2t/Hit@1"),
    "FIVE Table 3": ("Rsum", "i2t/Hit@1"),
    "BRIT Table 1": ("adjectives", "complement_phrases", "determiners", "cardinals", "concept_depth", "characters"),
    "BRIT Table 2": ("i2t/Hit@1", "t2i/Hit@1"),
    "BRIT Table 3": ("i2t/CappedRecall@1", "i2t/CappedRecall@10", "i2t/Rsum[capped]"),
    "BRIT Table 4": ("t2i/Rsum", "char_swap", "shuffle_trigrams", "drop"),
    "BRIT Table 5": ("decreased", "increased", "unchanged"),
    "EXPL Table 1": ("t2t/Hit@1", "t2t/MRR", "t2t/MedR", "t2t/Fails"),
    "EXPL Table 2": ("labels", "colour", "details", "successful_alternative"),
    "EXPL Table 3": ("CA", "NonCommonSimilarity", "CE", "SD[binary]", "matched_synsets"),
    "EXPL Table 4": ("antonym", "antonym[any]", "color_all", "color_in", "size", "lower", "higher"),
    "EXPL Table 5": ("Hit@1 before", "Hit@10 after"),
    "EXPL Figure 4": ("CA", "CE", "SD"),
    "EXPL Figure 9": ("ratings", "causes"),
    "RECOS Table 1": ("too vague", "too sharp", "quota"),
    "RECOS Table 3": ("t2i/Hit@1",),
    "RECOS Figure 6": ("i2t/Hit@1", "colour"),
    "IMP Table 1": ("agreement", "fits", "known_answers", "distractor"),
    "IMP Table 2": ("AUPRC", "easy", "medium", "hard"),
    "IMP Table 3": ("i2t/Hit@1", "i2t/MedR[all]", "i2t/mAP@R", "t2i/AP"),
    "IMP Table 4": ("Hit@5", "MedR[all]", "denominator"),
    "IMP Table 7": ("i2t/Hit@1", "i2t/MedR[all]", "i2t/mAP@R", "t2i/AP"),
    "IMP Table 11": ("distributions", "vit-b-32", "vqa", "hard"),
    "IMP Figure 3": ("image_similarity", "curves"),
    "IMP Figure 6": ("stability", "left_out", "levels"),
    "IMP Figure 9": ("disagreements", "convnext", "eva02"),
}
"""What the output of a row must name, of those whose figures are in print."""


def check_units(value: Any, key: str = "", metric: str = "") -> int:
    """Shares are from 0 to 1, medians of ranks from 1, wherever they are; how many figures were looked at.

    ``metric`` is the nearest name of a metric above; differences of it are not its values.
    """
    if isinstance(value, Mapping):
        parts = {
            name: part
            for name, part in value.items()
            if "differ" not in name and ("drop" not in name or name == "drops")
        }
        if len(parts) < len(value):  # the interval is that of the difference
            parts = {name: part for name, part in parts.items() if name not in ("low", "high")}
        if {"drop", "before", "percent"} <= set(value) and value["before"]:
            assert value["percent"] == pytest.approx(100 * value["drop"] / value["before"])
        inner = str(value["metric"]) if "metric" in value else key if is_metric(key) else metric
        return sum(check_units(part, str(name), inner) for name, part in parts.items())
    if isinstance(value, list):
        return sum(check_units(part, key, metric) for part in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    name = metric if metric and key in ("mean", "low", "high", "before", "after") else key
    name = re.sub(" (before|after)$", "", name)
    if "MedR" in name:
        assert value >= 1, (name, value)
        return 1
    if name in SHARES or is_metric(name):
        assert 0 <= value <= 1, (name, value)
        return 1
    return 0


def is_metric(name: str) -> bool:
    return bool(re.fullmatch(r"(?:\w2\w/)?(?:Hit|MRR|AP|mAP|CappedRecall|AUPRC|MedR)(?:@\w+)?(?:\[\w+\])?", name))


def check_pages(command: str) -> None:
    """Figures and pages are there and hold something; tables have rows."""
    words = shlex.split(command)
    for flag, file in pairwise(words):
        if flag in OUTPUTS and file.endswith((".html", ".csv", ".parquet")):
            content = Path(file).read_bytes()
            assert len(content) > 200, file
            if file.endswith(".csv"):
                assert pl.read_csv(file).height


LONG = {
    command
    for command, key in COMMANDS.items()
    if key in ("IMP Figure 2", "IMP Figure 23", "IMP Figure 24", "IMP Figure 25", "EXPL Table 8", "EXPL Table 10",
               "EXPL Table 12", "EXPL Table 13")
}  # fmt: skip
"""UMAP compiles itself for half a minute; the others differ from a quick row in a name or in an output."""


def program(command: str) -> str:
    """What is called, without its options: ``show``, ``analyze difficulty``."""
    first, second, *_ = [*shlex.split(command)[1:], "", ""]
    return f"{first} {second}" if re.fullmatch(r"[a-z]+", second) and first in GROUPS else first


QUICK = ("agreement", "analyze", "curve", "evaluate", "judging", "perturb", "robustness", "train")
FAST = {
    group: command
    for command in COMMANDS
    for group in [program(command).split()[0]]
    if command not in LONG and group in QUICK
}.values()
"""One of each way to the figures; that the others are commands with options that exist is a test of the pages."""


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, id=key, marks=() if command in FAST else pytest.mark.slow)
        for command, key in COMMANDS.items()
    ],
)
def test_command(command: str, toys: Toys, call: Call) -> None:
    outcome = run_row(command, toys, call, "--json")
    key = COMMANDS[command]
    assert not [name for name in NAMES.get(key, ()) if name not in outcome.out], outcome.out[:2000]
    if outcome.out.startswith(("{", "[")):
        checked = check_units(outcome.json)
        assert checked or shlex.split(command.split(" && ")[-1])[1] not in ("evaluate", "show", "caption-sets")
    check_pages(command)
    if " scorers " in command:  # IMP prints a cosine and a probability
        assert all(abs(row["mean"]) <= 1 for row in outcome.json["distributions"])
    if " difficulty " in command:
        assert sum(level["share"] for level in outcome.json["levels"].values()) == pytest.approx(1)
    if program(command.split(" && ")[-1]) == "train":
        test = outcome.json["test"]
        assert test["Rsum"] == pytest.approx(
            100 * sum(value for name, value in test.items() if re.search(r"/Hit@(1|5|10)$", name))
        )


@pytest.mark.slow  # test_formatting has the same numbers
def test_text_shows_percent(toys: Toys, call: Call) -> None:
    link(toys, "runs/clip")
    stored = call("show", "runs/clip", "--json").json["metrics"]["i2t/Hit@5"]["mean"]
    line = next(line for line in call("show", "runs/clip").out.splitlines() if line.startswith("Hit@5"))
    assert line.split()[1] == f"{100 * stored:.1f}"
    command = ROWS["IMP Figure 7"].removesuffix(" --write hardest.html")
    shares = run_row(command, toys, call, "--json").json["levels"]
    row = run_row(command, toys, call).out.splitlines()[1]
    assert [f"{100 * level['share']:.1f}" for level in shares.values()] == re.findall(r"(\d+\.\d) +\[", row)


def test_every_model_of_the_page_has_a_class() -> None:
    """Of a name on the hub, the type of model that its files state; one that no class loads could not run."""
    from transformers.models.auto import modeling_auto
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    types = {
        "openai/clip-vit-large-patch14": "clip", "openai/clip-vit-base-patch32": "clip",
        "kakaobrain/align-base": "align", "Salesforce/blip2-itm-vit-g": "blip-2", "facebook/dinov2-base": "dinov2",
        "llava-hf/llava-1.5-7b-hf": "llava", "google/pegasus-xsum": "pegasus", "t5-small": "t5",
    }  # fmt: skip
    model_types = {name for command in COMMANDS for kind, name in re.findall(r"(?<=[ \"])(\w+):([\w./-]+)", command)
             if kind not in ("openclip", "path") and not name.startswith(("paraphrase-", "all-MiniLM"))}  # fmt: skip
    assert model_types <= set(types), model_types - set(types)
    assert all(types[name] in CONFIG_MAPPING_NAMES for name in model_types)
    asked = {types[name] for command in COMMANDS for name in re.findall(r"vqa:([\w./-]+)", command)}
    assert asked
    assert asked <= set(modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES)
