"""Starts the operator: ``python3 -m headway_operator.main``; ``--help`` lists its configuration."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys

import kopf
from prometheus_client import start_http_server

from headway_operator.act.cluster_client import ClusterClient, DefinitionMissingError
from headway_operator.act.signing import KeyRing, SigningKeyError
from headway_operator.environment import VARIABLES, Environment, EnvironmentVariableError
from headway_operator.operator import Operator

_METRICS_PORT = 8081


async def serve(environment: Environment, keys: KeyRing) -> None:
    """Connect and run."""
    async with await ClusterClient.connect() as client:
        await client.wait_for_definition()
        start_http_server(_METRICS_PORT)
        await Operator(environment, client, keys).run()


def configure_logging(log_format: str) -> None:
    """Log as text or as JSON, without a line for every event, probe and request."""
    kopf.configure(log_format=kopf.LogFormat.JSON if log_format == "json" else kopf.LogFormat.FULL)
    for chatty in ("kopf.objects", "kopf.activities.probe", "aiohttp.access"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # A failed probe is told in one line; this would add a traceback to each.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)


def main() -> None:
    """Command line; a wrong environment is told in one line."""
    argparse.ArgumentParser(
        prog="python3 -m headway_operator.main",
        description="Headway's operator: runs InferenceServices and retunes their engines live.",
        epilog=VARIABLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args()
    try:
        environment = Environment.read(os.environ)
        keys = KeyRing(environment.signing_key_dir)
        configure_logging(environment.log_format)
        asyncio.run(serve(environment, keys))
    except (EnvironmentVariableError, SigningKeyError, DefinitionMissingError) as error:
        sys.exit(f"headway-operator: {error}")


if __name__ == "__main__":
    main()
