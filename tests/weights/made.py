"""Weights as they lie on a disk: real headers, and no more bytes of tensors than a hole in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

QWEN3_8B: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "torch_dtype": "bfloat16",
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "hidden_size": 4096,
    "max_position_embeddings": 40960,
}


def header(tensors: dict[str, tuple[str, list[int], int]], start: int = 0) -> bytes:
    """`tensors`: name → (type, shape, bytes), laid side by side."""
    entries: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    for name, (kind, shape, nbytes) in tensors.items():
        entries[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, start + nbytes]}
        start += nbytes
    return json.dumps(entries).encode()


def safetensors(path: Path, tensors: dict[str, tuple[str, list[int], int]]) -> None:
    text = header(tensors)
    whole = len(text).to_bytes(8, "little") + text
    with path.open("wb") as file:
        file.write(whole)
        file.truncate(len(whole) + sum(nbytes for _, _, nbytes in tensors.values()))


def weights(folder: Path, mib: list[int], **config: Any) -> Path:
    """A model's folder; `mib`: of each of its files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**QWEN3_8B, **config}))
    names = ["model.safetensors"]
    if len(mib) > 1:
        names = [f"model-{n:05d}-of-{len(mib):05d}.safetensors" for n in range(1, len(mib) + 1)]
        index = {"metadata": {"total_size": 1}, "weight_map": {f"w{n}": name for n, name in enumerate(names)}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    for n, (name, size) in enumerate(zip(names, mib, strict=True)):
        safetensors(folder / name, {f"w{n}": ("BF16", [size, 512, 1024], size * 2**20)})
    return folder
