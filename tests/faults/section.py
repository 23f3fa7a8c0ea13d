"""The section of the report about one fault, made of nothing but what was recorded."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from tests.faults.recording import Happening, Recording, Request

_LINE_S = 60
_MAX_TEXT = 320
_KINDS = {"done": "**test**", "condition": "condition", "pod": "pod", "event": "event"}


def section(recording: Recording) -> str:
    """Markdown: figures, what happened second by second, what was served."""
    parts = (
        f"## {recording.title}",
        recording.cause,
        *([f"**Did not hold:** {recording.failure}"] if recording.failure else []),
        "\n".join(_figures(recording)),
        "\n".join(_timeline(recording.happenings)),
        "\n".join(("```", *_strips(recording), "```")),
    )
    return "\n\n".join(parts)


def summary_row(recording: Recording) -> str:
    """The fault in one line of the table at the top."""
    anchor = recording.title.lower().replace(" ", "-").translate(str.maketrans("", "", ",.:;'()`/"))
    failed = len(recording.failed())
    told = (
        f"[{recording.title}](#{anchor})",
        _seconds(_between(recording, "caused", "shown")),
        _seconds(_recovery_s(recording)),
        str(len(recording.requests)),
        str(failed),
        "no" if recording.failure else "yes",
    )
    return f"| {' | '.join(told)} |"


def _figures(recording: Recording) -> Iterator[str]:
    yield "| | |"
    yield "| --- | --- |"
    yield f"| from the fault until the service said so | {_shown(recording)} |"
    unlisted_s = _between(recording, "caused", "unlisted")
    if unlisted_s is not None:
        yield f"| from the fault until the pod is off the router's list | {unlisted_s:.1f} s |"
    begin = "the repair" if "mended" in recording.marks else "the fault, unrepaired,"
    yield f"| from {begin} until all was as before | {_seconds(_recovery_s(recording))} |"
    if recording.requests:
        yield f"| requests offered, answered, failed | {_counts(recording.requests)} |"
        yield from _failures(recording)
        yield f"| longest time without an answer | {longest_gap_s(recording.requests):.0f} s |"
    answered = [each for each in recording.samples if each.answered]
    if answered:
        ready = [each.ready for each in answered]
        yield f"| ready pods, at first, at least, at last | {ready[0]}, {min(ready)}, {ready[-1]} |"
        yield f"| restarts of engines seen | {restarts(recording)} |"
    away = len(recording.samples) - len(answered)
    if away:
        looks = len(recording.samples)
        yield f"| looks at which the API server did not answer | {away} of {looks} |"


def _failures(recording: Recording) -> Iterator[str]:
    failed = [each for each in recording.requests if each.error]
    if failed and any(each.first_token_s is not None for each in recording.requests):
        early = len(recording.failed_before_they_began())
        yield f"| of those that failed, before their first token | {early} |"
    caused_s = recording.marks.get("caused")
    if failed and caused_s is not None:
        last_s = max(each.offered_s for each in failed) - caused_s
        told = "none was offered after it" if last_s < 0 else f"{last_s:.1f} s"
        yield f"| from the fault until the last was offered that failed | {told} |"


def _shown(recording: Recording) -> str:
    return _seconds(_between(recording, "caused", "shown"))


def restarts(recording: Recording) -> int:
    """How many restarts were added while it was recorded; pods that came and went count."""
    counts = [each.restarts for each in recording.samples if each.answered]
    pairs = itertools.pairwise(counts)
    return sum(max(0, after - before) for before, after in pairs)


def longest_gap_s(requests: Sequence[Request]) -> float:
    """The longest time in which no request was answered in full, in seconds."""
    first = min(each.offered_s for each in requests)
    ends = sorted(each.ended_s for each in requests if not each.error)
    last = max(each.ended_s for each in requests)
    moments = [first, *ends, last]
    return max(after - before for before, after in itertools.pairwise(moments))


def _recovery_s(recording: Recording) -> float | None:
    """From the repair, or without one from the fault."""
    repaired = "mended" if "mended" in recording.marks else "caused"
    return _between(recording, repaired, "recovered")


def _counts(requests: Sequence[Request]) -> str:
    errors = Counter(each.error for each in requests if each.error)
    failed = sum(errors.values())
    told = ", ".join(f"{count} {kind}" for kind, count in errors.most_common())
    counts = f"{len(requests)}, {len(requests) - failed}, {failed}"
    return f"{counts} ({told})" if told else counts


def _between(recording: Recording, first: str, last: str) -> float | None:
    marks = recording.marks
    return marks[last] - marks[first] if first in marks and last in marks else None


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} s"


def _timeline(happenings: Sequence[Happening]) -> Iterator[str]:
    yield "| s | | what happened |"
    yield "| --- | --- | --- |"
    for each in happenings:
        text = each.text if len(each.text) <= _MAX_TEXT else f"{each.text[:_MAX_TEXT]} ..."
        yield f"| {each.at_s:.0f} | {_KINDS.get(each.kind, each.kind)} | {_cell(text)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _strips(recording: Recording) -> Iterator[str]:
    """One character a second: ready pods, and what became of the requests offered in it."""
    ready, client = _ready_strip(recording), _client_strip(recording.requests)
    for begin in range(0, max(len(ready), len(client)), _LINE_S):
        ruler = "".join(f"{second:<10}" for second in range(begin, begin + _LINE_S, 10))
        yield f"second      {ruler}".rstrip()
        yield f"ready pods  {ready[begin : begin + _LINE_S]}".rstrip()
        if client:
            yield f"client      {client[begin : begin + _LINE_S]}".rstrip()
    yield "ready pods: ? is an API server that does not answer"
    if client:
        yield "client: . all requests offered in that second were answered, x one or more were not"


def _ready_strip(recording: Recording) -> str:
    strip = ""
    for each in recording.samples:
        # A look that came late stands for the seconds before it as well.
        strip = strip.ljust(round(each.at_s) + 1, str(min(each.ready, 9)) if each.answered else "?")
    return strip


def _client_strip(requests: Sequence[Request]) -> str:
    failed: dict[int, bool] = {}
    for each in requests:
        second = int(each.offered_s)
        failed[second] = failed.get(second, False) or bool(each.error)
    marks = {second: "x" if lost else "." for second, lost in failed.items()}
    return "".join(marks.get(second, " ") for second in range(max(marks, default=-1) + 1))
