"""Why a folder of weights cannot be read, or a number cannot be told from it."""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    """Of one folder or file; what a page says of each is `console.models.words.PROBLEMS`."""

    NO_ROOTS = "no_roots"
    BAD_PATH = "bad_path"
    OUTSIDE = "outside"
    NOT_THERE = "not_there"
    FORBIDDEN = "forbidden"
    NO_CONFIG = "no_config"
    NO_WEIGHTS = "no_weights"
    TOO_LONG = "too_long"
    NOT_JSON = "not_json"
    NOT_SAFETENSORS = "not_safetensors"
    BAD_OFFSETS = "bad_offsets"
    CUT_OFF = "cut_off"
    BAD_INDEX = "bad_index"
    SHARD_MISSING = "shard_missing"
    TOO_MANY_FILES = "too_many_files"


class Unreadable(Exception):
    """`file`: its name within the folder, where it is about one."""

    def __init__(self, code: Code, file: str = "") -> None:
        super().__init__(code, file)
        self.code, self.file = code, file


class Unknown(StrEnum):
    """Why KV bytes per token cannot be told from a `config.json`: a wrong number would be promised as memory."""

    NO_LAYERS = "no_layers"
    NO_HEADS = "no_heads"
    UNEVEN = "uneven"
    OTHER_MEMORY = "other_memory"
    CROSS_ATTENTION = "cross_attention"
    SPARSE_INDEX = "sparse_index"
