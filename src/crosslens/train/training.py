"""One training, step by step.

A step follows from the seed and its number alone (order, dropout, sampling), so a training that was interrupted takes
the same steps as one that was not.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import CrosslensError, InputError, UsageError
from crosslens.engine import Progress, stage
from crosslens.metrics import facts_of
from crosslens.similarity import prepare_dataset
from crosslens.storage import Array, derive_seed
from crosslens.train.captions import BatchPlan, CaptionReader, CaptionVocabulary, pretrained_of
from crosslens.train.evaluation import SplitMetrics, TrainingMetrics, score_matrix
from crosslens.train.features import Split, TrainingData
from crosslens.train.losses import BatchOutput, build_loss
from crosslens.train.models.protocol import InputShape, build_model, prepare_model
from crosslens.train.processes import Group, first_interrupt, seed_generators
from crosslens.train.recipe import COSINE, STEP, TrainingRecipe, TrainingSettings
from crosslens.train.stored.checkpoint import (
    Checkpoint,
    SaveTimes,
    load_checkpoint,
    load_trained_state,
    save_checkpoint,
    trained_state,
)
from crosslens.values import Run

_FACTOR = "factor"
"""In a parameter group: by what the learning rate is multiplied for it."""


def build_optimizer(model: Any, settings: TrainingSettings) -> Any:
    """The optimiser of a model's trainable parameters, in groups with the factor of their rate: the image's, the
    text's, all others; empty groups are left out.
    """
    import torch

    factors, by_group = {"image": settings.image_rate, "text": settings.text_rate}, dict[str, list[Any]]()
    differ = set(factors.values()) != {1.0}
    if differ and not hasattr(model, "rate_groups"):
        raise CrosslensError(
            f"image_rate is {settings.image_rate} and text_rate is {settings.text_rate}, "
            f"and {type(model).__name__} does not say which of its parameters are the image's and the text's",
            fix="leave both at 1, or give the model a method rate_groups",
            code="no-rate-groups",
        )
    if differ:  # else models need not name groups
        by_group = {name: _trainable(parameters) for name, parameters in model.rate_groups().items()}
    unknown = by_group.keys() - factors.keys()
    grouped_ids = [id(parameter) for parameters in by_group.values() for parameter in parameters]
    if unknown or len(grouped_ids) > len(set(grouped_ids)):
        problem = f"a group {min(unknown)!r}" if unknown else "a parameter in two groups"
        raise CrosslensError(
            f"rate_groups of {type(model).__name__} has {problem}",
            fix="return the groups image and text, each parameter in one at most",
            code="no-rate-groups",
        )
    rest = [parameter for parameter in _trainable(model.parameters()) if id(parameter) not in set(grouped_ids)]
    groups = [{"params": parameters, _FACTOR: factors[name]} for name, parameters in by_group.items()]
    groups = [group for group in (*groups, {"params": rest, _FACTOR: 1.0}) if group["params"]]
    kind = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.AdamW
    return kind(groups, lr=settings.learning_rate, weight_decay=settings.weight_decay)


def _trainable(parameters: Any) -> list[Any]:
    return [parameter for parameter in parameters if parameter.requires_grad]


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


Watch = Callable[[dict[str, Any]], None]


class Training:
    """One training: what it consists of, and where it stands."""

    def __init__(
        self, recipe: TrainingRecipe, data: TrainingData, file: Path, progress: Progress, watch: Watch | None,
        group: Group,
    ) -> None:  # fmt: skip
        import torch

        self.recipe, self.settings, self.data, self.file = recipe, recipe.settings, data, file
        self.progress, self.watch, self.group, self.device = progress, watch, group, group.device
        self.train = data.train.part(self.settings.fraction, self.settings.seed)
        if len(self.train.features) < 2:
            raise UsageError(
                "the training split has one image, and so no mismatched pairs",
                fix="train on a larger fraction",
                option="fraction",
            )
        self.plan = BatchPlan(self.train, self.settings.batch_size, self.settings.seed)
        self.steps = self.settings.steps(self.plan.per_epoch)
        self.vocabulary = CaptionVocabulary.of(self.train.dataset.texts, recipe.least_count)
        pretrained = pretrained_of(recipe, data)
        self.captions = CaptionReader(recipe.text_model, self.vocabulary, progress, pretrained)
        with group.leader_first():
            for split in (self.train, data.validation, data.test):
                self.captions(split)
        vectors = self.captions(self.train).vectors
        shapes = self.train.features.shapes
        self.shape = InputShape(
            shapes.get("vectors", (0,))[0], len(self.vocabulary) if vectors is None and pretrained is None else 0,
            () if vectors is None else tuple(vectors.shape[1:]), shapes.get("regions", ()),
            *(() if pretrained is None else (pretrained.model, pretrained.revision)),
        )  # fmt: skip
        seed_generators(derive_seed(self.settings.seed, "weights") % 2**63, self.device)
        model = recipe.model, recipe.model_settings
        self.prepared = prepare_model(*model, self.train.dataset.texts, recipe.source)
        self.model: Any = build_model(*model, self.shape, self.prepared, recipe.source).to(self.device)
        if hasattr(self.model, "fit_features"):
            self.model.fit_features(self.train.features.arrays())
        self.loss, needs_phi = build_loss(
            recipe.losses, recipe.source, words=self.shape.words, regions=getattr(self.model, "region_dimension", 1)
        )
        learnt = getattr(self.loss, "learnt", {})
        if learnt:  # so that they are trained, clipped and kept with the model's own
            self.model.loss = torch.nn.ParameterDict(dict(learnt)).to(self.device)
        with group.leader_first():
            dataset, threads = self.train.dataset, self.settings.threads
            self.phi = prepare_dataset(dataset, recipe.phi, threads=threads, progress=progress) if needs_phi else None
        self.optimizer = build_optimizer(self.model, self.settings)
        self.validation = SplitMetrics(
            data.validation.dataset, self.settings.metric, threads=self.settings.threads, progress=progress
        )
        self.step, self.history, self.best = 0, list[dict[str, Any]](), dict[str, Any]()
        self.losses, self.saved_step = (0.0, 0), 0
        self.saved = SaveTimes(self.settings.checkpoint_share)
        if file.exists():
            self._resume(load_checkpoint(file))

    def _resume(self, checkpoint: Checkpoint) -> None:
        import torch

        try:
            load_trained_state(self.model, checkpoint.weights)
            state: dict[int, dict[str, Any]] = {}
            for name, value in checkpoint.optimizer.items():
                parameter, _, entry = name.partition("/")
                state.setdefault(int(parameter), {})[entry] = value
            self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state})
        except (RuntimeError, ValueError, KeyError) as error:
            raise InputError(
                f"a checkpoint of another model: {error}", file=self.file, expected="a checkpoint of this training",
                fix="remove the file to train from the start",
            ) from error  # fmt: skip
        self.step, self.history, self.best = checkpoint.step, checkpoint.history, dict(checkpoint.best)
        self.losses, self.saved_step = checkpoint.losses, checkpoint.step
        if checkpoint.threads is not None and self.settings.threads is None:
            torch.set_num_threads(
                checkpoint.threads
            )  # until the training ends: with another number, sums round differently

    def run(self) -> None:
        """Take the remaining steps. Interrupted between two of them, it leaves a checkpoint."""
        if self.watch:
            for row in self.history:
                self.watch(row)
        try:
            with stage(self.progress, "training", self.steps, done=self.step) as running:
                self._take_steps(running)
        except KeyboardInterrupt as error:
            with uninterrupted():
                self._save()
            raise KeyboardInterrupt(
                f"stopped after step {self.step:,} of {self.steps:,}; the same command resumes there"
            ) from error

    def _take_steps(self, running: Progress) -> None:
        epoch_steps = self.plan.per_epoch * self.settings.validate_every
        while True:
            at_validation = self.step == self.steps or (self.step > 0 and self.step % epoch_steps == 0)
            if at_validation and (not self.history or self.history[-1]["step"] < self.step):
                self._validate()
            patience, waited = self.settings.patience, len(self.history) - 1 - self._best_row()
            is_over = self.step == self.steps or (bool(patience) and waited >= patience)
            if at_validation and (is_over or self.saved.is_due()):
                self._save()
            if is_over:
                return
            if self.group.is_stopped():
                raise KeyboardInterrupt
            with uninterrupted():
                loss = self._take(self.step)
                self.losses = (self.losses[0] + loss, self.losses[1] + 1)
                self.step += 1
            running.advance(1)

    def _save(self) -> None:
        import torch

        self.saved_step = self.step
        if not self.group.leads:
            return
        weights = trained_state(self.model)
        state = {
            f"{parameter}/{entry}": value
            for parameter, values in self.optimizer.state_dict()["state"].items()
            for entry, value in values.items()
        }
        with self.saved.saving():
            threads = torch.get_num_threads()
            reached = Checkpoint(self.step, weights, state, self.history, self.best, self.losses, threads)
            save_checkpoint(self.file, reached)

    def _best_row(self) -> int:
        """The validation with the best value, the first of equal ones."""
        values = [row["value"] for row in self.history]
        better = np.argmax if facts_of(self.settings.metric).higher_is_better else np.argmin
        return int(better(values)) if values else 0

    def _take(self, step: int) -> float:
        import torch

        settings, group = self.settings, self.group
        rank = [group.rank] if group.rank else []
        seed_generators(derive_seed(settings.seed, "step", step, *rank) % 2**63, self.device)
        rate = self._rate(step)
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = rate * parameters[_FACTOR]
        self.model.train()
        # In bf16 the weights stay float32.
        with torch.autocast(self.device.type, torch.bfloat16) if settings.precision == "bf16" else nullcontext():
            loss: Any = self.loss(self._output(self.plan.rows(step), step))
        value = float(loss.detach())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        group.add_gradients(self.model)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), settings.clip or math.inf)
        if not (math.isfinite(value) and math.isfinite(norm)):
            last = f"the last checkpoint is of step {self.saved_step}" if self.saved_step else "no checkpoint yet"
            raise CrosslensError(
                f"the loss is {value} at step {step + 1}, the norm of its gradient {float(norm)}; {last}",
                fix="lower the learning rate, clip gradients, or compute in fp32",
                code="loss-not-finite",
            )
        self.optimizer.step()
        return value

    def _rate(self, step: int) -> float:
        return self.settings.learning_rate * rate_factor(self.settings, step, self.steps, self.plan.per_epoch)

    def _output(self, rows: Array, step: int) -> BatchOutput:
        import torch

        group, share = self.group, self.group.share(rows)
        image_rows = np.asarray(self.train.dataset.caption_image)[rows]
        images = self.model.encode_images(self.train.features.batch(group.share(image_rows), self.device))
        captions = self.model.encode_captions(self.captions(self.train).batch(share, self.device, among=rows))
        # Every process scores its images with all captions, whose gradients are then spread over the processes.
        scores = group.gather(self.model.scores(images, group.gather(captions, add_gradients=True)))
        of_image = torch.from_numpy(image_rows).to(self.device)
        generator = torch.Generator().manual_seed(derive_seed(self.settings.seed, "sampling", step) % 2**63)

        def phi(of_images: Any, of_captions: Any) -> Any:
            if self.phi is None:
                raise CrosslensError("a loss asks for φ without saying so", fix="register it with phi=True")
            values = self.phi.pairs(image_rows[of_images.cpu().numpy()], rows[of_captions.cpu().numpy()])
            return torch.from_numpy(np.asarray(values, np.float32)).to(self.device)

        relevant = of_image[:, None] == of_image[None, :]
        return BatchOutput(scores, relevant, group.gather(images), group.gather(captions), phi, generator)

    def _validate(self) -> None:
        scores = self._scores(self.data.validation)
        values = self.validation(scores) if self.group.leads else {"": 0.0}
        # The mean of both directions, where the metric is of one.
        value = self.group.from_leader(float(np.mean(list(values.values()))))
        if not math.isfinite(value):
            raise CrosslensError(
                f"{self.settings.metric} of the validation split is {value}, so no checkpoint is better than another",
                fix="choose another metric",
                option="metric",
            )
        loss = self.losses[0] / max(1, self.losses[1])
        row = {
            "step": self.step, "epoch": self.step / self.plan.per_epoch, "loss": loss, "value": value,
            "rate": self._rate(self.step - 1),
        }  # fmt: skip
        with uninterrupted():
            self.losses = (0.0, 0)
            self.history.append(row)
            if self._best_row() == len(self.history) - 1:
                self.best = {name: tensor.detach().clone() for name, tensor in trained_state(self.model).items()}
        if self.watch:
            self.watch(row)

    def _scores(self, split: Split) -> Array:
        self.model.eval()
        return score_matrix(self.model, split, self.captions(split), self.group)

    def test_run(self) -> Run | None:
        """The test split under the present weights, query by query; only in the first process."""
        test, metrics = self.data.test, TrainingMetrics(self.settings).test
        scores = self._scores(test)
        if not self.group.leads:
            return None
        measured = SplitMetrics(test.dataset, metrics, threads=self.settings.threads, progress=self.progress)
        return measured.run(self.recipe.name, scores)

    def use_best(self) -> None:
        load_trained_state(self.model, self.best)

    def card(self) -> dict[str, Any]:
        """What the folder says of the model, but for its figures on the test split."""
        best = self.history[self._best_row()]
        return {
            "recipe": self.recipe.name, "identity": self.recipe.identity(), "training": {
                "dataset": self.train.dataset.name, "images": len(self.train.features), "captions": self.plan.captions,
            }, "steps": self.step, "best_step": best["step"],
            "parameters": sum(tensor.numel() for tensor in self.model.parameters() if tensor.requires_grad),
            "validation": {self.settings.metric: best["value"]},
            "shape": vars(self.shape), "prepared": self.prepared, "text_revision": self.captions.revision,
            "vocabulary": list(self.vocabulary.words), "history": self.history,
            "notes": list(getattr(self.model, "notes", ())),
        }  # fmt: skip


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let the block end before Ctrl-C is answered; a second Ctrl-C is answered at once."""
    pressed = threading.Event()
    with first_interrupt(pressed.set):
        yield
    if pressed.is_set():
        raise KeyboardInterrupt
