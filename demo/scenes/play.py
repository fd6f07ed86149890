"""`python -m demo.scenes S02 [--home DIR]`: plays one story on the running demo; without a name it lists them.

Exit status 0: it went as the story says; 1: something did not come; 2: there is no running demo, or no such scene.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

from demo.home import Home
from demo.problem import Problem
from demo.run import READY_FILE

#: Story: (module of this package, what it shows).
SCENES: dict[str, tuple[str, str]] = {
    "S01": ("s01_three_on_one_card", "三个模型同住一张卡 / three models on one card, and what is left of it"),
    "S02": ("s02_pressure", "显存压力：对的邻居让开、别处重建 / pressure: the right neighbour goes, and is rebuilt"),
    "S03": (
        "s03_long_texts",
        "长文本撑满自己的 KV，热线照常 / long texts fill their own KV, the hotline feels nothing",
    ),
    "S04": ("s04_called_in_grace", "公告期内来电，回收作罢 / a call within the grace calls a reclaim off"),
    "S05": ("s05_idle_gives_way", "闲置的先公告再让出 / an idle model is announced and gives its memory back"),
    "S08": ("s08_cold_call", "冷模型的调用被如实告知、然后得到回答 / a cold call is told the truth, then answered"),
    "S11": ("s11_in_turns", "两个模型轮流、只容得下一个 / two models in turns, room for one"),
    "S13": ("s13_scale", "排队就扩容，清闲再缩回 / a queue brings copies, a quiet time takes them back"),
    "S14": ("s14_long_stream", "摘流等长流说完 / a drain waits for a long stream"),
    "S20": ("s20_a_card_dies", "主副本死掉，备用顶上 / the primary dies, the standby serves"),
    "S23": ("s23_pilot", "只观察的池什么都不动 / a pool that only observes moves nothing"),
}


class Ended(BaseException):
    """Ctrl-C, SIGTERM, or the terminal is gone: what was changed is put back all the same."""


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("demo.scenes", description="在运行中的演示上演一个故事 / play a story")
    parser.add_argument("story", nargs="?", default="", help=", ".join(SCENES))
    parser.add_argument("--home", type=Path, default=Path("var/demo"), help="数据目录 / data folder of the demo")
    asked = parser.parse_args(words)
    story = asked.story.upper()
    if story not in SCENES:
        for name, (_, about) in SCENES.items():
            say(f"{name}  {about}")
        return 2 if story else 0
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        return play(story, Home(asked.home.resolve()))
    except Problem as problem:
        say(f"✗ {problem}")
        return 1
    except Ended:
        return 0


def say(text: str) -> None:
    print(text, flush=True)


def _end(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise Ended


def play(story: str, home: Home) -> int:
    """Raises Problem when something the story waits for does not come."""
    ready = home.read_json(READY_FILE)
    if not ready:
        say(f"✗ {home.path} 没有运行中的演示，先 make demo / no running demo there")
        return 2
    settle(home, ready)
    from demo.scenes.stage import on

    name, about = SCENES[story]
    scene: Callable[[Any], None] = import_module(f"demo.scenes.{name}").play
    say(f"{story}  {about}")
    with on(home, ready, say) as stage:
        scene(stage)
    say("✓")
    return 0


def settle(home: Home, ready: dict[str, Any]) -> None:
    """Django as the demo's own processes have it."""
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "console.settings",
        "GONGKA_HOME": str(home.path),
        "GONGKA_SECRET": home.kept("secret", 32),
        "DATABASE_URL": home.database_url,
        "REDIS_URL": ready["redis"],
    }
    import django

    django.setup()


if __name__ == "__main__":
    sys.exit(main())
