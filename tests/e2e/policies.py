"""Policies as an attacker or a confused operator would send them."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, cast

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from headway_runtime.policy import Policy, Scope, SignedPolicy, Stamp, encode
from tests.e2e.kube import Cluster
from tests.e2e.service import fetched
from tests.e2e.stack import OPERATOR_NAMESPACE
from tests.e2e.waiting import patiently

POLICY_PORT = 8900
_NO_WAY_TO_THE_POD = (502, 503, 504)
"""Said by the API server; a sidecar never does."""


@dataclass(frozen=True)
class Sidecar:
    """A pod's policy port, reached through the API server."""

    api_url: str
    namespace: str
    pod: str

    def put(self, body: bytes) -> tuple[int, dict[str, Any]]:
        """Send a policy; gives the HTTP status and the answer.

        Where none comes it is sent again: one that was taken is then called AlreadyApplied.
        """
        return patiently(lambda: self._put(body))

    def _put(self, body: bytes) -> tuple[int, dict[str, Any]]:
        request = urllib.request.Request(f"{self._url}/v1/policy", data=body, method="PUT")
        request.add_header("content-type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code in _NO_WAY_TO_THE_POD:
                raise
            with error:
                return error.code, json.load(error)

    def status(self) -> dict[str, Any]:
        """What the sidecar says of itself and its engines."""
        return dict(json.loads(fetched(f"{self._url}/v1/status")))

    def stamp(self) -> Stamp:
        """The stamp of the policy in force."""
        generation, epoch, counter = self.status()["policy"]["stamp"].split(".")
        return Stamp(int(generation), int(epoch), int(counter))

    @property
    def _url(self) -> str:
        pods = f"{self.api_url}/api/v1/namespaces/{self.namespace}/pods"
        return f"{pods}/{self.pod}:{POLICY_PORT}/proxy"


def operators_key(cluster: Cluster) -> Ed25519PrivateKey:
    """The key that signs policies, read as a cluster administrator."""
    secret = cluster.get("secret", "headway-signing", OPERATOR_NAMESPACE)
    pem = base64.b64decode(secret["data"]["current.pem"])
    return cast(Ed25519PrivateKey, load_pem_private_key(pem, None))


def sign(policy: Policy, key: Ed25519PrivateKey) -> SignedPolicy:
    """Sign as the operator does."""
    payload = encode(policy)
    key_id = hashlib.sha256(key.public_key().public_bytes_raw()).hexdigest()[:16]
    return SignedPolicy(payload, key.sign(payload), key_id)


def policy_after(stamp: Stamp, service_uid: str, **fields: Any) -> Policy:
    """A policy that outranks ``stamp`` without leaving its generation and epoch."""
    raised = dataclasses.replace(stamp, counter=stamp.counter + 1)
    return Policy(Scope(service_uid), raised, **fields)
