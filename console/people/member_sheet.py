"""People as rows of a workbook: the account tells them apart; name, role and company may change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models.functions import Lower
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.accounts.access import Act, tenant_of
from console.accounts.models import Role, Tenant, User
from console.accounts.passwords import first_hash, first_password
from console.audit.seen import about_to_change
from console.people.members import OF_A_TENANT, misfit, people, untouchable
from console.sheets.heads import folded, in_all_languages
from console.sheets.kind import Column, Line, Moved, Sheet, State, Wrong


class MemberSheet(Sheet):
    name, act = "member", Act.EDIT_MEMBERS
    of, title = gettext_lazy("成员"), gettext_lazy("从表格导入成员")
    columns = (
        Column("full_name", gettext_lazy("姓名"), gettext_lazy("本人的名字，最多 60 个字。")),
        Column(
            "username",
            gettext_lazy("账户"),
            gettext_lazy("登录时填的名字：字母、数字和 @ . + - _。已有的账户会按这一行改姓名、角色和公司。"),
            key=True,
            narrow=True,
        ),
        Column("role", gettext_lazy("角色"), gettext_lazy("中文或英文的角色名，见“可选的值”。"), narrow=True),
        Column(
            "tenant_id",
            gettext_lazy("公司"),
            gettext_lazy("公司的名称或标识；信息中心的人不填。公司管理员可以不填，就是自己公司。"),
            optional=True,
        ),
    )
    stored = ("full_name", "role", "tenant_id")

    @cached_property
    def own_tenant(self) -> int | None:
        return tenant_of(self.actor)

    @cached_property
    def roles(self) -> dict[str, Role]:
        """Folded name in any language → the roles that this person may give."""
        given = Role if self.own_tenant is None else OF_A_TENANT
        return {name: role for role in given for name in {*in_all_languages(role.label), folded(role.value)}}

    @cached_property
    def tenants(self) -> list[Tenant]:
        return list(Tenant.objects.all())

    @cached_property
    def companies(self) -> dict[str, Tenant]:
        return {folded(name): row for row in self.tenants for name in (row.name, row.slug)}

    def known(self, keys: Sequence[str]) -> Mapping[str, User]:
        rows = User.objects.annotate(low=Lower("username")).filter(low__in={key.lower() for key in keys})
        found = {row.username: row for row in rows}
        self.alike = {name.lower(): name for name in found}
        theirs = people(self.actor).filter(pk__in=[row.pk for row in found.values()])
        self.mine = set(theirs.values_list("pk", flat=True))
        return found

    def value(self, name: str, text: str) -> dict[str, Any]:
        match name:
            case "username":
                _fits(name, text, _("账户只能用字母、数字和 @ . + - _，最多 150 个字符。"))
                return {}
            case "full_name":
                _fits(name, text, _("姓名最多 60 个字。"))
                return {name: text}
            case "role":
                return {name: self._role(text)}
            case _:
                return {name: self._tenant(text)}

    def _role(self, text: str) -> str:
        found = self.roles.get(folded(text))
        if found is None:
            known = _("、").join(self.choices("role"))
            raise Wrong(_("没有这个角色，或不能由您给。可以填：%(roles)s。") % {"roles": known})
        return found.value

    def _tenant(self, text: str) -> int | None:
        if not text:
            return self.own_tenant
        found = self.companies.get(folded(text))
        if self.own_tenant is not None and (found is None or found.pk != self.own_tenant):
            raise Wrong(_("只能导入自己公司的人；这一格可以不填。"))
        if found is None:
            raise Wrong(_("没有这家公司。填公司页上的名称或标识，信息中心的人不填。"))
        return found.pk

    def check(self, line: Line, row: User | None) -> None:
        account = line.given.texts["username"]
        if row is None and account.lower() in self.alike:
            line.blame("username", _("已有只差大小写的账户 %(name)s，照它写。") % {"name": self.alike[account.lower()]})
        if row is not None and row.pk not in self.mine:
            line.blame("username", _("这个账户名已被别人用了，换一个。"))
        elif row is not None and line.changes and row.pk in untouchable(self.actor):
            line.blame("username", _("您自己和您代理的人由别人改，删去这一行。"))
        wrong = misfit(line.after["role"], line.after["tenant_id"])
        if wrong is not None:
            line.blame("tenant_id", wrong)

    def current(self) -> Iterable[Sequence[str]]:
        for row in people(self.actor).order_by("tenant__ordinal", "username")[: self.most]:
            company = row.tenant.name if row.tenant else ""
            yield row.full_name, row.username, row.get_role_display(), company

    def choices(self, name: str) -> Sequence[str]:
        if name == "role":
            return [str(role.label) for role in (Role if self.own_tenant is None else OF_A_TENANT)]
        if name == "tenant_id":
            return [row.name for row in self.tenants if self.own_tenant in (None, row.pk)]
        return ()

    def said(self, name: str, value: Any) -> str:
        if name == "role":
            return str(Role(value).label)
        if name == "tenant_id":
            return next((row.name for row in self.tenants if row.pk == value), _("信息中心"))
        return str(value)

    def write(self, lines: Sequence[Line]) -> list[tuple[str, str, str]]:
        changed = [line for line in lines if line.state is State.CHANGED]
        about_to_change(User.objects.filter(pk__in=[line.pk for line in changed]))
        for line in changed:
            if User.objects.filter(pk=line.pk or 0, **line.before).update(**line.after) != 1:
                raise Moved(line.given.number)
        return [_made(line) for line in lines if line.state is State.NEW]


def _fits(name: str, text: str, else_say: str) -> None:
    """By the rules of the table's own column. Raises Wrong."""
    try:
        User._meta.get_field(name).clean(text, None)  # type: ignore[union-attr]
    except ValidationError:
        raise Wrong(else_say) from None


def _made(line: Line) -> tuple[str, str, str]:
    password = first_password()
    user = User(username=line.given.texts["username"], must_change_password=True, **line.after)
    user.password = first_hash(password)
    user.save(force_insert=True)
    return user.full_name, user.username, password
