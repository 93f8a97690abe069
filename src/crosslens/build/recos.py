"""RECOS: a benchmark from candidates, in three versions, each harder than the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from crosslens import __version__
from crosslens.build.answers import Answers
from crosslens.build.benchmark import Recos
from crosslens.build.candidates import Candidates
from crosslens.build.descriptions import Editor
from crosslens.build.folder import BuildFolder
from crosslens.build.generators import Generator, Request, load_generator
from crosslens.build.log import FORMAT, VERSION, DecisionLog
from crosslens.build.notes import notes_of
from crosslens.build.pages import check_summary
from crosslens.build.selection import Chooser, Member
from crosslens.build.settings import RecosSettings
from crosslens.build.versions import version
from crosslens.build.views import Encoders, Reading, see
from crosslens.core.dataset import Dataset
from crosslens.core.errors import UsageError
from crosslens.core.fingerprint import fingerprint
from crosslens.core.progress import Progress
from crosslens.encode import Cache, Encoder, load_encoder
from crosslens.encode.encoder import Tell, to_stderr


def build_recos(
    dataset: Dataset,
    encoder: str | Encoder,
    settings: RecosSettings | None = None,
    *,
    generator: str | Generator | None = "rules",
    text_encoder: str | Encoder | None = None,
    image_encoder: str | Encoder | None = None,
    image_text: str | None = None,
    image_folder: str | Path | None = None,
    cache: Cache | None = None,
    batch_size: int | None = None,
    precision: str = "fp32",
    device: str | None = None,
    offline: bool = False,
    skip_bad: bool = False,
    output: str | Path | None = None,
    copy_images: bool = False,
    overwrite: bool = False,
    repeat: DecisionLog | None = None,
    origin: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    tell: Tell = to_stderr,
) -> Recos:
    """Build v0, v1 and v2 from the images and captions of ``dataset``.

    ``encoder`` compares descriptions with images; the other encoders are those of :class:`crosslens.build.Encoders`.
    ``generator`` rewrites descriptions outside the band (None: they are dropped). With ``output`` the benchmark is
    written there, and what a stopped build left there is gone on with. ``repeat`` is the log of an earlier build: its
    generator's answers are given again, and every decision must come out as it says. ``origin`` is kept in the log.
    """

    def load(one: str | Encoder) -> Encoder:
        return load_encoder(one, device=device, precision=precision, offline=offline, tell=tell)

    settings = settings or RecosSettings()
    texts, images = (None if one is None else load(one) for one in (text_encoder, image_encoder))
    who = Encoders(load(encoder), texts, images, image_text)
    reading = Reading(image_folder, cache, batch_size, precision, skip_bad, progress)
    writer = _writer(generator, repeat, offline, tell)
    views = see(dataset, who, reading)
    candidates = Candidates.of(views, settings, progress)
    settings = replace(settings, temperature=candidates.temperature)
    head = _head(dataset, candidates, settings, writer, copy_images, origin)
    if repeat is not None:
        _check_head(repeat.head, head)
        head = repeat.head
    place = None if output is None else BuildFolder(output, head["key"], overwrite=overwrite)
    if place is not None and place.finished:
        versions, log = place.versions(), place.log()
        notes = notes_of(candidates, log, versions)
        return Recos(versions, candidates.check, settings, log, notes, already=True)
    if place is not None and place.damaged:
        tell(f"note: {place.damaged} of {place.target} cannot be read: written again as decisions.jsonl says")
        repeat = repeat or place.log()
    answers = None
    if repeat is not None and writer is not None:
        answers = Answers(writer, known={one["request"]: tuple(one["texts"]) for one in repeat.of("answer")})
    elif writer is not None:
        answers = Answers(writer if place is None else place.recorded(writer), progress=progress)
    found = _build(candidates, answers, head, settings, repeat, tell)
    if repeat is not None:
        repeat.check_same(found.log)
        found = replace(found, log=repeat)
    if place is not None:
        found = replace(found, versions=place.write(found, copy_images))
    return found


def _build(
    candidates: Candidates,
    answers: Answers | None,
    head: dict[str, Any],
    settings: RecosSettings,
    repeat: DecisionLog | None,
    tell: Tell,
) -> Recos:
    log = DecisionLog([head])
    editor, chooser = Editor(candidates, answers, log), Chooser(candidates, log)
    _log_check(candidates, editor, log)
    if repeat is not None:
        repeat.check_same(log, so_far=True)  # other vectors show here, before they lead to questions never asked
    originals = chooser.originals(editor.settle, editor.release)
    if not originals:
        tell(check_summary(candidates.check, settings, log) + "\n")
        raise UsageError(
            "no image is left: none has enough descriptions in the band",
            fix="a larger --eta, another --temperature, fewer --descriptions, or a generator (--generator) help",
        )
    pairs = [(one.image, image, list(one.descriptions)) for one, image in chooser.confusables(originals)]
    texts = editor.liken(pairs)
    tasks = {one.image: one.task for one in originals}
    confusables = []
    for original, image, _ in pairs:
        enough = len(texts[image]) >= settings.descriptions
        why = "" if enough else f"{len(texts[image])} of {settings.descriptions} descriptions"
        log(
            "described",
            image=candidates.ids[image],
            of=candidates.ids[original],
            verdict="kept" if enough else "dropped",
            descriptions=[one.caption for one in texts[image]],
            why=why,
        )
        if enough:
            confusables.append(Member(image, "confusable", original, tasks[original], tuple(texts[image])))
        else:
            chooser.forget(image)
    similar = chooser.similar([*originals, *confusables])
    members = {"v0": originals, "v1": [*originals, *confusables], "v2": [*originals, *confusables, *similar]}
    versions = {name: version(name, candidates, chosen, head["key"]) for name, chosen in members.items()}
    for name, one in versions.items():
        log("version", name=name, images=len(one.image_ids), captions=len(one.caption_ids))
    return Recos(versions, candidates.check, settings, log, notes_of(candidates, log, versions))


def _log_check(candidates: Candidates, editor: Editor, log: DecisionLog) -> None:
    dataset = candidates.views.dataset
    for caption, image, dis in zip(
        dataset.caption_ids, dataset.captions["image"], candidates.check.values, strict=True
    ):
        log("check", caption=caption, image=image, dis=float(dis), verdict=editor.verdict(float(dis)))


def _head(
    dataset: Dataset,
    candidates: Candidates,
    settings: RecosSettings,
    writer: Generator | None,
    copy_images: bool,
    origin: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The first entry of the log: all that the build depends on, and a key made from it."""
    decisive: dict[str, Any] = {
        "settings": asdict(settings),
        "candidates": {"name": dataset.name, "fingerprint": dataset.fingerprint, "images": len(dataset.image_ids)},
        **candidates.views.about,
        "generator": None
        if writer is None
        else {"name": writer.name, "revision": writer.revision, "sees_pictures": writer.sees_pictures},
        "pictures": candidates.views.files is not None,
        "copy_images": copy_images,
    }
    key = fingerprint("recos", decisive)
    left_out = dict(candidates.views.skipped)
    about = {"step": "settings", "format": FORMAT, "version": VERSION, "crosslens": __version__, "key": key}
    return {**about, **decisive, "left_out": left_out, "origin": dict(origin or {})}


def _check_head(logged: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    if logged["key"] == now["key"]:
        return
    about = {"step", "format", "version", "crosslens", "key", "origin", "left_out"}
    parts = [part for part in now if part not in about and logged.get(part) != now[part]]
    raise UsageError(
        f"this is not the build of the log: different {', '.join(parts) or 'key'}",
        fix="pass the candidates and encoders of the first build, unchanged, and no other setting",
    )


class _Remembered:
    """A generator that a log tells of; only its answers are left."""

    def __init__(self, name: str, revision: str, sees_pictures: bool) -> None:
        self.name, self.revision, self.sees_pictures = name, revision, sees_pictures

    def generate(self, requests: Sequence[Request]) -> list[tuple[str, ...]]:
        raise AssertionError("answers are replayed")


def _writer(
    generator: str | Generator | None, repeat: DecisionLog | None, offline: bool, tell: Tell
) -> Generator | None:
    if repeat is not None:
        return None if repeat.head["generator"] is None else _Remembered(**repeat.head["generator"])
    return None if generator is None else load_generator(generator, offline=offline, tell=tell)
