"""A result as a page and a table show it: old beside new, the difference, and in words whether that is better."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from console.accounts.models import Tenant
from console.catalog.models import Service
from console.filters import profile

Figures = Mapping[str, Any]
MIB_PER_GIB = 1024
FEN = 100
SERVICES_SHOWN = 15
TIMES = pgettext_lazy("trial", "次")


@dataclass(frozen=True, slots=True)
class Measure:
    """A row of the table. `less`: less is better; None: neither is. `scale`: what a unit is of the stored number.

    `none_best`: no value means that nobody waited; elsewhere it means that nobody knows.
    """

    key: str
    label: Any
    unit: Any
    less: bool | None = True
    scale: float = 1.0
    digits: int = 0
    none_best: bool = False

    def read(self, value: float | None) -> float | None:
        """In its unit, with no more digits than are shown: what looks the same is the same."""
        return None if value is None else round(value / self.scale, self.digits)

    def text(self, shown: float | None) -> str:
        return "—" if shown is None else f"{shown:,.{self.digits}f}"


MEASURES = (
    Measure("cold_starts", gettext_lazy("冷启动"), TIMES),
    Measure("waited", gettext_lazy("等过装载或唤醒的调用"), TIMES),
    Measure("wait_mean_s", gettext_lazy("等待，平均"), gettext_lazy("秒"), digits=1, none_best=True),
    Measure("wait_p95_s", gettext_lazy("等待，P95"), gettext_lazy("秒"), digits=1, none_best=True),
    Measure("wait_p99_s", gettext_lazy("等待，P99"), gettext_lazy("秒"), digits=1, none_best=True),
    Measure("refused", gettext_lazy("没有得到回答"), TIMES),
    Measure("evictions", gettext_lazy("为别人让位"), TIMES),
    Measure("reclaims", pgettext_lazy("trial", "收回"), TIMES, less=None),
    Measure("harmful", gettext_lazy("有害回收"), TIMES),
    Measure("memory_mib_h", gettext_lazy("占用显存"), gettext_lazy("GiB·小时"), scale=MIB_PER_GIB, digits=1),
    Measure("fen", pgettext_lazy("trial", "费用"), gettext_lazy("元"), scale=FEN, digits=2),
)
PRESSURES = Measure("pressures", gettext_lazy("显存压力"), TIMES)
#: In the tables of tenants, classes and services.
NARROW = tuple(
    m
    for m in MEASURES
    if m.key in ("cold_starts", "wait_mean_s", "wait_p95_s", "refused", "evictions", "harmful", "memory_mib_h", "fen")
)
#: Of one that the other side does not know.
NOBODY: Figures = {m.key: (None if m.key.startswith("wait_") else 0) for m in NARROW}


@dataclass(frozen=True, slots=True)
class Cell:
    """One measure on both sides. `tone`: ok, bad or nothing; `word` says the same."""

    measure: Measure
    old: str
    new: str
    change: str
    word: str
    tone: str

    @property
    def same(self) -> bool:
        return not self.change


@dataclass(frozen=True, slots=True)
class Line:
    """Of one tenant, class or service."""

    label: str
    cells: list[Cell]
    tenant: Tenant | None = None


class Verdict(enum.Enum):
    """What one measure says of the change. Unknown is no number: it is never better or worse than one."""

    NOTHING, SAME, BETTER, WORSE, CHANGED, UNLIKE = range(6)


WORDS = {
    Verdict.NOTHING: "",
    Verdict.SAME: gettext_lazy("一样"),
    Verdict.BETTER: gettext_lazy("更好"),
    Verdict.WORSE: gettext_lazy("更差"),
    Verdict.CHANGED: gettext_lazy("有变化"),
    Verdict.UNLIKE: gettext_lazy("比不了"),
}
TONES = {Verdict.BETTER: "ok", Verdict.WORSE: "bad"}


def judge(measure: Measure, old: float | None, new: float | None) -> Verdict:
    """Of two numbers as `measure.read` gives them."""
    if old is None or new is None:
        return _of_none(measure, old, new)
    if old == new:
        return Verdict.SAME
    if measure.less is None:
        return Verdict.CHANGED
    return Verdict.BETTER if (new < old) == measure.less else Verdict.WORSE


def _of_none(measure: Measure, old: float | None, new: float | None) -> Verdict:
    """Where one side at least has no value."""
    if old is new:
        return Verdict.NOTHING
    if not measure.none_best:
        return Verdict.UNLIKE
    return Verdict.BETTER if new is None else Verdict.WORSE


def cell(measure: Measure, old: float | None, new: float | None) -> Cell:
    old, new = measure.read(old), measure.read(new)
    verdict = judge(measure, old, new)
    change = ""
    if old is not None and new is not None and old != new:
        change = f"{'+' if new > old else '−'}{measure.text(abs(new - old))}"
    return Cell(measure, measure.text(old), measure.text(new), change, str(WORDS[verdict]), TONES.get(verdict, ""))


def cells(old: Figures, new: Figures, measures: tuple[Measure, ...] = MEASURES) -> list[Cell]:
    return [cell(m, old.get(m.key), new.get(m.key)) for m in measures]


def whole(result: Mapping[str, Any]) -> list[Cell]:
    old, new = result["old"], result["new"]
    return [*cells(old["whole"], new["whole"]), cell(PRESSURES, old["pressures"], new["pressures"])]


def summary(found: list[Cell]) -> tuple[list[Cell], list[Cell]]:
    """(what gets better, what gets worse)."""
    return [c for c in found if c.tone == "ok"], [c for c in found if c.tone == "bad"]


def classes(result: Mapping[str, Any]) -> list[Line]:
    return _lines(result, "by_class", profile)


def tenants(result: Mapping[str, Any]) -> list[Line]:
    known = {one.slug: one for one in Tenant.objects.all()}
    found = _lines(result, "by_tenant", lambda slug: known[slug].name if slug in known else slug)
    slugs = sorted({*result["old"]["by_tenant"], *result["new"]["by_tenant"]})
    lines = [Line(line.label, line.cells, known.get(slug)) for slug, line in zip(slugs, found, strict=True)]
    return sorted(lines, key=lambda line: (line.tenant is None, line.tenant.ordinal if line.tenant else 0))


def services(result: Mapping[str, Any]) -> tuple[list[Line], int]:
    """(those that change most, how many change at all). Of a thousand most stay as they are: no words for those."""
    old, new = result["old"]["by_service"], result["new"]["by_service"]
    judged = {key: _judged(old.get(key, NOBODY), new.get(key, NOBODY)) for key in sorted({*old, *new})}
    moved = [key for key, verdicts in judged.items() if set(verdicts) - {Verdict.NOTHING, Verdict.SAME}]
    moved.sort(key=lambda key: -sum(verdict in TONES for verdict in judged[key]))
    shown = moved[:SERVICES_SHOWN]
    labels = dict(Service.objects.filter(name__in=shown).values_list("name", "label"))
    return [_line(labels.get(key, key), old.get(key, NOBODY), new.get(key, NOBODY)) for key in shown], len(moved)


def _judged(old: Figures, new: Figures) -> list[Verdict]:
    if old == new:
        return []
    pairs = [(m, old.get(m.key), new.get(m.key)) for m in NARROW]
    return [judge(m, m.read(before), m.read(after)) for m, before, after in pairs if before != after]


def _line(label: str, old: Figures, new: Figures) -> Line:
    return Line(label, cells(old, new, NARROW))


def _lines(result: Mapping[str, Any], by: str, label: Callable[[str], str]) -> list[Line]:
    old, new = result["old"][by], result["new"][by]
    return [_line(label(key), old.get(key, NOBODY), new.get(key, NOBODY)) for key in sorted({*old, *new})]


def table(result: Mapping[str, Any]) -> Iterator[list[object]]:
    """The same figures for a spreadsheet."""
    yield [_("范围"), _("名称"), _("指标"), _("单位"), _("现在"), _("改后"), _("差"), _("判断")]
    for one in whole(result):
        yield _row(_("全部"), "", one)
    groups = ((_("业务类别"), classes(result)), (_("公司"), tenants(result)))
    labels = dict(Service.objects.values_list("name", "label"))
    each = _lines(result, "by_service", lambda name: labels.get(name, name))
    for kind, lines in (*groups, (str(Service._meta.verbose_name), each)):
        for line in lines:
            for one in line.cells:
                yield _row(kind, line.label, one)


def _row(kind: str, name: str, one: Cell) -> list[object]:
    measure = one.measure
    return [kind, name, str(measure.label), str(measure.unit), one.old, one.new, one.change, one.word]
