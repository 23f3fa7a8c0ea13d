"""What runs in an engine pod: the vLLM plug-in, the sidecar, and the pure planner both rest on."""
