"""Flags that an installed vLLM takes, read from its sources without importing it.

vLLM builds its parser from ``add_argument`` calls with literal names in ``engine/arg_utils.py``,
and for the HTTP frontend from the fields of dataclasses in a ``cli_args.py`` whose place differs
between versions. Importing it to ask would take half a minute.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_PLAUSIBLE_FLAGS = 100
_CORNERSTONES = frozenset(
    {"model", "port", "served-model-name", "max-num-seqs", "max-num-batched-tokens", "dtype"}
)
_NEGATIVE_NUMBER = re.compile(r"-\d+|-\d*\.\d+")


@dataclass(frozen=True)
class KnownFlags:
    """Flags of one vLLM.

    Attributes:
        long: names behind ``--``, with dashes.
        short: flags with one dash, with it.
    """

    long: frozenset[str]
    short: frozenset[str]

    def takes(self, argument: str) -> bool:
        """Whether vLLM's parser finds an option for an argument that starts with a dash.

        It takes underscores for dashes, ``--no-x``, ``--x.key`` for JSON, unique beginnings of a
        name, and values attached to a one-letter flag.
        """
        if not argument.startswith("--"):
            name = _key(argument).partition(".")[0]
            return name[:2] in self.short or any(each.startswith(name) for each in self.short)
        return bool(self._matches(long_name(argument)))

    def abbreviates(self, argument: str) -> frozenset[str]:
        """Names of the flags that an argument may stand for without being any of them in full."""
        if not argument.startswith("--"):
            return frozenset()
        name = long_name(argument)
        exact = name in self.long or name.removeprefix("no-") in self.long
        return frozenset() if exact else self._matches(name)

    def closest(self, argument: str) -> str | None:
        """The flag that was probably meant."""
        if not argument.startswith("--"):
            return None
        matches = difflib.get_close_matches(long_name(argument), self.long, n=1, cutoff=0.75)
        return f"--{matches[0]}" if matches else None

    def _matches(self, name: str) -> frozenset[str]:
        return frozenset(
            each for each in self.long if each.startswith(name) or f"no-{each}".startswith(name)
        )


def read_known_flags(vllm_dir: Path) -> KnownFlags | None:
    """The flags of the vLLM in this directory; None when its sources are not as expected.

    Raises:
        OSError: sources cannot be read.
        SyntaxError: sources are for another version of Python.
    """
    engine = ast.parse((vllm_dir / "engine" / "arg_utils.py").read_bytes())
    if any(_has_computed_name(call) for call in _add_argument_calls(engine)):
        return None
    frontends = [
        ast.parse(path.read_bytes()) for path in vllm_dir.glob("entrypoints/**/cli_args.py")
    ]
    # -O3 is turned into --optimization-level 3 before the parser sees it.
    names = {"-h", "--help", "-O"}
    for tree in (engine, *frontends):
        names.update(name for call in _add_argument_calls(tree) for name in _literal_names(call))
    for tree in frontends:
        names.update(f"--{field.replace('_', '-')}" for field in _frontend_fields(tree))
    known = KnownFlags(
        long=frozenset(name[2:].replace("_", "-") for name in names if name.startswith("--")),
        short=frozenset(name for name in names if name.startswith("-") and name[1:2] != "-"),
    )
    plausible = len(known.long) >= _PLAUSIBLE_FLAGS and known.long >= _CORNERSTONES
    return known if plausible else None


def unknown_flags(arguments: Sequence[str], known: KnownFlags) -> Iterator[str]:
    """Flags among a command line's arguments that vLLM does not take."""
    return (_key(each) for each in options(arguments) if not known.takes(each))


def options(arguments: Sequence[str]) -> Iterator[str]:
    """The arguments that argparse takes for options, some with their values attached."""
    before = ""
    for argument in arguments:
        if argument == "--":
            return
        if _is_option(argument, before):
            yield argument
        before = argument


def long_name(argument: str) -> str:
    """Name of a long flag as vLLM understands it: no dashes in front, value, or JSON key."""
    return _key(argument)[2:].partition(".")[0].replace("_", "-")


def _key(argument: str) -> str:
    return argument.partition("=")[0]


def _is_option(argument: str, before: str) -> bool:
    """Whether argparse looks for an option here rather than for a value of the one before."""
    if not argument.startswith("-") or argument == "-" or _NEGATIVE_NUMBER.fullmatch(argument):
        return False
    may_be_value = before.startswith("-") and "=" not in before
    return not (" " in _key(argument) or (" " in argument and may_be_value))


def _add_argument_calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _method(node) == "add_argument":
            yield node


def _method(call: ast.Call) -> str | None:
    return call.func.attr if isinstance(call.func, ast.Attribute) else None


def _literal_names(call: ast.Call) -> Iterator[str]:
    for argument in call.args:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield argument.value


def _has_computed_name(call: ast.Call) -> bool:
    return len(list(_literal_names(call))) != len(call.args)


def _frontend_fields(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name.endswith("FrontendArgs"):
            for statement in node.body:
                if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                    yield statement.target.id
