"""The engine flags that Headway sets itself, and what a user writes instead."""

from __future__ import annotations

from typing import NamedTuple

from headway_operator.api.base import Rule


class ReservedFlags(NamedTuple):
    """Flags refused in ``engine.args`` for one reason.

    Attributes:
        names: long names without their dashes; a final ``*`` stands for any ending.
        remedy: what to do instead; shown to the user.
        short: regular expression of their one-dash forms.
    """

    names: tuple[str, ...]
    remedy: str
    short: str = ""


RESERVED_FLAGS = (
    ReservedFlags(("model", "revision"), "set model.uri and model.revision instead"),
    ReservedFlags(("served-model-name",), "set model.servedName instead"),
    ReservedFlags(
        ("max-num-seqs",),
        "set engine.maxNumSeqs (the ceiling) or scheduling.maxBatchSize (live) instead",
    ),
    ReservedFlags(
        ("max-num-batched-tokens",),
        "set engine.maxNumBatchedTokens (the ceiling) or scheduling.tokenBudget (live) instead",
    ),
    ReservedFlags(("tensor-parallel-size",), "set engine.tensorParallelSize instead", "tp"),
    ReservedFlags(("shutdown-timeout",), "set engine.shutdownTimeoutSeconds instead"),
    ReservedFlags(
        ("scheduler-cls", "scheduling-policy"),
        "Headway orders requests: use classes, and scheduling.mode Off for the stock order",
    ),
    ReservedFlags(
        ("async-scheduling", "no-async-scheduling"),
        "asynchronous scheduling is always on: remove the flag",
    ),
    ReservedFlags(("middleware",), "it is reserved for Headway: remove the flag"),
    ReservedFlags(
        ("host", "port", "uds"),
        "the engine listens on port 8000 and the Service on port 80: remove the flag",
    ),
    ReservedFlags(
        ("ssl-*", "enable-ssl-refresh"),
        "probes and drain speak plain HTTP: end TLS in front of the Service",
    ),
    ReservedFlags(
        (
            "pipeline-parallel-size",
            "data-parallel-*",
            "nnodes",
            "node-rank",
            "master-addr",
            "master-port",
            "headless",
        ),
        "an engine is one pod, parallel only by engine.tensorParallelSize: remove the flag",
        "pp|dp[a-z]?|n|r",
    ),
    ReservedFlags(("config",), "a file would hide flags from validation: write them out"),
)


def reserved_flag_rule(flags: ReservedFlags) -> Rule:
    """CEL rule over an ``engine`` object that refuses these flags.

    ``--x``, ``--x=y``, ``-x`` and underscores for dashes are all covered; abbreviations are
    caught by preflight, which knows every full name.
    """
    names = [name.replace("-", "[-_]").replace("*", ".*") for name in flags.names]
    pattern = "|".join([*names, *([flags.short] if flags.short else [])])
    rule = f"!has(self.args) || !self.args.exists(a, a.matches('^--?({pattern})([= ]|$)'))"
    shown = ", ".join("--" + name for name in flags.names)
    return Rule(rule, f"engine.args must not contain {shown}: {flags.remedy}")
