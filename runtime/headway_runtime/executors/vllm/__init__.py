"""vLLM as an executor. Importing this package imports no vLLM: its preflight check runs without."""
