"""The router's command line: the Python launcher of the package vllm-router, 0.1.17 and later."""

from __future__ import annotations

from headway_operator.api.labels import ROUTER_METRICS_PORT
from headway_operator.api.router import Router
from headway_operator.render.names import HTTP_PORT

# Not the program of that name: images hold another one, which does not start without engines.
ROUTER_COMMAND = ("python3", "-m", "vllm_router.launch_router")

_POLICIES = {
    "RoundRobin": "round_robin",
    "CacheAware": "cache_aware",
    "ConsistentHash": "consistent_hash",
}
_ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - a pod's own network namespace


def router_arguments(router: Router) -> list[str]:
    """Arguments of the router. It starts without engines: the discovery beside it adds them."""
    arguments = {
        "--host": _ALL_ADDRESSES,
        "--port": HTTP_PORT,
        "--policy": _POLICIES[router.policy],
        # It counts tries. They are spread over half a second: longer than a dead engine is listed.
        "--retry-max-retries": router.retries + 1,
        "--retry-initial-backoff-ms": 10,
        "--retry-backoff-multiplier": 2,
        "--retry-max-backoff-ms": 160,
        "--retry-jitter-factor": 0.2,
        # The discovery is faster; this is for when it is away.
        "--health-check-interval-secs": 5,
        "--health-check-timeout-secs": 5,
        "--health-failure-threshold": 2,
        "--health-success-threshold": 1,
        # Engines are added when they take requests: waiting for one would be for nothing.
        "--worker-startup-timeout-secs": 2,
        "--worker-startup-check-interval": 1,
        # It would cut long answers; clients have time limits of their own.
        "--request-timeout-secs": 86_400,
        "--prometheus-host": _ALL_ADDRESSES,
        "--prometheus-port": ROUTER_METRICS_PORT,
        "--log-level": "warning",
    }
    # The circuit breaker takes refusals (503 with Retry-After) for failures: ten of them would
    # shut all other requests out for a minute.
    flags = ["--disable-circuit-breaker"]
    return [part for name, value in arguments.items() for part in (name, str(value))] + flags
