"""Turn trained weights into what the package ships: two ONNX models in half precision, the tokenizer, a card.

    python training/tiny/export.py --trained trained/ --output src/crosslens/encode/tiny/

Weights are stored as 16-bit numbers and computed with as 32-bit ones, so that the result is the same on every machine
that has no 16-bit arithmetic. Before anything is written the ONNX models are compared with the towers they came from.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper

from towers import SIZE, Tiny
from train import PIXEL_MEAN, PIXEL_STD

LARGEST = 8_000_000
"""All files together stay below this many bytes."""
_SMALL = 256
"""Arrays of fewer numbers keep their precision: they cost nothing."""


def main() -> None:
    """Export, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trained", type=Path, default=Path("trained"))
    parser.add_argument("--output", type=Path, default=Path("src/crosslens/encode/tiny"))
    options = parser.parse_args()
    weights = torch.load(options.trained / "tiny.pt", map_location="cpu", weights_only=True)
    model = Tiny(len(weights["text.words.weight"])).eval()
    model.load_state_dict({name: _rounded(value) for name, value in weights.items()})
    options.output.mkdir(parents=True, exist_ok=True)
    random = torch.Generator().manual_seed(0)
    pixels = torch.randn(3, 3, SIZE, SIZE, generator=random)
    ids = torch.randint(1, len(weights["text.words.weight"]), (3, 11), generator=random)
    mask = torch.ones_like(ids)
    ids[1, 6:], mask[1, 6:] = 0, 0
    _export(model.image, {"pixels": pixels}, {"pixels": {0: "n"}}, options.output / "image.onnx")
    longer = {0: "n", 1: "length"}
    _export(
        model.text, {"input_ids": ids, "attention_mask": mask},
        {"input_ids": longer, "attention_mask": longer}, options.output / "text.onnx",
    )  # fmt: skip
    shutil.copyfile(options.trained / "tokenizer.json", options.output / "tokenizer.json")
    _describe(model, options.output / "towers.json")
    size = sum(file.stat().st_size for file in options.output.iterdir() if file.suffix in {".onnx", ".json"})
    print(f"{size / 1e6:.2f} MB")
    assert size <= LARGEST, f"{size:,} bytes, more than {LARGEST:,}"


def _rounded(value: torch.Tensor) -> torch.Tensor:
    return value.half().float() if value.dtype.is_floating_point and value.numel() >= _SMALL else value


def _export(tower: torch.nn.Module, inputs: dict[str, torch.Tensor], free: dict[str, Any], file: Path) -> None:
    torch.onnx.export(
        tower, tuple(inputs.values()), str(file), input_names=list(inputs), output_names=["vectors"],
        dynamic_axes={**free, "vectors": {0: "n"}}, opset_version=17, dynamo=False,
    )  # fmt: skip
    graph = onnx.load(str(file))
    onnx.save(_halved(graph), str(file))
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    (vectors,) = session.run(None, {name: value.numpy() for name, value in inputs.items()})
    with torch.no_grad():
        worst = float(np.abs(vectors - tower(*inputs.values()).numpy()).max())
    print(f"{file.name}: {file.stat().st_size / 1e6:.2f} MB, differs by at most {worst:.1e}")
    assert worst < 2e-3, "the exported tower computes other vectors"


def _halved(model: onnx.ModelProto) -> onnx.ModelProto:
    """Large weights stored in 16 bits, each turned back into 32 as the model is loaded."""
    graph, casts = model.graph, []
    for weight in graph.initializer:
        values = numpy_helper.to_array(weight)
        if values.dtype != np.float32 or values.size < _SMALL:
            continue
        name = weight.name
        weight.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{name}.half"))
        casts.append(helper.make_node("Cast", [f"{name}.half"], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(model)
    return model


def _describe(model: Tiny, file: Path) -> None:
    image = {
        "model": "image.onnx", "size": SIZE, "resampling": "bilinear",
        "mean": [PIXEL_MEAN] * 3, "std": [PIXEL_STD] * 3,
    }  # fmt: skip
    scale = round(model.log_scale.exp().item(), 4)
    content = {"text": {"model": "text.onnx"}, "image": image, "logit_scale": scale}
    file.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
