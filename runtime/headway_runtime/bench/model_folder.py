"""Folders of models that are only shapes: random weights, and a tokenizer made on the spot.

Speed depends on none of the weights' values, and nothing has to be downloaded.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_QWEN3: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 151643,
    "eos_token_id": 151645,
    "head_dim": 128,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "max_position_embeddings": 40960,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": 151936,
}

SHAPES: dict[str, dict[str, Any]] = {
    "qwen3-8b": {
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_attention_heads": 32,
        "num_hidden_layers": 36,
        "tie_word_embeddings": False,
    },
    "qwen3-1.7b": {
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "num_hidden_layers": 28,
        "tie_word_embeddings": True,
    },
    "qwen3-0.6b": {
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_hidden_layers": 28,
        "tie_word_embeddings": True,
    },
}
"""Published shapes of Qwen3 models, as far as they differ from each other."""

TINY = "tiny"
"""A shape for trying the harness where there is no GPU."""

_TINY: dict[str, Any] = {
    "head_dim": 32,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "tie_word_embeddings": True,
    "vocab_size": 50_000,
    "bos_token_id": 49_998,
    "eos_token_id": 49_999,
}


def write_model(shape: str, folder: Path) -> Path:
    """Make the folder of a model of this shape; what is there is overwritten.

    Raises:
        KeyError: there is no such shape.
        OSError: the folder cannot be written.
    """
    config = {**_QWEN3, **(_TINY if shape == TINY else SHAPES[shape])}
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / "config.json", config)
    write_tokenizer(folder, config["vocab_size"], config["eos_token_id"])
    return folder


def write_tokenizer(folder: Path, vocabulary: int, end_of_text: int) -> None:
    """Make a tokenizer with one made-up word for each token id."""
    from tokenizers import Tokenizer  # noqa: PLC0415 - only where a model is made
    from tokenizers.decoders import Fuse  # noqa: PLC0415
    from tokenizers.models import WordLevel  # noqa: PLC0415
    from tokenizers.pre_tokenizers import WhitespaceSplit  # noqa: PLC0415

    words = {f"w{token_id}": token_id for token_id in range(vocabulary)}
    tokenizer = Tokenizer(WordLevel(words, unk_token="w0"))  # noqa: S106 - no secret
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.decoder = Fuse()
    tokenizer.save(str(folder / "tokenizer.json"))
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": f"w{end_of_text}",
            "unk_token": "w0",
            "model_max_length": _QWEN3["max_position_embeddings"],
            "clean_up_tokenization_spaces": False,
        },
    )


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
