"""Ports for servers of tests."""

from __future__ import annotations

import socket

from demo.preflight import port_free
from tests.ports import free_port, free_ports


def test_they_lie_in_a_row_and_are_free() -> None:
    ports = free_ports(6)
    assert ports == list(range(ports[0], ports[0] + 6))
    assert all(map(port_free, ports))


def test_each_call_gives_others() -> None:
    assert len({free_port() for _ in range(20)}) == 20


def test_one_in_use_is_passed_over() -> None:
    with socket.create_server(("127.0.0.1", free_port())) as server:
        assert server.getsockname()[1] not in {free_port() for _ in range(60)}
