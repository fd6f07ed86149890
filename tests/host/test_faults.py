"""The true reason is a line somewhere in the log: vLLM's own lines, as they were captured or are in its source."""

from __future__ import annotations

import pytest

from workers.host.faults import clean, read

EMPTY_LAST = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
PREFIX = "(EngineCore pid=7299) ERROR 11-29 11:05:58 [core.py:1510] "
MEMORY = (
    "ValueError: Free memory on device cuda:0 (30.1/79.2 GiB) on startup is less than desired GPU memory utilization "
    "(0.92, 72.9 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
)
NODE = "ValueError: Available memory on node 0 (16.15/20.09 GiB) on startup is less than desired CPU memory utilization"
LONG = "ValueError: To serve at least one request with the model's max seq len (32768), (4.0 GiB KV cache is needed"


@pytest.mark.parametrize(
    ("line", "code", "fatal"),
    [
        (MEMORY, "out_of_memory", False),
        (NODE, "out_of_memory", False),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "out_of_memory", False),
        ("CUDA Error: out of memory at csrc/cumem_allocator.cpp:139", "out_of_memory", False),
        ("ValueError: No available memory for the cache blocks. Try increasing", "out_of_memory", False),
        (LONG, "context_too_long", True),
        ("AssertionError: Error in memory profiling. Initial free memory 3 GiB", "memory_race", False),
        ("engine.py: error: unrecognized arguments: --swap-space 4", "bad_arguments", True),
        ("Value error, Sleep mode is not supported on current platform.", "bad_arguments", True),
        ("safetensors_rust.SafetensorError: Error while deserializing header", "bad_weights", True),
        ("RuntimeError: CUDA error: an illegal memory access", "device_error", False),
        ("KeyError: 'layers.0.weight'", "crashed", False),
    ],
)
def test_it_finds_the_reason_under_the_last_words(line: str, code: str, fatal: bool) -> None:
    log = "\n".join(["INFO started", PREFIX + line, PREFIX + "more", EMPTY_LAST])
    fault = read(log, "crashed", "ended")
    assert (fault.code, fault.fatal) == (code, fatal)
    assert fault.text == line


def test_without_an_error_it_says_what_it_was_given() -> None:
    assert read("INFO one\nINFO two\n", "crashed", "ended").text == "ended"
    assert read("", "crashed", "ended") == read(EMPTY_LAST, "crashed", "ended")


def test_it_shortens() -> None:
    assert len(read("ValueError: " + "x" * 5000, "crashed", "").text) == 400


def test_it_takes_prefixes_off() -> None:
    assert clean(PREFIX + "ValueError: x") == "ValueError: x"
