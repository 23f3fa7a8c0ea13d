"""Scenarios of overload, of tenants that share an engine, and of programs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from headway_runtime.bench import mixes
from headway_runtime.bench.classes.declarations import Declared
from headway_runtime.bench.classes.program_shapes import Shape, chain, tree
from headway_runtime.bench.classes.workloads import TenantLoad, programs, shared, shedding
from headway_runtime.bench.scenarios import Offer, Scenario
from headway_runtime.bench.workload import Workload
from headway_runtime.policy import Tenant

OVERLOAD = "overload"
TENANTS = "tenants"
PROGRAMS = "programs"

HONEST = "honest"
LIAR = "liar"
"""Tenants with equal programs; what the second one declares is what variants differ in."""

HEAVY = "heavy"
LIGHT = ("light-1", "light-2", "light-3")

_USERS = Tenant("users")
_CHAT_LOAD = 0.25
"""Less than its share, so that a TTFT can be kept whatever the others do."""

_LIGHT_LOAD = 0.35
_HEAVY_FACTOR = 10
_MODEST_LOAD = 0.15

_Maker = Callable[[Offer, float, float], Workload]


def base_of(scenario: str) -> tuple[str, Declared]:
    """A program scenario's name without its variant, and the variant."""
    for each in Declared:
        if scenario.endswith(f"-{each.value}"):
            return scenario.removesuffix(f"-{each.value}"), each
    return scenario, Declared.TRULY


def _overload(offer: Offer, load: float, duration_s: float) -> Workload:
    return shedding(offer, mixes.standard(), load, duration_s)


def _tenants(loads: tuple[TenantLoad, ...]) -> _Maker:
    def make(offer: Offer, _: float, duration_s: float) -> Workload:
        return shared(offer, mixes.standard(), loads, duration_s)

    return make


def _equal() -> tuple[TenantLoad, ...]:
    light = (TenantLoad(Tenant(name), _LIGHT_LOAD) for name in LIGHT)
    return (TenantLoad(Tenant(HEAVY), _HEAVY_FACTOR * _LIGHT_LOAD), *light)


def _weighted() -> tuple[TenantLoad, ...]:
    """Each offers more than its share, so that all of them wait."""
    return tuple(
        TenantLoad(Tenant(f"weight-{weight}", weight), 0.25 + weight / 7) for weight in (1, 2, 4)
    )


def _claiming(claims: str) -> tuple[TenantLoad, ...]:
    """Three tenants that would be served at once, and one that sends too much."""
    light = (TenantLoad(Tenant(name), _MODEST_LOAD) for name in LIGHT)
    return (TenantLoad(Tenant(HEAVY), 1.5, claims), *light)


def _programs(shape: Shape, variant: Declared, *, beside_chat: bool = False) -> _Maker:
    def make(offer: Offer, load: float, duration_s: float) -> Workload:
        declared = {
            Tenant(HONEST): Declared.UNDECLARED
            if variant is Declared.UNDECLARED
            else Declared.TRULY,
            Tenant(LIAR): variant,
        }
        beside = None
        if beside_chat:
            chat = mixes.with_batch_share(0)
            beside = shared(offer, chat, (TenantLoad(_USERS, _CHAT_LOAD),), duration_s)
            load -= _CHAT_LOAD
        return programs(offer, shape, load, duration_s, declared, beside)

    return make


def _total(loads: tuple[TenantLoad, ...]) -> float:
    return round(sum(each.load for each in loads), 3)


def _tenant_scenario(name: str, loads: tuple[TenantLoad, ...], duration_s: float) -> Scenario:
    return Scenario(name, TENANTS, _total(loads), duration_s, _tenants(loads))


def _program_scenarios(
    name: str, load: float, make: Callable[[Declared], _Maker]
) -> list[Scenario]:
    return [
        Scenario(
            name if variant is Declared.TRULY else f"{name}-{variant.value}",
            PROGRAMS,
            load,
            40,
            make(variant),
        )
        for variant in Declared
    ]


CLASS_SCENARIOS: tuple[Scenario, ...] = (
    Scenario("overload-140", OVERLOAD, 1.4, 60, _overload),
    Scenario("overload-200", OVERLOAD, 2.0, 60, _overload),
    _tenant_scenario("tenants-equal", _equal(), 30),
    _tenant_scenario("tenants-weighted", _weighted(), 30),
    _tenant_scenario("tenants-truth", _claiming(""), 30),
    _tenant_scenario("tenants-claim", _claiming(mixes.INTERACTIVE.name), 30),
    *_program_scenarios("programs-chain", 2.1, partial(_programs, chain)),
    *_program_scenarios("programs-tree", 1.7, partial(_programs, tree)),
    *_program_scenarios("programs-mixed", 1.5, partial(_programs, tree, beside_chat=True)),
)
"""``tenants-truth`` is ``tenants-claim`` with a heavy tenant that labels its requests rightly.

Programs come faster than an engine can serve them, so that for a while there is a choice to make;
all variants of a scenario send the same requests.
"""
