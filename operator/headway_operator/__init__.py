"""The operator: observes the cluster, decides with pure functions, acts on the cluster."""
