"""Applications of the demo's companies, each with a key of its own: so that use and cost can be seen by who calls.

`make()` is run at every start, after the farm's rows. What is there already is left alone.
"""

from __future__ import annotations

from pathlib import Path

from demo import farm

#: Company → (slug, name, note). The first is what the company had before it kept its callers apart.
APPLICATIONS = {
    "energy": (
        ("hotline", "客服热线", "坐席与自助语音"),
        ("inspection", "巡检平台", "每天早上出报告"),
        ("office", "办公助手", ""),
    ),
    "manufacturing": (("workshop", "车间终端", "三班都在用"), ("quality", "质检系统", "")),
    "finance": (("advisor", "理财顾问台", ""), ("risk", "风控审核", "只在工作日"), ("research", "投研平台", "")),
    "estate": (("property", "物业服务台", "业主报修与咨询"), ("valuation", "估价系统", "每月初集中跑")),
    "logistics": (("waybill", "运单识别", "早上九点半最忙"), ("dispatch", "调度台", "")),
}


def make(home: Path) -> int:
    """Rows and keys, whole or not at all; how many applications there are."""
    from django.db import transaction

    from console.accounts.models import Application

    with transaction.atomic():
        farm.keep(home / farm.KEYS, _keys)
    return Application.objects.count()


def _keys(known: dict[str, str]) -> dict[str, str]:
    """`company/application`: its key. The company's own demo key belongs to its first application."""
    from console.accounts.keys import new_key
    from console.accounts.models import ApiKey, Application, Tenant

    for tenant in Tenant.objects.filter(slug__in=APPLICATIONS):
        for first, (slug, name, note) in zip((True, False, False), APPLICATIONS[tenant.slug], strict=False):
            row, made = Application.objects.get_or_create(
                tenant=tenant, slug=slug, defaults={"name": name, "note": note}
            )
            if made and first:
                ApiKey.objects.filter(name=f"demo {tenant.slug}", application=None).update(application=row)
            if (path := f"{tenant.slug}/{slug}") not in known:
                key = new_key()
                known[path] = key.key
                values = {"prefix": key.prefix, "digest": key.digest}
                ApiKey.objects.create(tenant=tenant, application=row, name=f"demo {path}", **values)
    return known


def of(keys: dict[str, str], tenant: str) -> list[str]:
    """Keys with which the company's applications call; before there are any, the company's own."""
    return [key for path, key in sorted(keys.items()) if path.startswith(f"{tenant}/")] or [keys[tenant]]
