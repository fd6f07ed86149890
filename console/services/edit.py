"""What may be changed of a service after it was registered, and by whom; each change is written down.

Its name, company and model stay what they are: callers, bills and weights hang on them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import transaction
from django.db.models import Model
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.accounts.access import Act, may
from console.accounts.models import Tenant, User
from console.catalog.models import Service
from console.filters import PROFILES, TIERS
from console.fleet.models import Card
from console.forms import Checks, LongSelect, Styled
from console.journal.models import Change
from console.people.key_forms import callable_by
from console.services.draft import MIB, MOST, check_audience
from console.services.resident import HoursField
from console.services.shapes import card_class
from scheduler.policy import Policy
from scheduler.world import Claim, Profile, Tier
from scheduler.world import Service as CoreService

#: Panels of the page and what stands in each.
PANELS: Mapping[str, tuple[Any, tuple[str, ...]]] = {
    "use": (
        gettext_lazy("给谁用，怎么用"),
        ("label", "audience", "audience_tenants", "profile", "waiter", "hold_cap_s", "fallback"),
    ),
    "promise": (
        gettext_lazy("多快才算好"),
        ("first_token_s", "p99_metric", "p99_target_ms"),
    ),
    "calls": (
        gettext_lazy("一个调用可以多长"),
        ("max_prompt_tokens", "max_total_tokens", "long_from_tokens", "long_lane", "long_share_pct"),
    ),
    "claim": (
        gettext_lazy("声明：一个实例要多少显存，MiB"),
        ("weights_mib", "kv_cap_mib", "headroom_mib", "overhead_mib", "max_model_len", "max_num_seqs"),
    ),
    "centre": (
        gettext_lazy("由信息中心设定"),
        (
            "tier", "tier_fixed", "priority", "can_sleep", "cards_per_replica", "min_replicas", "max_replicas", "pools",
            "card_classes", "slice_required", "resident_hours", "batch_hours",
        ),
    ),
}  # fmt: skip
#: What decides where copies go and what they hold: a change of these is answered by the planner before it is saved.
PLANNED = frozenset(PANELS["claim"][1]) | frozenset(PANELS["centre"][1]) | {"profile"}
JSON = frozenset({"card_classes", "resident_hours", "batch_hours"})
LABELS: dict[str, Any] = {
    "label": gettext_lazy("显示名"),
    "audience": gettext_lazy("谁可以调用"),
    "audience_tenants": gettext_lazy("指定哪些公司"),
    "profile": gettext_lazy("画像"),
    "waiter": gettext_lazy("谁在等答复"),
    "hold_cap_s": gettext_lazy("最多挂起，秒"),
    "fallback": gettext_lazy("装载不了时由谁应答"),
    "first_token_s": gettext_lazy("首 token 要求，秒"),
    "p99_metric": gettext_lazy("P99 量什么"),
    "p99_target_ms": gettext_lazy("P99 目标，毫秒"),
    "max_prompt_tokens": gettext_lazy("提问最多 token 数"),
    "max_total_tokens": gettext_lazy("提问加回答最多 token 数"),
    "long_from_tokens": gettext_lazy("多少 token 起算长调用"),
    "long_lane": gettext_lazy("长调用交给哪个业务"),
    "long_share_pct": gettext_lazy("留给长调用的实例，%"),
    "slice_required": gettext_lazy("只放在硬件切片上"),
    "weights_mib": gettext_lazy("权重，MiB"),
    "kv_cap_mib": gettext_lazy("KV 上限，MiB"),
    "headroom_mib": gettext_lazy("余量，MiB"),
    "overhead_mib": gettext_lazy("进程开销，MiB"),
    "max_model_len": gettext_lazy("最长 token 数"),
    "max_num_seqs": gettext_lazy("同时的请求数"),
    "tier": gettext_lazy("档位"),
    "tier_fixed": gettext_lazy("档位由人定，不按调用数重算"),
    "priority": gettext_lazy("优先级"),
    "can_sleep": gettext_lazy("可以休眠"),
    "cards_per_replica": gettext_lazy("每个实例的卡数"),
    "min_replicas": gettext_lazy("最少实例"),
    "max_replicas": gettext_lazy("最多实例"),
    "pools": gettext_lazy("资源池"),
    "card_classes": gettext_lazy("卡型"),
    "resident_hours": gettext_lazy("常驻时段"),
    "batch_hours": gettext_lazy("批处理时段"),
}
HELP: dict[str, Any] = {
    "audience_tenants": gettext_lazy("只在选“指定公司”时用；本公司总是可以调用。"),
    "hold_cap_s": gettext_lazy("留空：小模型 15 秒，大模型 30 秒"),
    "fallback": gettext_lazy("几张卡都装载失败后，调用由它应答，回复头里写明；留空：调用方得到失败的真实原因"),
    "first_token_s": gettext_lazy("1 秒以内的要求使它常驻；留空：没有要求"),
    "p99_metric": gettext_lazy("留空：生成类看首 token，其他看总时间"),
    "p99_target_ms": gettext_lazy("超过它就算慢；留空：按策略的值"),
    "max_prompt_tokens": gettext_lazy("超过的调用被退回，并说明数出了多少；留空：引擎能多长就多长"),
    "long_from_tokens": gettext_lazy("留空：没有长短之分"),
    "long_lane": gettext_lazy("留空：仍由本业务应答"),
    "long_share_pct": gettext_lazy("0：不留"),
    "slice_required": gettext_lazy("独占一块切片，没有别人同用这颗芯片"),
    "overhead_mib": gettext_lazy("留空：按策略的默认值"),
    "max_model_len": gettext_lazy("一个请求的提问加回答最长多少"),
    "pools": gettext_lazy("不选：都可以"),
    "card_classes": gettext_lazy("不选：都可以"),
    "resident_hours": gettext_lazy("例：工作日 08:00-18:00; 星期六 09:00-12:00。时段内总是就绪，之外按需；留空：没有"),
    "batch_hours": gettext_lazy(
        "例：每天 22:00-07:00; 星期六 05:00-12:00。时段外限并发。结束不晚于开始就到次日，相同是一整天。留空：按策略"
    ),
}
#: field: least, most. Beyond them somebody mistook the unit.
BOUNDS = {
    "hold_cap_s": (1, 900),
    "first_token_s": (0, 3600),
    "p99_target_ms": (1, 3_600_000),
    "max_prompt_tokens": (1, 10**7),
    "max_total_tokens": (1, 10**7),
    "long_from_tokens": (1, 10**7),
    "long_share_pct": (0, 90),
    "weights_mib": (1, 10**7),
    "kv_cap_mib": (1, 10**7),
    "headroom_mib": (0, 10**7),
    "overhead_mib": (0, 10**6),
    "max_model_len": (1, 10**7),
    "max_num_seqs": (1, 1024),
    "priority": (0, 100),
    "cards_per_replica": (1, 16),
    "min_replicas": (0, 64),
    "max_replicas": (1, 64),
}


class EditForm(Styled, forms.ModelForm):  # type: ignore[type-arg]
    """`person` decides which fields there are. `seen`: what the page was drawn from; nobody overwrites unseen."""

    seen = forms.CharField(widget=forms.HiddenInput, required=False)
    card_classes = forms.MultipleChoiceField(required=False, widget=Checks)
    resident_hours = HoursField(required=False)
    batch_hours = HoursField(required=False)

    class Meta:
        model = Service
        fields = tuple(name for _title, names in PANELS.values() for name in names)
        widgets = {
            "pools": Checks,
            "audience_tenants": Checks,
            "fallback": LongSelect,
            "long_lane": LongSelect,
        }

    def __init__(self, person: User, service: Service, data: Any = None) -> None:
        self.before_many = {name for name in LABELS if Service._meta.get_field(name).many_to_many}
        self.before = values(service)
        self.was = {name: getattr(service, name) for name in LABELS if name not in self.before_many}
        super().__init__(data, instance=service, initial={"seen": digest(self.before)})
        if not may(person, Act.REGISTER_SERVICE):
            for name in PANELS["centre"][1]:
                del self.fields[name]
        choices: dict[str, Any] = {
            "profile": list(PROFILES.items()),
            "tier": list(TIERS.items()),
            "p99_metric": [("", _("按模型的用途")), *Service.Metric.choices],
        }
        for name, field in self.fields.items():
            field.label, field.help_text = capfirst(LABELS.get(name, "")), HELP.get(name, "")
            if name in choices:
                field.choices = choices[name]  # type: ignore[attr-defined]
            if name in BOUNDS:
                field.min_value, field.max_value = BOUNDS[name]  # type: ignore[attr-defined]
                field.validators += [MinValueValidator(BOUNDS[name][0])]
                field.validators += [MaxValueValidator(BOUNDS[name][1])]
                field.widget.attrs |= {"min": BOUNDS[name][0], "max": BOUNDS[name][1]}
        self.fields["audience_tenants"].queryset = Tenant.objects.exclude(pk=service.tenant_id)  # type: ignore[attr-defined]
        lanes = callable_by(service.tenant).exclude(pk=service.pk).only("label", "long_lane")
        self.fields["long_lane"].queryset = lanes  # type: ignore[attr-defined]
        self.fields["fallback"].empty_label = _("没有")  # type: ignore[attr-defined]
        self.fields["long_lane"].empty_label = _("本业务自己")  # type: ignore[attr-defined]
        same = lanes.filter(model__task=service.model.task)
        self.fields["fallback"].queryset = same  # type: ignore[attr-defined]
        if "card_classes" in self.fields:
            classes = Card.objects.values_list("card_class", flat=True).distinct().order_by("card_class")
            self.fields["card_classes"].choices = [(one, card_class(one)) for one in classes]  # type: ignore[attr-defined]

    @property
    def panels(self) -> list[tuple[str, Any, list[forms.BoundField]]]:
        found = []
        for key, (title, names) in PANELS.items():
            if fields := [self[name] for name in names if name in self.fields]:
                found.append((key, title, fields))
        return found

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        check_audience(self, data)
        if (data.get("min_replicas") or 0) > (data.get("max_replicas") or 64):
            self.add_error("max_replicas", _("不能少于最少实例。"))
        longest = self.instance.model.max_context
        if longest and (data.get("max_model_len") or 0) > longest:
            self.add_error("max_model_len", _("这个模型最长 %(n)s。") % {"n": f"{longest:,}"})
        if (data.get("max_prompt_tokens") or 0) > (data.get("max_total_tokens") or MOST):
            self.add_error("max_total_tokens", _("不能少于提问的上限。"))
        if data.get("long_lane") is not None and data["long_lane"].long_lane_id == self.instance.pk is not None:
            self.add_error("long_lane", _("两个业务不能互相交给对方。"))
        there = self.instance.pk is not None and "cards_per_replica" in self.changed_data
        if there and self.instance.replicas.filter(ended_at=None).exists():
            self.add_error("cards_per_replica", _("还有实例在，先全部停止再改。"))
        if data.get("seen") != digest(self.before):
            self.add_error(None, _("这期间有人改过这个业务。下面是您填的；打开新的一页看现在的值。"))
        return data

    def core(self, known: CoreService, rules: Policy) -> CoreService:
        """The planner's service as it would be; `known` as it is."""
        row: Service = self.instance
        overhead = rules.default_overhead_mib if row.overhead_mib is None else row.overhead_mib
        pools = self.cleaned_data.get("pools")
        request_bytes = row.max_model_len * row.model.kv_bytes_per_token
        return replace(
            known,
            claim=Claim(row.weights_mib, row.kv_cap_mib, row.headroom_mib, overhead),
            profile=Profile(row.profile),
            tier=Tier(row.tier),
            priority=row.priority,
            min_replicas=row.min_replicas,
            max_replicas=row.max_replicas,
            pools=known.pools if pools is None else frozenset(pool.name for pool in pools),
            card_classes=frozenset(row.card_classes),
            can_sleep=row.can_sleep,
            slice_required=row.slice_required,
            first_token_s=row.first_token_s,
            cards_per_replica=row.cards_per_replica,
            one_request_mib=-(-request_bytes // (MIB * row.cards_per_replica)),
        )

    def answerable(self) -> bool:
        """Can the planner be asked? Not where a number it needs is wrong."""
        return self.is_bound and not (set(self.errors) & PLANNED)


def values(service: Service) -> dict[str, Any]:
    """Everything that may be edited, as JSON: rows by their name."""
    found: dict[str, Any] = {}
    for name in LABELS:
        if Service._meta.get_field(name).many_to_many:
            rows = getattr(service, name).all() if service.pk is not None else ()
            found[name] = sorted(str(row) for row in rows)
        else:
            value = getattr(service, name)
            found[name] = str(value) if isinstance(value, Model) else value
    return found


def digest(before: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(before, sort_keys=True).encode()).hexdigest()[:16]


def save(form: EditForm, by: User) -> Change | None:
    """Writes what differs, where it still is what the page was drawn from, and the record of it; None: nothing differs.

    Raises `Overtaken` where somebody else was faster: nothing is written then.
    """
    row: Service = form.instance
    given = {name: form.cleaned_data[name] for name in LABELS if name in form.cleaned_data}
    many = {name: rows for name, rows in given.items() if name in form.before_many}
    plain = {name: value for name, value in given.items() if name not in many and value != form.was[name]}
    if "tier" in plain and "tier_fixed" not in plain:
        plain["tier_fixed"] = True  # a person set it: the weekly recomputation leaves it
    unchanged = {name: form.was[name] for name in plain if name not in JSON}  # JSON is not compared by databases
    with transaction.atomic():
        if plain and Service.objects.filter(pk=row.pk, **unchanged).update(**plain) != 1:
            raise Overtaken
        for name, rows in many.items():
            getattr(row, name).set(rows)
        after = values(Service.objects.get(pk=row.pk))
        differs = [name for name in LABELS if form.before[name] != after[name]]
        return _written(form, by, differs, after) if differs else None


def _written(form: EditForm, by: User, differs: list[str], after: Mapping[str, Any]) -> Change:
    return Change.objects.create(
        at=timezone.now(),
        by=by,
        by_name=by.full_name or by.username,
        subject=form.instance.name,
        service=form.instance,
        before={name: form.before[name] for name in differs},
        after={name: after[name] for name in differs},
    )


class Overtaken(Exception):
    """Somebody else changed the service between the page and its answer."""
