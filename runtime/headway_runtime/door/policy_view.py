"""What the door needs of a policy, worked out once for each. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headway_runtime.door.identity import KnownTenants
from headway_runtime.policy import Mode, Policy, TrafficClass, WhenUnmet


@dataclass(frozen=True)
class PolicyView:
    """A policy as the door sees it.

    Attributes:
        tenants: who is who.
        classes: classes of traffic by name.
        default: the class of a request that names none of them, None for no class at all.
        ttft_ms: by class, None where it promises none.
        refuses: whether any request may be refused.
        acts: whether what is decided is carried out.
    """

    tenants: KnownTenants
    classes: Mapping[str, TrafficClass]
    default: TrafficClass | None
    ttft_ms: Mapping[str, int | None]
    refuses: bool
    acts: bool = False

    @classmethod
    def of(cls, policy: Policy | None) -> PolicyView:
        """The view of this policy; without one nobody is known and nobody refused."""
        if policy is None:
            return cls(KnownTenants.of(None), {}, None, {}, refuses=False)
        classes = {each.name: each for each in policy.classes}
        return cls(
            KnownTenants.of(policy),
            classes,
            classes.get(policy.default_class or ""),
            {each.name: each.ttft_ms for each in policy.classes},
            refuses=policy.mode is Mode.ACT and any(map(_is_limited, policy.classes)),
            acts=policy.mode is Mode.ACT,
        )

    def traffic_class(self, name: str | None) -> TrafficClass | None:
        """The class of a request that names this one."""
        return self.default if name is None else self.classes.get(name, self.default)


def _is_limited(traffic_class: TrafficClass) -> bool:
    return traffic_class.max_queued is not None or traffic_class.when_unmet is WhenUnmet.SHED
