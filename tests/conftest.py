"""Fixtures that start real parts once for a whole test run, and how properties are tested."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.cluster.lab.paths import Paths
from tests.e2e import stack
from tests.e2e.aftermath import aftermath
from tests.e2e.kube import Cluster

# How long an example takes says more of what else the machine does than of what is tested. A run
# gives the same result as the one before it; HEADWAY_PROPERTIES=explore looks for new examples.
settings.register_profile("headway", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HEADWAY_PROPERTIES", "headway"))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A local Kubernetes; stopped afterwards unless it was running before."""
    paths = Paths.from_environment(os.environ)
    was_running = stack.lab_is_running()
    try:
        stack.lab("up")
        yield Cluster(Path(stack.lab("kubeconfig").strip()), paths.bin)
    finally:
        if not was_running:
            stack.lab("down")


@pytest.fixture(scope="session")
def operator(cluster: Cluster) -> Cluster:
    """The cluster with the operator running from this checkout's images."""
    _, images = stack.bring_up()
    stack.install_chart(cluster, images)
    return cluster


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds to a failed test what its cluster looks like then."""
    report = yield
    cluster = getattr(item, "funcargs", {}).get("cluster")
    if report.failed and isinstance(cluster, Cluster):  # and not a unit test's stand-in
        report.sections.append(("cluster", aftermath(cluster)))
    return report
