"""An engine for runners: takes arms as the real one does, and answers what they ask."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from aiohttp import web

from headway_runtime.bench.arms import Seating
from headway_runtime.bench.arms_file import ArmsFile
from headway_runtime.exchange import policy_file, statistics_file
from headway_runtime.exchange.statistics_file import StatisticsWriter
from headway_runtime.exchange.statistics_record import Load
from headway_runtime.policy import PolicyFormatError, decode
from tests.unit.bench.fake_server import FakeServer
from tests.unit.runtime.blocks import HEADER
from tests.unit.runtime.engines import BLANK


class FakeEngine(FakeServer):
    """Takes arms and policies as the real one does, and answers what a runner asks."""

    def __init__(self, run_dir: Path) -> None:
        super().__init__()
        self._run_dir = run_dir
        self._statistics = StatisticsWriter(run_dir / statistics_file.file_name(0), HEADER)
        self._steps = 0
        self.arms = ArmsFile(run_dir, "0.26.0", is_async=True)
        self.seated: list[Seating] = []
        self.resets = 0

    async def complete(self, request: web.Request) -> web.StreamResponse:
        wanted = self.arms.wanted()
        if wanted is not None and wanted not in self.seated:
            self.seated.append(wanted)
            self.arms.applied(wanted)
        self.step()
        return await super().complete(request)

    def step(self) -> None:
        """Record a step under the policy that was written, unless that is to be refused."""
        path = self._run_dir / policy_file.FILE_NAME
        try:
            serial = decode(policy_file.read(path)).stamp.counter
        except (FileNotFoundError, PolicyFormatError):
            return
        self._steps += 1
        record = replace(BLANK, step=self._steps, counter=serial, step_ns_total=self._steps)
        self._statistics.append(record)
        self._statistics.write_load(Load(wall_time_ns=1, steps=self._steps, running=0, waiting=0))

    def close(self) -> None:
        """Release its files."""
        self._statistics.close()

    async def reset(self, _: web.Request) -> web.Response:
        self.resets += 1
        return web.json_response({"success": self.resets % 2 == 0})

    async def metrics(self, _: web.Request) -> web.Response:
        return web.Response(
            text='vllm:cache_config_info{block_size="16",num_gpu_blocks="44000"} 1.0\n'
        )


@asynccontextmanager
async def engine_on_a_free_port(run_dir: Path) -> AsyncIterator[FakeEngine]:
    """An engine that was started with this run directory."""
    engine = FakeEngine(run_dir)
    application = web.Application(client_max_size=2**24)
    application.router.add_post("/v1/completions", engine.complete)
    application.router.add_post("/reset_prefix_cache", engine.reset)
    application.router.add_get("/metrics", engine.metrics)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    engine.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield engine
    finally:
        await runner.cleanup()
        engine.close()
