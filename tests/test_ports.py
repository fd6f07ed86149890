"""Ports for servers of tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from demo.preflight import port_free
from tests.ports import BLOCK, _block, free_port, free_ports

ROOT = Path(__file__).resolve().parent.parent


def test_they_lie_in_a_row_and_are_free() -> None:
    ports = free_ports(6)
    assert ports == list(range(ports[0], ports[0] + 6))
    assert all(map(port_free, ports))


def test_each_call_gives_others() -> None:
    assert len({free_port() for _ in range(20)}) == 20


def test_one_in_use_is_passed_over() -> None:
    with socket.create_server(("127.0.0.1", free_port())) as server:
        assert server.getsockname()[1] not in {free_port() for _ in range(60)}


def test_another_process_whose_number_falls_on_our_block_is_given_another() -> None:
    ours = free_port() // BLOCK * BLOCK
    code = f"from tests.ports import _block; print(_block({os.getpid()}))"
    asked = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ours == _block(os.getpid())
    assert int(asked.stdout) != ours
