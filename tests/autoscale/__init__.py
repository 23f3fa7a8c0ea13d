"""How many pods a service gets, against a Kubernetes HPA: simulated engines, public traces."""
