"""docker-compose.yml, the demo's process table and docs/wire.md say the same commands and environments."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from demo import acl
from demo.home import Home
from demo.parts import Plan, front_parts, inner_parts, jobs_part, redis_part, traffic_part
from demo.redis_server import Server
from demo.supervisor import Part

ROOT = Path(__file__).resolve().parent.parent.parent
KINDS = ("web", "gateway", "control", "jobs", "agent")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return loaded


def documented() -> dict[str, list[str]]:
    """Kind → words of its command in the section "Processes" of docs/wire.md."""
    section = (ROOT / "docs" / "wire.md").read_text().split("## Processes")[1]
    found = re.findall(r"^    (\w+)\s+(python .*?)(?: {3,}.*)?$", section, re.MULTILINE)
    return {kind: shlex.split(command) for kind, command in found}


def same(words: list[str]) -> list[str]:
    """Without what a site chooses: address, port, node name."""
    result = ["python", *words[1:]]
    for option in ("--host", "--port", "-n"):
        if option in result:
            result[result.index(option) + 1] = "…"
    return result


@pytest.fixture
def parts(tmp_path: Path) -> dict[str, Part]:
    home = Home(tmp_path)
    home.make()
    hosts = {"gpu-01": "redis://host%3Agpu-01:h1@127.0.0.1:1/0"}
    server = Server(
        "/bin/valkey-server", 1, "redis://control:c@127.0.0.1:1/0", "redis://gateway:g@127.0.0.1:1/0", hosts
    )
    plan = Plan(home, "farm", 8000, 8080, {"gpu-01": 7101}, server, 1.0)
    store = redis_part(plan)
    assert store is not None
    all_parts = [store, *front_parts(plan), *inner_parts(plan), jobs_part(plan), traffic_part(plan)]
    return {part.name: part for part in all_parts}


def test_all_kinds_are_documented() -> None:
    assert set(KINDS) <= set(documented())


@pytest.mark.parametrize("kind", KINDS)
def test_compose_runs_the_documented_command(compose: dict[str, Any], kind: str) -> None:
    assert same(shlex.split(compose["services"][kind]["command"])) == same(documented()[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_the_demo_runs_the_documented_command(parts: dict[str, Part], kind: str) -> None:
    name = "agent-gpu-01" if kind == "agent" else kind
    assert same(list(parts[name].argv)) == same(documented()[kind])


def test_an_agent_gets_neither_database_nor_secret_nor_anothers_password(
    parts: dict[str, Part], compose: dict[str, Any]
) -> None:
    for env in (parts["agent-gpu-01"].env, compose["services"]["agent"]["environment"]):
        assert not {"DATABASE_URL", "GONGKA_SECRET", "DJANGO_SETTINGS_MODULE"} & set(env)
    values = " ".join(parts["agent-gpu-01"].env.values())
    assert "control:c@" not in values
    assert "gateway:g@" not in values


def test_each_process_speaks_to_redis_as_its_own_user(parts: dict[str, Part], compose: dict[str, Any]) -> None:
    assert parts["gateway"].env["REDIS_URL"].startswith("redis://gateway:")
    assert parts["web"].env["REDIS_URL"].startswith("redis://control:")
    assert "REDIS_URL" not in parts["traffic"].env
    assert compose["services"]["gateway"]["environment"]["REDIS_URL"].startswith("redis://gateway:")
    assert compose["services"]["control"]["environment"]["REDIS_URL"].startswith("redis://control:")


def test_what_a_process_needs_by_the_documents_it_gets(parts: dict[str, Part], compose: dict[str, Any]) -> None:
    """The table "Environment" of docs/wire.md, row by row (the farm's mark is added when a part starts)."""
    section = (ROOT / "docs" / "wire.md").read_text().split("## Environment")[1].split("## ")[0]
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ([\w, ]+) \| (.*) \|$", section, re.MULTILINE)
    assert len(rows) > 10
    for names, whom, meaning in rows:
        if "without it" in meaning or "(default " in meaning:
            continue  # may be left out
        for name in re.findall(r"`(\w+)`", names):
            for kind in KINDS if whom == "all" else [k for k in KINDS if k in whom]:
                part = parts["agent-gpu-01" if kind == "agent" else kind]
                assert name in part.env or name == "GONGKA_FARM", f"{kind} of the demo lacks {name}"
                assert name in compose["services"][kind]["environment"], f"{kind} lacks {name}"


def test_nothing_in_the_persons_environment_reaches_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_CLOUD_TOKEN", "t")
    home = Home(tmp_path)
    home.make()
    plan = Plan(home, "farm", 1, 2, {"gpu-01": 3}, Server("s", 4, "c", "g", {"gpu-01": "h"}), 1.0)
    assert all("SOME_CLOUD_TOKEN" not in part.env for part in front_parts(plan) + inner_parts(plan))


def test_secrets_stand_in_no_argument(parts: dict[str, Part]) -> None:
    for part in parts.values():
        assert not any(secret in word for word in part.argv for secret in ("control:c", "gateway:g", "gpu-01:h1"))


def test_the_store_forgets_and_refuses_rather_than_drops(compose: dict[str, Any], parts: dict[str, Part]) -> None:
    for words in (shlex.split(compose["services"]["valkey"]["command"]), list(parts["redis"].argv)):
        assert words[words.index("--aclfile") + 1].endswith("users.acl")
        assert words[words.index("--save") + 1] == ""
        assert words[words.index("--maxmemory-policy") + 1] == "noeviction"


def test_everything_compose_needs_is_explained_in_the_example(compose: dict[str, Any]) -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    needed = set(re.findall(r"\$\{(\w+):\?", text))
    example = (ROOT / ".env.example").read_text()
    assert needed <= set(re.findall(r"^(\w+)=", example, re.MULTILINE))


def test_the_acl_of_compose_holds_hashes_only() -> None:
    env = {
        "GONGKA_CONTROL_PASSWORD": "c1",
        "GONGKA_GATEWAY_PASSWORD": "g1",
        "GONGKA_HOST_PASSWORDS": "gpu-01=h1,gpu-02=h2",
    }
    text = acl.text(env)
    assert "user host:gpu-02 on #" in text
    assert not any(f">{password}" in text or f" {password}" in text for password in ("c1", "g1", "h1", "h2"))
    with pytest.raises(ValueError, match="name=password"):
        acl.text(env | {"GONGKA_HOST_PASSWORDS": "gpu-01"})


def test_the_image_starts_from_what_is_committed() -> None:
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            for source in line.split()[1:-1]:
                assert (ROOT / source).exists(), line
