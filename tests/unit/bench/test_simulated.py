"""Runs on a simulated engine: the figures, what arms are known to do, the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headway_runtime.bench import mixes, results, simulate
from headway_runtime.bench.analysis import summary
from headway_runtime.bench.arms import parse
from headway_runtime.bench.measure import Loaded
from headway_runtime.bench.outcome import Ending
from headway_runtime.bench.simulated import SimulatedGpu
from headway_runtime.bench.simulated import simulate as run
from headway_runtime.bench.step_log import column
from headway_runtime.bench.step_seconds import gpu_seconds, model_error_median
from headway_runtime.bench.workload import Request, Workload, mixed_workload
from headway_runtime.executors.simulated.step_time import GpuStepTime

STANDARD = mixed_workload(mixes.standard(), 24.75, 20, seed=1)
"""At 22 chat and 2.75 batch requests a second, the most that the engine can do."""


def attainment(arm: str, workload: Workload) -> float:
    """Share of interactive requests inside their objectives."""
    loaded = run(SimulatedGpu(), parse(arm), workload, 1, give_up_s=600)
    figures = summary(loaded.outcomes, workload.classes, workload.duration_s)
    return float(figures["classes"]["interactive"]["attainment"])


def test_arms_stand_to_each_other_as_on_a_gpu() -> None:
    """A large budget misses TPOT, a small one in order of arrival TTFT."""
    assert attainment("stock-8192-fcfs", STANDARD) < 0.5
    assert attainment("stock-512-fcfs", STANDARD) < 0.6
    assert attainment("stock-512-priority", STANDARD) > 0.98
    assert attainment("headway", STANDARD) > 0.98


def test_static_batches_are_worst() -> None:
    light = mixed_workload(mixes.standard(), 11, 10, seed=1)
    assert attainment("stock-8192-fcfs", light) > 0.95
    assert attainment("static-64", light) < 0.5


def offered(*requests: tuple[float, int, int], blocks: tuple[int, ...] = ()) -> Workload:
    return Workload(
        (mixes.INTERACTIVE,),
        tuple(
            Request(at, mixes.INTERACTIVE.name, prompt, output, 0, prefix_blocks=blocks)
            for at, prompt, output in requests
        ),
        1.0,
    )


FLAT = SimulatedGpu(
    GpuStepTime((10, 0, 0), (20, 0, 0, 0, 0), decode_launch_s=0.001, graph_launch_s=0.001)
)
"""Steps of 10 ms, and of 20 ms with prefill."""


def test_clients_see_when_steps_end() -> None:
    loaded = run(FLAT, parse("stock-8192-fcfs"), offered((0.5, 100, 3)), 1, give_up_s=60)
    (outcome,) = loaded.outcomes
    assert outcome.ending is Ending.COMPLETE
    assert outcome.token_s == pytest.approx((0.52, 0.53, 0.54), abs=0.002)
    assert column(loaded.steps, "prefill_tokens").tolist()[:2] == [100, 0]
    assert column(loaded.steps, "update_s")[:3] == pytest.approx((0.52, 0.53, 0.54), abs=0.002)


def test_what_has_not_ended_is_given_up() -> None:
    loaded = run(FLAT, parse("stock-8192-fcfs"), offered((0.0, 100, 900)), 1, give_up_s=2)
    (outcome,) = loaded.outcomes
    assert outcome.ending is Ending.TIMED_OUT
    assert 150 < len(outcome.token_s) < 220
    assert outcome.ended_s >= 2


def test_prefixes_of_earlier_requests_are_cached() -> None:
    workload = offered((0.0, 1100, 2), (0.5, 1100, 2), blocks=(7, 8, 9))
    loaded = run(FLAT, parse("stock-8192-fcfs"), workload, 1, give_up_s=60)
    # Whole blocks of 16 tokens alone.
    assert column(loaded.steps, "prefill_tokens").sum() == 1100 + 1100 % 16


def test_the_model_learns_steps_that_are_not_its_prior() -> None:
    slow = SimulatedGpu(GpuStepTime((9, 3, 5), (6, 40, 4, 6, 2), graph_launch_s=0.002))
    light = mixed_workload(mixes.standard(), 6, 20, seed=1)
    steps = run(slow, parse("headway"), light, 1, give_up_s=60).steps
    assert (found := model_error_median(steps, 512)) is not None
    assert found < 0.05
    assert model_error_median(steps[:30], 512) != found
    assert model_error_median(steps[:5], 512) is None


PROCESSOR = GpuStepTime(
    (45, 50, 220),
    (55, 310, 60, 240, 200),
    graph_tokens=0,
    decode_launch_s=0.0,
    graph_launch_s=0.0,
    eager_launch_s=0.0,
    spread=0.05,
    schedules_ahead=False,
)
"""A model of 135 million parameters on two cores: some 1,700 tokens/s, one step after the other."""


def test_a_processor_is_known_after_a_few_steps() -> None:
    chat = replace(mixes.INTERACTIVE, ttft_ms=10_000, tpot_ms=300)
    batch = replace(mixes.BATCH, deadline_s=None)
    requests = [
        Request(0.1 * count, (chat if count % 8 else batch).name, 150, 32, 0)
        for count in range(600)
    ]
    workload = Workload((chat, batch), tuple(requests), 60.0)
    loaded = run(SimulatedGpu(PROCESSOR), parse("headway"), workload, 1, give_up_s=200)
    assert not loaded.engine["async_scheduling"]
    # From the first request on: not one of them pays for what is learnt.
    figures = summary(loaded.outcomes, workload.classes, workload.duration_s)
    assert figures["classes"]["interactive"]["attainment"] > 0.98
    # Each step is timed, with all of it.
    assert (error := model_error_median(loaded.steps, 0)) is not None
    assert error < 0.1
    took_s = column(loaded.steps, "update_s") - column(loaded.steps, "schedule_s")
    assert gpu_seconds(loaded.steps, 0)[2:] == pytest.approx(took_s[2:])


def test_steps_whose_end_was_not_seen_have_no_length() -> None:
    slow = SimulatedGpu(replace(GpuStepTime(), eager_launch_s=0.2))
    steps = run(slow, parse("stock-8192-fcfs"), STANDARD, 1, give_up_s=600).steps
    seconds = gpu_seconds(steps, 512)
    eager = column(steps, "tokens") > 512
    assert eager.sum() > 20
    assert np.isnan(seconds[eager]).mean() > 0.6


def test_the_command_line_writes_results_as_of_an_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        *("--out", str(tmp_path), "--scenarios", "load-30", "kv-pressure", "--duration-s", "3"),
        *("--arms", "headway", "stock-512-priority", "--seeds", "1", "2", "--keep-steps"),
    ]
    assert simulate.main(arguments) == 0
    assert len(capsys.readouterr().out.splitlines()) == 8
    found = results.read([tmp_path])
    assert {each["name"] for each in found} == {
        f"simulated.{scenario}.s{seed}.{arm}"
        for scenario in ("load-30", "kv-pressure")
        for seed in (1, 2)
        for arm in ("headway", "stock-512-priority")
    }
    assert {each["kv_blocks"] for each in found} == {47_000, 10_000}
    assert len(results.read_steps(tmp_path / "simulated.load-30.s1.headway.steps.npz")) > 50
    assert simulate.main(arguments) == 0
    assert not capsys.readouterr().out


def test_launches_can_be_those_of_another_machine(tmp_path: Path) -> None:
    def tpot_ms(*more: str) -> float:
        out = tmp_path / str(len(more))
        arguments = ["--out", str(out), "--scenarios", "load-10", "--arms", "stock-8192-fcfs"]
        assert simulate.main([*arguments, "--duration-s", "5", *more]) == 0
        (found,) = results.read([out])
        return float(found["summary"]["tpot_ms"]["p50"])

    assert tpot_ms("--launch-ms", "40", "40", "40") > 35 > 2 * tpot_ms()


def test_planning_takes_time_of_the_host_in_arms_that_plan(tmp_path: Path) -> None:
    def tpot_ms(arm: str, plan_us: str) -> float:
        out = tmp_path / f"{arm}{plan_us}"
        arguments = ["--out", str(out), "--scenarios", "load-30", "--arms", arm]
        host = ["--host-us", "10", "10", plan_us]
        assert simulate.main([*arguments, "--duration-s", "5", *host]) == 0
        (found,) = results.read([out])
        return float(found["summary"]["tpot_ms"]["p50"])

    assert tpot_ms("headway", "5000") > 1.5 * tpot_ms("headway", "0")
    assert tpot_ms("stock-512-priority", "5000") == tpot_ms("stock-512-priority", "0")


def test_the_same_seed_gives_the_same_run() -> None:
    def again(seed: int) -> Loaded:
        return run(SimulatedGpu(), parse("headway"), STANDARD, seed, give_up_s=600)

    assert again(1).outcomes == again(1).outcomes != again(2).outcomes
