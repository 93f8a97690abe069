"""A level for every pair by the votes of a panel, and the table that keeps it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.options import DEFAULT_LEVELS, DIFFICULTY
from crosslens.analyze.pair_difficulty.thresholds import Calibration, check_threshold
from crosslens.analyze.pair_scores import ImageCaptionPairs, rows_of, write_table
from crosslens.core import Cell, Figure, InputError, Presented, Section, Shares, Table, UsageError, argument, reading
from crosslens.data import existing_file, format_suffix
from crosslens.metrics import format_count
from crosslens.statistics import Estimate, share_of_sums
from crosslens.storage import Array, json_form, parse_json, require_entries
from crosslens.values import Dataset, Relevance

_OF_ONE_MODEL = "easy=all hard=none"
_RANGE = re.compile(r"(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?(%?)")
_FORM = 'such as "easy=5-6 medium=2-4 hard=0-1", "easy=75-100% hard=0-74%" or "easy=all medium=rest hard=none"'


def _wrong(problem: str) -> UsageError:
    return UsageError(problem, fix=f"give every number of votes one level, {_FORM}", option="mapping")


@dataclass(frozen=True)
class Levels:
    """Names of levels in the order in which they were written, each with its range of votes, both ends included.

    A range is the fewest and the most votes, and whether they are shares of the votes in percent; None takes all votes
    that no other level has.
    """

    text: str
    ranges: Mapping[str, tuple[Fraction, Fraction, bool] | None]

    @staticmethod
    def parse(text: str | None = None) -> Levels:
        """From ``NAME=VOTES`` parts, where VOTES is a number, a range, a share in percent, all, none or rest."""
        text = DEFAULT_LEVELS if text is None else " ".join(str(text).replace(",", " ").split())
        ranges: dict[str, tuple[Fraction, Fraction, bool] | None] = {}
        for part in text.split():
            name, _, votes = part.partition("=")
            match = _RANGE.fullmatch({"all": "100%", "none": "0%"}.get(votes, votes))
            if not name or not (match or votes == "rest"):
                raise _wrong(f"{part!r} in the mapping is not NAME=VOTES")
            if name in ranges:
                raise _wrong(f"the mapping names {name!r} twice")
            if match is None:
                if None in ranges.values():
                    raise _wrong(f"both {next(key for key in ranges if ranges[key] is None)} and {name} are the rest")
                ranges[name] = None
                continue
            fewest, most = Fraction(match[1]), Fraction(match[2] or match[1])
            if fewest > most:
                raise _wrong(f"{part!r} in the mapping begins above its end")
            ranges[name] = fewest, most, bool(match[3])
        if not ranges:
            raise _wrong("the mapping is empty")
        return Levels(text, ranges)

    @property
    def count_votes(self) -> bool:
        """Whether a level is a number of votes, not a share of them: then a panel of another size has other levels."""
        return any(votes is not None and not votes[2] for votes in self.ranges.values())

    def names_of(self, possible: Sequence[tuple[int, int]]) -> dict[tuple[int, int], str]:
        """The level of each (votes, models); raises for votes with no level or with two, and for ranges past them."""
        largest = max(votes for votes, _ in possible)
        ranges = {name: votes for name, votes in self.ranges.items() if votes is not None}
        for name, (_, most, percent) in ranges.items():
            if most > (100 if percent else largest):
                limit = "100%" if percent else f"{largest}, the most votes of the panel"
                raise _wrong(f"{name} in the mapping {self.text!r} goes past {limit}")
        level_of = {}
        for votes, models in possible:
            share = Fraction(100 * votes, models)
            names = [
                name
                for name, (least, most, percent) in ranges.items()
                if least <= (share if percent else votes) <= most
            ]
            names = names or [name for name, votes_of in self.ranges.items() if votes_of is None]
            if len(names) != 1:
                count = f"{votes} of {models} votes"
                fault = f"{count} belong to both {names[0]} and {names[1]}" if names else f"{count} belong to no level"
                raise _wrong(f"{fault} of the mapping {self.text!r}")
            level_of[votes, models] = names[0]
        return level_of


_COLUMNS: Mapping[str, Any] = {
    "caption": pl.String, "image": pl.String, "votes": pl.Int64, "models": pl.Int64, DIFFICULTY: pl.String
}  # fmt: skip
_FACTS = "crosslens/difficulty"
"""Key of the facts in the metadata of the Parquet file."""


@dataclass(frozen=True, eq=False)
class Difficulty(Presented):
    """The level of every pair (``table``), and what it was decided by; prints as the share of each level.

    ``table`` has a row per caption (per relevant pair, where a caption has several images): ``caption``, ``image``,
    ``votes`` (models that say it matches), ``models`` (models that voted on it), ``difficulty``, and of every model
    ``score[NAME]`` and ``vote[NAME]`` (1: it says that the pair matches, or 0; of a tie-breaker also where not asked).
    ``thresholds`` are those the models voted by; ``mapping`` names the levels in order.
    """

    table: pl.DataFrame = field()
    dataset: str = ""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    mapping: str = Levels.parse().text
    tie_breaker: str | None = None
    names: tuple[str, ...] = ()
    """The levels of a table that does not say how they came about; otherwise those of the mapping."""

    def __len__(self) -> int:
        return self.table.height

    @property
    def title(self) -> str:
        return f"Difficulty of pairs: {self.dataset}"

    def sections(self) -> Iterator[Section]:
        """The share of each level, and the thresholds."""
        thresholds = (thresholds_table(self, {}),) if self.thresholds else ()
        yield Section("", (shares_chart([self]), shares_table([self]), *thresholds))

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels, in the order of the mapping: easiest first."""
        return self.names or tuple(Levels.parse(self.mapping).ranges)

    @property
    def models(self) -> tuple[str, ...]:
        """The models whose scores the table holds, the tie-breaker too."""
        return tuple(name[len("score[") : -1] for name in self.table.columns if name.startswith("score["))

    @property
    def panel(self) -> tuple[str, ...]:
        """The models that vote on every pair."""
        return tuple(model for model in self.models if model != self.tie_breaker)

    def model_named(self, model: str | None = None) -> str:
        """A model whose scores the table holds; it may be left out where there is one."""
        if model is None and len(self.models) == 1:
            return self.models[0]
        if model is None or model not in self.models:
            problem = f"no scores of {model!r}" if model else f"scores of {len(self.models)} models"
            fix = f"pass {argument('model')} with one of: {', '.join(self.models) or 'none'}"
            raise UsageError(f"the table has {problem}", fix=fix, option="model")
        return model

    def scores(self, model: str) -> Array:
        """A model's score of every row."""
        return self.table[f"score[{model}]"].to_numpy()

    def matches(self, model: str) -> Array:
        """Whether a model says that each row matches."""
        if f"vote[{model}]" in self.table.columns:
            return self.table[f"vote[{model}]"].to_numpy().astype(np.bool_)
        if model not in self.models:
            raise UsageError(f"no model {model!r} in the table", fix=f"name one of {', '.join(self.models) or 'none'}")
        if model not in self.thresholds:
            raise UsageError(f"the table does not say how {model} voted", fix="measure the difficulty again")
        return self.scores(model) >= self.thresholds[model]

    def counts(self) -> dict[str, int]:
        """How many rows have each level."""
        labels = self.table[DIFFICULTY].to_list()
        return {level: labels.count(level) for level in self.levels}

    def shares(self, level: float = 0.95) -> dict[str, Estimate]:
        """The share of each level with its interval over images."""
        _, images = np.unique(self.table["image"].to_numpy(), return_inverse=True)
        sizes = np.bincount(images)
        labels = self.table[DIFFICULTY].to_numpy()
        return {
            name: share_of_sums(np.bincount(images, labels == name, len(sizes)), sizes, level) for name in self.levels
        }

    def hardest(self, count: int | None = None) -> pl.DataFrame:
        """The rows with the fewest votes first; of equal votes, those furthest below the thresholds.

        ``margin`` is the mean over models of score less threshold, in standard deviations of the model's scores here.
        """
        if not {"votes", "models"} <= set(self.table.columns):
            raise InputError("the table has no votes", expected="columns votes and models", fix="measure it again")
        margins = np.zeros(len(self))
        calibrated = [model for model in self.models if model in self.thresholds]
        for model in calibrated:
            scores = self.scores(model)
            margins += (scores - self.thresholds[model]) / (float(scores.std()) or 1.0) / len(calibrated)
        table = self.table.with_columns(pl.Series("margin", margins))
        return table.sort("votes", "margin", "caption", "image").head(self.table.height if count is None else count)

    def disagreements(self, first: str, second: str, levels: Difficulty | None = None) -> dict[str, pl.DataFrame]:
        """The rows that only ``first`` of the two models matches, and those that only ``second`` does, hardest first.

        No model of a panel matches a pair that the panel calls hard. ``levels`` are those of another panel over the
        same pairs, so that two further models can be compared on its hard ones (IMP, Figure 9).
        """
        if first == second:
            raise UsageError(f"{first!r} is compared with itself", fix="name two models", option="disagree")
        votes = {first: self.matches(first), second: self.matches(second)}
        judges = levels or self
        ids = ["caption", "image"]
        ordered = judges.hardest().select(*_COLUMNS)
        models = self.table.select(*ids, pl.col(r"^(score|vote)\[.*$"))
        if missing := models.join(ordered, on=ids, how="anti").height:
            problem = f"{missing:,} of {len(self):,} pairs have no level in {judges.dataset}"
            raise InputError(problem, fix="use the levels of the same dataset")
        return {
            model: ordered.join(
                models.filter(pl.Series(votes[model] & ~votes[other])), on=ids, how="inner", maintain_order="left"
            )
            for model, other in ((first, second), (second, first))
        }

    def as_dict(self) -> dict[str, Any]:
        counts = self.counts()
        shares = {
            name: {"pairs": counts[name], "share": share.mean, "low": share.low, "high": share.high}
            for name, share in self.shares().items()
        }
        return json_form({**self._facts(), "pairs": len(self), "levels": shares})

    def write(self, path: str | Path) -> Path:
        """Write the table as .parquet, which keeps the thresholds too, or as .csv; an existing file is replaced."""
        return write_table(self.table, path, {_FACTS: json.dumps(self._facts(), ensure_ascii=False)})

    def _facts(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "models": list(self.panel),
            "thresholds": dict(self.thresholds),
            "mapping": self.mapping,
            "tie_breaker": self.tie_breaker,
        }


def read_difficulty(path: str | Path) -> Difficulty:
    """Read what :meth:`Difficulty.write` wrote.

    Args:
        path: Its file, or any table with the columns caption, image and difficulty.
    """
    path = existing_file(path)
    expected = "a table of levels, as crosslens analyze difficulty -o writes it"
    with rows_of(path, ("caption", "image", DIFFICULTY), expected, "check the path") as (table, _):
        kinds = {name: kind for name, kind in _COLUMNS.items() if name in table.columns}
        for name in table.columns:
            if name.startswith(("score[", "vote[")):
                kinds[name] = pl.Float64 if name.startswith("score[") else pl.Int64
        try:
            table = table.with_columns(pl.col(name).cast(kind) for name, kind in kinds.items())
        except pl.exceptions.PolarsError as error:
            raise InputError(f"not a table of levels: {error}", fix="write it again") from error
    facts: dict[str, Any] = {}
    stored = pl.read_parquet_metadata(path).get(_FACTS) if format_suffix(path) == ".parquet" else None
    if stored is not None:
        with reading(path):
            facts = parse_json(stored)
        require_entries(facts, {"dataset": str, "thresholds": dict, "mapping": str}, path)
        require_entries(facts["thresholds"], dict.fromkeys(facts["thresholds"], float), path, inside="thresholds")
    level_names = tuple(str(name) for name in table[DIFFICULTY].unique(maintain_order=True) if name is not None)
    usual = tuple(Levels.parse().ranges)
    return Difficulty(
        table,
        str(facts.get("dataset", path.stem)),
        {str(name): float(value) for name, value in facts.get("thresholds", {}).items()},
        facts.get("mapping", ""),
        facts.get("tie_breaker"),
        () if "mapping" in facts else usual if set(level_names) <= set(usual) else level_names,
    )


def difficulty(
    dataset: Dataset,
    scores: Mapping[str, Any],
    thresholds: Mapping[str, float],
    *,
    tie_breaker: str | None = None,
    mapping: str | None = None,
    relevance: Relevance | None = None,
) -> Difficulty:
    """How hard each caption's pair with its image is for a panel of models.

    A pair that every model matches is easy, one that none does is hard, the rest is medium.

    Args:
        dataset: Images and their captions.
        scores: A matrix of images × captions per model.
        thresholds: The score from which on each model says that a pair matches (see :func:`match_threshold`).
        tie_breaker: One of the models. It is not part of the panel, which must then be of an even size; where the panel
            disagrees, its vote is added to the others'.
        mapping: Other levels: ``"easy=5-6 medium=2-4 hard=0-1"`` counts votes, and shares are written in percent.
        relevance: The pairs where a caption has several images: the table then has a row per pair.
    """
    pairs = ImageCaptionPairs.relevant(dataset, relevance)
    return assign_levels(
        [dataset.caption_ids[row] for row in pairs.captions],
        [dataset.image_ids[row] for row in pairs.images],
        {model: pairs.from_matrix(matrix, model, finite=True) for model, matrix in scores.items()},
        thresholds,
        dataset=dataset.name,
        tie_breaker=tie_breaker,
        mapping=mapping,
    )


def assign_levels(
    captions: Sequence[str],
    images: Sequence[str],
    scores: Mapping[str, Array],
    thresholds: Mapping[str, float],
    *,
    dataset: str = "",
    tie_breaker: str | None = None,
    mapping: str | None = None,
) -> Difficulty:
    """The levels of pairs whose scores are known: one score per pair and model."""
    if not scores:
        raise UsageError("no models", fix="pass the scores of at least one model", option="scores")
    for model in scores:
        if model not in thresholds:
            fix = f"add it to the thresholds (there are: {', '.join(map(str, thresholds)) or 'none'})"
            raise UsageError(f"no threshold for {model}", fix=fix, option="thresholds")
    checked = {model: check_threshold(thresholds[model], model) for model in scores}
    matches = {model: values >= checked[model] for model, values in scores.items()}
    # One model votes for all or for none: no pair could be medium.
    levels = Levels.parse(_OF_ONE_MODEL if mapping is None and len(matches) == 1 else mapping)
    votes, voted = count_votes(matches, tie_breaker)
    panel = len(matches) - (tie_breaker is not None)
    codes = level_codes(votes, voted, levels, panel, tie_breaker=tie_breaker is not None)
    columns: dict[str, Any] = {
        "caption": list(captions),
        "image": list(images),
        "votes": votes,
        "models": voted,
        DIFFICULTY: np.array(tuple(levels.ranges), object)[codes],
        **{f"score[{model}]": np.asarray(values, np.float64) for model, values in scores.items()},
        **{f"vote[{model}]": matching.astype(np.int64) for model, matching in matches.items()},
    }
    return Difficulty(pl.DataFrame(columns, schema_overrides=_COLUMNS), dataset, checked, levels.text, tie_breaker)


def count_votes(matches: Mapping[str, Array], tie_breaker: str | None = None) -> tuple[Array, Array]:
    """How many models say that each pair matches, and how many were asked.

    The tie-breaker is asked where the panel, of an even size, is not unanimous.
    """
    if tie_breaker is not None and tie_breaker not in matches:
        fix = f"name one of {', '.join(matches)}"
        raise UsageError(f"the tie-breaker {tie_breaker!r} is no model of the panel", fix=fix, option="tie_breaker")
    panel = [votes for model, votes in matches.items() if model != tie_breaker]
    if not panel:
        raise UsageError("no model in the panel besides the tie-breaker", fix="add models", option="scores")
    votes: Array = np.asarray(np.sum(panel, axis=0, dtype=np.int64))
    voters = np.full(len(votes), len(panel), np.int64)
    if tie_breaker is None:
        return votes, voters
    if len(panel) % 2:
        raise UsageError(
            f"besides the tie-breaker the panel has an odd number of models: {len(panel)}",
            fix=f"use an even number of models besides it, or leave out {argument('tie_breaker')}",
            option="tie_breaker",
        )
    disagree = (votes > 0) & (votes < len(panel))
    return votes + (disagree & matches[tie_breaker]), voters + disagree


def level_codes(votes: Array, voters: Array, levels: Levels, panel: int, *, tie_breaker: bool) -> Array:
    """The position in the mapping of every pair's level, by its votes; all that the panel could cast must have one."""
    possible = [(count, panel) for count in range(panel + 1)]
    if tie_breaker:  # a unanimous panel does not ask it
        possible = [(0, panel), (panel, panel), *((count, panel + 1) for count in range(1, panel + 1))]
    positions = {name: position for position, name in enumerate(levels.ranges)}
    codes = np.zeros(len(votes), np.int64)
    for (count, models), name in levels.names_of(possible).items():
        codes[(votes == count) & (voters == models)] = positions[name]
    return codes


def shares_chart(results: Sequence[Difficulty]) -> Shares:
    """A strip per dataset, divided among the levels."""
    levels = tuple(dict.fromkeys(level for result in results for level in result.levels))
    sizes = sorted({len(result.panel) for result in results if result.panel})
    panel = f"votes of {' or '.join(map(str, sizes))} models" if sizes else "votes of a panel"
    mappings = dict.fromkeys(result.mapping for result in results if result.mapping)
    counts = [result.counts() for result in results]
    return Shares(
        title="Difficulty of pairs", about=f"share of pairs, {panel}; {'; '.join(mappings)}".rstrip("; "),
        groups=tuple(f"{result.dataset} ({format_count(len(result), 'pair')})" for result in results), levels=levels,
        counts=tuple(tuple(count_of.get(level, 0) for level in levels) for count_of in counts),
        heading="dataset", noun="pairs",
    )  # fmt: skip


def shares_table(results: Sequence[Difficulty]) -> Table:
    """A row per dataset, a column per level with its interval."""
    levels = list(dict.fromkeys(level for result in results for level in result.levels))
    rows: list[tuple[Cell, ...]] = []
    for result in results:
        shares = result.shares()
        estimates = [shares.get(level) for level in levels]
        cells = (None if share is None else Figure.percent(share.mean, share.low, share.high) for share in estimates)
        rows.append((result.dataset, len(result), *cells))
    first = results[0]
    voters = format_count(len(first.panel), "model") if first.panel else "a panel"
    votes = f" Votes of {voters}: {first.mapping}." if first.mapping else ""
    return Table(
        ("dataset", "pairs", *levels), tuple(rows), "lr" + "l" * len(levels),
        notes=(f"In percent of pairs, with 95% intervals over images.{votes}",),
    )  # fmt: skip


def thresholds_table(result: Difficulty, calibrations: Mapping[str, Calibration]) -> Table:
    """A row per model: its threshold, what that reached on the calibration set, and how many pairs match here."""
    rows: list[tuple[Cell, ...]] = []
    for model, threshold in result.thresholds.items():
        fit = calibrations.get(model)
        reached = (None, None, None) if fit is None else (fit.precision, fit.recall, fit.f1)
        matches = float(np.mean(result.matches(model))) if len(result) else None
        rows.append(
            (model_label(model, result), Figure(threshold, digits=4), *map(Figure.percent, (*reached, matches)))
        )
    notes = ["matches: the share of pairs here that reach the threshold."]
    origins: dict[str, list[str]] = {}
    for model, calibration in calibrations.items():
        origin = "given as numbers"
        if calibration.dataset:
            kind = f"in batches of {calibration.batch_size}" if calibration.batch_size else "of all images and captions"
            pairs = format_count(calibration.matching, "matching pair")
            origin = f"of highest F1 between {pairs} and {calibration.mismatches:,} mismatches {kind}"
        origins.setdefault(origin, []).append(model)
    for origin, models in origins.items():
        whose = "Thresholds" if len(origins) == 1 else f"Threshold of {', '.join(models)}"
        datasets = dict.fromkeys(name for model in models if (name := calibrations[model].dataset))
        notes.append(f"{whose} {origin}{' on ' if datasets else ''}{', '.join(datasets)}.")
    if result.tie_breaker is not None:
        notes.append(f"{result.tie_breaker} is asked where the panel disagrees; its vote is added to the panel's.")
    header = ("model", "threshold", "precision", "recall", "F1", "matches")
    return Table(header, tuple(rows), "lrrrrr", notes=tuple(notes))


def model_label(model: str, result: Difficulty) -> str:
    """The name of a model, marked where it is the tie-breaker."""
    return f"{model} (tie-breaker)" if model == result.tie_breaker else model
