"""The aclfile for a server we do not start: `python -m demo.acl PATH`, run by docker-compose before the server.

Passwords come from the environment: `GONGKA_CONTROL_PASSWORD`, `GONGKA_GATEWAY_PASSWORD` and
`GONGKA_HOST_PASSWORDS` (`gpu-01=…,gpu-02=…`); only their SHA-256 is written. After a host joins or leaves, run it again
and let the server read it: `ACL LOAD`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from console.wire import acl_lines


def text(env: Mapping[str, str]) -> str:
    """Raises KeyError for a missing password, ValueError for a host without one."""
    hosts = {}
    for pair in filter(None, env.get("GONGKA_HOST_PASSWORDS", "").split(",")):
        name, found, password = pair.strip().partition("=")
        if not found or not name or not password:
            raise ValueError("GONGKA_HOST_PASSWORDS: name=password,name=password")
        hosts[name] = password
    return acl_lines(hosts, env["GONGKA_CONTROL_PASSWORD"], env["GONGKA_GATEWAY_PASSWORD"])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text(os.environ))
