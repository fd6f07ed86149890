"""`config.json` → the shape of a model. Pure: bytes in, numbers out; what the file does not say is None, never a guess.

KV is counted at 2 bytes a value, as engines keep it whatever the weights' precision. A layer that slides a window over
its context is counted like one that sees all of it: more than it takes, never less. Layers whose memory does not grow
with the context (linear attention) are told apart and not counted. What we cannot count is `unknown`, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from console.catalog.weights.problem import Code, Unknown, Unreadable

FILE = "config.json"
MOST_BYTES = 2**20  # real ones are a few KiB
MOST = 2**40  # of any number in it
KV_BYTES = 2
#: The part that writes text, in models that also see or hear.
PARTS = ("text_config", "llm_config", "language_config", "thinker_config")
LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "multi_query_group_num", "n_head_kv")
HEAD_DIM = ("head_dim", "kv_channels", "attention_head_size")
HIDDEN = ("hidden_size", "n_embd", "d_model")
CONTEXT = ("max_position_embeddings", "seq_length", "n_positions", "max_sequence_length", "max_seq_len", "n_ctx")
#: Memory of another kind than keys and values by token.
OTHER = ("mamba", "ssm", "rwkv", "attn_layer_period", "hybrid_override_pattern", "layers_block_type", "attn_type_list")
#: Layers that are not alike, in ways that have no common name.
UNEVEN = ("block_configs", "per_layer_config")
ENCODERS = frozenset({"bert", "roberta", "xlm-roberta", "camembert", "electra", "mpnet", "modernbert", "nomic_bert"})
FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"
ALIASES = {"attention": FULL, "chunked_attention": SLIDING}
DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float8_e4m3fn": "fp8"}


class Attention(StrEnum):
    """How keys and values are kept."""

    MHA = "mha"
    GQA = "gqa"
    MQA = "mqa"
    MLA = "mla"
    HYBRID = "hybrid"
    ENCODER = "encoder"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Config:
    """None: the file does not say. `kv_bytes_per_token` None: `unknown` says why."""

    architecture: str
    model_type: str
    layers: int | None
    kv_layers: int | None
    kv_heads: int | None
    head_dim: int | None
    hidden: int | None
    max_context: int | None
    dtype: str
    quantisation: str
    attention: Attention
    sliding_layers: int
    kv_bytes_per_token: int | None
    unknown: Unknown | None

    @property
    def precision(self) -> str:
        """Of the weights as they are on the disk."""
        return self.quantisation or self.dtype


def read(data: bytes) -> Config:
    """Raises Unreadable."""
    if len(data) > MOST_BYTES:
        raise Unreadable(Code.TOO_LONG, FILE)
    try:
        whole = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise Unreadable(Code.NOT_JSON, FILE) from None
    if not isinstance(whole, dict):
        raise Unreadable(Code.NOT_JSON, FILE)
    return _shape(whole, _text_part(whole))


def _text_part(whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """Where the layers are counted: the file itself, or what it says of its language model."""
    found = whole
    for _ in range(len(PARTS)):
        inner = next((found[name] for name in PARTS if isinstance(found.get(name), dict)), None)
        if inner is None or _number(found, LAYERS) is not None:
            break
        found = inner
    return found


def _shape(whole: Mapping[str, Any], part: Mapping[str, Any]) -> Config:
    layers, kinds = _number(part, LAYERS), _kinds(part)
    kept = _kept(part, layers, kinds)
    heads, attention = _kv_heads(part), _attention(part, layers, kept)
    per_layer, unknown = _per_layer(part, attention, kept)
    of_encoder = attention is Attention.ENCODER
    kv_bytes = None if per_layer is None or kept is None else per_layer * kept * KV_BYTES
    return Config(
        architecture=_first_text(whole.get("architectures")),
        model_type=_text(part, "model_type") or _text(whole, "model_type"),
        layers=layers,
        kv_layers=0 if of_encoder else kept,
        kv_heads=None if attention is Attention.MLA else heads,
        head_dim=None if attention is Attention.MLA else _head_dim(part),
        hidden=_number(part, HIDDEN),
        max_context=_number(part, CONTEXT) or _number(whole, CONTEXT),
        dtype=_dtype(part) or _dtype(whole),
        quantisation=_quantisation(part) or _quantisation(whole),
        attention=attention,
        sliding_layers=kinds.count(SLIDING),
        kv_bytes_per_token=0 if of_encoder else kv_bytes,
        unknown=None if of_encoder or kv_bytes is not None else unknown or Unknown.NO_LAYERS,
    )


def _kinds(part: Mapping[str, Any]) -> list[str]:
    """By layer, where the file tells them; [] where they are all alike."""
    told = part.get("layer_types")
    named = [str(one) for one in told if isinstance(one, str)] if isinstance(told, list) else []
    return [ALIASES.get(one, one) for one in named]


def _kept(part: Mapping[str, Any], layers: int | None, kinds: list[str]) -> int | None:
    """Layers that keep keys and values of every token."""
    if kinds:
        return sum(one in (FULL, SLIDING) for one in kinds)
    every = _number(part, ("full_attention_interval",))
    return layers if layers is None or every is None else layers // every


def _attention(part: Mapping[str, Any], layers: int | None, kept: int | None) -> Attention:
    if _text(part, "model_type") in ENCODERS:
        return Attention.ENCODER
    if _why_not(part, layers) is not None:
        return Attention.UNKNOWN
    if part.get("kv_lora_rank") is not None:
        return Attention.MLA
    if kept != layers:
        return Attention.HYBRID
    heads, kv_heads = _number(part, HEADS), _kv_heads(part)
    if kv_heads is None:
        return Attention.UNKNOWN
    if kv_heads == heads:
        return Attention.MHA
    return Attention.MQA if kv_heads == 1 else Attention.GQA


def _why_not(part: Mapping[str, Any], layers: int | None) -> Unknown | None:
    """Why its memory is none that we count."""
    kinds = _kinds(part)
    if part.get("is_encoder_decoder") is True:
        return Unknown.CROSS_ATTENTION
    if any(part.get(name) is not None for name in ("index_topk", "index_head_dim")):
        return Unknown.SPARSE_INDEX
    if any(isinstance(part.get(name), list) for name in (*KV_HEADS, *HEAD_DIM, *UNEVEN)):
        return Unknown.UNEVEN
    if kinds and (not set(kinds) <= {FULL, SLIDING, LINEAR} or len(kinds) != layers):
        return Unknown.UNEVEN
    if not kinds and any(mark in str(name) for name in part for mark in OTHER):
        return Unknown.OTHER_MEMORY
    return None


def _per_layer(part: Mapping[str, Any], attention: Attention, kept: int | None) -> tuple[int | None, Unknown | None]:
    """Values a token takes in one layer that keeps them; None with the reason."""
    if attention is Attention.ENCODER:
        return 0, None
    if (why := _why_not(part, _number(part, LAYERS))) is not None:
        return None, why
    if not kept:
        return None, Unknown.NO_LAYERS
    if attention is Attention.MLA:
        latent = (_number(part, ("kv_lora_rank",)), _number(part, ("qk_rope_head_dim",)))
        return (sum(latent), None) if None not in latent else (None, Unknown.NO_HEADS)  # type: ignore[arg-type]
    heads, width = _kv_heads(part), _head_dim(part)
    return (2 * heads * width, None) if heads is not None and width is not None else (None, Unknown.NO_HEADS)


def _kv_heads(part: Mapping[str, Any]) -> int | None:
    told = _number(part, KV_HEADS)
    if told is not None:
        return told
    if part.get("multi_query") is True:
        return 1
    return None if any(part.get(name) is not None for name in KV_HEADS) else _number(part, HEADS)


def _head_dim(part: Mapping[str, Any]) -> int | None:
    """As said, else the width divided by the heads; None where that does not come out even."""
    told = _number(part, HEAD_DIM)
    hidden, heads = _number(part, HIDDEN), _number(part, HEADS)
    if told is not None or hidden is None or heads is None:
        return told
    return hidden // heads if hidden % heads == 0 else None


def _number(part: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """The first of these names that is a positive whole number."""
    for name in names:
        value = part.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < MOST:
            return value
    return None


def _text(part: Mapping[str, Any], name: str) -> str:
    value = part.get(name)
    return value[:80] if isinstance(value, str) else ""


def _first_text(value: Any) -> str:
    return value[0][:80] if isinstance(value, list) and value and isinstance(value[0], str) else ""


def _dtype(part: Mapping[str, Any]) -> str:
    told = _text(part, "torch_dtype") or _text(part, "dtype")
    return DTYPES.get(told, told)


def _quantisation(part: Mapping[str, Any]) -> str:
    """`fp8`, `int4`, `int8`, or the method's own name where it does not say how many bits."""
    told = part.get("quantization_config")
    if not isinstance(told, dict):
        return ""
    method = _text(told, "quant_method")
    if method == "compressed-tensors":
        return _of_groups(told.get("config_groups")) or method
    bits = _number(told, ("bits", "w_bit"))
    return f"int{bits}" if bits is not None and method in ("gptq", "awq") else method


def _of_groups(groups: Any) -> str:
    """Precision of the weights, where all groups agree."""
    found = {_of_weights(one) for one in groups.values()} if isinstance(groups, dict) else set()
    return found.pop() if len(found) == 1 else ""


def _of_weights(group: Any) -> str:
    weights = group.get("weights") if isinstance(group, dict) else None
    if not isinstance(weights, dict) or (bits := _number(weights, ("num_bits",))) is None:
        return ""
    return f"{'fp' if weights.get('type') == 'float' else 'int'}{bits}"
