"""Set-up on a fresh machine: `python3 -m demo.set_up [--dev]`. Standard library only; run by any Python 3.

Makes `.venv/` with the locked dependencies and `node_modules/` with the page assets; `--dev` adds what the tests need,
Chromium included. Each step leaves a stamp made of its lock files only once it is whole, so an interrupted run heals
and a second run does nothing. Addresses of registries are taken from the person's own settings and written nowhere.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
ROOM_MIB = {"runtime": 1000, "dev": 2000}  # unpacked, with what the installers keep beside it while they work
FROM_PIP = {  # uv does not read pip's settings: the same person, the same registry
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
    "trusted-host": "UV_INSECURE_HOST",
}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NO_ROOM = re.compile(r"No space left|ENOSPC|Disk quota", re.IGNORECASE)
NO_NETWORK = re.compile(
    r"ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|[Cc]onnection|resolve|timed out|dns error|No matching distribution"
    r"|Could not find a version|Failed to fetch|client error|No solution found|Proxy"
)


class Failed(Exception):
    """In Chinese and English, for the person who typed the command."""


def main(words: list[str]) -> int:
    dev = "--dev" in words
    try:
        check_python()
        venv = make_venv(ROOT)
        install(ROOT, venv, "dev" if dev else "runtime")
        install_assets(ROOT, venv)
        if dev:
            install_browser()
    except Failed as failure:
        print(f"\n✗ {failure}\n", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\n已中断；再运行一次会接着做 / interrupted: run it again to go on", file=sys.stderr)
        return 130
    return 0


def check_python() -> None:
    if sys.version_info[:2] < OLDEST:
        raise Failed(
            "需要 Python 3.11 或更新版本，这里是 {v}。装好后：make setup PYTHON=python3.11\n"
            "  Python 3.11 or newer is needed, this is {v}; then: make setup PYTHON=python3.11".format(
                v=".".join(str(part) for part in sys.version_info[:3])
            )
        )


def digest(*paths: Path) -> str:
    """One text for the content of these files and the interpreter they are installed for."""
    whole = hashlib.sha256(sys.version.encode())
    for path in paths:
        whole.update(path.read_bytes())
    return whole.hexdigest()


def is_done(stamp: Path, wanted: str) -> bool:
    return stamp.is_file() and stamp.read_text() == wanted


def check_room(root: Path, kind: str) -> None:
    free_mib = shutil.disk_usage(root).free // 2**20
    if free_mib < ROOM_MIB[kind]:
        raise Failed(
            f"磁盘空间不足：只剩 {free_mib} MiB，安装需要约 {ROOM_MIB[kind]} MiB\n"
            f"  not enough disk space: {free_mib} MiB left, about {ROOM_MIB[kind]} MiB needed"
        )


def run(what: str, argv: list[str], cwd: Path, env: dict[str, str] | None = None) -> None:
    """Runs quietly. Raises Failed with the likely cause and the end of what the command said."""
    print("· " + what, file=sys.stderr, flush=True)
    try:
        done = subprocess.run(
            argv, cwd=str(cwd), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
    except OSError as error:
        raise Failed(f"{what}：{error}") from error
    if done.returncode != 0:
        raise Failed(
            "{}\n{}".format(cause(what, done.stdout), "\n".join("    " + x for x in done.stdout.splitlines()[-12:]))
        )


def cause(what: str, output: str) -> str:
    """What the person can do about it."""
    if NO_ROOM.search(output):
        return f"{what}：磁盘空间不足 / no space left on the disk"
    if NO_NETWORK.search(output):
        return (
            f"{what}：取不到软件包。请检查网络，或 pip / npm 的镜像设置，然后再运行一次\n"
            "  packages cannot be fetched: check the network or the registry settings of pip and npm, then run it again"
        )
    return f"{what}失败 / failed"


def make_venv(root: Path) -> Path:
    """A virtual environment that works; one that does not (an interrupted run) is made anew."""
    venv = root / ".venv"
    if works(venv):
        return venv
    check_room(root, "runtime")
    argv = [sys.executable, "-m", "venv", "--clear", str(venv)]
    try:
        run("创建虚拟环境 / virtual environment .venv", argv, root)
    except Failed as failure:
        if "ensurepip" in str(failure):
            raise Failed(
                "缺少 venv 组件。Debian/Ubuntu：apt-get install python3-venv\n"
                "  the venv module is incomplete: install python3-venv"
            ) from failure
        raise
    return venv


def works(venv: Path) -> bool:
    python = venv / "bin" / "python"
    if not python.exists():
        return False
    if (venv / ".stamps" / "runtime").is_file() or (venv / ".stamps" / "dev").is_file():
        return True  # it was whole once; starting two interpreters to ask again would be most of a second run
    probe = f"import sys, pip; sys.exit(sys.version_info[:2] < {OLDEST!r})"
    return subprocess.run([str(python), "-c", probe], stderr=subprocess.DEVNULL, check=False).returncode == 0


def install(root: Path, venv: Path, kind: str) -> None:
    """The locked packages, hashes checked. The development lock contains the whole of the other."""
    locks = {"runtime": root / "requirements.lock", "dev": root / "requirements-dev.lock"}
    stamps = {name: venv / ".stamps" / name for name in locks}
    wanted = {name: digest(root / "requirements.lock", path) for name, path in locks.items()}
    if is_done(stamps["dev"], wanted["dev"]) or (kind == "runtime" and is_done(stamps[kind], wanted[kind])):
        return
    check_room(root, kind)
    for stamp in stamps.values():
        stamp.unlink() if stamp.exists() else None
    python = str(venv / "bin" / "python")
    what = f"安装 {locks[kind].name} 中锁定的依赖 / locked dependencies"
    argv = ["install", "--require-hashes", "-r", str(locks[kind])]
    uv = find_uv(venv)
    try:
        if uv is None:
            raise Failed("uv")
        run(f"{what}（uv）", [uv, "pip", *argv, "--compile-bytecode", "--python", python], root, uv_settings(python))
    except Failed as failure:
        if NO_ROOM.search(str(failure)):
            raise
        run(f"{what}（pip，需几分钟 / takes minutes）", [python, "-m", "pip", *argv], root)
    stamps[kind].parent.mkdir(exist_ok=True)
    stamps[kind].write_text(wanted[kind])


def find_uv(venv: Path) -> str | None:
    """uv is ten times quicker than pip, and not needed: None where it cannot be had."""
    own = venv / "bin" / "uv"
    if not own.exists():
        if found := shutil.which("uv"):
            return found
        argv = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "uv"]
        print("· 取得 uv / installer uv", file=sys.stderr, flush=True)
        subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return str(own) if own.exists() else None


def uv_settings(python: str) -> dict[str, str]:
    """This process's environment with pip's settings under uv's names, where the person has not set uv's own."""
    argv = [python, "-m", "pip", "config", "list"]
    listed = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    return translate(listed, dict(os.environ))


def translate(listed: str, env: dict[str, str]) -> dict[str, str]:
    """`listed`: the lines of `pip config list`, `global.index-url='https://…'`; later lines win as they do in pip."""
    # pip takes the best match of all its indexes; with hashes checked no index can slip in a package of its own.
    result = {"UV_INDEX_STRATEGY": "unsafe-best-match", **env}
    for section, name, value in re.findall(r"^(\S*?)\.([\w-]+)='(.*)'$", listed, re.MULTILINE):
        target = FROM_PIP.get(name)
        if section in ("global", "install", ":env:") and target and target not in env:
            result[target] = " ".join(value.replace("\\n", " ").split())
    return result


def install_assets(root: Path, venv: Path) -> None:
    """Page assets by `npm ci`, with the Node of the PyPI wheel, else the machine's own."""
    lock, modules = root / "package-lock.json", root / "node_modules"
    stamp, wanted = modules / ".stamp", digest(lock, root / "package.json")
    if is_done(stamp, wanted):
        return
    npm = str(venv / "bin" / "npm") if (venv / "bin" / "npm").exists() else shutil.which("npm")
    if npm is None:
        raise Failed("没有 npm：依赖不完整，删掉 .venv 后再运行一次 / npm is missing: remove .venv and run it again")
    path = os.pathsep.join([str(venv / "bin"), os.environ.get("PATH", "")])
    argv = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    run("安装页面资源 / page assets (npm ci)", argv, root, {**os.environ, "PATH": path})
    stamp.write_text(wanted)


def install_browser() -> None:
    """Chromium for the browser tests, from the distribution's own packages."""
    if any(shutil.which(name) for name in BROWSERS):
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Failed(
            "浏览器测试需要 Chromium，而这里不是 root（或没有 apt-get）：请以管理员运行 apt-get install chromium\n"
            "  the browser tests need Chromium, and this is not root: run apt-get install chromium as administrator"
        )
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run("更新软件源 / apt-get update", ["apt-get", "update"], ROOT, env)
    argv = ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]
    run("安装 Chromium / apt-get install chromium", argv, ROOT, env)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
