"""``python -m crosslens`` is ``crosslens``."""

from __future__ import annotations

import sys

from crosslens.cli import main

if __name__ == "__main__":
    sys.exit(main())
