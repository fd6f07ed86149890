"""What the person at the terminal reads once the farm lives."""

from __future__ import annotations

from demo.farm import CHECK_STREAM, KEYS, LOGINS, TRAFFIC
from demo.home import Home


def text(home: Home, web: str, gateway: str, took_s: float) -> str:
    """Two addresses, a login for each role, a call to copy, and where the logs are."""
    logins = home.read_json(LOGINS)
    lines = [
        "",
        f"共卡演示已就绪（{took_s:.0f} 秒）/ the demo farm is up",
        "",
        f"  看板 page      {web}/",
        f"  网关 gateway   {gateway}/v1",
        "",
        "  登录 logins",
        *(f"    {name:<14} {password}" for name, password in logins.items()),
        "",
        "  调用一个未加载的模型 / call a cold model:",
        "",
        curl(home, gateway),
        "",
        f"  日志 logs      {home.logs}/",
        "  停止 stop      Ctrl-C",
        "",
    ]
    return "\n".join(lines)


def curl(home: Home, gateway: str) -> str:
    """Reads the key from its file, so that no key stands on a screen or in a shell's history."""
    read = f"import json; print(json.load(open('{home.path / KEYS}'))['{TRAFFIC}'])"
    body = f'{{"model": "{CHECK_STREAM}", "stream": true, "messages": [{{"role": "user", "content": "你好"}}]}}'
    return f"""\
    curl -N {gateway}/v1/chat/completions -H 'Content-Type: application/json' \\
      -H "Authorization: Bearer $(python3 -c "{read}")" \\
      -d '{body}'"""
