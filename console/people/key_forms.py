"""Forms of callers' keys: what a key may do, how long it lives, how long two live beside each other."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.accounts.access import own, tenant_of
from console.accounts.models import ApiKey, Application, Tenant, User
from console.catalog.models import Service
from console.forms import Checks, Styled
from console.people.live import is_live

LIVES = (
    ("90", gettext_lazy("90 天")),
    ("30", gettext_lazy("30 天")),
    ("180", gettext_lazy("180 天")),
    ("365", gettext_lazy("一年")),
    ("", gettext_lazy("不过期")),
)
OVERLAPS = (
    ("24", gettext_lazy("1 天")),
    ("1", gettext_lazy("1 小时")),
    ("168", gettext_lazy("7 天")),
    ("720", gettext_lazy("30 天")),
)


def callable_by(tenant: Tenant) -> QuerySet[Service]:
    """Services whose audience the company belongs to."""
    named = Q(audience=Service.Audience.NAMED, audience_tenants=tenant)
    return Service.objects.filter(Q(tenant=tenant) | Q(audience=Service.Audience.GROUP) | named).distinct()


class KeyForm(Styled, forms.Form):
    """Of one company: the services to choose from are those it may call."""

    name = forms.CharField(
        label=gettext_lazy("名称"), max_length=80, help_text=gettext_lazy("哪个应用用它，例如：工单系统。")
    )
    application = forms.ModelChoiceField(
        Application.objects.none(),
        label=gettext_lazy("应用"),
        required=False,
        empty_label=gettext_lazy("不归入应用"),
        help_text=gettext_lazy("选了，用量和费用就能按应用看。"),
    )
    services = forms.MultipleChoiceField(
        label=gettext_lazy("能调用的业务"),
        required=False,
        widget=Checks,
        help_text=gettext_lazy("一个都不选：公司能调用的全部业务，以后新增的也算。"),
    )
    days = forms.ChoiceField(label=gettext_lazy("有效期"), choices=LIVES, required=False, initial=LIVES[0][0])
    progress_content = forms.BooleanField(
        label=gettext_lazy("等待装载时，把进度当作文字发进流式回答"),
        required=False,
        help_text=gettext_lazy("给人看的应用打开；程序解析回答的应用不要打开。"),
    )

    def __init__(self, tenant: Tenant, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tenant = tenant
        services = callable_by(tenant).values_list("name", "label")
        self.fields["services"].choices = list(services)  # type: ignore[attr-defined]
        self.fields["application"].queryset = tenant.applications.all()  # type: ignore[attr-defined]

    def clean_name(self) -> str:
        """Two live keys of one name cannot be told apart; it also stops a form sent twice from making two."""
        name: str = self.cleaned_data["name"]
        if ApiKey.objects.filter(is_live(timezone.now()), tenant=self.tenant, name=name).exists():
            raise ValidationError(_("这家公司已有一个同名的有效密钥。换个名称，或轮换原来的。"))
        return name

    def expires_at(self) -> datetime | None:
        days = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=int(days)) if days else None


class TenantChoice(Styled, forms.Form):
    """Staff choose first whose key it will be."""

    tenant = forms.ModelChoiceField(Tenant.objects.none(), label=gettext_lazy("公司"), empty_label=None)

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["tenant"].queryset = own(Tenant.objects.all(), user, "pk")  # type: ignore[attr-defined]


class ApplicationForm(Styled, forms.Form):
    """Which of the company's applications a key is."""

    application = forms.ModelChoiceField(
        Application.objects.none(),
        label=gettext_lazy("应用"),
        required=False,
        empty_label=gettext_lazy("不归入应用"),
        help_text=gettext_lazy("密钥以前的调用和费用也随它算到新的应用。"),
    )

    def __init__(self, key: ApiKey, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, initial={"application": key.application_id}, **kwargs)
        self.fields["application"].queryset = key.tenant.applications.all()  # type: ignore[attr-defined]


class RotateForm(Styled, forms.Form):
    hours = forms.ChoiceField(
        label=gettext_lazy("新旧同时有效"),
        choices=OVERLAPS,
        help_text=gettext_lazy("这段时间里把应用换成新密钥，到时旧的自动失效。"),
    )

    def ends_at(self, old: ApiKey) -> datetime:
        """Never later than the old key would have ended anyway."""
        wanted = timezone.now() + timedelta(hours=int(self.cleaned_data["hours"]))
        return min(wanted, old.expires_at) if old.expires_at else wanted


def chosen_tenant(user: User, asked: str | None) -> Tenant | None:
    """A tenant's own people never choose; staff name one in the address. None: not chosen, or not there."""
    fixed = tenant_of(user)
    if fixed is not None:
        return Tenant.objects.filter(pk=fixed).first()
    return Tenant.objects.filter(pk=int(asked)).first() if asked and asked.isdecimal() else None
