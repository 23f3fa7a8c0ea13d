"""An engine for runners: takes arms as the real one does, and answers what they ask."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from headway_runtime.bench.arms import Seating
from headway_runtime.bench.arms_file import ArmsFile
from tests.unit.bench.fake_server import FakeServer


class FakeEngine(FakeServer):
    """Takes arms as the real one does, and answers what a runner asks."""

    def __init__(self, run_dir: Path) -> None:
        super().__init__()
        self.arms = ArmsFile(run_dir, "0.26.0", is_async=True)
        self.seated: list[Seating] = []
        self.resets = 0

    async def complete(self, request: web.Request) -> web.StreamResponse:
        wanted = self.arms.wanted()
        if wanted is not None and wanted not in self.seated:
            self.seated.append(wanted)
            self.arms.applied(wanted)
        return await super().complete(request)

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
