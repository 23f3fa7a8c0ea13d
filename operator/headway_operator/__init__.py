"""The operator: observes the cluster, decides with pure functions, and acts through the Kubernetes API."""
