"""`python -m infernix`."""

from __future__ import annotations

import sys

from infernix.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
