"""Checks in the engine's own image that the engine can start, without importing vLLM.

Run as ``python3 -I check.py [options] -- <arguments of the engine>`` in an init container with
the engine's image, environment and mounts; ``--termination-log FILE`` is for runs outside a pod. It
takes well under a second and refuses only what is certain to fail: exit code 1 and one line of JSON
as the container's termination message.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

# An isolated interpreter does not search the directory that this package was installed in.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from headway_runtime.preflight.engine_flags import (
    KnownFlags,
    long_name,
    options,
    read_known_flags,
    unknown_flags,
)
from headway_runtime.preflight.engine_install import (
    EngineInstall,
    check_version,
    find_engine,
    follow_pythonpath,
)
from headway_runtime.preflight.finding import TERMINATION_LOG, Finding, Problem
from headway_runtime.preflight.model import check_model, model_reference

_NEEDS = {
    "enable-auto-tool-choice": "tool-call-parser",
    "enable-log-outputs": "enable-log-requests",
}
"""Flags that vLLM refuses to start with unless the other one is given."""

_RESERVED = frozenset(
    {
        "async-scheduling",
        "config",
        "headless",
        "host",
        "master-addr",
        "master-port",
        "max-num-batched-tokens",
        "max-num-seqs",
        "middleware",
        "model",
        "nnodes",
        "node-rank",
        "pipeline-parallel-size",
        "port",
        "scheduler-cls",
        "scheduling-policy",
        "served-model-name",
        "shutdown-timeout",
        "tensor-parallel-size",
        "uds",
    }
)
"""Flags that a service's specification may not hold. The API server refuses them in full; argparse
also takes any unique beginning, which only someone who knows all flags can tell."""

_RESERVED_FAMILIES = ("data-parallel", "ssl-")


def findings(arguments: Sequence[str]) -> Iterator[Finding]:
    """What would keep an engine with these arguments from starting, the most basic thing first."""
    follow_pythonpath()
    engine = find_engine()
    if engine is None:
        yield Finding(Problem.ENGINE_NOT_FOUND)
        return
    version = check_version(engine)
    if version is not None:
        yield version
        return
    yield from _flag_findings(arguments, engine)
    model = model_reference(arguments)
    wrong_model = check_model(model, os.environ) if model is not None else None
    if wrong_model is not None:
        yield wrong_model


def _flag_findings(arguments: Sequence[str], engine: EngineInstall) -> Iterator[Finding]:
    try:
        known = None if engine.extensible else read_known_flags(engine.directory)
    except (OSError, SyntaxError):
        known = None
    if known is None:
        return
    for flag in unknown_flags(arguments, known):
        captures = {"flag": flag, "version": engine.version}
        suggestion = known.closest(flag)
        if suggestion is not None:
            captures["suggestion"] = suggestion
        yield Finding(Problem.UNKNOWN_ENGINE_FLAG, captures)
    yield from _reserved(arguments, known)
    yield from _contradictions(arguments, known, engine.version)


def _reserved(arguments: Sequence[str], known: KnownFlags) -> Iterator[Finding]:
    for option in options(arguments):
        for name in sorted(known.abbreviates(option)):
            if name in _RESERVED or name.startswith(_RESERVED_FAMILIES):
                captures = {"flag": option.partition("=")[0], "full": f"--{name}"}
                yield Finding(Problem.RESERVED_ENGINE_FLAG, captures)


def _contradictions(arguments: Sequence[str], known: KnownFlags, version: str) -> Iterator[Finding]:
    given = [each for each in options(arguments) if each.startswith("--")]
    in_full = {long_name(each) for each in given}
    # The other flag may be shortened, or be in a configuration file.
    perhaps = in_full.union(*(known.abbreviates(each) for each in given))
    for flag, needed in _NEEDS.items():
        if flag in in_full and not {needed, "config"} & perhaps and {flag, needed} <= known.long:
            yield Finding(
                Problem.CONTRADICTORY_ENGINE_FLAGS,
                {"flag": f"--{flag}", "needs": f"--{needed}", "version": version},
            )


def main(command_line: Sequence[str]) -> int:
    """Check and report; the process's exit code."""
    own, arguments = _split(command_line)
    log = Path(own.get("--termination-log", TERMINATION_LOG))
    try:
        finding = next(findings(arguments), None)
    except Exception:  # noqa: BLE001 - a fault of this check must not keep an engine from starting
        traceback.print_exc()
        return 0
    if finding is None:
        return 0
    _report(finding, log)
    return 1


def _split(command_line: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """This check's own options by name, and the engine's arguments."""
    words = list(command_line)
    if "--" not in words:
        return {}, words
    at = words.index("--")
    return dict(zip(words[0:at:2], words[1:at:2], strict=False)), words[at + 1 :]


def _report(finding: Finding, log: Path) -> None:
    message = finding.to_json()
    print(message, file=sys.stderr)  # noqa: T201 - the container's log
    try:
        log.write_text(message, encoding="ascii")
    except OSError as error:
        print(f"no termination message: {error}", file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
