"""A local Kubernetes cluster for demos and tests: `python -m tests.cluster.lab --help`."""
