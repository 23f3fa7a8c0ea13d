"""Collects results of several sessions into ``gpu.json`` and a Markdown report with pictures.

``python -m headway_runtime.bench.report RESULTS... --json docs/results/gpu.json``
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from headway_runtime.bench import results
from headway_runtime.bench.aggregate import cells
from headway_runtime.bench.headline import headline
from headway_runtime.bench.markdown import report
from headway_runtime.bench.plots import draw


def main(arguments: list[str]) -> int:
    """Command line; the process's exit code."""
    parser = argparse.ArgumentParser(prog="headway_runtime.bench.report", description=__doc__)
    parser.add_argument("results", type=Path, nargs="+", help="folders, archives or files")
    parser.add_argument("--json", type=Path, required=True, help="the report lies beside it")
    options = parser.parse_args(arguments)
    found = results.read(options.results)
    table = cells(found)
    figures = headline(table, found)
    text = options.json.with_suffix(".md")
    pictures = draw(table, options.json.parent / options.json.stem)
    relative = [str(path.relative_to(text.parent)) for path in pictures]
    options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    text.write_text(report(table, found, figures, relative), encoding="utf-8")
    print(json.dumps(figures, indent=2))  # noqa: T201 - a command-line program
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
