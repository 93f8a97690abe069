"""Which model encodes, and how: the flags that encode and evaluate share."""

from __future__ import annotations

from typing import Annotated

import typer

ImageFolder = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER", help="Where the dataset's image files are. [default: the dataset's folder, or here]"
    ),
]
Precision = Annotated[str, typer.Option(metavar="NAME", help="fp32, fp16 or bf16: what the model computes in.")]
BatchSize = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Items encoded at once. [default: found while encoding]")
]
CacheFolder = Annotated[
    str | None,
    typer.Option(
        "--cache", metavar="FOLDER", help="Where vectors are kept. [default: $CROSSLENS_CACHE or ~/.cache/crosslens]"
    ),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Neither take vectors from the cache nor keep them.")]
Offline = Annotated[
    bool, typer.Option("--offline", help="Never use the network: the model is a path, or in the hub's local cache.")
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave out images that cannot be read, instead of stopping.")]
