"""IMP: far-apart images, captions of similar images that people judged, and of the good ones the most diverse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import numpy as np
import polars as pl

from crosslens.build.folder import IMP, DecisionLog, check_inputs, log_head
from crosslens.build.imp.benchmark import REJECTED_COLUMNS, Imp, benchmark_dataset, build_notes, good_captions
from crosslens.build.imp.candidates import TITLE, Candidates, CandidateStages, ImpSources, Tables
from crosslens.build.imp.diversity import pairwise_mean, select_diverse
from crosslens.build.imp.folder import STAGES, ImpFolder, building, tables_fingerprint
from crosslens.build.imp.leakage import Corpus, find_leaks, read_corpus
from crosslens.build.imp.people import DONE, GOOD, PeoplesVerdicts, Verdict, measure_agreement, read_verdicts
from crosslens.build.imp.sampling import SampleSpread
from crosslens.build.options import ImpOptions
from crosslens.build.settings import SamplingSettings
from crosslens.core import UsageError, accepts_options, argument, refuse_other_keywords
from crosslens.encode import TEXTS, EncodeOptions, Encoder, load_encoder
from crosslens.storage import fingerprint, hold_output
from crosslens.values import Dataset

if TYPE_CHECKING:
    from crosslens.build.keywords import ImpKeywords

_ABOUT = ("origin", "left_out", "notes", "status")


@accepts_options(ImpOptions, EncodeOptions)
def build_imp(
    images: Dataset,
    pool: Dataset,
    encoder: str | Encoder | None = None,
    settings: SamplingSettings | None = None,
    **options: Unpack[ImpKeywords],
) -> Imp:
    """Build an IMP benchmark from ``images`` and the captions of a ``pool`` of other images.

    ``encoder`` compares images, and captions where no ``text_encoder`` is given. As long as verdicts are missing, the
    sheets are written and the result's ``status`` says what is next. With ``repeat``, an earlier build's verdicts are
    used.
    """
    refuse_other_keywords(options, build_imp)
    asked, encoding = ImpOptions.pick(options), EncodeOptions.pick(options)
    with hold_output(asked.output):
        visual = None if encoder is None else load_encoder(encoder, encoding)
        texts = visual if asked.text_encoder is None else load_encoder(asked.text_encoder, encoding)
        if texts is None or (asked.text_encoder is None and TEXTS not in texts.abilities):
            raise UsageError(
                f"{'no encoder' if texts is None else texts.name} encodes texts: the captions of an image are "
                "compared in the end",
                fix=f"name a text encoder: {argument('text_encoder')}",
                option="text_encoder",
            )
        stages = CandidateStages(
            ImpSources(images, pool, visual, texts, asked, encoding), settings or SamplingSettings()
        )
        build = _Build(stages, asked, [read_corpus(path) for path in asked.corpora])
        target = None if asked.output is None else Path(asked.output)
        with building(target, stages.key) as work:
            folder = None if target is None else ImpFolder(target)
            stored = folder if folder is not None and folder.has("candidates_key", stages.key) else None
            sampling: Tables | DecisionLog
            stored_candidates = stored.candidates() if stored is not None and asked.repeat is None else None
            if stored is not None and stored.log is not None and stored_candidates is not None:  # they are whole
                candidates, sampling = stored_candidates, stored.log
            else:
                candidates, sampling = stages.run(None if work is None else work.beside(STAGES))
            captions, annotators = candidates.kept, stages.settings.annotators
            if asked.repeat is not None:
                people = PeoplesVerdicts.of_log(asked.repeat.of("annotated"), captions, annotators)
            else:
                people = read_verdicts(asked.annotations or (stored.sheets if stored else ()), captions, annotators)
            imp = build.begin(candidates, sampling, people)
            key = imp.log.head["key"]
            if folder is not None and isinstance(sampling, DecisionLog) and folder.finished(key):
                imp = folder.load(imp, people)
                return replace(imp, notes=build_notes(imp))
            if folder is not None:
                folder.check(stages.key, people, key=key, overwrite=asked.overwrite)
            imp = build.finish(imp, people)
            if folder is None or work is None:
                return imp
            return folder.write(work, imp, people, copy_images=asked.copy_images)


@dataclass(frozen=True)
class _Build:
    """The steps of a build, in their order."""

    stages: CandidateStages
    asked: ImpOptions
    corpora: Sequence[Corpus]

    def begin(self, candidates: Candidates, sampling: Tables | DecisionLog, people: PeoplesVerdicts) -> Imp:
        """The build up to the verdicts, with the log so far."""
        inputs = {
            **self.stages.inputs,
            "candidates_key": self.stages.key,
            "selection": asdict(self.asked.selection),
            "text_encoder": self.stages.sources.identity(self.stages.sources.text_encoder),
            "corpora": [corpus.describe() for corpus in self.corpora],
            "copy_images": self.asked.copy_images,
            "verdicts": people.key,
        }
        key = fingerprint("imp", {**inputs, "status": people.status})
        for part in ("settings", "cleaning"):  # as JSON has them
            listed = {name: list(value) for name, value in inputs[part].items() if isinstance(value, tuple)}
            inputs[part] = {**inputs[part], **listed}
        if isinstance(sampling, DecisionLog):
            rows, details = sampling.of("spread"), {name: sampling.head[name] for name in ("left_out", "notes")}
        else:
            rows = sampling["spreads"].to_dicts()
            details = {"left_out": dict(sampling["left_out"].iter_rows()), "notes": sampling["notes"]["note"].to_list()}
        head = log_head(IMP, key, inputs, **details, origin=dict(self.asked.origin or {}), status=people.status)
        if self.asked.repeat is not None:
            check_inputs(self.asked.repeat.head, head, _ABOUT)
        log = DecisionLog([head])
        spreads = tuple(SampleSpread(**{name: value for name, value in row.items() if name != "step"}) for row in rows)
        for spread in spreads:
            log("spread", **asdict(spread))
        for row in candidates.images.drop("file").iter_rows(named=True):
            log("sampled", **row)
        dropped = dict(sorted(candidates.captions["reason"].drop_nulls().value_counts().iter_rows()))
        facts = {"captions": candidates.captions.height, "kept": candidates.kept.height, "dropped": dropped}
        log("candidates", **facts, fingerprint=tables_fingerprint(candidates))
        if self.asked.repeat is not None:
            self.asked.repeat.check_same(log, so_far=True)  # verdicts on other candidates would mean nothing
        return Imp(
            people.status,
            candidates,
            spreads,
            log,
            waiting=people.waiting,
            notes=tuple(head["notes"]),
            encode=self.stages.sources.encode_captions,
        )

    def finish(self, imp: Imp, people: PeoplesVerdicts) -> Imp:
        """The build as far as the verdicts allow."""
        if people.key is not None:
            for entry in people.entries():
                imp.log("annotated", **entry)
            agreement = measure_agreement(people.sheets)
            imp.log("agreement", **asdict(agreement))
            imp = replace(imp, agreement=agreement)
        if people.status == DONE:
            imp = self._select(imp, people.final)
        if self.asked.repeat is not None:
            self.asked.repeat.check_same(imp.log)
            imp = replace(imp, log=self.asked.repeat)
        return replace(imp, notes=build_notes(imp))

    def _select(self, imp: Imp, verdicts: Mapping[str, Verdict]) -> Imp:
        """Leakage, and five diverse captions of each image."""
        for caption, verdict in verdicts.items():
            imp.log("verdict", caption=caption, verdict=list(vars(verdict).values()))
        leaks = None
        if self.corpora:
            good = good_captions(imp.candidates, verdicts)
            having = {image for image, _, _ in good}
            rows = imp.candidates.images.select("image", "file").iter_rows()
            files = {image: file for image, file in rows if file is not None and image in having}
            bits, progress = self.asked.selection.leak_bits, self.asked.progress
            leaks = find_leaks(good, files, self.corpora, bits=bits, progress=progress)
            for row in leaks.iter_rows(named=True):
                imp.log("leak", **row)
        dropped = leaks if self.asked.selection.drop_leaks else None
        selected = self._choose(imp, good_captions(imp.candidates, verdicts, dropped))
        if not selected:
            raise UsageError(
                f"no image has {self.stages.settings.captions} good captions",
                fix=f"judge more candidates, or pass fewer {argument('captions')}",
            )
        dataset = benchmark_dataset(imp.candidates, selected, verdicts, self.stages.sources.images, imp.log)
        refused = [
            (image, caption, text, verdicts[caption].verdict, f"annotators: {verdicts[caption].verdict}")
            for image, caption, text in imp.candidates.kept.select("image", "caption", "text").iter_rows()
            if verdicts[caption].verdict != GOOD
        ]
        rejected = pl.DataFrame(refused, schema=REJECTED_COLUMNS, orient="row").join(dataset.images, "image", "semi")
        sizes = {"images": len(dataset.image_ids), "captions": len(dataset.caption_ids), "rejected": len(refused)}
        if "titles" in imp.log.head:
            sizes["titles"] = dataset.captions.filter(source=TITLE).height
        imp.log("benchmark", **sizes)
        return replace(imp, dataset=dataset, rejected=rejected, leaks=leaks)

    def _choose(self, imp: Imp, good: Sequence[tuple[str, str, str]]) -> dict[str, list[str]]:
        """Image → the ids of its captions, in the order of sampling."""
        needed = self.stages.settings.captions
        by_image: dict[str, list[int]] = {image: [] for image in imp.candidates.images["image"]}
        for row, (image, _, _) in enumerate(good):
            by_image[image].append(row)
        usable = sorted(row for rows in by_image.values() if len(rows) >= needed for row in rows)
        texts = list(dict.fromkeys(good[row][2] for row in usable))
        vectors = self.stages.sources.encode_captions(texts) if texts else np.zeros((0, 1))
        vector_of = {text: number for number, text in enumerate(texts)}
        captions_of: dict[str, list[str]] = {}
        judged_images = set(imp.candidates.kept["image"])
        for image, rows in by_image.items():
            if not rows or len(rows) < needed:
                if image in judged_images:
                    imp.log("selected", image=image, good=len(rows), verdict="too few good captions")
                continue
            of_image = vectors[[vector_of[good[row][2]] for row in rows]]
            diverse, seed = self.asked.selection.diverse, self.stages.settings.seed
            picked = select_diverse(of_image, needed, diverse, seed=seed, image=image)
            captions_of[image] = [good[rows[at]][1] for at in picked]
            imp.log(
                "selected", image=image, good=len(rows), captions=captions_of[image],
                similarity=pairwise_mean(of_image[picked]), similarity_of_all=pairwise_mean(of_image),
            )  # fmt: skip
        return captions_of
