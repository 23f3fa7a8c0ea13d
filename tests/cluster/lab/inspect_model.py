"""Has vLLM look into the class of the lab's model; run by the engine environment's Python.

vLLM does it in a process of its own, which imports all of it once more, and keeps what it found
below VLLM_CACHE_ROOT.
"""

from vllm.model_executor.models import ModelRegistry

ARCHITECTURE = "LlamaForCausalLM"

if __name__ == "__main__":
    ModelRegistry.models[ARCHITECTURE].inspect_model_cls()
