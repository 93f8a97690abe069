"""Tiny random models of every architecture, saved to disk with a tokenizer and an image processor made here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

WORDS = (
    "a", "an", "the", "dog", "cat", "ball", "red", "blue", "runs", "sits", "on", "grass", "two", "men", "woman",
    "child", "street", "plays", "with", "in", "and",
)  # fmt: skip
TEXTS = ["a dog runs on grass", "two men sit in the street and a child plays with a red ball", "a cat", "the blue ball"]
SIZE = 32
MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]

TEXT = {"vocab_size": 64, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
VISION = {
    "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
    "image_size": SIZE, "patch_size": 8,
}  # fmt: skip
BERT = {**TEXT, "max_position_embeddings": 64, "type_vocab_size": 2}
MARKS = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}


def save_tokenizer(folder: Path, longest: int = 24, words: Sequence[str] = WORDS) -> None:
    """Words → numbers; texts begin with [CLS] and end with [SEP]; no download anywhere."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {word: number for number, word in enumerate([*special, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        bos_token="[CLS]",
        eos_token="[SEP]",
        model_max_length=longest,
        model_input_names=["input_ids", "attention_mask"],
    ).save_pretrained(folder)


def clip() -> Any:
    from transformers import CLIPConfig, CLIPModel

    return CLIPModel(
        CLIPConfig(
            text_config={**TEXT, **MARKS, "max_position_embeddings": 24}, vision_config=VISION, projection_dim=12
        )
    )


def siglip() -> Any:
    from transformers import SiglipConfig, SiglipModel

    text = {**TEXT, **MARKS, "max_position_embeddings": 24, "projection_size": 16}
    return SiglipModel(SiglipConfig(text_config=text, vision_config=VISION))


def align() -> Any:
    from transformers import AlignConfig, AlignModel

    vision = {
        "image_size": SIZE, "hidden_dim": 64, "in_channels": [32, 8], "out_channels": [8, 12], "kernel_sizes": [3, 3],
        "depthwise_padding": [], "strides": [1, 2], "num_block_repeats": [1, 1], "expand_ratios": [1, 2],
        "width_coefficient": 1.0, "depth_coefficient": 1.0, "depth_divisor": 2,
    }  # fmt: skip
    return AlignModel(AlignConfig(text_config=BERT, vision_config=vision, projection_dim=12))


def altclip() -> Any:
    from transformers import AltCLIPConfig, AltCLIPModel

    text = {**BERT, "project_dim": 12, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    return AltCLIPModel(AltCLIPConfig(text_config=text, vision_config=VISION, projection_dim=12))


def groupvit() -> Any:
    from transformers import GroupViTConfig, GroupViTModel

    vision = {**VISION, "depths": [1, 1], "num_group_tokens": [4, 0], "num_output_groups": [4, 1]}
    text = {**TEXT, **MARKS, "max_position_embeddings": 24}
    return GroupViTModel(
        GroupViTConfig(text_config=text, vision_config=vision, projection_dim=12, projection_intermediate_dim=20)
    )


def flava() -> Any:
    from transformers import FlavaConfig, FlavaModel

    return FlavaModel(
        FlavaConfig(image_config=VISION, text_config=BERT, multimodal_config=TEXT, hidden_size=16, projection_dim=12)
    )


def blip() -> Any:
    from transformers import BlipConfig, BlipForImageTextRetrieval

    text = {**BERT, "encoder_hidden_size": 16, "pad_token_id": 0, "bos_token_id": 2, "sep_token_id": 3}
    return BlipForImageTextRetrieval(BlipConfig(text_config=text, vision_config=VISION, image_text_hidden_size=12))


def blip2() -> Any:
    from transformers import Blip2Config, Blip2ForImageTextRetrieval

    former = {**BERT, "encoder_hidden_size": 16, "use_qformer_text_input": True, "cross_attention_frequency": 1}
    config = Blip2Config(
        vision_config=VISION, qformer_config=former, text_config={"model_type": "opt", **_OPT}, num_query_tokens=3,
        image_text_hidden_size=12,
    )  # fmt: skip
    config.image_token_index = None
    return Blip2ForImageTextRetrieval(config)


_OPT = {"vocab_size": 64, "hidden_size": 16, "ffn_dim": 24, "num_hidden_layers": 1, "num_attention_heads": 2}


def dinov2() -> Any:
    from transformers import Dinov2Config, Dinov2Model

    return Dinov2Model(
        Dinov2Config(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, image_size=SIZE, patch_size=8)
    )


def llava() -> Any:
    from transformers import LlavaConfig, LlavaForConditionalGeneration

    text = {
        "model_type": "llama", **TEXT, **MARKS, "num_key_value_heads": 2, "max_position_embeddings": 256,
    }  # fmt: skip
    config = LlavaConfig(
        vision_config={"model_type": "clip_vision_model", **VISION}, text_config=text, image_token_index=IMAGE_TOKEN,
        vision_feature_layer=-1, vision_feature_select_strategy="default",
    )  # fmt: skip
    return LlavaForConditionalGeneration(config)


IMAGE_TOKEN = 40
ANSWERS = ("yes", "no")


def save_llava(folder: Path, *, template: str | None = None, seed: int = 0) -> Path:
    """A random vision-language model with its processor; the words yes and no are tokens."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
    from transformers import CLIPImageProcessorPil, LlavaProcessor, PreTrainedTokenizerFast

    torch.manual_seed(seed)
    model = llava().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    model.save_pretrained(folder)
    words = {word: number for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, *ANSWERS])}
    vocabulary = Tokenizer(models.WordLevel({**words, "<image>": IMAGE_TOKEN}, unk_token="[UNK]"))
    vocabulary.normalizer = normalizers.Lowercase()
    vocabulary.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=vocabulary, unk_token="[UNK]", pad_token="[PAD]", bos_token="[CLS]", eos_token="[SEP]",
        additional_special_tokens=["<image>"],
    )  # fmt: skip
    size = {"height": SIZE, "width": SIZE}
    pictures = CLIPImageProcessorPil(image_mean=MEAN, image_std=STD, size={"shortest_edge": SIZE}, crop_size=size)
    LlavaProcessor(
        pictures, tokenizer, patch_size=8, vision_feature_select_strategy="default", image_token="<image>",
        num_additional_image_tokens=1, chat_template=template,
    ).save_pretrained(folder)  # fmt: skip
    return folder


MODELS: dict[str, Callable[[], Any]] = {
    "clip": clip, "siglip": siglip, "align": align, "altclip": altclip, "groupvit": groupvit, "flava": flava,
    "blip": blip, "blip2": blip2, "dinov2": dinov2,
}  # fmt: skip
PROCESSORS = {
    "clip": "CLIPImageProcessorPil", "siglip": "SiglipImageProcessorPil", "align": "EfficientNetImageProcessorPil",
    "altclip": "CLIPImageProcessorPil", "groupvit": "CLIPImageProcessorPil", "flava": "FlavaImageProcessorPil",
    "blip": "BlipImageProcessorPil", "blip2": "BlipImageProcessorPil", "dinov2": "BitImageProcessorPil",
}  # fmt: skip


def save_model(kind: str, folder: Path, seed: int = 0) -> Path:
    """A random model of that architecture, with everything it needs to be loaded."""
    import torch
    import transformers

    torch.manual_seed(seed)
    model = MODELS[kind]().eval()
    with torch.no_grad():
        for parameter in model.parameters():  # zeros (query tokens, biases) would hide mistakes
            parameter.add_(torch.randn_like(parameter) * 0.05)
    model.save_pretrained(folder)
    if kind != "dinov2":
        save_tokenizer(folder)
    size = {"height": SIZE, "width": SIZE}
    options: dict[str, Any] = {"image_mean": MEAN, "image_std": STD, "size": size}
    if kind in ("clip", "altclip", "groupvit", "dinov2", "flava"):
        options["crop_size"] = size
    if kind in ("clip", "altclip", "groupvit", "dinov2"):
        options["size"] = {"shortest_edge": SIZE}
    getattr(transformers, PROCESSORS[kind])(**options).save_pretrained(folder)
    return folder


def pictures(count: int = 4, seed: int = 0) -> list[Any]:
    """Smooth random pictures of different shapes."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    images = []
    for number in range(count):
        small = Image.fromarray(rng.integers(0, 256, (4, 5, 3), dtype=np.uint8))
        images.append(small.resize((40 + 7 * number, 64 - 5 * number), Image.Resampling.BICUBIC))
    return images
