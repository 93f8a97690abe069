"""Models in memory, and the evaluators of sentence-transformers and transformers, with the real libraries."""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import crosslens as cl

COLOURS = ("red", "green", "blue", "yellow", "black", "white")
METRICS = "t2i/Hit@1 i2t/Hit@1 Rsum"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> cl.Dataset:
    """Six pictures of one colour each, with two captions."""
    folder = tmp_path_factory.mktemp("colours")
    for colour in COLOURS:
        Image.new("RGB", (32, 32), colour).save(folder / f"{colour}.png")
    texts = {colour: [f"a {colour} square", f"everything here is {colour}"] for colour in COLOURS}
    return cl.Dataset.of(texts, "colours", {"file": [str(folder / f"{colour}.png") for colour in COLOURS]})


def mean_colour(picture: Any) -> torch.Tensor:
    return torch.tensor(np.asarray(picture.convert("RGB"), np.float32).mean(axis=(0, 1)) - 127)


def words(texts: list[str]) -> torch.Tensor:
    from PIL import ImageColor

    colours = [next(colour for colour in COLOURS if colour in text) for text in texts]
    return torch.tensor([ImageColor.getrgb(colour) for colour in colours], dtype=torch.float32) - 127


class Towers(torch.nn.Module):
    """As open_clip's models are asked."""

    def __init__(self) -> None:
        super().__init__()
        self.projection = torch.nn.Linear(3, 8)
        self.modes: list[bool] = []

    def encode_image(self, pictures: torch.Tensor) -> torch.Tensor:
        self.modes.append(self.training)
        return self.projection(pictures)

    def encode_text(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.projection(tokens)


def test_a_module_in_memory(dataset: cl.Dataset) -> None:
    model = Towers().train()
    run = cl.evaluate(dataset, model=model, preprocess=mean_colour, tokenizer=words, metrics=METRICS)
    assert run["t2i/Hit@1"].mean == 1.0
    assert not any(model.modes)
    assert model.training


def test_a_pair_of_functions(dataset: cl.Dataset) -> None:
    def images(pictures: list[Any]) -> torch.Tensor:
        return torch.stack([mean_colour(picture) for picture in pictures])

    assert cl.evaluate(dataset, model=(images, words), metrics=METRICS)["t2i/Hit@1"].mean == 1.0
    with pytest.raises(cl.CrosslensError, match=r"one function \(words\) cannot encode images and texts"):
        cl.evaluate(dataset, model=words)
    with pytest.raises(cl.CrosslensError, match="Towers without tokenizer"):
        cl.evaluate(dataset, model=Towers(), preprocess=mean_colour)
    with pytest.raises(cl.CrosslensError, match="both embeddings and a model"):
        cl.evaluate(dataset, model=Towers(), images=np.zeros((6, 3)), captions=np.zeros((12, 3)))


def tiny_clip() -> Any:
    from transformers import CLIPConfig, CLIPModel

    shared = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    text = {**shared, "vocab_size": 64, "max_position_embeddings": 16, "bos_token_id": 1, "eos_token_id": 2}
    vision = {**shared, "image_size": 32, "patch_size": 16}
    torch.manual_seed(0)
    return CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=8))


def tokens(texts: list[str]) -> dict[str, torch.Tensor]:
    """Six tokens per text, made of its words."""
    rows = [[1, *(3 + sum(map(ord, word)) % 60 for word in text.split()), 2, 2, 2, 2, 2][:6] for text in texts]
    return {"input_ids": torch.tensor(rows), "attention_mask": torch.ones(len(rows), 6, dtype=torch.int64)}


def test_a_dual_encoder_of_transformers(dataset: cl.Dataset) -> None:
    from transformers import CLIPImageProcessorPil

    processor = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    model = tiny_clip()
    run = cl.evaluate(dataset, model=model, preprocess=processor, tokenizer=tokens, metrics=METRICS)
    pictures = processor(images=[Image.open(file) for file in dataset.images["file"]], return_tensors="pt")
    with torch.no_grad():
        images, captions = model.get_image_features(**pictures), model.get_text_features(**tokens(list(dataset.texts)))
    vectors = [getattr(output, "pooler_output", output).numpy() for output in (images, captions)]
    by_hand = cl.evaluate(dataset, images=vectors[0], captions=vectors[1], metrics=METRICS)
    assert {name: run[name].mean for name in run} == {name: by_hand[name].mean for name in by_hand}


def trainer_of(dataset: cl.Dataset, folder: Path, **arguments: Any) -> tuple[Any, list[dict[str, Any]]]:
    """A trainer of a tiny CLIP that reports retrieval metrics, and the rows that it is evaluated on."""
    from transformers import Trainer, TrainingArguments

    from crosslens.transformers import retrieval_metrics

    rows = [
        {
            "pixel_values": mean_colour(Image.open(file)).reshape(3, 1, 1).expand(3, 32, 32) / 127,
            **{name: value[0] for name, value in tokens([text]).items()},
            "image_id": number,
        }
        for number, (file, image) in enumerate(zip(dataset.images["file"], dataset.image_ids, strict=True))
        for text, owner in zip(dataset.texts, dataset.captions["image"], strict=True)
        if owner == image
    ]  # fmt: skip

    class Trained(Trainer):  # type: ignore[misc]
        def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **_: Any) -> Any:
            inputs = {name: value for name, value in inputs.items() if name != "image_id"}
            outputs = model(**inputs, return_loss=True)
            pair = {"loss": outputs.loss, "images": outputs.image_embeds, "captions": outputs.text_embeds}
            return (outputs.loss, pair) if return_outputs else outputs.loss

    trainer = Trained(
        tiny_clip(),
        TrainingArguments(
            str(folder), max_steps=4, per_device_train_batch_size=6, eval_strategy="steps", eval_steps=2,
            report_to=[], use_cpu=True, remove_unused_columns=False, disable_tqdm=True, save_strategy="no",
            **arguments,
        ),
        train_dataset=rows, eval_dataset=rows, compute_metrics=retrieval_metrics(METRICS),
    )  # fmt: skip
    return trainer, rows


def test_the_trainer_of_transformers_reports_the_metrics(dataset: cl.Dataset, tmp_path: Path) -> None:
    trainer, rows = trainer_of(dataset, tmp_path, label_names=["image_id"])
    with said_by_trainers() as warnings_printed:
        trainer.train()
    assert warnings_printed == []
    reported = [entry for entry in trainer.state.log_history if "eval_Rsum" in entry]
    assert len(reported) == 2
    assert 0 <= reported[-1]["eval_t2i/Hit@1"] <= 1
    predicted = trainer.predict(rows)
    images, captions = predicted.predictions
    run = cl.evaluate(dataset, images=images[::2], captions=captions, metrics=METRICS)
    assert predicted.metrics["test_Rsum"] == pytest.approx(run["Rsum"].mean)


@contextmanager
def said_by_trainers() -> Iterator[list[str]]:
    """What the log of transformers' trainers says about retrieval metrics meanwhile."""
    messages: list[str] = []

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "retrieval metrics" in record.getMessage():
                messages.append(record.getMessage())

    handler, logger = Listening(), logging.getLogger("transformers.trainer")
    logger.addHandler(handler)
    try:
        yield messages
    finally:
        logger.removeHandler(handler)


def test_a_trainer_without_labels_says_what_is_missing(dataset: cl.Dataset, tmp_path: Path) -> None:
    """Trainer calls no compute_metrics then: the log had a loss, and not a word."""
    for arguments, rule in (
        ({}, "only where every batch has labels"),
        ({"prediction_loss_only": True}, "loss_only=True"),
    ):
        trainer, rows = trainer_of(dataset, tmp_path, **arguments)
        with said_by_trainers() as messages:
            trainer.evaluate()
            trainer.predict(rows)
        assert len(messages) == 1
        assert rule in messages[0]
    trainer, _ = trainer_of(dataset, tmp_path, label_names=["image_id"])  # what the sentence says is enough
    assert "eval_Rsum" in trainer.evaluate()


def test_texts_are_cut_and_padded_as_the_adapter_does(tmp_path: Path) -> None:
    """The same vectors to the bit, where the tokenizer says nothing of the model's limit, too."""
    from transformers import AutoImageProcessor, AutoTokenizer

    from crosslens.encode import encoder_of
    from crosslens.encode.loading import load_part
    from tests.encode.tiny_models import TEXTS, pictures, save_model

    texts = [*TEXTS, "a dog and " * 40]
    for kind in ("clip", "siglip", "align", "altclip", "groupvit", "flava"):
        folder = save_model(kind, tmp_path / kind)
        adapter = cl.encode.load_encoder(f"{kind}:{folder}")
        model = load_part(folder, "a test", "AutoModel")
        tokenizer = AutoTokenizer.from_pretrained(folder)
        processor = AutoImageProcessor.from_pretrained(folder, backend="pil")
        for limit in (tokenizer.model_max_length, int(1e30)):
            tokenizer.model_max_length = limit
            in_memory = encoder_of(model, processor, tokenizer)
            if limit < 1e30 or kind not in ("align", "altclip", "flava"):  # whose models themselves take more tokens
                assert np.array_equal(in_memory.encode_texts(texts), adapter.encode_texts(texts)), (kind, limit)
        assert np.array_equal(in_memory.encode_images(pictures()), adapter.encode_images(pictures())), kind


class OtherNames(torch.nn.Module):
    def get_image_embeddings(self, pictures: torch.Tensor) -> torch.Tensor:
        return pictures

    def get_text_embeddings(self, tokens: torch.Tensor) -> torch.Tensor:
        return tokens


class HalfKnown(OtherNames):
    def encode_image(self, pictures: torch.Tensor) -> torch.Tensor:
        return pictures


def test_a_module_with_other_names_is_told_which_are_looked_for(dataset: cl.Dataset) -> None:
    given: Any = {"preprocess": mean_colour, "tokenizer": words}
    with pytest.raises(cl.CrosslensError) as raised:
        cl.evaluate(dataset, model=OtherNames(), **given)
    for name in ("encode_images", "encode_image", "get_image_features", "encode_texts", "encode_text"):
        assert f" {name}," in str(raised.value)
    assert "; it has get_image_embeddings, get_text_embeddings" in str(raised.value)
    with pytest.raises(cl.CrosslensError, match="HalfKnown encodes images, not texts; it has get_text_embeddings"):
        cl.evaluate(dataset, model=HalfKnown(), **given)
    with pytest.raises(cl.CrosslensError, match="Linear is not an encoder: it has none of the methods encode_images"):
        cl.evaluate(dataset, model=torch.nn.Linear(2, 2), **given)


def test_predictions_that_are_no_pair_are_explained() -> None:
    from types import SimpleNamespace

    from crosslens.transformers import retrieval_metrics

    three = SimpleNamespace(predictions=(np.zeros((4, 2)),) * 3, label_ids=None)
    with pytest.raises(cl.InputError, match="the predictions have the shapes"):
        retrieval_metrics(METRICS)(three)
    compute = retrieval_metrics("t2i/Hit@1", embeddings=lambda arrays: arrays[:2])
    assert compute(SimpleNamespace(predictions=(np.eye(4), np.eye(4), np.zeros(1)), label_ids=None)) == {
        "t2i/Hit@1": 1.0
    }


def test_the_evaluator_of_sentence_transformers(dataset: cl.Dataset, tmp_path: Path) -> None:
    """With real weights; while a model is trained for two steps the evaluator is called by the trainer."""
    from datasets import Dataset as Rows
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.losses import MultipleNegativesRankingLoss

    from crosslens.encode.loading import PACKAGED_MODELS, package_folder
    from crosslens.sentence_transformers import RetrievalEvaluator

    folder = package_folder(PACKAGED_MODELS["sentence-transformers/all-MiniLM-L6-v2"])
    assert folder is not None
    model = SentenceTransformer(str(folder / "model"), device="cpu")
    evaluator = RetrievalEvaluator(dataset, "Hit@1 MRR", name="colours", primary_metric="t2t/MRR")
    values = evaluator(model, str(tmp_path))
    assert evaluator.primary_metric == "colours_t2t/MRR"
    by_hand = cl.evaluate(cl.encode.text_only(dataset, cl.encode.load_encoder("sentence:" + str(folder / "model"))))
    assert values["colours_t2t/Hit@1"] == pytest.approx(by_hand["t2t/Hit@1"].mean)
    rows = Rows.from_dict({"anchor": list(dataset.texts[::2]), "positive": list(dataset.texts[1::2])})
    arguments = SentenceTransformerTrainingArguments(
        str(tmp_path / "trained"), max_steps=2, eval_strategy="steps", eval_steps=1, report_to=[], use_cpu=True,
        disable_tqdm=True, save_strategy="no",
    )  # fmt: skip
    trainer = SentenceTransformerTrainer(
        model, arguments, train_dataset=rows, evaluator=evaluator, loss=MultipleNegativesRankingLoss(model)
    )
    trainer.train()
    assert any("eval_colours_t2t/MRR" in entry for entry in trainer.state.log_history)
    tables = list(tmp_path.rglob("retrieval_colours.csv"))
    assert tables
    with tables[0].open(newline="") as table:
        header, *lines = csv.reader(table)
    assert header == ["epoch", "steps", "t2t/Hit@1", "t2t/MRR"]
    assert lines
    assert "Hit@1" in str(model.model_card_data.eval_results_dict) or "Hit@1" in str(model._model_card_text or "")
