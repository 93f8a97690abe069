"""RECOS: a benchmark from candidates, in three versions, each harder than the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import polars as pl

from crosslens.analyze import Discriminability
from crosslens.build.benchmark import Recos, build_notes, build_page, check_section, version_page
from crosslens.build.candidates import CandidatePool, Encoders, encode_candidates
from crosslens.build.descriptions import KEPT, PURPOSE, DescriptionEditor
from crosslens.build.folder import LOG, RECOS, BenchmarkFolder, DecisionLog, check_inputs, log_head
from crosslens.build.generators.protocol import AnswerSource, Generator, Recorded, Request, identity, load_generator
from crosslens.build.grammar import GrammarCheck, load_grammar_check
from crosslens.build.options import RecosOptions
from crosslens.build.selection import ImageSelector, version_dataset
from crosslens.build.settings import RecosSettings
from crosslens.build.verification import SHEET, VerificationSheet, read_sheet, sheet_table, unused_verdicts
from crosslens.core import FORMS, Notify, UsageError, accepts_options, argument, refuse_other_keywords
from crosslens.encode import EncodeOptions, Encoder, load_encoder
from crosslens.storage import Layout, Workspace, fingerprint, for_spreadsheets, hold_output, tidy_output, workspace
from crosslens.values import DATASET_LAYOUT, Dataset, positions

if TYPE_CHECKING:
    from crosslens.build.keywords import RecosKeywords

VERSIONS = ("v0", "v1", "v2")
ANSWERS = "answers"
"""The generators' answers while a build is in progress; then they are in the log."""


@accepts_options(RecosOptions, EncodeOptions)
def build_recos(
    dataset: Dataset,
    encoder: str | Encoder,
    settings: RecosSettings | None = None,
    **options: Unpack[RecosKeywords],
) -> Recos:
    """Build v0, v1 and v2 from the images and captions of ``dataset``.

    ``encoder`` compares descriptions with images; the other encoders are those of :class:`crosslens.build.Encoders`.
    With ``repeat``, an earlier build's generator's answers are replayed. Vectors are cached where ``cache`` is a cache,
    a folder or True.
    """
    refuse_other_keywords(options, build_recos)
    asked, encoding = RecosOptions.pick(options), EncodeOptions.pick(options)
    repeat, output, copy_images, progress = asked.repeat, asked.output, asked.copy_images, asked.progress
    with hold_output(output):  # before the candidates are encoded, which may take hours
        text_encoder, image_encoder = (
            None if model is None else load_encoder(model, encoding)
            for model in (asked.text_encoder, asked.image_encoder)
        )
        encoders = Encoders(load_encoder(encoder, encoding), text_encoder, image_encoder, asked.image_text)
        writer, sheet, checker = _load_helpers(asked, dataset, encoding)
        encoded = encode_candidates(dataset, encoders, encoding, progress)
        candidates = CandidatePool.of(encoded, settings or RecosSettings(), progress)
        inputs = _inputs(dataset, candidates, writer, checker, sheet, copy_images)
        left_out, origin = dict(candidates.encoded.skipped), dict(asked.origin or {})
        head = log_head(RECOS, fingerprint("recos", inputs), inputs, left_out=left_out, origin=origin)
        if repeat is not None:
            check_inputs(repeat.head, head, ("origin", "left_out"))

        def build(folder: RecosFolder | None, work: Workspace | None) -> Recos:
            """With the generator; or with the answers of a log, which must lead to the same decisions."""
            logged, answers = repeat, None
            if folder is not None and folder.damage:
                damaged = f"{folder.damage} of {folder.target}"
                encoding.notify(f"note: {damaged} cannot be read: rewritten from decisions.jsonl")
                logged = logged or folder.log
            if logged is not None and writer is not None:
                texts = {entry["request"]: tuple(entry["texts"]) for entry in logged.of("answer")}
                answers = AnswerSource(writer, known=texts)
            elif writer is not None and work is not None:  # each generator's answers are kept as they come
                name = fingerprint("generator", {"name": writer.name, "revision": writer.revision})
                answers = AnswerSource(Recorded(writer, work.beside(ANSWERS) / name[:12]), progress=progress)
            elif writer is not None:
                answers = AnswerSource(writer, progress=progress)
            recos = _build(candidates, answers, head, logged, sheet, checker, encoding.notify)
            if logged is not None:
                logged.check_same(recos.log)
                recos = replace(recos, log=logged)
            if folder is None or work is None:
                return recos
            return replace(recos, versions=folder.write(work, recos, copy_images=copy_images))

        if output is None:
            return build(None, None)
        folder = RecosFolder(Path(output), head["key"], sheet, overwrite=asked.overwrite)
        if not folder.finished:
            with workspace(folder.target, head["key"], keep=(ANSWERS,)) as work:
                return build(folder, work)
        tidy_output(folder.target, head["key"])
        if folder.unused_verdicts:
            unused = f"{folder.unused_verdicts:,} verdicts in {folder.target / SHEET} are not used"
            encoding.notify(f"note: {unused}: pass {argument('verified', str(folder.target / SHEET))}")
        assert folder.log is not None
        versions = {name: Dataset.load(folder.target / name) for name in VERSIONS}
        gallery, images = candidates.whole, None
        if candidates.checks_selected:
            images = positions(versions["v0"].image_ids, candidates.ids, "image").tolist()
            gallery = candidates.gallery_of(images)
        check, notes = candidates.check(gallery, images), build_notes(candidates, folder.log, versions)
        return Recos(versions, check, candidates.quotas, candidates.settings, folder.log, notes, sheet, already=True)


class RecosFolder(BenchmarkFolder):
    """A RECOS benchmark in a folder.

    ``finished``: the one that is there is of the same key; ``damage`` names what is missing or unreadable in it;
    ``unused_verdicts`` is how many people wrote into its sheet that this build does not take into account.
    """

    form, datasets = RECOS, VERSIONS
    layout = Layout(
        "a benchmark",
        LOG,
        (
            "README.md",
            "regenerate.csv",
            SHEET,
            *(file for v in VERSIONS for file in (*DATASET_LAYOUT.within(v), f"{v}/README.md")),
        ),
    )

    def __init__(self, target: Path, key: str, sheet: VerificationSheet, *, overwrite: bool = False) -> None:
        super().__init__(target)
        same = self.has("key", key)
        self.damage = self.damaged() if same else ""
        self.finished = same and not self.damage
        self.unused_verdicts = 0 if self.log is None else unused_verdicts(target / SHEET, sheet)
        if self.log is not None and not self.finished:
            fix = f"use them ({argument('verified', str(target / SHEET))}), or move the file"
            different = not same and not overwrite
            self.refuse(different=different, lost=self.unused_verdicts, sheets=f"{target / SHEET} has", fix=fix)

    def write(self, work: Workspace, recos: Recos, *, copy_images: bool) -> Mapping[str, Dataset]:
        versions = self.write_datasets(work, recos.versions, copy_images=copy_images)
        for name, dataset in versions.items():
            version_page(dataset).save(work.new / name / "README.md")
        build_page(recos, versions, copied=copy_images).save(work.new / "README.md")
        # Every candidate description outside the band, and what should replace it.
        rows = [
            (entry["caption"], entry["image"], entry["dis"], entry["verdict"], PURPOSE[entry["verdict"]])
            for entry in recos.log.of("check")
            if entry["verdict"] != KEPT
        ]
        columns = dict.fromkeys(("caption", "image", "dis", "verdict", "wanted"), pl.String) | {"dis": pl.Float64}
        regenerated = pl.DataFrame(rows, schema=columns, orient="row")
        for_spreadsheets(regenerated).write_csv(work.new / "regenerate.csv")
        for_spreadsheets(sheet_table(versions, recos.sheet)).write_csv(work.new / SHEET)
        self.publish(work, recos.log)
        return versions


def _build(
    candidates: CandidatePool,
    answers: AnswerSource | None,
    head: dict[str, Any],
    repeat: DecisionLog | None,
    sheet: VerificationSheet,
    grammar: GrammarCheck | None,
    notify: Notify,
) -> Recos:
    settings, log = candidates.settings, DecisionLog([head])
    for row in sheet.rows:
        log("verified", **asdict(row))
    editor = DescriptionEditor(candidates, answers, log, sheet, grammar)
    selector = ImageSelector(editor)
    if not candidates.checks_selected:
        check = _log_check(candidates, editor, None)
    if repeat is not None:
        repeat.check_same(log, so_far=True)  # other vectors show here, before they lead to requests never answered
    originals = selector.originals()
    if candidates.checks_selected:
        check = _log_check(candidates, editor, [original.image for original in originals] or None)
    if not originals:
        notify(FORMS["terminal"].value([check_section(check, settings, log)]) + "\n")
        raise UsageError(
            "no image is left: none has enough descriptions in the band",
            fix=f"choose a larger {argument('eta')}, another {argument('temperature')}, fewer "
            f"{argument('descriptions')}, or a {argument('generator')}",
        )
    confusables = selector.confusables(originals)
    similar = selector.similar([*originals, *confusables])
    members = {"v0": originals, "v1": [*originals, *confusables], "v2": [*originals, *confusables, *similar]}
    versions = {name: version_dataset(name, candidates, images, head["key"]) for name, images in members.items()}
    for name, version in versions.items():
        log("version", name=name, images=len(version.image_ids), captions=len(version.caption_ids))
    notes = build_notes(candidates, log, versions)
    return Recos(versions, check, candidates.quotas, settings, log, notes, sheet)


def _log_check(candidates: CandidatePool, editor: DescriptionEditor, images: Sequence[int] | None) -> Discriminability:
    """Check the candidates' descriptions (of all images, or of the originals), and log the verdicts."""
    check = candidates.check(candidates.whole if images is None else editor.gallery, images)
    dataset = candidates.encoded.dataset
    image_of = dict(dataset.captions.select("caption", "image").iter_rows())
    for caption, dis in zip(check.ids, check.values, strict=True):
        editor.log(
            "check", caption=caption, image=image_of[caption], dis=float(dis), verdict=editor.verdict(float(dis))
        )
    return check


def _inputs(
    dataset: Dataset, candidates: CandidatePool, writer: Generator | None, grammar: GrammarCheck | None,
    sheet: VerificationSheet, copy_images: bool,
) -> dict[str, Any]:  # fmt: skip
    """All that the build depends on. What is not used is not named, so that earlier builds keep their key."""
    unset = {"quota": None, "check_gallery": RecosSettings.check_gallery}
    settings = asdict(candidates.settings)
    inputs: dict[str, Any] = {
        "settings": {name: value for name, value in settings.items() if name not in unset or value != unset[name]},
        "candidates": {"name": dataset.name, "fingerprint": dataset.fingerprint, "images": len(dataset.image_ids)},
        **candidates.encoded.provenance,
        "generator": None if writer is None else identity(writer),
        "pictures": candidates.encoded.files is not None,
        "copy_images": copy_images,
    }
    if grammar is not None:
        inputs["grammar"] = {"name": grammar.name, "revision": grammar.revision}
    return inputs if sheet.key is None else {**inputs, "verified": sheet.key}


@dataclass
class _LoggedGenerator:
    """The generator of a logged build; only its answers are left."""

    name: str
    revision: str
    sees_pictures: bool

    def generate(self, requests: Sequence[Request]) -> list[tuple[str, ...]]:
        raise AssertionError("answers are replayed")


def _load_helpers(
    asked: RecosOptions, dataset: Dataset, encoding: EncodeOptions
) -> tuple[Generator | None, VerificationSheet, GrammarCheck | None]:
    """The generator, the verification sheet and the grammar check: as asked for, or of the log that is repeated."""
    writer, grammar, sheet = asked.generator, asked.grammar, asked.verified
    if asked.repeat is not None:
        head = asked.repeat.head
        writer = head["generator"] and _LoggedGenerator(**head["generator"])
        sheet = VerificationSheet.of_log(asked.repeat.of("verified"))
        grammar = grammar or head.get("grammar", {}).get("name")
    if not isinstance(sheet, VerificationSheet):
        sheet = VerificationSheet() if sheet is None else read_sheet(sheet, dataset)
    return (
        None if writer is None else load_generator(writer, offline=encoding.offline, notify=encoding.notify),
        sheet,
        None if grammar is None else load_grammar_check(grammar),
    )
