"""What a cluster looks like right after a test failed: nobody can look at it later."""

from __future__ import annotations

from tests.e2e.kube import Cluster, KubectlError

MOST_LINES = 80
_EVENT_COLUMNS = (
    "FIRST:.metadata.creationTimestamp,LAST:.lastTimestamp,COUNT:.count,"
    "NAMESPACE:.metadata.namespace,KIND:.involvedObject.kind,NAME:.involvedObject.name,"
    "REASON:.reason,MESSAGE:.message"
)
QUESTIONS = (
    "get inferenceservices -A -o wide",
    "get pods -A -o wide",
    "get endpointslices -A",
    f"get events -A --sort-by=.metadata.creationTimestamp -o custom-columns={_EVENT_COLUMNS}",
    f"logs -n headway-system --prefix --tail={MOST_LINES} -l app.kubernetes.io/name=headway",
)


def aftermath(cluster: Cluster) -> str:
    """Services, pods, endpoints, the last events, and the operator's last words."""
    answers = (f"$ kubectl {each}\n{_answer(cluster, each)}" for each in QUESTIONS)
    return "\n\n".join(answers)


def _answer(cluster: Cluster, question: str) -> str:
    try:
        lines = cluster.kubectl(*question.split(), timeout_s=20).splitlines()
    except KubectlError as error:
        return str(error)
    return "\n".join(lines[-MOST_LINES:])
