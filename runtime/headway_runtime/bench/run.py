"""Runs scenarios under arms on an engine that :mod:`headway_runtime.bench.server` has started.

Arms are interleaved; a run that is done is not made again; no run is begun that the time left
cannot hold.
"""

from __future__ import annotations

import sys
import time

from headway_runtime.bench import results, server
from headway_runtime.bench.arms import HEADWAY
from headway_runtime.bench.client_pool import ClientPool
from headway_runtime.bench.command_line import Settings, engine_parser, read_settings
from headway_runtime.bench.engine import Engine, EngineError
from headway_runtime.bench.engine_command import MODEL_NAME, RUN_DIR, STEP_LOG
from headway_runtime.bench.measure import Bench, line, result_of, was_cut
from headway_runtime.bench.mixes import standard
from headway_runtime.bench.runs import Run, pending
from headway_runtime.bench.scenarios import Scenario
from headway_runtime.bench.workload import Workload

_WARM_UP = Scenario("warm-up", "warm-up", 0.35, 4, standard())


def main(arguments: list[str]) -> int:
    """Command line; the process's exit code: 0 when every run was made, 3 when some are left."""
    begun_s = time.monotonic()
    options = engine_parser("run", __doc__).parse_args(arguments)
    engine = server.find(options.state)
    if engine is None:
        _say("no engine runs; start one with python -m headway_runtime.bench.server start")
        return 1
    settings = read_settings(options, begun_s)
    done = results.done([options.out, *options.done])
    runs = [
        run
        for run in pending(settings.groups, engine.shape, done, engine.kv_blocks)
        # vLLM's own limit is of the process: it would refuse in every arm.
        if run.arm.queued == engine.queued
    ]
    _say(f"{len(runs)} runs to make, {settings.left_s:.0f} s left")
    if not runs:
        return 0
    with ClientPool(options.clients) as clients:
        bench = Bench(
            Engine(engine.url, options.state / RUN_DIR),
            clients,
            MODEL_NAME,
            options.state / STEP_LOG,
            engine.api_servers,
        )
        try:
            left = _make(bench, runs, settings, options.warm_up_s)
        except EngineError as error:
            _say(f"the engine cannot be used: {error}")
            return 2
    _say(f"{len(runs) - len(left)} runs made, {len(left)} left")
    return 3 if left else 0


def _make(bench: Bench, runs: list[Run], settings: Settings, warm_up_s: float) -> list[Run]:
    """Make runs until the time is over; those that are left."""
    # The engine refuses numbers that are not higher than all before.
    serial = int(time.time())
    if warm_up_s:
        serial = _warm_up(bench, runs, settings, warm_up_s, serial)
    left = []
    for run in runs:
        workload = settings.workload(run)
        if settings.expected_s(run, workload) > settings.left_s:
            left.append(run)
            continue
        serial += 1
        if not _make_one(bench, run, workload, serial, settings):
            left.append(run)
    return left


def _make_one(bench: Bench, run: Run, workload: Workload, serial: int, settings: Settings) -> bool:
    wanted_s = workload.duration_s + settings.drain_s
    give_up_s = min(wanted_s, settings.left_s)
    try:
        loaded = bench.load(run.arm, workload, serial, give_up_s)
    except EngineError as error:
        _say(f"{run.name}: {error}")
        return False
    result = {
        **result_of(run, workload, loaded),
        **settings.told(run.scenario),
        "kv_blocks": bench.engine.kv_blocks(),
        "api_servers": bench.api_servers,
    }
    if give_up_s < wanted_s and was_cut(result):
        _say(f"{run.name}: out of time, not kept")
        return False
    results.write(settings.out, result)
    if settings.keeps_steps:
        results.write_steps(settings.out, run.name, loaded.steps)
    if settings.pack is not None:
        # After every run: whoever ends this process early still finds them.
        results.pack(settings.out, settings.pack)
    _say(f"[{settings.left_s:.0f} s left] {line(result, workload.classes)}")
    return True


def _warm_up(
    bench: Bench, runs: list[Run], settings: Settings, warm_up_s: float, serial: int
) -> int:
    """Load the engine for a moment, so that kernels are compiled and step times are learned."""
    arms = dict.fromkeys((runs[0].arm, HEADWAY))
    for arm in arms:
        serial += 1
        workload = settings.offered(_WARM_UP, serial, warm_up_s)
        bench.load(arm, workload, serial, 4 * warm_up_s)
    _say("warmed up")
    return serial


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - a command-line program


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
