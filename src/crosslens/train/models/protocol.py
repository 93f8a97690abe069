"""What every trainable model is: images' features and captions in, encodings out, and scores between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from crosslens.core import Registry, UsageError
from crosslens.train.recipe import call_registered, check_settings, naming_recipe, settings_of

if TYPE_CHECKING:
    from torch import Tensor


ENCODER = "encoder"
"""The ``text`` of a model that trains a pretrained text encoder further."""


@dataclass(frozen=True)
class InputShape:
    """What a model will be given: known before it is built."""

    vector: int
    """Dimensions of an image's global feature; 0 without one."""
    words: int
    """Words in the vocabulary, the padding (0) and the unknown word (1) included; 0 without word ids."""
    text: tuple[int, ...] = ()
    """Of one caption's vectors where a frozen sentence encoder reads it; () otherwise."""
    regions: tuple[int, ...] = ()
    """Regions (or grid cells) of an image and the dimensions of each; () without local features."""
    encoder: str = ""
    """The pretrained model that is trained further, as KIND:SOURCE or a path; captions come as its tokens."""
    revision: str = ""
    """A hash of that model: adapters of another one would be of no use."""

    @property
    def pictures(self) -> bool:
        """Whether images are the pixels of pictures, which the pretrained model reads."""
        return bool(self.encoder) and not (self.vector or self.regions)


def local_dimension(shape: InputShape) -> int:
    """Dimensions of local features; raises where there are none."""
    if not shape.regions:
        raise UsageError("the data have no local features", fix="name an array of images × regions × dimension")
    return shape.regions[-1]


@dataclass(frozen=True)
class ImageBatch:
    """Images of a batch: global features (B×d), local ones (B×regions×d), or both; or pixels (B×channels×h×w)."""

    vectors: Tensor | None = None
    regions: Tensor | None = None
    pixels: Tensor | None = None

    def pooled(self) -> Tensor:
        """B×d: the global feature or, without one, the mean of the local ones."""
        if self.vectors is not None:
            return self.vectors
        assert self.regions is not None
        return self.regions.mean(dim=1)


@dataclass(frozen=True)
class CaptionBatch:
    """Captions of a batch: word ids (0 is padding) with their counts, vectors of a frozen encoder, or its tokens."""

    words: Tensor | None
    lengths: Tensor | None
    vectors: Tensor | None = None
    tokens: Tensor | None = None
    """B×T: what a pretrained text model reads."""
    mask: Tensor | None = None
    """B×T: 1 where a token counts; None where the model was trained without."""


class Parts(NamedTuple):
    """An item as heads see it."""

    vector: Tensor
    """B×d: the global feature in the common space."""
    local: Tensor
    """B×T×l: regions, patches, or states of words."""
    padding: Tensor | None
    """B×T, True where there is no word; None where nothing is padded."""


class EmbeddingSet(NamedTuple):
    """The encoding of models with several vectors per item."""

    vectors: Tensor
    """B×K×d, of length 1."""
    residuals: Tensor
    """B×K×d: what the local features add to the global vector; these are kept apart by the loss ``diversity``."""


class Gaussian(NamedTuple):
    """The encoding of models with a normal distribution per item, independent in every dimension."""

    mean: Tensor
    """B×d, of length 1."""
    log_variance: Tensor
    """B×d."""
    samples: Tensor
    """B×J×d, drawn from the distribution."""


class TrainableModel(Protocol):
    """A ``torch.nn.Module`` with these methods, made from an :class:`InputShape` and settings by keyword.

    It may have ``rate_groups() -> {"image": [parameters], "text": [parameters]}``: those whose learning rate is
    multiplied by ``image_rate`` and ``text_rate``; and ``fit_features(arrays)``, called once before the first step with
    the features of the training images, by name, for what it measures and keeps in buffers; and ``notes``, what a
    person should know of how its settings were met, which the card and the command repeat.
    """

    def encode_images(self, images: ImageBatch) -> Any:
        """B images → the model's encoding: a tensor B×…, or a tuple of such tensors."""

    def encode_captions(self, captions: CaptionBatch) -> Any:
        """B captions → their encoding, of the same form."""

    def scores(self, images: Any, captions: Any) -> Tensor:
        """Encodings of m images and n captions → m×n similarities. Also called on blocks of a whole split.

        A model whose scores take memory beyond the m×n says how much with ``numbers_per_pair(images, captions)``: the
        numbers it holds at once for one pair of these encodings.
        """

    def parameters(self) -> Any:
        """As of every ``torch.nn.Module``."""


class SharedSettings:
    """What settings mean that several models have.

    dimension: of the common space
    word_dimension: of word embeddings
    both: a GRU in both directions
    text: what reads captions: `gru`, `transformer`, `sentence` (a frozen sentence encoder with a head) or
        `encoder` (a pretrained text encoder that is trained further, with a head)
    attention_scale: factor of what the softmax over regions takes
    lora_rank: of the LoRA adapters; 0: none
    lora_alpha: adapters are multiplied by lora_alpha ÷ lora_rank
    lora_dropout: of what adapters read
    lora_targets: the linear maps that get an adapter, by the ends of their names, joined by commas; without any, the
        projections of attention in both towers
    """


class CosineScores(SharedSettings):
    """A model with one unit vector per item, or a tuple that begins with it; the cosine is the score."""

    def scores(self, images: Any, captions: Any) -> Tensor:
        rows, columns = (encoding[0] if isinstance(encoding, tuple) else encoding for encoding in (images, captions))
        return rows @ columns.T


MODELS: Registry[Callable[..., Any]] = Registry("trainable model", "trainable_models", ("crosslens.train.models",))
"""Kinds of models: ``(shape: InputShape, **settings) -> TrainableModel``. Declared with each: ``vectors`` (True where
an encoding in use, not while training, is one unit vector per item, whose inner product is the score: such a model is
an encoder); ``prepare`` (``(texts, **settings) -> keywords``: what a model must know of the training captions before it
is made; it names the settings it needs, and its result consists of lists and numbers, to be stored with the model)."""


def prepare_model(kind: str, settings: Mapping[str, Any], texts: Sequence[str], source: str) -> dict[str, Any]:
    """What a kind of model must know of the training captions, as keywords of :func:`build_model`; mostly nothing."""
    entry = MODELS[kind]
    prepare = entry.details.get("prepare")
    if prepare is None:
        return {}
    check_settings(entry, settings, table="[model]", source=source)
    needed = {option.name for option in settings_of(prepare)}
    with naming_recipe(entry, "[model]", source):
        prepared: dict[str, Any] = prepare(texts, **{name: settings[name] for name in needed & settings.keys()})
    return prepared


def build_model(
    kind: str, settings: Mapping[str, Any], shape: InputShape, prepared: Mapping[str, Any], source: str
) -> Any:
    """A model of a recipe's table ``[model]``, with what :func:`prepare_model` returned."""
    return call_registered(MODELS[kind], {**settings, **prepared}, shape, table="[model]", source=source)
