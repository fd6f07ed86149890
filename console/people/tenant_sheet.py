"""Companies as rows of a workbook: the identifier tells them apart; name and mark may change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from console.accounts.access import Act
from console.accounts.models import Tenant
from console.audit.seen import about_to_change
from console.people.tenants import next_ordinal
from console.sheets.kind import Column, Line, Moved, Sheet, State, Wrong

UNIQUE = ("name", "mark")


class TenantSheet(Sheet):
    name, act = "tenant", Act.EDIT_TENANTS
    most = 200
    of, title = pgettext_lazy("several", "公司"), gettext_lazy("从表格导入公司")
    columns = (
        Column("name", gettext_lazy("名称"), gettext_lazy("公司的名称，最多 80 个字，不能重名。")),
        Column(
            "slug",
            gettext_lazy("标识"),
            gettext_lazy("小写字母、数字和连字符，用在接口和账单里。已有的标识会按这一行改名称和简称。"),
            key=True,
            narrow=True,
        ),
        Column("mark", gettext_lazy("简称"), gettext_lazy("画在卡上的一个字，最多两个，不能重复。")),
    )
    stored = UNIQUE

    @cached_property
    def taken(self) -> dict[tuple[str, str], int]:
        """(column, value) → the company that has it now."""
        return {(name, getattr(row, name)): row.pk for row in Tenant.objects.all() for name in UNIQUE}

    def known(self, keys: Sequence[str]) -> Mapping[str, Tenant]:
        self.__dict__.pop("taken", None)
        return {row.slug: row for row in Tenant.objects.filter(slug__in=keys)}

    def value(self, name: str, text: str) -> dict[str, Any]:
        wrong = {
            "slug": _("标识只能用小写字母、数字和连字符，最多 50 个字符。"),
            "name": _("名称最多 80 个字。"),
            "mark": _("简称最多两个字。"),
        }[name]
        try:
            Tenant._meta.get_field(name).clean(text, None)  # type: ignore[union-attr]
        except ValidationError:
            raise Wrong(wrong) from None
        if name == "slug" and text != text.lower():
            raise Wrong(wrong)
        return {} if name == "slug" else {name: text}

    def check(self, line: Line, row: Tenant | None) -> None:
        """A value that another company has now is taken, also where its row gives it up: that would be two imports."""
        for name in UNIQUE:
            owner = self.taken.get((name, line.after[name]))
            if owner is not None and owner != line.pk:
                line.blame(name, _("已有一家公司用着，换一个。"))

    def together(self, lines: Sequence[Line]) -> None:
        for name in UNIQUE:
            times = Counter(line.after[name] for line in lines if name in line.after)
            for line in lines:
                if name in line.after and times[line.after[name]] > 1 and self.key.name not in line.wrong:
                    line.blame(name, _("同一个文件里出现了 %(n)d 次，留一行。") % {"n": times[line.after[name]]})

    def current(self) -> Iterable[Sequence[str]]:
        return Tenant.objects.values_list("name", "slug", "mark")[: self.most]

    def choices(self, name: str) -> Sequence[str]:
        return ()

    def said(self, name: str, value: Any) -> str:
        return str(value)

    def write(self, lines: Sequence[Line]) -> list[tuple[str, str, str]]:
        changed = [line for line in lines if line.state is State.CHANGED]
        about_to_change(Tenant.objects.filter(pk__in=[line.pk for line in changed]))
        for line in changed:
            if Tenant.objects.filter(pk=line.pk or 0, **line.before).update(**line.after) != 1:
                raise Moved(line.given.number)
        new = [line for line in lines if line.state is State.NEW]
        for ordinal, line in enumerate(new, next_ordinal()):
            Tenant.objects.create(slug=line.given.texts["slug"], ordinal=ordinal, **line.after)
        return []
