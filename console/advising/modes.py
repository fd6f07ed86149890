"""Changing what a pool lets the scheduler do by itself: with what that would mean now, and written down."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.accounts.models import User
from console.catalog.models import Replica
from console.fleet.models import Pool
from console.forms import Styled
from console.journal.models import Advice, Change
from scheduler.decision import TAKING

HELP: dict[str, Any] = {
    Pool.Mode.OBSERVE: gettext_lazy(
        "观察：什么也不动，只把想做的列成建议。已在的实例照常应答，没有装载的业务，调用方被告知这里不调度。"
    ),
    Pool.Mode.SUGGEST: gettext_lazy("建议：有调用在等就装载、唤醒，坏了就重建；要收回、驱逐、挪动谁，等人点头。"),
    Pool.Mode.ENFORCE: gettext_lazy("执行：都自己做，每件事写在时间线上。"),
}


class ModeForm(Styled, forms.Form):
    mode = forms.ChoiceField(
        label=gettext_lazy("模式"),
        choices=[(mode.value, HELP[mode]) for mode in Pool.Mode],
        widget=forms.RadioSelect,
    )


def consequences(pool: Pool) -> list[str]:
    """What stands at this moment, in numbers."""
    cards = list(pool.cards.values_list("uuid", flat=True))
    copies = [
        row for row in Replica.objects.filter(ended_at=None).values_list("cards", flat=True) if set(row) & set(cards)
    ]
    open_rows = Advice.objects.filter(pool=pool, closed_at=None)
    taking = open_rows.filter(reason__in=[reason.value for reason in TAKING]).count()
    return [
        _("现在是%(mode)s。池里 %(cards)s 张卡，%(copies)s 个实例。")
        % {"mode": pool.get_mode_display(), "cards": len(cards), "copies": len(copies)},
        _("此刻有 %(all)s 条建议没有做：其中 %(taking)s 条要收回或挪动谁。改成执行，下一轮就做；改成建议，只做其余的。")
        % {"all": open_rows.count(), "taking": taking},
        _("随时可以改回来：正在走的会走完，之后的按新的模式。"),
    ]


def set_mode(pool: Pool, mode: str, by: User) -> bool:
    """Writes it where the pool still is as it was seen; False: somebody was faster, or nothing differs."""
    with transaction.atomic():
        if mode == pool.mode or not Pool.objects.filter(pk=pool.pk, mode=pool.mode).update(mode=mode):
            return False
        Change.objects.create(
            at=timezone.now(),
            by=by,
            by_name=by.full_name or by.username,
            subject=pool.name,
            before={"mode": pool.mode},
            after={"mode": mode},
        )
    return True
