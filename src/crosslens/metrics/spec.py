"""A metric as a small value that prints as it is written: ``Hit@5``, ``MedR[floor]``, ``SR[spice, m=20]@5``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from crosslens.core.errors import UsageError

_SHAPE = re.compile(
    r"(?P<family>[A-Za-z][\w-]*(?:@[A-Za-z]\w*)?)"  # mAP@R carries an @ in its name
    r"(?:\[(?P<options>[^\[\]]*)\])?"
    r"(?:@(?P<cutoff>[^\[\]@]*))?"
)
_OPTION = re.compile(r"(?:(?P<key>[A-Za-z][\w-]*)\s*=\s*)?(?P<value>[^\s=,]+)")


@dataclass(frozen=True)
class MetricSpec:
    """``family[options]@cutoff``; options are flags (``floor``), names (``cider``) or settings (``m=20``)."""

    family: str
    options: tuple[str, ...] = ()
    cutoff: int | None = None

    def has(self, flag: str) -> bool:
        """Whether the flag (or name) is among the options."""
        return flag in self.options

    def setting(self, key: str) -> str | None:
        """What stands after ``key=``, or None."""
        found = [one.partition("=")[2] for one in self.options if one.partition("=")[0] == key and "=" in one]
        return found[0] if found else None

    @property
    def k(self) -> int:
        """The cutoff of a metric that must have one."""
        if self.cutoff is None:
            raise UsageError(f"{self} has no cutoff", fix=f"write {self}@10, say")
        return self.cutoff

    def __str__(self) -> str:
        options = f"[{', '.join(self.options)}]" if self.options else ""
        return f"{self.family}{options}" + ("" if self.cutoff is None else f"@{self.cutoff}")


def read_spec(text: str) -> MetricSpec:
    """Read the written form; what the family makes of options and cutoff is not checked here."""
    found = _SHAPE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"cannot read the metric {text!r}", fix="write Family[options]@cutoff, such as Hit@5 or MedR")
    return MetricSpec(
        found["family"],
        () if found["options"] is None else _read_options(text, found["options"]),
        None if found["cutoff"] is None else _read_cutoff(text, found["cutoff"]),
    )


def _read_options(text: str, options: str) -> tuple[str, ...]:
    read = []
    for part in options.split(","):
        found = _OPTION.fullmatch(part.strip())
        if found is None:
            raise UsageError(
                f"cannot read the option {part.strip()!r} of the metric {text!r}",
                fix="separate options by commas: a word, or key=value, such as [spice, m=20]",
            )
        read.append(f"{found['key']}={found['value']}" if found["key"] else found["value"])
    return tuple(read)


def _read_cutoff(text: str, cutoff: str) -> int:
    # isdecimal alone would also take digits of other scripts.
    if not (cutoff.isascii() and cutoff.isdecimal()) or int(cutoff) == 0:
        raise UsageError(
            f"the cutoff of {text!r} is {cutoff!r}" if cutoff else f"the cutoff of {text!r} is missing",
            fix="write a whole number from 1 after the @, such as @10",
        )
    return int(cutoff)
