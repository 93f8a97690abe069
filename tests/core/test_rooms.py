"""``crosslens.perturb`` can be called and looked into, whoever imported what before."""

from __future__ import annotations

import subprocess
import sys

import pytest

ORDERS = {
    "the name first": "import crosslens as cl",
    "the package first": "import crosslens.perturb; import crosslens as cl",
    "a module of it first": "import crosslens.perturb.edit; import crosslens as cl",
    "the function first": "from crosslens.perturb import perturb; import crosslens as cl",
    "from the roof": "from crosslens import perturb; import crosslens as cl; assert cl.perturb is perturb",
}


@pytest.mark.parametrize("before", ORDERS.values(), ids=ORDERS.keys())
def test_a_callable_room_is_the_same_in_every_order_of_imports(before: str) -> None:
    script = f"{before}\nprint(cl.perturb('distraction_true', ['A dog.'])[0].text, cl.perturb.Edit.__name__)"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert shown.stdout == "A dog and true is true. Edit\n", shown.stderr
