"""Entry point of `python -m tests.cluster.lab`."""

import sys

from .cli import main

sys.exit(main(sys.argv[1:]))
