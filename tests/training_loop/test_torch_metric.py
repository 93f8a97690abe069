"""``crosslens.torch.RetrievalMetric`` beside ``crosslens.evaluate``: in a loop, in Lightning, in several processes."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import crosslens as cl
from crosslens.metrics import METRICS as REGISTERED

METRICS = "t2i/Hit@1 i2t/Hit@1 t2i/MedR i2t/mAP@R Rsum"
IMAGES, CAPTIONS, WIDTH = 31, 93, 12


def new_metric(metrics: str, **options: Any) -> Any:
    """Imported here: torchmetrics brings transformers and matplotlib, into every process that collects tests."""
    from crosslens.torch import RetrievalMetric

    return RetrievalMetric(metrics, **options)


def features(noise: float = 1.0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Images, captions and the image of each caption; images have one to five captions, the last one none."""
    generator = torch.Generator().manual_seed(3)
    images = torch.randn(IMAGES, WIDTH, generator=generator)
    owners = torch.arange(CAPTIONS) * (IMAGES - 1) // CAPTIONS
    return images, images[owners] + noise * torch.randn(CAPTIONS, WIDTH, generator=generator), owners


def expected(
    images: torch.Tensor, captions: torch.Tensor, owners: torch.Tensor, metrics: str = METRICS
) -> dict[str, float]:
    texts: dict[str, list[str]] = {str(image): [] for image in range(len(images))}
    for number, owner in enumerate(owners.tolist()):
        texts[str(owner)].append(f"caption {number}")
    order = np.argsort(owners.numpy(), kind="stable")
    vectors = {"images": images.float().numpy(), "captions": captions.float().numpy()[order]}
    run = cl.evaluate(cl.Dataset.of(texts), **vectors, metrics=metrics, resamples=0)
    return {name: float(values.mean) for name, values in run.values.items()}


def as_floats(values: dict[str, torch.Tensor]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}


def test_batches_of_either_side_in_any_order_give_what_evaluate_gives() -> None:
    images, captions, owners = features()
    metric = new_metric(METRICS)
    order = torch.randperm(CAPTIONS, generator=torch.Generator().manual_seed(1))
    metric.update(caption_features=captions[order[:40]], caption_images=owners[order[:40]])
    metric.update(image_features=images[20:], image_ids=torch.arange(20, IMAGES))
    metric.update(
        image_features=images[:20], image_ids=list(range(20)),
        caption_features=captions[order[40:]], caption_images=owners[order[40:]].tolist(),
    )  # fmt: skip
    assert as_floats(metric.compute()) == pytest.approx(expected(images, captions, owners), rel=1e-12)
    metric.reset()
    with pytest.raises(cl.InputError, match="no features of images"):
        metric.compute()


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_features_of_any_precision(kind: torch.dtype) -> None:
    images, captions, owners = features()
    metric = new_metric(METRICS)
    names = [f"image-{number}" for number in range(IMAGES)]
    metric.update(images.to(kind), captions.to(kind), names, [names[owner] for owner in owners])
    assert as_floats(metric.compute()) == expected(images.to(kind), captions.to(kind), owners)


def test_a_repeated_image_counts_once_and_equal_captions_of_one_process_each() -> None:
    images, captions, owners = features()
    captions[1] = captions[0]
    assert owners[0] == owners[1]
    metric = new_metric(METRICS)
    metric.update(images, captions, torch.arange(IMAGES), owners)
    metric.update(image_features=images[:5], image_ids=torch.arange(5))
    assert as_floats(metric.compute()) == expected(images, captions, owners)


def test_captions_with_ids_count_once() -> None:
    images, captions, owners = features()
    metric = new_metric(METRICS)
    ids = torch.arange(CAPTIONS)
    metric.update(images, captions, torch.arange(IMAGES), owners, ids)
    metric.update(caption_features=captions[:9] + 1e-6, caption_images=owners[:9], caption_ids=ids[:9])
    assert as_floats(metric.compute()) == expected(images, captions, owners)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image_ids": None}, "none image_ids for 31 vectors"),
        ({"caption_images": [1, 2]}, "2 caption_images for 93 vectors"),
        ({"caption_features": torch.zeros(CAPTIONS, 5)}, "5 numbers each"),
        ({"image_features": torch.zeros(IMAGES)}, "shape"),
    ],
)
def test_wrong_batches_are_explained(change: dict[str, Any], message: str) -> None:
    images, captions, owners = features()
    batch: dict[str, Any] = {
        "image_features": images, "caption_features": captions, "image_ids": torch.arange(IMAGES),
        "caption_images": owners,
    }  # fmt: skip
    with pytest.raises(cl.InputError, match=message):
        new_metric(METRICS).update(**(batch | change))


def test_a_caption_of_an_unknown_image_is_named() -> None:
    images, captions, owners = features()
    metric = new_metric(METRICS)
    metric.update(images[1:], captions, torch.arange(1, IMAGES), owners)
    with pytest.raises(cl.InputError, match="names the image '0', which has no vector"):
        metric.compute()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("t2i/NCS[cider]@10", r"NCS\[cider\]@10 compares captions by cider, and only their vectors are given"),
        ("t2i/nDCG[cider]@10", r"nDCG\[cider\]@10 compares captions by cider"),
        ("i2t/DCGcm[scores_from=other]@5", "takes the scores of 'other'"),
        ("t2t/Hit@1", "t2t/Hit@1 is of captions that retrieve captions"),
    ],
)
def test_what_vectors_do_not_tell_is_refused(name: str, problem: str) -> None:
    with pytest.raises(cl.CrosslensError, match=problem):
        new_metric(name)


@pytest.mark.parametrize("family", [entry.name for entry in REGISTERED if not entry.plugin])
def test_every_registered_metric_is_computed_or_refused_for_what_it_needs(family: str) -> None:
    """Those without a φ, nDCG by grades and DCGcm by the model's own scores among them, are as evaluate has them."""
    metric_family = REGISTERED[family].value
    name = family + ("@10" if metric_family.cutoff == "required" else "")
    if any(option.name == "φ" and option.default for option in metric_family.options):
        with pytest.raises(cl.CrosslensError, match="compares captions by cider, and only their vectors are given"):
            new_metric(name)
        return
    images, captions, owners = features()
    metric = new_metric(name)
    metric.update(images, captions, torch.arange(IMAGES), owners)
    assert as_floats(metric.compute()) == pytest.approx(expected(images, captions, owners, name), rel=1e-12)


def _process(rank: int, folder: str) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=3)
    images, captions, owners = features()
    for count in (2, 3):  # a process takes seconds to start: the two are two of the three
        group = torch.distributed.new_group(list(range(count)))
        if rank >= count:
            continue
        metric = new_metric(METRICS, process_group=group)
        if rank != count - 1:  # the last process sees no image at all
            mine = torch.arange(rank, IMAGES, count - 1)
            metric.update(image_features=images[mine], image_ids=mine)
        # As torch's DistributedSampler divides: the first items are repeated at the end until all shares are equal.
        total = CAPTIONS - 1
        padded = torch.arange(-(-total // count) * count) % total
        for part in padded[rank::count].split(7):
            metric.update(caption_features=captions[part], caption_images=owners[part])
        torch.save(as_floats(metric.compute()), f"{folder}/{count}-{rank}.pt")
    torch.distributed.destroy_process_group()


def test_processes_together_give_what_one_gives(tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")  # torchmetrics is imported once, in the server
    context.set_forkserver_preload([__name__])
    processes = [context.Process(target=_process, args=(rank, str(tmp_path))) for rank in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    images, captions, owners = features()
    for name in ("2-0", "2-1", "3-0", "3-1", "3-2"):
        assert torch.load(tmp_path / f"{name}.pt") == pytest.approx(
            expected(images, captions[:-1], owners[:-1]), rel=1e-12
        )


def test_lightning_logs_it(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")
    images, captions, owners = features()

    class Towers(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.metric = new_metric(METRICS)

        def validation_step(self, batch: tuple[torch.Tensor, ...], index: int) -> None:
            rows, texts, owned = batch
            self.metric.update(images[rows], texts, rows, owned)

        def on_validation_epoch_end(self) -> None:
            self.log_dict(self.metric.compute())
            self.metric.reset()

    batches = [(owners[part].unique(), captions[part], owners[part]) for part in torch.arange(CAPTIONS).split(20)]
    batches.append((torch.tensor([IMAGES - 1]), captions[:0], owners[:0]))
    trainer = lightning.Trainer(
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=tmp_path,
    )  # fmt: skip
    (logged,) = trainer.validate(Towers(), torch.utils.data.DataLoader(batches, batch_size=None), verbose=False)
    assert logged == pytest.approx(expected(images, captions, owners))
