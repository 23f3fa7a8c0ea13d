"""The check before the engine is tried: its version, its flags, its model; vLLM is not imported."""
