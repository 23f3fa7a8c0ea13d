"""How many API servers an engine has: processes that talk to clients, render and tokenize. Pure.

One of them is one Python thread. With a small model or short prompts it is busy all the time while
the engine has nothing to do, and nobody should have to find that out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from headway_operator.api.engine import Engine
from headway_operator.render.quantity import in_bytes, in_units
from headway_operator.render.resources import gpus_of, resource_of

MOST_API_SERVERS = 4
"""One takes in some 80 requests and sends some 10,000 tokens a second; that more than four are of
use has not been measured."""

BYTES_EACH = 8 * 1024**3
"""Memory that the engine's limit must have for each: 0.7 GiB for itself, up to 4 GiB in which vLLM
keeps media (`--mm-processor-cache-gb`), and what the engine itself takes."""

_CHOSEN = re.compile(r"(?:--api[-_]server[a-z_-]*|-asc)(?:[= ](.*))?\Z", re.DOTALL)
_FLAG = re.compile(r"--([a-z0-9_-]+)")

_FLAGS_FOR_ONE = (
    # vLLM refuses more, or starts something else where its own command line is used.
    *("enable-elastic-ep", "enable-fault-tolerance", "grpc"),
    # Each would count for itself.
    *("enable-server-load-tracking", "max-num-queued-reqs", "max-num-queued-tokens"),
    # With several there is none.
    "mm-processor-cache-type",
)
_VARIABLES_FOR_ONE = (
    # vLLM refuses more.
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING",
    # An answer could be asked for again from the one that gave it alone.
    "VLLM_ENABLE_RESPONSES_API_STORE",
    # It has no middleware, so no door.
    *("VLLM_USE_RUST_FRONTEND", "VLLM_RUST_FRONTEND_PATH"),
)
_OFF = ("", "0", "false")


def api_servers(engine: Engine) -> int:
    """API servers of an engine: as many as its arguments say, else as have cores to themselves.

    An engine on GPUs keeps one core busy, and one for each of several GPUs; the others are for API
    servers. Where no cores are named, the pod may use what its node has. On CPUs the model computes
    with all cores there are, so there is one.
    """
    chosen = chosen_api_servers(engine.args)
    return _fitting(engine) if chosen is None else chosen


def chosen_api_servers(arguments: Sequence[str]) -> int | None:
    """The number that a user wrote among vLLM's arguments, the last one; None without one."""
    found = None
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=False):
        match = _CHOSEN.match(argument)
        value = None if match is None else (match[1] or following).strip()
        found = int(value) if value is not None and value.isdecimal() else found
    return found


def _fitting(engine: Engine) -> int:
    if gpus_of(engine) == 0 or any(_reasons_for_one(engine)):
        return 1
    fitting = [MOST_API_SERVERS]
    cores, memory = (resource_of(engine, name) for name in ("cpu", "memory"))
    if cores is not None:
        fitting.append(in_units(cores) - _busy_cores(engine))
    if memory is not None:
        fitting.append(in_bytes(memory) // BYTES_EACH)
    return max(1, min(fitting))


def _busy_cores(engine: Engine) -> int:
    """Cores of the scheduler, and of workers where they are processes of their own."""
    workers = engine.tensor_parallel_size
    return 1 + (workers if workers > 1 else 0)


def _reasons_for_one(engine: Engine) -> Iterator[str]:
    for argument in engine.args:
        match = _FLAG.match(argument)
        name = "" if match is None else match[1].replace("_", "-")
        # A name may be shortened.
        yield from (flag for flag in _FLAGS_FOR_ONE if name and flag.startswith(name))
    for variable in engine.env:
        is_off = variable.value_from is None and (variable.value or "").lower() in _OFF
        if variable.name in _VARIABLES_FOR_ONE and not is_off:
            yield variable.name
