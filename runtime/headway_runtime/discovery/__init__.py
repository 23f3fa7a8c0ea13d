"""Tells a router which engines there are: ``python3 -m headway_runtime.discovery``.

It runs beside vllm-router in the same pod. Candidates are the addresses that the name of a headless
Service stands for; whether one takes requests is found out by asking it, several times a second.
So the router needs no right to the API server, and an engine that died or is being stopped gets no
request before the cluster has noticed.
"""
