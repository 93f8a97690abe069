"""The devices that torch computes on, by the names people give them."""

from __future__ import annotations

from typing import Any

from crosslens.core.errors import UsageError, argument


def torch_device(name: str | None) -> Any:
    """The device of this name; None: a GPU if there is one."""
    import torch

    try:
        device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name is None else name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(
            f"cannot use the device {name!r}: {str(error).splitlines()[0]}",
            fix=f"leave {argument('device')} out, or use 'cpu'",
            option="device",
        ) from error
    return device


def torch_devices(names: str | None) -> list[Any]:
    """All devices of names with commas between them; ``cuda`` and, where there is one, None are every visible GPU."""
    import torch

    devices: list[Any] = []
    for name in [None] if names is None else names.split(","):
        device = torch_device(name if name is None else name.strip())
        every = device.type == "cuda" and device.index is None
        devices += [torch.device("cuda", index) for index in range(torch.cuda.device_count())] if every else [device]
    return list(dict.fromkeys(devices))
