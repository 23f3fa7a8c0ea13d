"""Programs: what their calls ask for, and which of them wait for which."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Protocol

from headway_runtime.bench.lengths import Lengths, Lognormal
from headway_runtime.bench.traces import PREFIX_BLOCK_TOKENS
from headway_runtime.bench.workload import quantile

_TASKS = Lognormal(200, 4_000, median=800, sigma=0.5)
"""Prompts that programs begin with: instructions, tools, the task."""

_ANSWERS = Lognormal(8, 600, median=60, sigma=0.7)
_TOOL_RESULTS = Lognormal(50, 4_000, median=400, sigma=0.9)
_LONG_TOOL_RESULTS = Lognormal(200, 8_000, median=1_400, sigma=0.8)
_TOOL_S = 0.4

LONG_EVERY = 32
"""One program in so many is many times as long as the others, and these need more than half of all
work: searches, repairs that fail again and again, whole files read."""

_CHAIN_CALLS = Lognormal(1, 8, median=2, sigma=0.6)
_LONG_CHAIN_CALLS = Lengths(40, 60)
_TREE_ROUNDS = Lengths(1, 1)
_LONG_TREE_ROUNDS = Lengths(5, 7)
_BRANCHES = Lengths(2, 4)
_LONG_TREE_BRANCHES = Lengths(10, 18)

_CONTEXT_TOKENS = 12_000
_SUMMARY_TOKENS = 3_000
"""A context that grows longer than this is replaced by a summary that is so long."""

_CONTEXT_BLOCKS = 1_000
_PROGRAM_BLOCKS = 1_000_000
"""More prefix blocks than a context, and a program, has."""


@dataclass(frozen=True)
class ProgramCall:
    """A call of a program.

    Attributes:
        prompt_tokens: length of its prompt, with all that went before in its program.
        output_tokens: length of its answer.
        shared_tokens: of the prompt, those that the program's later calls begin with too.
        context: how often its context was replaced by a summary.
        after: the calls whose answers it needs, by their numbers in the program.
        delay_s: how long the tool runs that is called before it.
    """

    prompt_tokens: int
    output_tokens: int
    shared_tokens: int
    context: int = 0
    after: tuple[int, ...] = ()
    delay_s: float = 0.0

    def prefix_blocks(self, program: int) -> tuple[int, ...]:
        """Blocks of its prompt in this program, see :class:`workload.Request`."""
        first = program * _PROGRAM_BLOCKS + self.context * _CONTEXT_BLOCKS
        return tuple(range(first, first + self.shared_tokens // PREFIX_BLOCK_TOKENS))


class Shape(Protocol):
    """A kind of programs."""

    def __call__(self, rng: random.Random, *, is_long: bool) -> list[ProgramCall]:
        """Draw a program, a long one if so."""
        ...


def chain(rng: random.Random, *, is_long: bool) -> list[ProgramCall]:
    """An agent that calls a tool and thinks again: each call begins with all that went before.

    A short one has a few calls, a long one many.
    """
    lengths = _LONG_CHAIN_CALLS if is_long else _CHAIN_CALLS
    results = _LONG_TOOL_RESULTS if is_long else _TOOL_RESULTS
    calls: list[ProgramCall] = []
    tokens, summaries = _TASKS.at(quantile(rng)), 0
    for number in range(lengths.at(quantile(rng))):
        after = (number - 1,) if number else ()
        answer, delay_s = _ANSWERS.at(quantile(rng)), _delay_s(rng, after)
        calls.append(ProgramCall(tokens, answer, tokens, summaries, after, delay_s))
        tokens += answer + results.at(quantile(rng))
        if tokens > _CONTEXT_TOKENS:
            tokens, summaries = _SUMMARY_TOKENS, summaries + 1
    return calls


def tree(rng: random.Random, *, is_long: bool) -> list[ProgramCall]:
    """A planner that sends workers out and reads what they bring, for one round or several."""
    rounds = _LONG_TREE_ROUNDS if is_long else _TREE_ROUNDS
    branches = _LONG_TREE_BRANCHES if is_long else _BRANCHES
    results = _LONG_TOOL_RESULTS if is_long else _TOOL_RESULTS
    tokens, answer = _TASKS.at(quantile(rng)), _ANSWERS.at(quantile(rng))
    calls = [ProgramCall(tokens, answer, tokens)]
    for _ in range(rounds.at(quantile(rng))):
        planner = (len(calls) - 1,)
        tokens += answer
        workers = range(len(calls), len(calls) + branches.at(quantile(rng)))
        for _ in workers:
            task, work = results.at(quantile(rng)), _ANSWERS.at(quantile(rng))
            delay_s = _delay_s(rng, planner)
            calls.append(ProgramCall(tokens + task, work, tokens, 0, planner, delay_s))
        tokens += sum(calls[each].output_tokens for each in workers)
        answer = _ANSWERS.at(quantile(rng))
        calls.append(ProgramCall(tokens, answer, tokens, 0, tuple(workers)))
    return calls


def computed_tokens(calls: list[ProgramCall]) -> int:
    """Tokens to compute for a program: prompts without what is cached of them, and answers."""
    tokens, known = 0, dict.fromkeys((each.context for each in calls), 0)
    for each in calls:
        cached = min(known[each.context], each.shared_tokens)
        tokens += each.prompt_tokens - cached + each.output_tokens
        known[each.context] = max(known[each.context], each.shared_tokens)
    return tokens


def _delay_s(rng: random.Random, after: tuple[int, ...]) -> float:
    return rng.expovariate(1 / _TOOL_S) if after else 0.0
