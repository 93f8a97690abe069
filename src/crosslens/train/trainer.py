"""The trainer: one loop for all models and losses.

A step follows from the seed and its number alone (order, dropout, sampling), so a training that was interrupted takes
the same steps as one that was not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import (
    CrosslensError,
    InputError,
    MissingExtraError,
    Progress,
    SilentProgress,
    UsageError,
    argument,
    derive_seed,
    fingerprint,
    stage,
    tidy_output,
    workspace,
)
from crosslens.encode import encode_texts, load_encoder
from crosslens.metrics import facts_of, family_of, parse_metrics
from crosslens.similarity import load_similarity, references_of
from crosslens.train.batches import BatchPlan, CaptionSource
from crosslens.train.checkpoint import (
    Checkpoint,
    load_checkpoint,
    optimizer_tensors,
    restore_optimizer,
    save_checkpoint,
)
from crosslens.train.feature_sets import Split, TrainingData
from crosslens.train.losses.protocol import BatchOutput, Phi, build_loss
from crosslens.train.model_folder import MODEL_LAYOUT, finished_card, write_model
from crosslens.train.models.protocol import MODELS, InputShape
from crosslens.train.recipe import COSINE, STEP, TrainingRecipe, TrainingSettings
from crosslens.train.scoring import metrics_of, score_matrix
from crosslens.train.settings import call_registered
from crosslens.train.vocabulary import CaptionVocabulary

Array = np.ndarray[Any, Any]
Watch = Callable[[dict[str, Any]], None]

CHECKPOINT = "checkpoint.safetensors"
TEST_METRICS = "Hit@1 Hit@5 Hit@10 MedR Rsum"


@dataclass(frozen=True)
class Trained:
    """A trained model's folder, and what its best checkpoint reaches on the test split."""

    path: Path
    card: Mapping[str, Any]

    @property
    def test(self) -> Mapping[str, float]:
        """Test figures of the checkpoint that is best on validation."""
        figures: Mapping[str, float] = self.card["test"]
        return figures

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        names = ("test", "validation", "best_step", "steps", "parameters", "history", "recipe")
        return {**{name: self.card[name] for name in names}, "model": str(self.path)}


def train_model(
    recipe: TrainingRecipe,
    data: TrainingData,
    output: str | Path,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> Trained:
    """Train, validate every few epochs, keep the best checkpoint, and measure it on the test split.

    An interrupted call leaves its last checkpoint beside ``output``; the same call resumes there and ends with the same
    weights. ``watch`` is called with the row of every validation, those before an interruption included.
    """
    output = Path(output)
    _check_metric(recipe)
    identity = json.dumps(recipe.identity(), sort_keys=True, default=str)
    parts = {"recipe": identity, **{
        f"{name} {what}": value
        for name, split in vars(data).items()
        for what, value in {"captions": split.dataset.fingerprint, **split.features.arrays()}.items()
    }}  # fmt: skip
    key = fingerprint("training", parts)
    card = finished_card(output, key, overwrite)
    if card is None:
        with workspace(output, key) as work:
            card = finished_card(output, key, overwrite)
            if card is None:
                _require_torch()
                with _threads(recipe.settings.threads):
                    training = _Training(recipe, data, work.beside(CHECKPOINT), progress or SilentProgress(), watch)
                    training.run()
                    card = {"key": key, **training.card()}
                write_model(work.new, card, training.best)
                work.publish(MODEL_LAYOUT)
    tidy_output(output, key)
    return Trained(output, card)


class _Training:
    """One training: what it consists of, and where it stands."""

    def __init__(
        self, recipe: TrainingRecipe, data: TrainingData, file: Path, progress: Progress, watch: Watch | None
    ) -> None:
        import torch

        self.recipe, self.settings, self.data, self.file = recipe, recipe.settings, data, file
        self.progress, self.watch = progress, watch
        self.device = _device(self.settings.device)
        self.train = data.train.part(self.settings.fraction, self.settings.seed)
        if len(self.train.features) < 2:
            raise UsageError(
                "the training split has one image, and so no mismatched pairs",
                fix="train on a larger fraction", option="fraction",
            )  # fmt: skip
        self.plan = BatchPlan(self.train, self.settings.batch_size, self.settings.seed)
        self.steps = self.settings.epochs * self.plan.per_epoch
        self.vocabulary = CaptionVocabulary.of(self.train.dataset.texts, recipe.least_count)
        self._sources: dict[int, CaptionSource] = {}
        vectors = self._captions(self.train).vectors
        shapes = self.train.features.shapes
        self.shape = InputShape(
            shapes.get("vectors", (0,))[0], len(self.vocabulary) if vectors is None else 0,
            () if vectors is None else tuple(vectors.shape[1:]), shapes.get("regions", ()),
        )  # fmt: skip
        torch.manual_seed(derive_seed(self.settings.seed, "weights") % 2**63)
        self.model: Any = call_registered(
            MODELS[recipe.model], recipe.model_settings, self.shape, table="[model]", source=recipe.source
        ).to(self.device)
        self.loss, needs_phi = build_loss(recipe.losses, recipe.source)
        self.phi = self._prepared_phi() if needs_phi else None
        self.optimizer = _optimizer(self.model, self.settings)
        self.step, self.history, self.best = 0, list[dict[str, Any]](), dict[str, Any]()
        if file.exists():
            self._resume(load_checkpoint(file))

    def _captions(self, split: Split) -> CaptionSource:
        """A split's captions as the model reads them; made once."""
        if id(split) not in self._sources:
            texts = split.dataset.texts
            if self.recipe.text_model:
                encoder = load_encoder(self.recipe.text_model)
                source = CaptionSource(None, None, encode_texts(encoder, texts, progress=self.progress).rows)
            else:
                source = CaptionSource.of_words(texts, self.vocabulary)
            self._sources[id(split)] = source
        return self._sources[id(split)]

    def _prepared_phi(self) -> Any:
        references = references_of(self.train.dataset)
        return load_similarity(self.recipe.phi).prepare(references, self.train.dataset.texts, progress=self.progress)

    def _resume(self, checkpoint: Checkpoint) -> None:
        try:
            self.model.load_state_dict(checkpoint.weights)
            restore_optimizer(self.optimizer, checkpoint.optimizer)
        except (RuntimeError, ValueError, KeyError) as error:
            raise InputError(
                f"a checkpoint of another model: {error}", file=self.file, expected="a checkpoint of this training",
                fix="remove the file to train from the start",
            ) from error  # fmt: skip
        self.step, self.history, self.best = checkpoint.step, checkpoint.history, dict(checkpoint.best)

    def run(self) -> None:
        """Take the remaining steps."""
        if self.watch:
            for row in self.history:
                self.watch(row)
        epoch_steps = self.plan.per_epoch * self.settings.validate_every
        with stage(self.progress, "training", self.steps) as running:
            running.advance(self.step)
            while self.step < self.steps and not self._is_over():
                until = min(self.steps, (self.step // epoch_steps + 1) * epoch_steps)
                total = 0.0
                taken = until - self.step
                for step in range(self.step, until):
                    total += self._take(step)
                    running.advance(1)
                self.step = until
                self._validate(total / taken)
                weights, state = self.model.state_dict(), optimizer_tensors(self.optimizer)
                save_checkpoint(self.file, Checkpoint(self.step, weights, state, self.history, self.best))

    def _is_over(self) -> bool:
        """Whether patience is exhausted."""
        return bool(self.settings.patience) and len(self.history) - 1 - self._best_row() >= self.settings.patience

    def _best_row(self) -> int:
        """The validation with the best value, the first of equal ones."""
        values = [row["value"] for row in self.history]
        better = np.argmax if facts_of(self.settings.metric).higher_is_better else np.argmin
        return int(better(values)) if values else 0

    def _take(self, step: int) -> float:
        import torch

        settings = self.settings
        torch.manual_seed(derive_seed(settings.seed, "step", step) % 2**63)
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate * rate_factor(settings, step, self.steps, self.plan.per_epoch)
        self.model.train()
        rows = self.plan.rows(step)
        with self._precision():
            loss: Any = self.loss(self._output(rows, step))
        value = float(loss.detach())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), settings.clip or math.inf)
        if not (math.isfinite(value) and math.isfinite(norm)):
            raise CrosslensError(
                f"the loss is {value} at step {step + 1}, the norm of its gradient {float(norm)}; "
                f"the last checkpoint is of step {self.step}",
                fix="lower the learning rate, clip gradients, or compute in fp32", code="loss-not-finite",
            )  # fmt: skip
        self.optimizer.step()
        return value

    def _output(self, rows: Array, step: int) -> BatchOutput:
        import torch

        image_rows = np.asarray(self.train.dataset.caption_image)[rows]
        images = self.model.encode_images(self.train.features.batch(image_rows, self.device))
        captions = self.model.encode_captions(self._captions(self.train).batch(rows, self.device))
        of_image = torch.from_numpy(image_rows).to(self.device)
        generator = torch.Generator().manual_seed(derive_seed(self.settings.seed, "sampling", step) % 2**63)
        return BatchOutput(
            self.model.scores(images, captions), of_image[:, None] == of_image[None, :], images, captions,
            self._phi_of(image_rows, rows), generator,
        )  # fmt: skip

    def _phi_of(self, image_rows: Array, caption_rows: Array) -> Phi:
        import torch

        def phi(images: Any, captions: Any) -> Any:
            if self.phi is None:
                raise CrosslensError("a loss asks for φ without saying so", fix="register it with phi=True")
            values = self.phi.pairs(image_rows[images.cpu().numpy()], caption_rows[captions.cpu().numpy()])
            return torch.from_numpy(np.asarray(values, np.float32)).to(self.device)

        return phi

    def _precision(self) -> AbstractContextManager[Any]:
        import torch

        if self.settings.precision == "fp32":
            return nullcontext()
        autocast: AbstractContextManager[Any] = torch.autocast(self.device.type, torch.bfloat16)
        return autocast

    def _validate(self, loss: float) -> None:
        values = self.evaluate(self.data.validation, self.settings.metric)
        value = float(np.mean(list(values.values())))  # of both directions, where the metric is of one
        row = {"step": self.step, "epoch": self.step / self.plan.per_epoch, "loss": loss, "value": value}
        self.history.append(row)
        if self._best_row() == len(self.history) - 1:
            self.best = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
        if self.watch:
            self.watch(row)

    def evaluate(self, split: Split, metrics: str) -> dict[str, float]:
        """Metrics of the present weights."""
        self.model.eval()
        scores = score_matrix(self.model, split, self._captions(split), self.device)
        return {name: float(values.mean) for name, values in metrics_of(scores, split.dataset, metrics).items()}

    def card(self) -> dict[str, Any]:
        """What the folder says of the model; its weights become the best ones."""
        self.model.load_state_dict(self.best)
        best = self.history[self._best_row()]
        return {
            "recipe": self.recipe.name, "identity": self.recipe.identity(), "training": {
                "dataset": self.train.dataset.name, "images": len(self.train.features), "captions": self.plan.captions,
            }, "steps": self.step, "best_step": best["step"],
            "parameters": sum(parameter.numel() for parameter in self.model.parameters()),
            "validation": {self.settings.metric: best["value"]}, "test": self.evaluate(self.data.test, TEST_METRICS),
            "shape": vars(self.shape),
            "vocabulary": list(self.vocabulary.words), "history": self.history,
        }  # fmt: skip


def _check_metric(recipe: TrainingRecipe) -> None:
    """Raise unless checkpoints can be compared by the recipe's metric."""
    requests = parse_metrics(recipe.settings.metric)
    if len(requests) != 1:
        problem, fix = f"metric is {recipe.settings.metric!r}", "name one metric, such as Rsum"
        raise UsageError(problem, fix=fix, option="metric")
    if family_of(requests[0].spec).graded:
        problem = f"checkpoints cannot be chosen by {requests[0]} yet, which needs graded relevance"
        raise UsageError(problem, fix="choose by a metric of ranks, such as Rsum", option="metric")


def _require_torch() -> None:
    try:
        import safetensors.torch  # noqa: F401  # imports torch
    except ImportError as error:
        package = "safetensors" if str(error.name).startswith("safetensors") else "torch"
        raise MissingExtraError("training", package, "train") from error


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """Compute with so many threads; None: as many as torch chooses."""
    import torch

    before = torch.get_num_threads()
    if count:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _device(name: str | None) -> Any:
    import torch

    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(
            f"cannot use the device {name!r}: {str(error).splitlines()[0]}",
            fix=f"leave {argument('device')} out, or use 'cpu'", option="device",
        ) from error  # fmt: skip
    return device


def _optimizer(model: Any, settings: TrainingSettings) -> Any:
    import torch

    kind = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.AdamW
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return kind(trained, lr=settings.learning_rate, weight_decay=settings.weight_decay)


def rate_factor(settings: TrainingSettings, step: int, steps: int, per_epoch: int) -> float:
    """The share of the highest learning rate at a step."""
    warm_up = settings.warm_up * steps
    if step < warm_up:
        return min(1.0, (step + 1) / warm_up)
    if settings.schedule == STEP:
        return float(0.1 ** (step // (per_epoch * settings.decay_epochs)))
    if settings.schedule == COSINE:
        return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(1.0, steps - warm_up)))
    return 1.0
