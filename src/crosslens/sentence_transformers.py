"""Image–text retrieval as an evaluator of sentence-transformers (extra ``sentence``)."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

from crosslens.core import UnknownNameError, needs_extra
from crosslens.encode import encoder_of, text_only
from crosslens.pipeline import Metrics, evaluate
from crosslens.storage import open_own
from crosslens.values import Dataset

try:
    from sentence_transformers.sentence_transformer.evaluation import SentenceEvaluator
except ImportError:
    with needs_extra("RetrievalEvaluator", "sentence-transformers", "sentence"):
        from sentence_transformers.evaluation import SentenceEvaluator

__all__ = ["RetrievalEvaluator"]


class RetrievalEvaluator(SentenceEvaluator):  # type: ignore[misc]
    """Retrieval between images and captions of a dataset while a SentenceTransformer is trained.

    A model of texts alone is evaluated on text-only retrieval (``t2t``): the first caption of an image asks for the
    image, which its other captions stand for. ``primary_metric`` decides which checkpoint is the best; default: the
    first metric. Figures go to the trainer's log, to the model card, and with ``write_csv`` to a table in the output
    folder.
    """

    def __init__(
        self,
        dataset: Dataset,
        metrics: Metrics = None,
        *,
        primary_metric: str | None = None,
        name: str = "",
        batch_size: int | None = None,
        image_folder: str | Path | None = None,
        write_csv: bool = True,
    ) -> None:
        super().__init__()
        self.dataset, self.metrics, self.name = dataset, metrics, name or dataset.name
        self.batch_size, self.image_folder, self.write_csv = batch_size, image_folder, write_csv
        self._primary = primary_metric
        self.csv_file = f"retrieval_{self.name.replace('/', '-')}.csv"

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: int = -1, steps: int = -1, **_: Any
    ) -> dict[str, float]:
        encoder = encoder_of(model)
        inputs: Any = {"dataset": self.dataset, "model": encoder, "image_folder": self.image_folder}
        if "images" not in encoder.abilities:
            inputs = {"dataset": text_only(self.dataset, encoder, batch_size=self.batch_size)}
        run = evaluate(**inputs, metrics=self.metrics, resamples=0)
        values = {metric: float(result.mean) for metric, result in run.values.items()}
        primary = self._primary or next(iter(values))
        if primary not in values:
            raise UnknownNameError("metric of this evaluation", primary, values)
        facts = run[primary].facts
        self.primary_metric, self.greater_is_better = primary, facts is None or facts.higher_is_better
        if output_path is not None and self.write_csv:
            file = Path(output_path) / self.csv_file
            file.parent.mkdir(parents=True, exist_ok=True)
            with open_own(file, newline="") as table:
                writer = csv.writer(table)
                if table.seek(0, os.SEEK_END) == 0:
                    writer.writerow(["epoch", "steps", *values])
                writer.writerow([epoch, steps, *values.values()])
        prefixed: dict[str, float] = self.prefix_name_to_metrics(values, self.name)
        self.store_metrics_in_model_card_data(model, prefixed, epoch, steps)
        return prefixed
