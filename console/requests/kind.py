"""What every kind of request is made of: a form, its consequences, how it takes effect, and how it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.accounts.models import Role, Tenant, User
from console.catalog.models import Service
from console.forms import Styled
from console.jobs.models import Job
from console.requests.models import Request
from scheduler.policy import Policy


class Stale(Exception):
    """What was approved cannot be done any more. `code`: one of `words.STALE`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Filed:
    """What a valid form asks for. `tenant` None: the site's own business."""

    tenant: Tenant | None
    service: Service | None
    subject: str
    wanted: Mapping[str, Any] = field(default_factory=dict)


def moment_field(label: Any, help_text: Any = "", *, required: bool = False) -> forms.DateTimeField:
    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    return forms.DateTimeField(label=label, help_text=help_text, required=required, widget=widget)


class AskForm(Styled, forms.Form):
    """From when, until when, and why: every kind's. A kind puts its own fields before these."""

    starts_at = moment_field(gettext_lazy("从何时起"), gettext_lazy("站点时间；留空：一批准就生效。"))
    until = moment_field(gettext_lazy("到何时止"), gettext_lazy("站点时间；到时自己结束。留空：一直有效。"))
    why = forms.CharField(
        label=gettext_lazy("为什么"),
        max_length=400,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=gettext_lazy("决定的人和以后查账的人都看这一句。"),
    )

    def __init__(self, person: User, data: QueryDict | None = None, **kwargs: Any) -> None:
        super().__init__(data, **kwargs)
        self.person = person
        own = [name for name in self.fields if name not in ("starts_at", "until", "why")]
        self.order_fields([*own, "starts_at", "until", "why"])

    def clean_until(self) -> datetime | None:
        until: datetime | None = self.cleaned_data["until"]
        if until is not None and until <= timezone.now():
            raise ValidationError(_("这个时间已经过去了。"))
        return until

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        starts, until = given.get("starts_at"), given.get("until")
        if starts is not None and until is not None and starts >= until:
            self.add_error("until", _("要晚于开始的时间。"))
        return given


class Kind:
    """One kind. `takes_back`: it can end, so an operator may also put it in force before anybody agreed."""

    key: str
    label: Any
    about: Any  # one sentence for who chooses
    askers: frozenset[Role] = frozenset({Role.OPERATOR, Role.TENANT_ADMIN, Role.TENANT_MEMBER})
    takes_back = True

    def form(self, person: User, data: QueryDict | None, initial: Mapping[str, Any]) -> AskForm:
        """`initial`: what the address named, or of one that was returned, what was asked before."""
        raise NotImplementedError

    def filed(self, form: Any) -> Filed:
        """Of a valid form."""
        raise NotImplementedError

    def says(self, row: Request) -> list[tuple[Any, str]]:
        """What is asked for, as (label, value) in words."""
        raise NotImplementedError

    def tried(self, row: Request) -> Job | None:
        """A simulation of the very thing on the past, where somebody has asked for one."""
        return None

    def fen_month(self, row: Request) -> int:
        """The amount that decides how many approvers it takes, fen a month; 0: it is not about money."""
        return 0

    def steps(self, row: Request, rules: Policy) -> int:
        """How many people must agree."""
        least: int = getattr(rules, f"approvers_{self.key}")
        return 2 if self.fen_month(row) > rules.two_approvers_fen else least

    def consequences(self, row: Request, now: float) -> dict[str, Any]:
        """`weigh.Weighed.frozen`: what it would do, with numbers."""
        raise NotImplementedError

    def apply(self, row: Request, now: datetime) -> dict[str, Any]:
        """Makes it so, inside a transaction; what `end` will need. Raises Stale."""
        raise NotImplementedError

    def end(self, row: Request, now: datetime) -> None:
        """Takes it back, inside a transaction, where it still is what this request made it."""
        raise NotImplementedError
