"""Shapes of real models from their `config.json`, and what is refused because it cannot be counted."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.catalog import catalogue
from console.catalog.weights import config
from console.catalog.weights.config import Attention
from console.catalog.weights.problem import Code, Unknown, Unreadable
from tests.weights.made import QWEN3_8B

QWEN3_NEXT = {
    "model_type": "qwen3_next", "num_hidden_layers": 48, "full_attention_interval": 4, "num_attention_heads": 16,
    "num_key_value_heads": 2, "head_dim": 256, "hidden_size": 2048, "max_position_embeddings": 262144,
    "torch_dtype": "bfloat16", "linear_num_key_heads": 16,
}  # fmt: skip
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3", "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128,
    "hidden_size": 7168, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "max_position_embeddings": 163840,
    "torch_dtype": "bfloat16", "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}  # fmt: skip
GPT_OSS_20B = {
    "model_type": "gpt_oss", "num_hidden_layers": 24, "num_attention_heads": 64, "num_key_value_heads": 8,
    "head_dim": 64, "hidden_size": 2880, "max_position_embeddings": 131072,
    "layer_types": ["sliding_attention", "full_attention"] * 12, "quantization_config": {"quant_method": "mxfp4"},
}  # fmt: skip
GLM_4_9B = {
    "model_type": "chatglm", "num_layers": 40, "num_attention_heads": 32, "multi_query_attention": True,
    "multi_query_group_num": 2, "kv_channels": 128, "hidden_size": 4096, "seq_length": 131072,
    "torch_dtype": "bfloat16",
}  # fmt: skip
QWEN_VL = {
    "model_type": "qwen3_vl", "architectures": ["Qwen3VLForConditionalGeneration"],
    "vision_config": {"depth": 27, "hidden_size": 1152, "num_heads": 16},
    "text_config": {**QWEN3_8B, "max_position_embeddings": 262144, "dtype": "bfloat16"},
}  # fmt: skip
BGE_M3 = {
    "model_type": "xlm-roberta", "num_hidden_layers": 24, "num_attention_heads": 16, "hidden_size": 1024,
    "max_position_embeddings": 8194, "torch_dtype": "float32",
}  # fmt: skip
#: What files of that model say → its row in the shipped catalogue, whose numbers came from elsewhere.
KNOWN = {
    "qwen3-8b": QWEN3_8B,
    "qwen3-next-80b-a3b": QWEN3_NEXT,
    "deepseek-v3-r1": DEEPSEEK_V3,
    "gpt-oss-20b": GPT_OSS_20B,
    "glm-4-9b": GLM_4_9B,
    "qwen3-vl-8b": QWEN_VL,
    "bge-m3": BGE_M3,
}


def read(given: object) -> config.Config:
    return config.read(json.dumps(given).encode())


@pytest.mark.parametrize("model", KNOWN)
def test_a_file_says_what_the_catalogue_says(model):
    found, facts = read(KNOWN[model]), catalogue.model(model)
    assert found.kv_bytes_per_token == facts["kv_bytes_per_token"]
    assert (found.layers, found.kv_layers) == (facts["layers"], facts["kv_layers"])
    assert (found.kv_heads if facts["kv_heads"] else None, found.unknown) == (facts["kv_heads"], None)
    assert abs((found.max_context or 0) - facts["max_context"]) <= 2, "XLM-R counts two that nobody can use"


def test_ways_to_keep_keys_and_values_are_told_apart():
    kinds = {model: read(given).attention for model, given in KNOWN.items()}
    assert kinds == {
        "qwen3-8b": Attention.GQA,
        "qwen3-next-80b-a3b": Attention.HYBRID,
        "deepseek-v3-r1": Attention.MLA,
        "gpt-oss-20b": Attention.GQA,
        "glm-4-9b": Attention.GQA,
        "qwen3-vl-8b": Attention.GQA,
        "bge-m3": Attention.ENCODER,
    }
    assert read(QWEN3_8B | {"num_key_value_heads": 32}).attention is Attention.MHA
    assert read({"n_layer": 12, "n_head": 12, "n_embd": 768}).attention is Attention.MHA
    falcon = read({"num_hidden_layers": 32, "num_attention_heads": 71, "multi_query": True, "hidden_size": 4544})
    assert (falcon.attention, falcon.kv_bytes_per_token) == (Attention.MQA, 2 * 1 * 64 * 32 * 2)


def test_a_sliding_layer_is_counted_like_one_that_sees_all():
    assert (read(GPT_OSS_20B).sliding_layers, read(GPT_OSS_20B).kv_layers) == (12, 24)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, Unknown.NO_LAYERS),
        ({"num_hidden_layers": 4}, Unknown.NO_HEADS),
        ({"num_hidden_layers": 4, "num_attention_heads": 7, "hidden_size": 100}, Unknown.NO_HEADS),
        (QWEN3_8B | {"num_key_value_heads": "8"}, Unknown.NO_HEADS),
        (QWEN3_8B | {"num_key_value_heads": [4, 8]}, Unknown.UNEVEN),
        (QWEN3_8B | {"block_configs": [{}]}, Unknown.UNEVEN),
        (QWEN3_8B | {"layer_types": ["full_attention"]}, Unknown.UNEVEN),
        (QWEN3_8B | {"layer_types": ["lightning"] * 36}, Unknown.UNEVEN),
        (QWEN3_8B | {"mamba_d_state": 16}, Unknown.OTHER_MEMORY),
        (QWEN3_8B | {"attn_layer_period": 8}, Unknown.OTHER_MEMORY),
        (QWEN3_8B | {"is_encoder_decoder": True}, Unknown.CROSS_ATTENTION),
        (DEEPSEEK_V3 | {"index_topk": 2048}, Unknown.SPARSE_INDEX),
        ({name: DEEPSEEK_V3[name] for name in ("num_hidden_layers", "kv_lora_rank", "num_attention_heads")},
         Unknown.NO_HEADS),
        (QWEN3_8B | {"layer_types": ["linear_attention"] * 36}, Unknown.NO_LAYERS),
    ],
)  # fmt: skip
def test_what_cannot_be_counted_is_unknown_and_says_why(given, why):
    found = read(given)
    assert (found.kv_bytes_per_token, found.unknown) == (None, why)


@pytest.mark.parametrize(
    ("told", "precision"),
    [
        ({}, "bf16"),
        ({"torch_dtype": "float16"}, "fp16"),
        ({"torch_dtype": None}, ""),
        ({"quantization_config": {"quant_method": "fp8"}}, "fp8"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "int4"),
        ({"quantization_config": {"quant_method": "awq", "bits": 8}}, "int8"),
        ({"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}, "bitsandbytes"),
        ({"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {
            "group_0": {"weights": {"num_bits": 8, "type": "float"}}}}}, "fp8"),
        ({"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {
            "a": {"weights": {"num_bits": 4, "type": "int"}}, "b": {"weights": {"num_bits": 8, "type": "int"}}}}},
         "compressed-tensors"),
        ({"quantization_config": "fp8"}, "bf16"),
    ],
)  # fmt: skip
def test_precision_is_that_of_the_files(told, precision):
    assert read(QWEN3_8B | told).precision == precision


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", Code.NOT_JSON),
        (b"[]", Code.NOT_JSON),
        (b"3", Code.NOT_JSON),
        (b"{", Code.NOT_JSON),
        (b'{"a": NaN}', Code.NOT_JSON),
        (b"\xff\xfe{}", Code.NOT_JSON),
        (b"[" * 500_000, Code.NOT_JSON),
        (b" " * (config.MOST_BYTES + 1), Code.TOO_LONG),
    ],
)
def test_what_is_no_config_is_refused(data, code):
    with pytest.raises(Unreadable) as refused:
        config.read(data)
    assert (refused.value.code, refused.value.file) == (code, "config.json")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(sorted(config.PARTS)), inner),
    max_leaves=8,
)
NAMES = (
    *config.PARTS, *config.LAYERS, *config.HEADS, *config.KV_HEADS, *config.HEAD_DIM, *config.HIDDEN, *config.CONTEXT,
    *config.UNEVEN, "layer_types", "kv_lora_rank", "qk_rope_head_dim", "quantization_config", "torch_dtype",
    "architectures", "model_type", "multi_query", "full_attention_interval", "is_encoder_decoder", "mamba_d_conv",
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(NAMES), VALUES | st.integers(1, 128), max_size=12))
def test_whatever_stands_in_it_the_answer_is_whole(given):
    """Either a number above zero, or none with a reason; an encoder has none to keep."""
    found = read(given)
    if found.attention is Attention.ENCODER:
        assert found.kv_bytes_per_token == 0
    else:
        assert (found.kv_bytes_per_token is None) == (found.unknown is not None)
        assert found.kv_bytes_per_token is None or found.kv_bytes_per_token > 0
    assert found.kv_layers is None or found.layers is None or found.kv_layers >= 0
    assert found.attention is not Attention.UNKNOWN or found.kv_bytes_per_token is None


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(data):
    with contextlib.suppress(Unreadable):
        assert config.read(data).layers is None
