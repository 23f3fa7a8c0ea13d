"""Mixes of traffic classes that scenarios offer."""

from __future__ import annotations

from dataclasses import replace

from headway_runtime.bench.lengths import Lengths, Lognormal
from headway_runtime.bench.workload import Stream
from headway_runtime.policy import TrafficClass

Mix = tuple[Stream, ...]

INTERACTIVE = TrafficClass("interactive", ttft_ms=1_000, tpot_ms=30)
BATCH = TrafficClass("batch", deadline_s=60)
LONG = TrafficClass("long", ttft_ms=10_000, tpot_ms=30)
OFFLINE = TrafficClass("offline")

CHAT_PROMPTS = Lognormal(16, 4_096, median=490, sigma=0.75)
CHAT_OUTPUTS = Lognormal(4, 1_024, median=134, sigma=0.7)
_SHORT_PROMPTS = Lognormal(8, 512, median=96, sigma=0.6)
_LONG_PROMPTS = Lengths(24_000, 32_000)
_BATCH_PROMPTS = Lengths(2_000, 8_000)
_OUTPUTS = Lengths(200, 200)
_LONG_OUTPUTS = Lengths(600, 1_400)

_INTERACTIVE_REQUESTS_PER_BATCH = 8


def _chat(traffic_class: TrafficClass, share: float = 1.0) -> Stream:
    return Stream(traffic_class, share, CHAT_PROMPTS, CHAT_OUTPUTS)


def _batch(share: float = 1.0) -> Stream:
    return Stream(BATCH, share, _BATCH_PROMPTS, _OUTPUTS)


def standard() -> Mix:
    """Eight interactive requests for each batch request, TTFT 1 s and TPOT 30 ms."""
    return with_tpot(30)


def with_tpot(tpot_ms: int) -> Mix:
    """The standard mix with another TPOT target."""
    interactive = replace(INTERACTIVE, tpot_ms=tpot_ms)
    return (_chat(interactive, _INTERACTIVE_REQUESTS_PER_BATCH), _batch())


def three_tpots() -> Mix:
    """Interactive requests with TPOT targets of 15, 30 and 100 ms, as many of each, and batch."""
    classes = [
        TrafficClass(f"interactive-{tpot_ms}", ttft_ms=1_000, tpot_ms=tpot_ms)
        for tpot_ms in (15, 30, 100)
    ]
    share = _INTERACTIVE_REQUESTS_PER_BATCH / len(classes)
    return (*(_chat(each, share) for each in classes), _batch())


def with_batch_share(share_of_tokens: float) -> Mix:
    """Interactive and batch requests, batch having this share of all offered tokens."""
    if share_of_tokens == 0:
        return (_chat(INTERACTIVE),)
    return by_tokens((_chat(INTERACTIVE), 1 - share_of_tokens), (_batch(), share_of_tokens))


def short_prompts() -> Mix:
    """Interactive requests only, with short prompts: nearly all steps decode."""
    return (Stream(INTERACTIVE, 1.0, _SHORT_PROMPTS, CHAT_OUTPUTS),)


def long_prompts() -> Mix:
    """Interactive requests and as many tokens again in prompts of up to 32,000."""
    return by_tokens((_chat(INTERACTIVE), 0.5), (Stream(LONG, 1.0, _LONG_PROMPTS, _OUTPUTS), 0.5))


def large_contexts() -> Mix:
    """Interactive requests, and batch requests whose outputs are long: KV blocks run out."""
    return by_tokens(
        (_chat(INTERACTIVE), 0.3), (Stream(BATCH, 1.0, _BATCH_PROMPTS, _LONG_OUTPUTS), 0.7)
    )


def without_objectives() -> Mix:
    """The standard mix as one class that was promised nothing."""
    return (
        _chat(OFFLINE, _INTERACTIVE_REQUESTS_PER_BATCH),
        Stream(OFFLINE, 1.0, _BATCH_PROMPTS, _OUTPUTS),
    )


def by_tokens(*parts: tuple[Stream, float]) -> Mix:
    """Streams that have the given shares of offered tokens."""
    return tuple(
        replace(stream, share=share_of_tokens / stream.mean_tokens())
        for stream, share_of_tokens in parts
    )
