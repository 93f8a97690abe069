"""What vectors, scores and lists say beside the metrics: polysemy, difficulty, and the curve over m."""

from __future__ import annotations

from typing import Any

from crosslens.analyze import NEIGHBOURHOOD_SIZES, measure_caption_diversity, measure_difficulty, measure_polysemy
from crosslens.core import TEXT_TO_IMAGE
from crosslens.pipeline.audit.needs import A_DATASET, CAPTION_QUERIES, SCORES, SEVERAL_IMAGES, VECTORS
from crosslens.pipeline.audit.stage import DATASET, RUN, StageOutput, StageWork, audit_stage
from crosslens.pipeline.curves.semantic import curve
from crosslens.pipeline.panel.scores import read_panel
from crosslens.pipeline.panel.thresholds import calibrate_panel
from crosslens.pipeline.recipe.inputs import load_inputs

_COUNTS = tuple(range(1, 51))
_QUICK_COUNTS = (1, 2, 5, 10, 20, 50)
_HARDEST = 5


@audit_stage("polysemy", about=RUN, order=100, needs=(A_DATASET, VECTORS, SEVERAL_IMAGES), cost=(2, 1.5))
def polysemy(work: StageWork) -> StageOutput:
    """How diverse the captions of similar images are."""
    options, source = work.options, work.run.source
    inputs = load_inputs(source.recipe.absolute(), work.encoding, work.progress)
    assert inputs.dataset is not None
    common: dict[str, Any] = {
        "images": inputs.images, "captions": inputs.captions, "seed": options.seed, "resamples": options.resamples,
        "level": options.level, "progress": work.progress,
    }  # fmt: skip
    sizes = [size for size in NEIGHBOURHOOD_SIZES if size < len(inputs.dataset.image_ids)]
    curves = measure_polysemy(inputs.dataset, sizes=sizes, **common)
    diversity = measure_caption_diversity(inputs.dataset, cider=not options.quick, **common)
    payload = {"datasets": [{**curves.as_dict(), "diversity": diversity.as_dict()}], "files": []}
    vectors = (
        f"--model {source.recipe.model.name}"
        if source.recipe.model.name
        else (
            f"--image-embeddings {source.recipe.inputs.image_embeddings} "
            f"--caption-embeddings {source.recipe.inputs.caption_embeddings}"
        )
    )
    return StageOutput(payload, f"crosslens analyze polysemy --dataset {source.dataset_words} {vectors}")


@audit_stage("difficulty", about=DATASET, order=110, needs=(A_DATASET, SCORES), cost=(1, 0.5))
def difficulty(work: StageWork) -> StageOutput:
    """How hard each pair is, by whether the models' scores reach their thresholds."""
    words = [f"{name}={audited.folder}" for name, audited in work.runs.items()]
    reading: dict[str, Any] = {"encoding": work.encoding, "trust_code": True, "progress": work.progress}
    panel = read_panel(words, **reading)
    thresholds = calibrate_panel(panel, ("self",), settings={"seed": work.options.seed}, **reading)
    result = measure_difficulty(
        panel[0].dataset,
        {member.name: member.scores for member in panel},
        {name: chosen.threshold for name, chosen in thresholds.items()},
    )
    folder = work.stage_folder("difficulty")
    folder.mkdir(parents=True, exist_ok=True)
    file = result.write(folder / "difficulty.parquet")
    payload = {
        **result.as_dict(),
        "calibration": {name: chosen.as_dict() for name, chosen in thresholds.items()},
        "beside": [],
        "stability": None,
        "hardest": result.hardest(_HARDEST).to_dicts(),
        "files": [str(file)],
    }
    return StageOutput(
        payload, f"crosslens analyze difficulty --runs {' '.join(words)} --calibration self -o {file}", folder
    )


@audit_stage("curve", about=DATASET, order=120, needs=(A_DATASET, CAPTION_QUERIES), cost=(1, 0.6), quick_cost=(1, 0.4))
def semantic_recall(work: StageWork) -> StageOutput:
    """Semantic recall against m: whether conclusions depend on how many items count as relevant."""
    options, dataset = work.options, work.known_dataset
    counts = [m for m in (_QUICK_COUNTS if options.quick else _COUNTS) if m < len(dataset.image_ids)]
    curves = curve(
        list(work.loaded().values()), dataset, options.phi, m=counts, direction=TEXT_TO_IMAGE,
        seed=options.seed, resamples=options.resamples, level=options.level, threads=options.threads,
        progress=work.progress,
    )  # fmt: skip
    folders = " ".join(str(audited.folder) for audited in work.runs.values())
    m = ",".join(map(str, counts)) if options.quick else f"1..{counts[-1]}"
    return StageOutput(curves.as_dict(), f"crosslens curve {folders} --phi {options.phi} --m {m}")
