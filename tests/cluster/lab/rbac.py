"""Rights of the components that Kubernetes has no built-in role for."""

from typing import Any

_GROUP = "rbac.authorization.k8s.io"


def cluster_role(name: str, user: str, rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A role in all namespaces, and its binding to a user."""
    metadata = {"name": f"headway-lab:{name}"}
    return [
        {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "ClusterRole",
            "metadata": metadata,
            "rules": rules,
        },
        {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": metadata["name"]},
            "subjects": [{"apiGroup": _GROUP, "kind": "User", "name": user}],
        },
    ]
