"""``crosslens evaluate``, ``run``, ``metrics`` and ``encode``: from files to a run, and what runs are computed from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from crosslens import encode as encoders, engine, metrics as metric_families, pipeline, storage, values as value_types
from crosslens.cli.answers import CommandAnswer
from crosslens.cli.console import confirm_code, print_note, progress_bar
from crosslens.cli.datasets import DATASET_WORDS, DatasetOptions, dataset_words
from crosslens.cli.flags import Flags, Overwrite, Plugins, TrustCodeFlag, command, output_option, positional
from crosslens.cli.stored_runs import EvaluatedRun, evaluated_run, recorded_command, run_written_at
from crosslens.core import FactList, Presented, Text, UsageError, option
from crosslens.encode import EncodeOptions
from crosslens.engine import EngineOptions
from crosslens.pipeline import EvaluateOptions, InputOptions, ModelOptions, RerankOptions

PROTOCOL_HELP = "Follow a paper and say so beside every figure: {} (see crosslens protocols)."


@command("crosslens protocols", "crosslens protocols five", "crosslens protocols --json", reads_files=False)
def protocols(
    name: str | None = positional(None, "Describe this protocol in full.", names="PROTOCOL"),
) -> pipeline.ProtocolList:
    """List the papers' protocols: metrics and conventions."""
    entries = pipeline.PROTOCOLS if name is None else [pipeline.PROTOCOLS[name]]
    return pipeline.ProtocolList(tuple(entry.value for entry in entries))


def with_protocol(result: Presented, record: dict[str, Any] | None) -> Presented:
    """The result, and under it the protocol that it follows."""
    return result if record is None else pipeline.ProtocolResult(result, record)


def followed(name: str | None, command: str) -> tuple[pipeline.Protocol | None, dict[str, Any] | None]:
    """The protocol that a command follows, and what its result says of it."""
    protocol = pipeline.find_protocol(name, command)
    return protocol, None if protocol is None else protocol.record(command)


_OUTPUT = output_option("Where the run is written; also s3://, gs://.", "FOLDER")
_QUERIES = (
    "Rank a random sample of N queries of each direction (by --seed) against the whole gallery. Or, in text-only "
    "retrieval, the text set whose captions are the queries; --dataset is then the corpus."
)


@command(
    "crosslens evaluate --dataset captions.jsonl --image-embeddings img.npy --caption-embeddings cap.npy -o runs/mine",
    "crosslens evaluate --dataset coco --captions captions.json \\",
    "    --image-embeddings img.npy --caption-embeddings cap.npy -o runs/clip-b32",
    "crosslens evaluate --dataset coco-karpathy-5k --model clip:openai/clip-vit-base-patch32 -o runs/clip-b32",
    'crosslens evaluate --run model.run.gz --qrels qrels.txt --metrics "CappedRecall@1 CappedRecall@5" --json',
    "crosslens evaluate --dataset laion --queries 100000 --image-embeddings laion --caption-embeddings laion",
    "crosslens evaluate --dataset captions.jsonl --scores scores.npy",
    "crosslens evaluate --dataset captions.jsonl --scores scores.npy \\",
    '    --metrics "NCS[cider]@10 SR[semantic,m=20]@5 DCGcm@10"',
    "crosslens evaluate --model clip:openai/clip-vit-base-patch32 \\",
    "    --dataset captions.jsonl --image-folder photos -o runs/clip-b32",
    "crosslens evaluate --model blip:Salesforce/blip-itm-base-coco --rerank blip:Salesforce/blip-itm-base-coco \\",
    "    --rerank-depth 128 --dataset captions.jsonl --image-folder photos",
    "crosslens evaluate --model sentence:all-MiniLM-L6-v2 --image-text mean --dataset captions.jsonl",
    "crosslens evaluate --model sentence:all-MiniLM-L6-v2 --query-caption mean \\",
    '    --queries "coco captions=captions_val2014.json" --dataset regions.jsonl --shared-images',
    common=("scores", "run", "qrels"),
)
def evaluate(
    source: DatasetOptions,
    model: ModelOptions,
    encode: Annotated[EncodeOptions, Flags(only=("batch_size", "cache", "offline"))],
    rerank: RerankOptions,
    inputs: InputOptions,
    options: EvaluateOptions,
    execution: EngineOptions,
    queries: str | None = option(None, _QUERIES, metavar=f"N|{DATASET_WORDS}"),
    name: str | None = option(None, "The name of the run. [default: the output folder's name]", metavar="TEXT"),
    output: Path | None = _OUTPUT,
    overwrite: Overwrite = False,
    trust_code: TrustCodeFlag = False,
    plugin: Plugins = None,
) -> EvaluatedRun:
    """Evaluate a model, embeddings, scores or ranked lists.

    Running the same command again resumes an interrupted run, or finds it complete. A different run in the output
    folder is replaced only with --overwrite.
    """
    if queries is not None and queries.strip().isdecimal():
        options, queries = replace(options, queries=int(queries)), None
    asking, asking_options = (None, {}) if queries is None else dataset_words(queries)
    if asking is not None and model.image_text is None:
        model = replace(model, image_text=encoders.MEAN)
    if model.query_caption and model.image_text is None:
        raise UsageError("--query-caption requires --image-text", fix="pass --image-text, or drop --query-caption")
    inputs, options = pipeline.evaluated_as_known(source.dataset, inputs, options, print_note)
    recipe = pipeline.Recipe(source.dataset, source.reader_options(), inputs, model, rerank, options, name)
    recipe = replace(recipe, queries=asking, queries_options=asking_options)
    recipe = recipe.with_plugins(plugin or ())
    encoding = replace(encode, device=options.device, notify=print_note)
    with storage.local_output(output, value_types.RUN_LAYOUT) as folder, engine.use_engine(execution):
        before = run_written_at(folder)
        result = pipeline.run_recipe(
            recipe,
            folder,
            overwrite=overwrite,
            progress=progress_bar(),
            command=recorded_command(),
            encoding=encoding,
            trust_code=trust_code or confirm_code,
        )
    return evaluated_run(result, output, before == run_written_at(folder), name)


@command("crosslens run runs/clip-b32/recipe.toml", "crosslens run my-recipe.toml -o runs/again --json")
def run(
    encode: Annotated[EncodeOptions, Flags(only=("offline",))],
    recipe: Path = positional(..., "A recipe.toml, written by a run or by hand; or a run folder."),
    output: Path | None = _OUTPUT,
    overwrite: Overwrite = False,
    allow_changed: bool = option(False, "Continue although inputs changed since the recipe was stored."),
    trust_code: TrustCodeFlag = False,
    plugin: Plugins = None,
) -> EvaluatedRun:
    """Repeat an evaluation from its recipe.

    The recipe of a run folder is compared with the run beside it. Python code that the recipe names runs only after a
    question, or with --trust-code.
    """
    file = recipe / value_types.RECIPE_FILE if recipe.is_dir() else recipe
    trusted = trust_code or confirm_code
    with storage.local_output(output, value_types.RUN_LAYOUT) as folder:
        before = run_written_at(folder)
        loaded = pipeline.Recipe.read(file, trust_code=trusted).with_plugins(plugin or ())
        result = pipeline.run_recipe(
            loaded, folder, overwrite=overwrite, allow_changed=allow_changed, progress=progress_bar(),
            command=recorded_command(), encoding=replace(encode, device=loaded.options.device), trust_code=trusted,
        )  # fmt: skip
    answer = evaluated_run(result, output, before == run_written_at(folder))
    if (file.parent / value_types.RUN_FILE).exists():
        same = value_types.Run.load(file.parent).fingerprint == result.fingerprint
        verdict = "every query has the same value as in" if same else "the values differ from those in"
        print_note(f"note: {verdict} {file.parent}")
    return answer


@command("crosslens metrics", "crosslens metrics CappedRecall", "crosslens metrics --json", reads_files=False)
def metrics(
    name: str | None = positional(None, "Describe this metric in full.", names="METRIC"),
) -> CommandAnswer:
    """List the metrics with their definitions."""
    if name is not None:
        family = metric_families.METRICS[metric_families.read_spec(name).family].value
        better = "higher is better" if family.higher_is_better else "lower is better"
        facts = [("definition", family.definition), ("source", family.source), ("read as", better)]
        facts += [(f"[{option.written}]", option.explained) for option in family.options]
        description = FactList(tuple(row for row in facts if row[1]), _pattern(family))
        return CommandAnswer(_pattern(family), (description,), {"metrics": [_content(family)]})
    families = sorted((entry.value for entry in metric_families.METRICS), key=lambda family: family.name.casefold())
    rows = FactList(tuple((_pattern(family), family.definition) for family in families))
    both = (
        "A name without a direction means both: Hit@5 is i2t/Hit@5 and t2i/Hit@5. R@5 is read as Hit@5 (R@5 of "
        "ir_measures is Recall@5), P@5 as Precision@5, RR as MRR, Rprec as RPrecision, Success@5 as Hit@5."
    )
    return CommandAnswer("Metrics", (rows, Text.of(both)), {"metrics": list(map(_content, families))})


def _pattern(family: metric_families.Family) -> str:
    return family.name + {"required": "@k", "optional": "[@k]", "none": ""}[family.cutoff]


def _content(family: metric_families.Family) -> dict[str, Any]:
    return {
        "name": family.name,
        "written": _pattern(family),
        "definition": family.definition,
        "source": family.source,
        "options": {option.name: option.explained for option in family.options},
        "higher_is_better": family.higher_is_better,
        "range": list(family.range),
    }


@command(
    "crosslens encode --model clip:openai/clip-vit-base-patch32 --dataset coco --captions captions.json \\",
    "    --image-folder val2017 -o clip-b32",
    "crosslens encode --model sentence:all-MiniLM-L6-v2 --dataset captions.jsonl -o minilm",
    "crosslens encode --list",
    group="Model",
    common=("device", "batch_size", "listing"),
)
def encode(
    source: DatasetOptions,
    options: EncodeOptions,
    execution: EngineOptions,
    model: str | None = option(None, "Such as clip:openai/clip-vit-base-patch32 (see --list)."),
    output: Path | None = output_option("Where images/ and captions/ are written.", "FOLDER"),
    overwrite: Overwrite = False,
    listing: bool = option(False, "Print the kinds of models, and nothing else.", flags=("--list",)),
) -> CommandAnswer:
    """Encode a dataset's images and captions with a model.

    Vectors are cached by content: the same command again, or another dataset with the same images, encodes only what
    is new. `crosslens evaluate --model` encodes and evaluates at once.
    """
    if listing:
        declared = {entry.name: {"summary": entry.summary, **entry.details} for entry in encoders.ENCODERS}
        kinds = [
            {"kind": kind, **{key: value for key, value in details.items() if key != "names"}}
            for kind, details in declared.items()
        ]
        rows = [(f"{kind['kind']}:{kind.get('example', '')}", kind["summary"].replace("``", "")) for kind in kinds]
        return CommandAnswer("Kinds of models", (FactList(tuple(rows)),), kinds)
    for flag, value in (("--model", model), ("--dataset", source.dataset), ("-o/--output", output)):
        if value is None:
            raise UsageError(f"missing option {flag}", fix="see crosslens encode --help")
    assert model is not None
    assert output is not None
    dataset = source.load()
    with storage.hold_output(output), engine.use_engine(execution):
        options = replace(options, notify=print_note)
        encoder = encoders.load_encoder(model, options)
        encoded = encoders.encode_dataset(
            dataset, encoder, image_folder=options.image_folder, skip_bad=options.skip_bad,
            **options.stream(progress_bar()),
        )  # fmt: skip
        pipeline.note_skipped(encoded.skipped, print_note)
        files = encoders.save_encoded(encoded, output, overwrite=overwrite)
    vectors = {"images": encoded.images, "captions": encoded.captions}
    shapes = {part: list(values.shape) for part, values in vectors.items() if values is not None}
    lines = [
        f"{shape[0]:,} {part} as {'×'.join(map(str, shape[1:]))} vectors in {files[part]}"
        for part, shape in shapes.items()
    ]
    if "dataset" in files:
        lines.append(f"evaluate them with --dataset {files['dataset']}, which is without the skipped images")
    facts = {
        "model": encoder.name,
        "revision": encoder.revision,
        "logit_scale": encoder.logit_scale,
        "shapes": shapes,
        "skipped": encoded.skipped,
        "written": {part: str(path) for part, path in files.items()},
    }
    return CommandAnswer(f"Vectors of {encoder.name}", (Text.of(*lines),), facts)


def encoding_of(options: EncodeOptions) -> EncodeOptions:
    """The options with the cache that they name opened, and notes printed."""
    return replace(options, cache=encoders.Cache.of(options.cache, print_note), notify=print_note)
