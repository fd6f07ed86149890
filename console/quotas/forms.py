"""The form of one quota: for which company, in which pool, how many MiB."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from console.accounts.models import Tenant
from console.fleet.models import Pool
from console.forms import Styled
from scheduler.allotment import Quota

#: More than any site has: keeps sums within what a database counts.
MOST_MIB = 2**40


def mib_field(label: Any, help_text: Any) -> forms.IntegerField:
    return forms.IntegerField(label=label, help_text=help_text, min_value=0, max_value=MOST_MIB)


class QuotaFields(forms.Form):
    """The same where the centre sets a quota and where a company asks for one."""

    tenant = forms.ModelChoiceField(
        Tenant.objects.all(), label=gettext_lazy("公司"), empty_label=gettext_lazy("选一家公司")
    )
    pool = forms.ModelChoiceField(
        Pool.objects.order_by("label"), label=gettext_lazy("资源池"), empty_label=gettext_lazy("选一个资源池")
    )
    guaranteed_mib = mib_field(
        gettext_lazy("保证，MiB"),
        gettext_lazy("公司自己要用时一定有：别家借着的先摘流让出，不切断调用。1 GiB = 1024 MiB。"),
    )
    borrowable_mib = mib_field(
        gettext_lazy("可借，MiB"),
        gettext_lazy("别家闲着时最多再借这么多；人家要用就让回。填 0：只用自己的。"),
    )


class QuotaForm(Styled, QuotaFields):
    """`seen`: what the page showed, so that nobody's change is overwritten unseen."""

    seen = forms.RegexField(r"^\d{1,13}\+\d{1,13}$", required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, fixed: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("tenant", "pool") if fixed else ():
            self.fields[name].widget = forms.HiddenInput()

    @property
    def quota(self) -> Quota:
        """Of a valid form."""
        return Quota(self.cleaned_data["guaranteed_mib"], self.cleaned_data["borrowable_mib"])

    @property
    def was(self) -> Quota | None:
        """What its page showed."""
        guaranteed, _, borrowable = self.cleaned_data["seen"].partition("+")
        return Quota(int(guaranteed), int(borrowable)) if guaranteed else None


def as_seen(quota: Quota | None) -> str:
    return "" if quota is None else f"{quota.guaranteed_mib}+{quota.borrowable_mib}"
