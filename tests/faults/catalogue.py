"""The faults that are asked for, so that the report can say which were not run."""

from __future__ import annotations

FAULTS = {
    "missing_secret": "a Secret that is missing, and its repair",
    "missing_claim": "a claim that is missing, and its repair",
    "missing_image": "an image that is missing, and its repair",
    "no_gpu": "no GPU free",
    "quota": "a ResourceQuota that is used up",
    "crash_loop": "an engine that crashes again and again, and a fix",
    "pod_killed_under_load": "a pod killed under load",
    "pod_killed_behind_the_router": "a pod killed under load, behind the router",
    "host_out_of_memory": "memory limit exceeded",
    "engine_out_of_memory": "the engine has too little memory for its KV cache at start",
    "cache_beyond_the_limit": "a KV cache beyond the memory limit: less of it, until it fits",
    "api_server_gone": "the API server gone for a minute",
    "api_server_refuses": "an API server that refuses the operator for two minutes",
    "prometheus_gone": "Prometheus gone for a minute",
    "preemption": "a pod of a higher priority takes the GPU",
    "woken_pod_hangs": "a woken pod that only hangs",
    "operator_cut_off": "an operator that is cut off from the activators",
    "model_download_fails": "a model that cannot be downloaded",
    "model_download_slow": "a model that is downloaded slowly",
    "node_gone": "a node that is gone",
    "kv_cache_full": "a KV cache that is full",
    "kv_cache_full_and_missed": "a KV cache that is full while a promise is missed",
    "poison_request": "requests that are made to break the engine",
    "request_kills_the_engine": "a request that kills the engine, and its quarantine",
    "rollout_without_a_spare_gpu": "a rollout without a spare GPU",
}
"""By key: the name of the test without ``test_``."""
