"""Arbitrary policies: of what the first version of the format can say, and of everything."""

from __future__ import annotations

from hypothesis import strategies as st

from headway_runtime.policy import (
    MAX_THETA_PPM,
    Mode,
    Policy,
    PriorityCoefficients,
    Scope,
    Stamp,
    Tenant,
    TrafficClass,
    WhenUnmet,
)

names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,10}[a-z0-9])?", fullmatch=True)
counts = st.integers(min_value=0, max_value=2**53 - 1)
limits = st.none() | st.integers(min_value=1, max_value=2**53 - 1)
weights = st.integers(1, 100)
key_hashes = st.binary(min_size=32, max_size=32).map(bytes.hex)

_CLASS_1 = {
    "name": names,
    "ttft_ms": limits,
    "tpot_ms": limits,
    "deadline_s": limits,
    "max_running": limits,
}
_CLASS_2 = {
    **_CLASS_1,
    "weight": weights,
    "when_unmet": st.sampled_from(WhenUnmet),
    "max_queued": st.none() | st.integers(1, 100_000),
}

tenants = st.lists(
    st.builds(Tenant, name=names, weight=weights, key_sha256=st.none() | key_hashes),
    max_size=4,
    unique_by=(lambda each: each.name, lambda each: each.key_sha256 or each.name),
).map(tuple)


@st.composite
def priorities(draw: st.DrawFn) -> PriorityCoefficients:
    base = draw(st.integers(0, 100))
    depth = draw(st.integers(0, 100 - base))
    return PriorityCoefficients(base, depth, 100 - base - depth, draw(st.booleans()))


@st.composite
def policies(draw: st.DrawFn, *, version: int = 2) -> Policy:
    """A policy of what this version of the format can say."""
    classes = draw(
        st.lists(
            st.builds(TrafficClass, **(_CLASS_1 if version == 1 else _CLASS_2)),
            max_size=4,
            unique_by=lambda each: each.name,
        ).map(tuple)
    )
    since_2 = {
        "tenants": tenants,
        "trust_headers": st.booleans(),
        "fairness_window": st.integers(1, 10_000),
        "priority": priorities(),
    }
    return Policy(
        scope=Scope(draw(names), draw(st.none() | names)),
        stamp=draw(st.builds(Stamp, counts, counts, counts)),
        mode=draw(st.sampled_from(Mode)),
        max_batch_size=draw(limits),
        token_budget=draw(limits),
        classes=classes,
        default_class=draw(st.sampled_from([None, *(each.name for each in classes)])),
        theta_ppm=draw(st.none() | st.integers(0, MAX_THETA_PPM)),
        **({} if version == 1 else {name: draw(each) for name, each in since_2.items()}),
    )
