"""Looks before the first process starts, so that a person reads one sentence and not nine logs."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

from demo.problem import Problem

ROOM_MIB = 300  # database, logs and spools of some days of demo
SOCKET_PATH_BYTES = 104  # the shortest limit of a unix socket's path among the systems we run on
LONGEST_BELOW_HOME = "/hosts/gpu-00/engines/000000/engine.sock"


def check_room(path: Path, room_mib: int = ROOM_MIB) -> None:
    free_mib = shutil.disk_usage(path).free // (1024 * 1024)
    if free_mib < room_mib:
        raise Problem(
            f"磁盘空间不足：{path} 所在磁盘只剩 {free_mib} MiB，需要 {room_mib} MiB",
            f"not enough disk space: {free_mib} MiB left for {path}, {room_mib} MiB needed",
        )


def check_length(path: Path) -> None:
    length = len(str(path).encode()) + len(LONGEST_BELOW_HOME)
    if length > SOCKET_PATH_BYTES:
        raise Problem(
            f"数据目录的路径太长（套接字路径会有 {length} 字节，最多 {SOCKET_PATH_BYTES}）：用 --home 换一个短的",
            f"the data folder's path is too long for sockets ({length} of {SOCKET_PATH_BYTES} bytes): a shorter --home",
        )


def port_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port in TIME_WAIT is free for a listener
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def check_port(port: int, option: str) -> None:
    if not port_free(port):
        raise Problem(
            f"端口 {port} 已被别的程序占用。换一个：{option} 端口号",
            f"port {port} is in use by another program; choose another with {option}",
        )


def free_ports(count: int) -> list[int]:
    """So many different ports nobody listens on now."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()
