"""What the engines say of themselves: from Prometheus, from the pods while it is away."""
