"""Clean captions: repair each by all rules in their order, drop what cannot be repaired, and say why."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.build.imp.cleaning import characters, titles
from crosslens.build.imp.cleaning.duplicates import near_duplicates
from crosslens.build.imp.cleaning.words import DIGIT, FUNCTION_WORDS, LETTER, NON_LATIN, count_words, words_of
from crosslens.build.settings import CleaningSettings
from crosslens.core import (
    PAGE_WIDTH,
    Figure,
    Grid,
    InputError,
    Presented,
    Section,
    Table,
    UsageError,
    argument,
    printable_line,
)
from crosslens.data import format_suffix, read_lines, read_table, writing_bytes
from crosslens.engine import Progress, shown_progress, stage
from crosslens.language import ANY_LANGUAGE, COMMON_LANGUAGES, language_identifier, parse_texts, require_texts, word_set
from crosslens.metrics import format_count
from crosslens.storage import for_spreadsheets, parquet_bytes

_CODE = re.compile(
    r"</?\w+[^<>]*=|\{[^{}]*[:;][^{}]*\}|\bfunction\s*\(|\bvar \w+\s*=|=>|\$\(|&&|\bnull\b.*\bundefined\b|\bpx;|</\w+>"
    r"|\};|<\?php|%>|\[/?\w+\s[^\]]*=[^\]]*\]|\bon(?:click|load|error)\s*="
)
_ADVERTISING = re.compile(
    r"% off|\b(?:free shipping|add to (?:cart|basket|wish ?list)|click (?:here|on the|to)|buy (?:now|online)"
    r"|shop (?:now|online)|(?:best|lowest|low|cheap|great) prices?\b|all rights reserved|terms (?:of use|of service"
    r"|and conditions)|privacy policy|(?:uses?|accept(?: all)?) cookies|page not found|error 404|404 error"
    r"|image (?:is )?not available|no image available|no photo description|(?:may|might) be an image of"
    r"|image may contain|may contain:|enable javascript|log ?in to|sign (?:up|in) (?:to|for|now)|subscribe (?:to|now)"
    r"|coming soon|default (?:image|thumbnail)|placeholder image|money[- ]back|in stock|order (?:now|online|today)"
    r"|save \d+ ?%|lorem ipsum|free delivery|(?:hotels?|flights?) deals|customer reviews|(?:visit )?our (?:website"
    r"|web ?site|online store|store|shop|range)|call us|contact us|download (?:the|this|free|now|our)|get (?:a"
    r"|your) free|limited time|this (?:image|photo|picture|video) (?:has been|is no longer|was)"
    r"|high quality (?:photos?|images?|pictures?|prints?)\b|gift ideas?\b|(?:photos|images|pictures) and (?:images"
    r"|pictures|photos|premium))(?!\w)"
)
_TIME_WORDS = word_set(
    """january february march april may june july august september october november december jan feb mar apr jun jul aug
    sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri
    sat sun am pm a.m p.m utc gmt est pst cet st nd rd th of at on the to from and until daily hours hrs hr min sec
    posted updated date time today yesterday page no vol photo image img pic"""
)
_NUMBER = re.compile(r"[\d.,:/x×-]*\d[\d.,:/x×-]*(?:st|nd|rd|th|am|pm|px|cm|mm|kb|mb|h)?", re.IGNORECASE)
_KEYWORD_MARKS = re.compile(r"\s*[,;|/·•]\s*|\s+[-–]\s+")
_KEYWORDS, _KEYWORD_WORDS = 5, 2.5
_REPETITION_WORDS = 5
_SIGN = re.compile(r"[^\W_]")


def is_keyword_list(text: str) -> bool:
    """Whether a text is a list of key words, not a sentence."""
    parts = [part for part in _KEYWORD_MARKS.split(text) if part]
    if len(parts) < _KEYWORDS:
        return False
    words = [word for part in parts for word in words_of(part)]
    return count_words(text) <= _KEYWORD_WORDS * len(parts) and FUNCTION_WORDS.isdisjoint(words)


def repeated_share(text: str) -> float:
    """The share of a text's content words that are repetitions; 0 of a short text."""
    words = [word for word in words_of(text) if word not in FUNCTION_WORDS]
    return 1 - len(set(words)) / len(words) if len(words) >= _REPETITION_WORDS else 0.0


def missing_part(pos: Sequence[str], tags: Sequence[str]) -> str | None:
    """Which part of speech a parsed caption lacks, as a reason; None where it has a noun and a verb or an adjective."""
    if not {"NOUN", "PROPN"} & set(pos):
        return "no_noun"
    has_verb = any(tag.startswith("VB") for tag in tags) or bool({"VERB", "AUX", "ADJ"} & set(pos))
    return None if has_verb else "no_verb_or_adjective"


REPAIRS = (*characters.REPAIRS, *titles.REPAIRS, *characters.LAST_REPAIRS)
"""What changes a text. They are applied in this order, again and again until none changes it any more."""

TOO_LONG = "too_long"

Check = Callable[[str, CleaningSettings], bool]
CHECKS: dict[str, tuple[str, Check]] = {
    TOO_LONG: (
        "It has more characters than a caption, before any repair (setting maximum_characters).",
        lambda text, settings: len(text) > settings.maximum_characters,
    ),
    "empty": ("Nothing is left but punctuation.", lambda text, _: _SIGN.search(text) is None),
    "garbled": (
        "Characters were lost before the text came here.",
        lambda text, _: "\ufffd" in text or "????" in text,
    ),
    "code": ("Code or markup remains that is no sentence.", lambda text, _: _CODE.search(text) is not None),
    "advertising": (
        "It advertises, or speaks about the page instead of the picture.",
        lambda text, _: _ADVERTISING.search(text.lower()) is not None,
    ),
    "numbers": (
        "It consists of numbers, dates and times.",
        lambda text, _: (
            DIGIT.search(text) is not None
            and all(word in _TIME_WORDS or _NUMBER.fullmatch(word) for word in words_of(text))
        ),
    ),
    "too_few_words": (
        "It has fewer words than asked for (setting minimum_words).",
        lambda text, settings: count_words(text) < settings.minimum_words,
    ),
    "keyword_list": ("It is a list of key words, not a sentence.", lambda text, _: is_keyword_list(text)),
    "repetition": (
        "Too many of its content words are repetitions (setting maximum_repetition).",
        lambda text, settings: repeated_share(text) > settings.maximum_repetition,
    ),
    "shouting": (
        "It is all in capitals (only with the setting capitals: drop).",
        lambda text, settings: settings.capitals == "drop" and characters.is_shouted(text),
    ),
}
"""What drops a text, once it is repaired, and when: the first that applies is the reason."""

REASONS: dict[str, str] = {
    **{name: about for name, (about, _) in CHECKS.items()},
    # These need a model: they are looked at last, in this order.
    "language": "It is in none of the wanted languages (setting languages).",
    "no_noun": "An English caption has no noun (setting tagging).",
    "no_verb_or_adjective": "An English caption has neither a verb nor an adjective (setting tagging).",
}
"""Every reason for dropping a caption, and what it means."""

_MOST_ROUNDS = 20


def repair(text: str, settings: CleaningSettings) -> tuple[str, list[str]]:
    """The repaired text, and the names of the repairs that changed it, in their order. A long text is left as it is.

    The result is a text that no repair changes, so cleaning it again changes nothing. A text that does not come to rest
    is marked as damaged.
    """
    changed: set[str] = set()
    if CHECKS[TOO_LONG][1](text, settings):  # a page rather than a caption; some repairs would take long with it
        return text, []
    for _ in range(_MOST_ROUNDS):
        before = text
        for rule in REPAIRS:
            after = rule(text, settings)
            if after != text:
                changed.add(rule.name)
                text = after
        if text == before:
            break
    else:
        text = "\ufffd"
    return text, [rule.name for rule in REPAIRS if rule.name in changed]


def reason_to_drop(text: str, settings: CleaningSettings) -> str | None:
    """The first check that a repaired text fails."""
    return next((name for name, (_, applies) in CHECKS.items() if applies(text, settings)), None)


_DOUBT = 16.0
"""A wanted language this close to the likeliest is taken instead (difference of log-likelihoods): names of places and
dishes, which captions are full of, look like other languages."""
_LATIN = word_set("en ca cs da de es et fi fr hr hu id it lt lv ms nl no pl pt ro sk sl sv tl tr vi")
_MOSTLY = 0.5


class LanguageFilter:
    """Says of each text which wanted language it is in, or that it is in none of them."""

    def __init__(self, languages: Sequence[str]) -> None:
        if not languages:
            raise UsageError("no language is wanted", fix=f"name some, or use {ANY_LANGUAGE}", option="languages")
        self._any = ANY_LANGUAGE in languages
        self._wanted = frozenset(languages) - {ANY_LANGUAGE}
        self._only_latin = not self._any and self._wanted <= _LATIN
        self._identifier = language_identifier(COMMON_LANGUAGES | self._wanted)

    def language(self, text: str) -> str | None:
        """The code of the language; None where it is not wanted."""
        foreign = [] if text.isascii() or not self._only_latin else NON_LATIN.findall(text)
        if foreign and len(foreign) > _MOSTLY * len(LETTER.findall(text)):
            return None
        ranked = self._identifier.rank(text.lower())
        likeliest, score = ranked[0]
        if self._any or likeliest in self._wanted:
            return str(likeliest)
        return next((str(code) for code, value in ranked if code in self._wanted and score - value <= _DOUBT), None)


_SCHEMA: dict[str, Any] = {
    "text": pl.String,
    "cleaned": pl.String,
    "kept": pl.Boolean,
    "reason": pl.String,
    "changes": pl.List(pl.String),
}
NEAR_DUPLICATE = "near_duplicate"
_EVERY = 1_000
_NARROWEST = 20
_PLACEHOLDER = re.compile(r"<(\w+)>")
_ENGLISH = "en"


@dataclass(frozen=True, eq=False)
class CleanedCaptions(Presented):
    """What became of every caption.

    ``rows`` has a row per text, in the order given: ``text`` (as given), ``cleaned`` (null if dropped), ``kept``,
    ``reason`` (null if kept) and ``changes`` (names of the repairs that changed it).
    """

    rows: pl.DataFrame
    settings: CleaningSettings = field(default_factory=CleaningSettings)
    output: Path | None = None
    """Where it was written."""

    @property
    def table(self) -> pl.DataFrame:
        return self.rows

    title = "Cleaned captions"

    def sections(self) -> Iterator[Section]:
        remaining = int(self.rows["kept"].sum())
        changed = self.rows.filter(pl.col("kept") & (pl.col("text") != pl.col("cleaned"))).height
        title = f"{format_count(self.rows.height, 'caption')}: {remaining:,} kept, {changed:,} of them repaired"
        tables = []
        for name, counted in (("dropped because", self.reasons), ("repaired", self.repairs)):
            if counted.is_empty():
                continue
            rows = [
                (rule, count, Figure.percent(count / self.rows.height, unit="%"), printable_line(example))
                for rule, count, example in counted.iter_rows()
            ]
            # Of an example as much is shown as fits a page of text.
            header = (name, "captions", "share", "for example")
            plain = tuple((rule, f"{count:,}", str(share)) for rule, count, share, _ in rows)
            room = max(PAGE_WIDTH - Grid(header[:3], plain, "lrr").width - 3, _NARROWEST)
            cut = tuple((*row, text if len(text) <= room else text[: room - 1] + "…") for *row, text in rows)
            tables.append(Table(header, cut, "lrrl"))
        yield Section(title, tuple(tables))

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: counts, and an example of each reason and repair."""

        def counted(table: pl.DataFrame) -> dict[str, Any]:
            return {name: {"captions": count, "example": example} for name, count, example in table.iter_rows()}

        return {
            "captions": self.rows.height,
            "kept": int(self.rows["kept"].sum()),
            "dropped": counted(self.reasons),
            "repaired": counted(self.repairs),
            "output": None if self.output is None else str(self.output),
        }

    @property
    def reasons(self) -> pl.DataFrame:
        """How many captions each reason drops, the most frequent first, with the first such caption."""
        return _counted(self.table.filter(~pl.col("kept")).select("reason", example="text"), "reason")

    @property
    def repairs(self) -> pl.DataFrame:
        """How many captions each repair changed, the most frequent first, with the first such caption."""
        return _counted(self.table.select(repair="changes", example="text").explode("repair").drop_nulls(), "repair")

    def without_near_duplicates(self, threshold: float, *, seed: int = 0) -> CleanedCaptions:
        """Also without the kept captions that nearly repeat an earlier one (see :func:`near_duplicates`)."""
        captions = self.table.with_row_index("row").filter("kept")
        groups = near_duplicates(captions["cleaned"].to_list(), threshold=threshold, seed=seed)
        repeated = captions.filter(pl.Series(groups) != pl.int_range(pl.len()))["row"]
        is_repeated = pl.int_range(pl.len()).is_in(repeated.implode())
        table = self.table.with_columns(
            cleaned=pl.when(is_repeated).then(None).otherwise("cleaned"),
            kept=pl.col("kept") & ~is_repeated,
            reason=pl.when(is_repeated).then(pl.lit(NEAR_DUPLICATE)).otherwise("reason"),
        )
        return replace(self, rows=table)


def _counted(table: pl.DataFrame, name: str) -> pl.DataFrame:
    counted = table.group_by(name, maintain_order=True).agg(captions=pl.len(), example=pl.col("example").first())
    return counted.sort("captions", descending=True, maintain_order=True)


def clean_captions(
    texts: Sequence[str], settings: CleaningSettings | None = None, *, progress: Progress | None = None
) -> CleanedCaptions:
    """Clean web titles: repair what can be repaired, drop the rest with a reason.

    A cleaned caption depends on its text and the settings alone, and cleaning it again changes nothing. The rules are
    listed in ``cleaning_rules()``.
    """
    settings, progress = settings or CleaningSettings(), shown_progress(progress)
    require_texts(texts)
    languages = LanguageFilter(settings.languages)
    needs_language = settings.tagging or ANY_LANGUAGE not in settings.languages
    rows: list[tuple[str, str, list[str]]] = []  # a text, cleaned, and its repairs
    reasons: list[str | None] = []
    english: list[int] = []
    with stage(progress, "cleaning captions", len(texts)):
        for number, text in enumerate(texts, start=1):
            cleaned, changes = repair(text, settings)
            reason, language = reason_to_drop(cleaned, settings), None
            if reason is None and needs_language:
                language = languages.language(cleaned)
                reason = None if language else "language"
            if reason is None and language == _ENGLISH:
                english.append(len(rows))
            rows.append((text, cleaned, changes))
            reasons.append(reason)
            if number % _EVERY == 0:
                progress.advance(_EVERY)
    # Which English captions lack a noun, or a verb or adjective. A tagger takes capitalised words for names: a second
    # look, in lower case, at those where it fails.
    for in_lower_case in (False, True) if settings.tagging and english else ():
        plain = [_PLACEHOLDER.sub(r"\1", rows[row][1]) for row in english]  # placeholders as words
        lowered = [text.lower() for text in plain] if in_lower_case else plain
        parses = parse_texts(lowered, progress=progress).table
        for row, pos, tags in zip(english, parses["pos"].to_list(), parses["tags"].to_list(), strict=True):
            reasons[row] = missing_part(pos, tags)
        english = [row for row in english if reasons[row] is not None]
    table = pl.DataFrame(
        [
            (text, cleaned if reason is None else None, reason is None, reason, changes)
            for (text, cleaned, changes), reason in zip(rows, reasons, strict=True)
        ],
        schema=_SCHEMA,
        orient="row",
    )
    return CleanedCaptions(table, settings)


def cleaning_rules() -> pl.DataFrame:
    """Every repair in its order, then every reason for dropping a caption: ``rule``, ``kind``, ``about``."""
    rows = [(rule.name, "repair", rule.about) for rule in REPAIRS]
    rows += [(name, "reason", summary) for name, summary in REASONS.items()]
    return pl.DataFrame(rows, schema=["rule", "kind", "about"], orient="row")


_USUAL = ("caption", "captions", "text", "title", "alt")
_LINES = ".txt"
_WRITTEN = (".parquet", ".csv", _LINES)


def read_captions(path: str | Path, column: str | None = None) -> tuple[list[str], pl.DataFrame]:
    """The texts of a ``.txt`` file (one per line) or of a column of a table, and the table's other columns."""
    if format_suffix(path) == _LINES:
        if column is not None:
            raise UsageError(f"{path} has lines, not columns", fix=f"drop {argument('column')}", option="column")
        return read_lines(path), pl.DataFrame()
    frame, row_name = read_table(path)
    name = column or next((usual for usual in _USUAL if usual in frame.columns), None)
    if name is None or name not in frame.columns:
        problem = f"no column {name!r}" if name else f"no column {', '.join(_USUAL[:-1])} or {_USUAL[-1]}"
        fix = f"say which column holds the captions: {argument('column')} {' or '.join(frame.columns)}"
        raise InputError(problem, file=path, fix=fix)
    if frame[name].dtype != pl.String:
        raise InputError(f"the column {name!r} is of type {frame[name].dtype}", file=path, fix="name a column of texts")
    empty = frame[name].is_null().arg_max() if frame[name].null_count() else None
    if empty is not None:
        raise InputError(f"no text in the column {name!r}", file=path, row=row_name(empty), fix="remove this row")
    return frame[name].to_list(), frame.drop(name)


def write_cleaned(result: CleanedCaptions, path: str | Path, others: pl.DataFrame | None = None) -> None:
    """Write the table of a result, after the columns that the captions came with; ``.txt``: the kept captions alone."""
    check_cleaned_output(path)
    table = result.table
    if others is not None and others.width:
        clash = next((name for name in others.columns if name in table.columns), None)
        if clash is not None:
            raise InputError(f"the column {clash!r} is one that cleaning writes", fix=f"rename the column {clash!r}")
        table = pl.concat([others, table], how="horizontal")
    with writing_bytes(path) as file:
        if format_suffix(path) == ".parquet":
            file.write(parquet_bytes(table))
        elif format_suffix(path) == ".csv":
            for_spreadsheets(table.with_columns(pl.col("changes").list.join(" "))).write_csv(file)
        else:
            file.write("".join(f"{text}\n" for text in table["cleaned"].drop_nulls()).encode())


def check_cleaned_output(path: str | Path) -> None:
    """Raise unless a result can be written under this name."""
    suffix = format_suffix(path)
    if suffix not in _WRITTEN:
        raise UsageError(f"{path} ends in {suffix!r}", fix=f"use one of {', '.join(_WRITTEN)}", option="output")
