"""Losses: a batch's scores, encodings and similarities in, one number out; registered like a metric."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from crosslens.core import CrosslensError, Registry, UnknownNameError, UsageError
from crosslens.train.models.protocol import EmbeddingSet, Gaussian
from crosslens.train.recipe import (
    call_registered,
    check_choice,
    check_scale,
    check_settings,
    check_share,
    check_sizes,
    check_type,
)

if TYPE_CHECKING:
    from torch import Generator, Tensor
    from torch.nn import Parameter


Phi = Callable[["Tensor", "Tensor"], "Tensor"]
"""Rows of images and of captions in the batch, equally many → φ(the image's captions, the caption) of each pair."""
AS_IN_RECIPE = "recipe"
"""The name that leaves a recipe's own losses as they are."""

Losses = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class BatchOutput:
    """What the model makes of a batch of B matching pairs; image i and caption i match."""

    scores: Tensor
    """B×B: the similarity of image i and caption j."""
    relevant: Tensor
    """B×B, bool: caption j is a caption of image i. The diagonal is; two captions of one image may meet in a batch."""
    images: Any
    """The model's own encoding of the images: what its special losses need."""
    captions: Any
    phi: Phi
    """φ of pairs of the batch; asking for it raises where the recipe names no φ."""
    generator: Generator
    """For random choices, on the CPU: the same seed and step, the same choice."""

    def phi_matrix(self) -> Tensor:
        """φ of all pairs, B×B like the scores, asked for at once."""
        import torch

        count = len(self.scores)
        rows = torch.arange(count, device=self.scores.device)
        return self.phi(rows.repeat_interleave(count), rows.repeat(count)).reshape(count, count)


Loss = Callable[[BatchOutput], "Tensor"]


@dataclass(frozen=True)
class LearningLoss:
    """A loss with parameters of its own, such as a temperature: they are trained and kept with those of the model."""

    value: Loss
    learnt: Mapping[str, Parameter]

    def __call__(self, batch: BatchOutput) -> Tensor:
        return self.value(batch)


LOSSES: Registry[Callable[..., Loss]] = Registry("loss", "losses", ("crosslens.train.losses",))
"""Factories: settings by keyword → a loss. Declared with each: ``phi`` (True where it asks for φ),
``sized`` (True where it is made for so many ``words`` and for ``regions`` of so many dimensions)."""


def build_loss(
    entries: Sequence[Mapping[str, Any]], source: str = "recipe", *, words: int = 1, regions: int = 1
) -> tuple[Loss, bool]:
    """A recipe's ``[[loss]]`` entries as one loss, whose parameters are numbered by entry; and whether it needs φ.

    How many ``words`` the vocabulary has and dimensions the model's ``regions``: what losses with weights of their own
    are made for; without them only the settings of such a loss are checked.
    """
    parts: list[tuple[float, Loss]] = []
    needs_phi = False
    for entry in entries:
        settings = dict(entry)
        registered = LOSSES[settings.pop("kind")]
        weight = settings.pop("weight", 1.0)
        check_type("weight of [[loss]]", weight, "float", source)
        needs_phi = needs_phi or bool(registered.details.get("phi"))
        if registered.details.get("sized"):
            check_settings(registered, settings, table="[[loss]]", source=source)
            settings |= {"words": words, "regions": regions}
        parts.append((weight, call_registered(registered, settings, table="[[loss]]", source=source)))

    def total(batch: BatchOutput) -> Tensor:
        return sum((weight * loss(batch) for weight, loss in parts), start=batch.scores.new_zeros(()))

    learnt = {
        f"{number}_{name}": parameter
        for number, (_, loss) in enumerate(parts)
        for name, parameter in getattr(loss, "learnt", {}).items()
    }
    return LearningLoss(total, learnt), needs_phi


@cache
def named_losses() -> dict[str, Losses]:
    """Name → entries, as packaged."""
    content = tomllib.loads(files("crosslens.train").joinpath("losses.toml").read_text("utf-8"))
    return {name: tuple(entries) for name, entries in content.items()}


def losses_called(name: str) -> Losses:
    """What a name such as ``sam-random`` stands for; of any other loss kind, that loss with its default settings."""
    by_name = named_losses()
    if name in by_name:
        return by_name[name]
    if name not in LOSSES:
        raise UnknownNameError("loss", name, {*by_name, *LOSSES.names(), AS_IN_RECIPE})
    return ({"kind": name},)


SUM, HARDEST = "sum", "hardest"
RANDOM, HARD, SOFT, ALL = "random", "hard", "soft", "all"


@LOSSES.register("triplet")
def triplet(*, margin: float = 0.2, negatives: str = HARDEST) -> Loss:
    """The triplet loss of VSE++: [margin − s(i, c) + s(i, c⁻)]₊ + [margin − s(i, c) + s(i⁻, c)]₊.

    margin: by how much a matching pair should be above a mismatched one
    negatives: `hardest`, the closest of the batch; or `sum`, all of it
    """
    check_choice("negatives", negatives, (SUM, HARDEST))

    def loss(batch: BatchOutput) -> Tensor:
        matching = batch.scores.diagonal()
        to_captions = (margin - matching[:, None] + batch.scores).clamp(min=0).masked_fill(batch.relevant, 0)
        to_images = (margin - matching[None, :] + batch.scores).clamp(min=0).masked_fill(batch.relevant, 0)
        if negatives == HARDEST:
            return to_captions.amax(dim=1).sum() + to_images.amax(dim=0).sum()
        return to_captions.sum() + to_images.sum()

    return loss


@LOSSES.register("sam", phi=True)
def adaptive_margin(*, sampling: str = RANDOM, tau: float = 3.0, largest: float = 1.0) -> Loss:
    """The Semantic Adaptive Margin (FIVE, equation 7): the triplet loss with margin (φ(G, c) − φ(G, c⁻)) ÷ τ.

    G are the captions of the image, c is its caption in the batch, c⁻ the very caption used as negative, or the caption
    paired with the negative image. A negative that says what the image's captions say is pushed away by less.

    sampling: which negative: `random`, `hard` (the closest in the batch), `soft` (the furthest); or `all`, the sum over
        the whole batch
    tau: the divisor τ; the paper tries 3, 5 and 10
    largest: margins are at most this
    """
    check_choice("sampling", sampling, (RANDOM, HARD, SOFT, ALL))
    check_scale("tau", tau)

    def loss(batch: BatchOutput) -> Tensor:
        import torch

        matching = batch.scores.diagonal()
        if sampling == ALL:
            phi = batch.phi_matrix()
            margins = ((phi.diagonal()[:, None] - phi) / tau).clamp(max=largest)  # of image i against caption j
            to_captions = (margins - matching[:, None] + batch.scores).clamp(min=0)
            to_images = (margins.T - matching[None, :] + batch.scores).clamp(min=0)
            return (to_captions + to_images).masked_fill(batch.relevant, 0).sum()
        rows = torch.arange(len(matching), device=matching.device)
        caption = choose(batch.scores, batch.relevant, sampling, batch.generator)
        image = choose(batch.scores.T, batch.relevant.T, sampling, batch.generator)
        base = batch.phi(rows, rows)
        to_captions = ((base - batch.phi(rows, caption)) / tau).clamp(max=largest)
        to_images = ((base - batch.phi(rows, image)) / tau).clamp(max=largest)
        hinges = (to_captions - matching + batch.scores[rows, caption]).clamp(min=0) + (
            to_images - matching + batch.scores[image, rows]
        ).clamp(min=0)
        return hinges.masked_fill(batch.relevant.all(dim=1), 0).sum()  # a pair without any negative has no loss

    return loss


def choose(scores: Tensor, matches: Tensor, sampling: str, generator: Generator) -> Tensor:
    """One negative per row of ``scores`` (images × captions, or the other way round), never a match."""
    import torch

    if sampling == RANDOM:
        keys = torch.rand(scores.shape, generator=generator).to(scores.device)
        return keys.masked_fill(matches, -1.0).argmax(dim=1)
    sign = 1.0 if sampling == HARD else -1.0
    return (sign * scores.detach()).masked_fill(matches, -torch.inf).argmax(dim=1)


MIXED = "mixed"


@LOSSES.register("sam-released", phi=True)
def released_margin(*, sampling: str = RANDOM, tau: float = 3.0) -> Loss:
    """The Semantic Adaptive Margin as published in code (`ContrastiveLossMetric`), for comparison; `sam` is equation 7.

    From the scores s two matrices are made, D(i, j) = s(i, j) − s(i, i) and E(i, j) = s(i, j) − s(j, j). In every row i
    of each a column is chosen, d(i) and e(i). The loss is the sum over i of [D(i, d(i)) + u(d(i))]₊ +
    [E(i, e(i)) + v(e(i))]₊, where u(k) is (φ(G, c) − φ(G, c of e(k))) ÷ τ of the pair k, and v(k) the same with d(k),
    both at most 1. It differs from equation 7 in this:

    - Margins are vectors, added to matrices and so to their columns: a hinge has the margin of the pair that its
      negative belongs to, computed with that pair's negative.
    - Each of the two terms has the margins of the other's negatives.
    - The second term chooses by rows as well: not an image for each caption, but a caption for each image.
    - `hard` takes the second smallest of a row and `soft` the second largest: the reverse of what the paper says.
      Second because the pair itself, 0, is expected to be first; where it is second, it is taken, and its hinge has no
      gradient.
    - Other captions of the same image are negatives.

    sampling: `random`; `hard`, the second smallest difference of a row; `soft`, the second largest; `mixed`, for each
        batch `hard` or `random`, equally likely
    tau: the divisor τ
    """
    check_choice("sampling", sampling, (RANDOM, HARD, SOFT, MIXED))
    check_scale("tau", tau)

    def loss(batch: BatchOutput) -> Tensor:
        import torch

        matching = batch.scores.diagonal()
        rows = torch.arange(len(matching), device=matching.device)
        to_own_caption, to_own_image = batch.scores - matching[:, None], batch.scores - matching[None, :]
        choice = sampling
        if sampling == MIXED:
            choice = HARD if float(torch.rand((), generator=batch.generator)) < 0.5 else RANDOM
        first, second = (choose_column(part, choice, batch.generator) for part in (to_own_caption, to_own_image))
        base = batch.phi(rows, rows)
        first_margin = ((base - batch.phi(rows, second)) / tau).clamp(max=1)
        second_margin = ((base - batch.phi(rows, first)) / tau).clamp(max=1)
        hinges = (to_own_caption[rows, first] + first_margin[first]).clamp(min=0) + (
            to_own_image[rows, second] + second_margin[second]
        ).clamp(min=0)
        return hinges.sum()

    return loss


def choose_column(differences: Tensor, sampling: str, generator: Generator) -> Tensor:
    """For each row: any column but its own, or that of its second smallest or second largest difference."""
    import torch

    if sampling == RANDOM:
        keys = torch.rand(differences.shape, generator=generator).fill_diagonal_(-1.0)
        return keys.argmax(dim=1).to(differences.device)
    return differences.detach().topk(2, dim=1, largest=sampling == SOFT).indices[:, 1]


LARGEST_SCALE = 100.0
"""A learnt temperature falls to one over this at most, as CLIP's."""


@LOSSES.register("infonce")
def infonce(
    *, temperature: float = 0.05, learnt: bool = False, self_targets: float = 0.0, target_temperature: float = 0.1
) -> Loss:
    """InfoNCE, both directions: −log of the softmax of s(i, c) ÷ temperature over the batch, averaged.

    Other captions of the same image are left out of the denominators: they are no negatives. With `self_targets` the
    target is a mixture: that share of it is the softmax, over the batch, of how similar the model finds the captions
    and the images among themselves, (c·c′ + i·i′) ÷ 2 ÷ target_temperature; no gradient flows through it.

    temperature: scores are divided by it
    learnt: the temperature is trained, from that value on, down to 0.01 at most
    self_targets: the share of a target that follows the model's own similarities, from 0 to 1
    target_temperature: those similarities are divided by it
    """
    check_scale("temperature", temperature)
    check_scale("target_temperature", target_temperature)
    check_share("self_targets", self_targets)
    parameters = _zeros("temperature") if learnt else {}

    def loss(batch: BatchOutput) -> Tensor:
        import torch

        match = torch.eye(len(batch.scores), dtype=torch.bool, device=batch.scores.device)
        other = batch.relevant & ~match
        logits = (batch.scores * _scale(temperature, parameters)).masked_fill(other, -torch.inf)
        target = match.to(logits.dtype)
        if self_targets:
            if not all(getattr(encoded, "ndim", 0) == 2 for encoded in (batch.images, batch.captions)):
                raise UsageError(
                    "self_targets asks for one vector per image and per caption, and the model has others",
                    fix="leave self_targets out, or train a model such as vse",
                    option="self_targets",
                )
            images, captions = batch.images.detach(), batch.captions.detach()
            alike = (images @ images.T + captions @ captions.T).to(batch.scores.dtype) / 2
            similar = (alike / target_temperature).masked_fill(other, -torch.inf)
            target = (1 - self_targets) * target + self_targets * similar.softmax(dim=1)
        both = (logits.log_softmax(dim=1), logits.T.log_softmax(dim=1))
        # 0 · −∞ is no number. The target is the same in both directions: similarities are symmetric.
        return -sum((target * logs.masked_fill(other, 0)).sum() for logs in both) / (2 * len(logits))

    return LearningLoss(loss, parameters)


@LOSSES.register("siglip")
def siglip(*, temperature: float = 0.1, bias: float = -10.0, learnt: bool = False) -> Loss:
    """SigLIP's loss: every pair is its own yes-or-no question, −log σ(±(s ÷ temperature + bias)), summed per image.

    temperature: scores are divided by it
    bias: added to every pair; negative, since most pairs do not match
    learnt: temperature and bias are trained, from these values on
    """
    check_scale("temperature", temperature)
    parameters = _zeros("temperature", "bias") if learnt else {}

    def loss(batch: BatchOutput) -> Tensor:
        from torch.nn.functional import logsigmoid

        logits = batch.scores * _scale(temperature, parameters) + (bias + parameters.get("bias", 0.0))
        signed = logits.where(batch.relevant, -logits)
        return -logsigmoid(signed).sum() / len(logits)

    return LearningLoss(loss, parameters)


def _zeros(*names: str) -> dict[str, Parameter]:
    """Learnt numbers as differences from the values in the recipe: where nothing pulls, weight decay leads there."""
    import torch

    return {name: torch.nn.Parameter(torch.zeros(())) for name in names}


def _scale(temperature: float, parameters: Mapping[str, Parameter]) -> Any:
    """What scores are multiplied by; its logarithm is what is learnt."""
    if "temperature" not in parameters:
        return 1 / temperature
    return (parameters["temperature"].exp() / temperature).clamp(max=max(LARGEST_SCALE, 1 / temperature))


@LOSSES.register("graded-infonce", phi=True)
def graded_infonce(*, temperature: float = 0.05, target_temperature: float = 1.0, share: float = 0.5) -> Loss:
    """InfoNCE whose targets know φ: −Σ t · log p, both directions, averaged.

    p is the softmax of s(i, c) ÷ temperature over the batch, as in `infonce`. Its target t is a mixture: (1 − share)
    for the match, and share times the softmax of φ(G, c) ÷ target_temperature over the batch, where G are the captions
    of the image. Other captions of the same image are left out, as in `infonce`, which this is where share is 0.

    temperature: scores are divided by it
    target_temperature: φ is divided by it; the smaller, the closer the targets come to the most similar pair alone
    share: how much of a target follows φ, from 0 to 1
    """
    check_scale("temperature", temperature)
    check_scale("target_temperature", target_temperature)
    check_share("share", share)

    def loss(batch: BatchOutput) -> Tensor:
        import torch

        match = torch.eye(len(batch.scores), dtype=torch.bool, device=batch.scores.device)
        other = batch.relevant & ~match
        logits = (batch.scores / temperature).masked_fill(other, -torch.inf)
        phi = (batch.phi_matrix().to(logits.dtype) / target_temperature).masked_fill(other, -torch.inf)

        def direction(axis: int) -> Tensor:
            target = (1 - share) * match + share * phi.softmax(axis)
            logs = logits.log_softmax(axis).masked_fill(other, 0)  # 0 · −∞ is no number
            return -(target * logs).sum() / len(logits)

        return (direction(1) + direction(0)) / 2

    return loss


GRAM, GAUSSIAN = "gram", "gaussian"


@LOSSES.register("mmd")
def mmd(*, gamma: float = 0.0) -> Loss:
    """Maximum mean discrepancy of all image and all caption vectors of the batch: mean k(x, x′) − 2 k(x, y) + k(y, y′).

    The kernel is k(x, y) = exp(−γ ‖x − y‖), as in the published code of PVSE and DivE: the distance is not squared.

    gamma: γ; 0 is 1 ÷ dimension, as in PVSE; DivE has 0.5
    """
    if not gamma >= 0:
        raise UsageError(f"gamma is {gamma}", fix="gamma must be at least 0", option="gamma")

    def loss(batch: BatchOutput) -> Tensor:
        import torch

        # Of a tuple the first entry holds the vectors: those of a set, or the mean of a Gaussian.
        images, captions = (
            (encoding[0] if isinstance(encoding, tuple) else encoding).flatten(0, -2)
            for encoding in (batch.images, batch.captions)
        )
        factor = gamma or 1 / images.shape[-1]

        def kernel(first: Tensor, second: Tensor) -> Any:
            return torch.exp(-factor * torch.cdist(first, second)).mean()

        return kernel(images, images) - 2 * kernel(images, captions) + kernel(captions, captions)

    return loss


@LOSSES.register("diversity")
def diversity(*, form: str = GRAM, t: float = 2.0) -> Loss:
    """How alike the K residuals r of an item are, averaged over the batch; images and captions are added.

    `gram` is PVSE's: ‖G‖ ÷ K² (Frobenius), where G holds the cosines of different residuals and 0 on its diagonal.
    `gaussian` is DivE's: the mean over pairs of exp(−t ‖r − r′‖²), residuals of length 1. With K = 1 both are 0.

    form: `gram` or `gaussian`
    t: of `gaussian`: how fast it falls with distance
    """
    check_choice("form", form, (GRAM, GAUSSIAN))
    check_scale("t", t)

    def loss(batch: BatchOutput) -> Tensor:
        return likeness(batch.images) + likeness(batch.captions)

    def likeness(encoding: Any) -> Tensor:
        from torch.nn.functional import normalize

        shapes = [part.shape for part in encoding] if isinstance(encoding, tuple) else []
        if len(shapes) != 2 or len(shapes[0]) != 3 or shapes[0] != shapes[1]:
            raise UsageError(
                "the loss diversity needs a model with several vectors per item", fix="use it with pvse or dive"
            )
        residuals = normalize(EmbeddingSet(*encoding).residuals, dim=-1)
        k = residuals.shape[1]
        if k == 1:
            return residuals.new_zeros(())
        off_diagonal = [entry for entry in range(k * k) if entry % (k + 1)]
        cosines = (residuals @ residuals.transpose(1, 2)).flatten(1)[:, off_diagonal]
        return (
            cosines.norm(dim=1).mean() / k**2
            if form == GRAM
            else (2 * t * (cosines - 1)).exp().mean()  # ‖r − r′‖² = 2 − 2 r·r′
        )

    return loss


@LOSSES.register("pcme")
def soft_contrastive() -> Loss:
    """PCME's soft contrastive loss, summed over all pairs: −log p where they match, −log(1 − p) where they do not.

    p is the match probability of the pair, whose log-odds are the model's score.
    """

    def loss(batch: BatchOutput) -> Tensor:
        from torch.nn.functional import softplus

        _distribution("pcme", batch.images)
        signed = batch.scores.where(batch.relevant, -batch.scores)
        return softplus(-signed).sum()

    return loss


@LOSSES.register("vib")
def information_bottleneck() -> Loss:
    """The variational information bottleneck: KL(N(μ, σ²) ‖ N(0, 1)) = ½ Σ (μ² + σ² − 1 − log σ²), over all items.

    It keeps variances from vanishing; PCME gives it the weight 1e-5.
    """

    def loss(batch: BatchOutput) -> Tensor:
        return divergence(batch.images) + divergence(batch.captions)

    def divergence(encoding: Any) -> Tensor:
        item = _distribution("vib", encoding)
        return (item.mean.square() + item.log_variance.exp() - 1 - item.log_variance).sum() / 2

    return loss


def _distribution(loss: str, encoding: Any) -> Gaussian:
    """The encoding of a model with a variance per item; known by its shapes: it may come as a plain tuple."""
    shapes = [part.shape for part in encoding] if isinstance(encoding, tuple) else []
    if len(shapes) != 3 or len(shapes[0]) != 2 or shapes[0] != shapes[1]:
        raise UsageError(f"the loss {loss} needs a model with a variance per item", fix="use it with the model pcme")
    return Gaussian(*encoding)


@LOSSES.register("consensus")
def consensus(
    *,
    margin: float = 0.2,
    negatives: str = HARDEST,
    instance: float = 5.0,
    concepts: float = 1.0,
    agreement: float = 2.0,
) -> Loss:
    """What CVSE adds to the triplet loss: the same of both levels, and Σ KL(concepts of caption i ‖ of image i).

    margin: as of the triplet loss
    negatives: as of the triplet loss
    instance: weight of the triplet loss of the items' own vectors
    concepts: weight of the triplet loss of the vectors made of concepts
    agreement: weight of the Kullback–Leibler divergence, summed over the batch
    """
    hinges = triplet(margin=margin, negatives=negatives)

    def loss(batch: BatchOutput) -> Tensor:
        if not (isinstance(batch.images, tuple) and len(batch.images) == 4):
            raise CrosslensError("the loss consensus requires the model cvse", fix='write kind = "cvse" in [model]')
        (_, own_image, concept_image, log_image), (_, own_caption, concept_caption, log_caption) = (
            batch.images,
            batch.captions,
        )
        divergence = (log_caption.exp() * (log_caption - log_image)).sum()
        return (
            instance * hinges(replace(batch, scores=own_image @ own_caption.T))
            + concepts * hinges(replace(batch, scores=concept_image @ concept_caption.T))
            + agreement * divergence
        )

    return loss


ENDS = 0
"""The word id of padding: what a decoder is given before the first word, and predicts after the last."""


@LOSSES.register("captioning", sized=True)
def captioning(*, words: int, regions: int, dimension: int = 512, word_dimension: int = 300) -> Loss:
    """What VSRN adds to the triplet loss: −Σ log p(word | the words before, the regions), the mean over captions.

    The decoder is a GRU that attends to the regions before every word. It is trained with the model and kept beside its
    weights; retrieval does not need it, and a stored model is loaded without it.

    dimension: of the decoder's state
    word_dimension: of the decoder's word embeddings
    """
    check_sizes(dimension=dimension, word_dimension=word_dimension)
    decoder = _decoder(words, regions, dimension, word_dimension)

    def loss(batch: BatchOutput) -> Tensor:
        encodings = batch.images, batch.captions
        shapes = [[part.ndim for part in parts] for parts in encodings if isinstance(parts, tuple)]
        if shapes != [[2, 3], [2, 2]]:
            raise CrosslensError(
                "the loss captioning requires the model vsrn with a text tower that reads words",
                fix='write kind = "vsrn" and text = "gru" or "transformer" in [model]',
            )
        return decoder(batch.images[1], batch.captions[1])

    return LearningLoss(loss, {name.replace(".", "_"): weight for name, weight in decoder.named_parameters()})


def _decoder(words: int, regions: int, dimension: int, word_dimension: int) -> Any:
    """The module; losses are declared without importing torch."""
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy, pad

    class Decoder(nn.Module):
        """Regions (B×R×d) and word ids (B×T) → the loss."""

        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(words, word_dimension)
            self.first = nn.Linear(regions, dimension)
            self.query = nn.Linear(dimension, dimension)
            self.key = nn.Linear(regions, dimension, bias=False)  # one bias for query and key
            self.weight = nn.Linear(dimension, 1, bias=False)
            self.cell = nn.GRUCell(word_dimension + regions, dimension)
            self.out = nn.Linear(dimension, words)

        def forward(self, regions: Any, targets: Any) -> Any:
            inputs = self.embedding(pad(targets, (1, 0), value=ENDS))
            keys, state, states = self.key(regions), self.first(regions.mean(dim=1)).tanh(), []
            for position in range(inputs.shape[1]):
                attention = self.weight((keys + self.query(state)[:, None]).tanh()).softmax(dim=1)
                attended = (attention * regions).sum(dim=1)
                state = self.cell(torch.cat([inputs[:, position], attended], dim=1), state)
                states.append(state)
            # The end is predicted once, after the last word; what follows is no part of the caption.
            counted = pad(targets != ENDS, (1, 0), value=True)
            logits = self.out(torch.stack(states, dim=1)[counted])
            return cross_entropy(logits, pad(targets, (0, 1), value=ENDS)[counted], reduction="sum") / len(targets)

    return Decoder()
