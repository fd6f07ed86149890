"""The catalogue as a YAML text. All scalars are read as text: `no` is no switch, 10:30 no number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml
from django.utils.translation import gettext as _

LONGEST = 8 * 2**20  # bytes: a thousand services are one MiB
DEEPEST = 6
PARTS = ("models", "services")


class Wrong(Exception):
    """The text is no catalogue; it says where, and what to do."""


class _Plain(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """Text, lists and mappings; no key twice."""


def _text(loader: Any, node: Any) -> str:
    return str(loader.construct_scalar(node))


def _mapping(loader: Any, node: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in node.value:
        name = str(loader.construct_object(key, deep=True))
        if name in found:
            raise yaml.constructor.ConstructorError(
                None, None, _("“%(name)s”写了两次") % {"name": name}, key.start_mark
            )
        found[name] = loader.construct_object(value, deep=True)
    return found


_Plain.yaml_implicit_resolvers = {}
_Plain.add_constructor(None, _text)
_Plain.add_constructor("tag:yaml.org,2002:str", _text)
_Plain.add_constructor("tag:yaml.org,2002:map", _mapping)


def load(text: str) -> dict[str, dict[str, Any]]:
    """{"models": {slug: facts}, "services": {name: fields}}, all scalars as text. Raises Wrong."""
    if len(text.encode()) > LONGEST:
        raise Wrong(_("文件太大，最多 8 MiB；分成几个。"))
    try:
        _plain(text)
        found = yaml.load(text, Loader=_Plain)
    except yaml.MarkedYAMLError as wrong:
        mark = wrong.problem_mark or wrong.context_mark
        line = mark.line + 1 if mark is not None else 1
        raise Wrong(_("第 %(n)d 行读不懂：%(why)s") % {"n": line, "why": wrong.problem or wrong.context}) from None
    except (yaml.YAMLError, RecursionError):
        raise Wrong(_("读不懂：不是 YAML 文本。")) from None
    return _parts(found)


def _plain(text: str) -> None:
    """No anchors and no tags: neither is of use here, and a few lines with them grow without bound."""
    depth = 0
    for event in yaml.parse(text, Loader=_Plain):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) or getattr(event, "tag", None):
            raise _at(event, _("不用 &、* 和 !"))
        if depth > DEEPEST:
            raise _at(event, _("缩进太深"))


def _at(event: Any, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


def _parts(found: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(found, dict) or not found or set(found) - set(PARTS):
        raise Wrong(_("最外层写 services:，下面一个业务一段；模型写在 models: 下。先导出一份看看。"))
    for part, entries in found.items():
        if not isinstance(entries, dict) or not all(isinstance(one, dict) for one in entries.values()):
            raise Wrong(_("%(part)s: 下面每一段是名称、冒号，再下面缩进写各项。") % {"part": part})
    return {part: found.get(part, {}) for part in PARTS}


class _Unquoted(yaml.SafeDumper):
    """For what was read as text: a number needs no quotes to stay one."""


_Unquoted.yaml_implicit_resolvers = {}


def dump(models: Mapping[str, Any], services: Mapping[str, Any], *, as_read: bool = False) -> str:
    """`as_read`: values as `load` gave them, to be shown and read again; else for any reader of YAML."""
    parts = {name: dict(part) for name, part in (("models", models), ("services", services)) if part}
    dumper = _Unquoted if as_read else yaml.SafeDumper
    return str(yaml.dump(parts, Dumper=dumper, allow_unicode=True, sort_keys=False, width=120))
