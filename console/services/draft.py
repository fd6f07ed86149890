"""The draft of a service: a form that knows units, fills in the claim, and becomes the planner's service or a row."""

from __future__ import annotations

import math
from typing import Any

from django import forms
from django.core.validators import RegexValidator
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.accounts.access import Act as May
from console.accounts.access import may, own
from console.accounts.models import Tenant, User
from console.catalog.models import Service
from console.filters import PROFILES, TIERS
from console.fleet.models import Card, Pool
from console.forms import Checks, Styled
from console.model_pages.forms import clean_path
from console.services.shapes import OTHER, Shape, card_class, choices, described_otherwise, model_row, shape
from scheduler.policy import Policy
from scheduler.world import Claim, Profile, Tier
from scheduler.world import Service as CoreService

MIB = 2**20
MOST = 10**7  # of any number typed here: beyond it somebody mistook the unit
#: Unit → bytes. GB is a thousandth more than seven percent less than GiB: forms show which.
UNITS = {"gib": 2**30, "gb": 10**9, "mib": MIB}
#: Suggested headroom: a share of the weights for activations, at least one GiB.
HEADROOM_SHARE, HEADROOM_MIN_MIB = 0.04, 1024
RESERVED = frozenset({"new", "import", "bulk"})
#: Of no matter to where it fits.
NAMING = frozenset({"name", "label", "tenant", "audience", "audience_tenants"})

NAME_FORM = r"^[a-z0-9][a-z0-9.-]*\Z"
NAME = RegexValidator(NAME_FORM, gettext_lazy("只用小写字母、数字、点和连字符，以字母或数字开头。"))


def to_mib(value: float, unit: str) -> int:
    """Rounded up: every rounding is against the newcomer."""
    return math.ceil(value * UNITS[unit] / MIB)


def from_mib(mib: int, unit: str) -> float:
    return math.ceil(mib * MIB / UNITS[unit] * 100) / 100 if unit != "mib" else mib


def size(label: Any, help_text: Any = "") -> forms.FloatField:
    widget = forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"})
    return forms.FloatField(label=label, help_text=help_text, min_value=0, max_value=MOST, widget=widget)


class DraftForm(Styled, forms.Form):
    """`person` decides which company may be named."""

    model = forms.ChoiceField(label=gettext_lazy("模型"))
    weights_path = forms.CharField(
        label=gettext_lazy("权重路径"),
        max_length=200,
        required=False,
        help_text=gettext_lazy("主机权重目录下的相对路径，只在选“其他模型”时填"),
    )
    kv_bytes = forms.IntegerField(
        label=gettext_lazy("每个 token 的 KV 字节数"),
        min_value=0,
        max_value=MOST,
        required=False,
        help_text=gettext_lazy("只在选“其他模型”时填"),
    )
    read = forms.CharField(max_length=4000, required=False, widget=forms.HiddenInput)
    name = forms.CharField(
        label=gettext_lazy("名称"),
        max_length=50,
        validators=[NAME],
        help_text=gettext_lazy("应用写进 model 字段的名字，如 contract-review"),
    )
    label = forms.CharField(label=gettext_lazy("显示名"), max_length=60)
    tenant = forms.ModelChoiceField(Tenant.objects.all(), label=gettext_lazy("公司"))
    tokens = forms.IntegerField(
        label=gettext_lazy("一次调用的典型 token 数"),
        min_value=1,
        max_value=MOST,
        initial=2048,
        help_text=gettext_lazy("提问加回答"),
    )
    concurrency = forms.IntegerField(label=gettext_lazy("同时的请求数"), min_value=1, max_value=1024, initial=8)
    max_model_len = forms.IntegerField(
        label=gettext_lazy("最长 token 数"),
        min_value=1,
        max_value=MOST,
        initial=8192,
        help_text=gettext_lazy("一个请求的提问加回答最长多少"),
    )
    unit = forms.ChoiceField(
        label=gettext_lazy("单位"),
        choices=[("gib", "GiB"), ("gb", "GB"), ("mib", "MiB")],
        initial="gib",
        help_text="1 GiB = 1.074 GB = 1024 MiB",
    )
    weights = size(gettext_lazy("权重"))
    kv_cap = size(gettext_lazy("KV 上限"))
    headroom = size(gettext_lazy("余量"), gettext_lazy("峰值时激活与碎片多用的"))
    profile = forms.ChoiceField(
        label=gettext_lazy("画像"),
        choices=list(PROFILES.items()),
        initial=Profile.LOWFREQ,
        help_text=gettext_lazy("在线：有人等着；批处理：夜里成批；低频：一天几十次"),
    )
    tier = forms.ChoiceField(
        label=gettext_lazy("档位"),
        choices=list(TIERS.items()),
        initial=Tier.WARM,
        help_text=gettext_lazy("高频常驻，中频闲时休眠，低频闲时卸载"),
    )
    priority = forms.IntegerField(label=gettext_lazy("优先级"), min_value=0, max_value=100, initial=50)
    audience = forms.ChoiceField(
        label=gettext_lazy("谁可以调用"),
        choices=Service.Audience.choices,
        initial=Service.Audience.OWN,
    )
    audience_tenants = forms.ModelMultipleChoiceField(
        Tenant.objects.all(),
        label=gettext_lazy("指定哪些公司"),
        required=False,
        widget=Checks,
        help_text=gettext_lazy("只在选“指定公司”时用；本公司总是可以调用。"),
    )
    min_replicas = forms.IntegerField(label=gettext_lazy("最少实例"), min_value=0, max_value=64, initial=0)
    max_replicas = forms.IntegerField(label=gettext_lazy("最多实例"), min_value=1, max_value=64, initial=1)
    cards_per_replica = forms.IntegerField(
        label=gettext_lazy("每个实例的卡数"),
        min_value=1,
        max_value=16,
        required=False,
        initial=1,
        help_text=gettext_lazy("张量并行：同一台主机上的几张卡合起来跑一个实例，权重和 KV 按每张卡填"),
    )
    hold_cap_s = forms.IntegerField(
        label=gettext_lazy("最多挂起，秒"),
        min_value=1,
        max_value=900,
        required=False,
        help_text=gettext_lazy("留空：小模型 15 秒，大模型 30 秒"),
    )
    pools = forms.ModelMultipleChoiceField(
        Pool.objects.all(),
        label=gettext_lazy("资源池"),
        required=False,
        widget=Checks,
        help_text=gettext_lazy("不选：都可以"),
    )
    card_classes = forms.MultipleChoiceField(
        label=gettext_lazy("卡型"),
        required=False,
        widget=Checks,
        help_text=gettext_lazy("不选：都可以"),
    )

    def __init__(self, person: User, data: QueryDict | None = None) -> None:
        super().__init__(data)
        self.person, self.given = person, data
        self.fields["model"].choices = choices()  # type: ignore[attr-defined]
        tenants = own(Tenant.objects.all(), person, "pk")
        self.fields["tenant"].queryset = tenants  # type: ignore[attr-defined]
        self.fields["tenant"].empty_label = _("选一家公司")  # type: ignore[attr-defined]
        if not may(person, May.REGISTER_SERVICE):
            self.fields["tenant"].initial = person.tenant_id
        classes = Card.objects.values_list("card_class", flat=True).distinct().order_by("card_class")
        self.fields["card_classes"].choices = [(one, card_class(one)) for one in classes]  # type: ignore[attr-defined]

    @property
    def owning(self) -> list[forms.BoundField]:
        names = "label name tenant audience audience_tenants profile tier priority hold_cap_s"
        return [self[name] for name in names.split()]

    @property
    def placing(self) -> list[forms.BoundField]:
        return [self[name] for name in ("cards_per_replica", "min_replicas", "max_replicas", "pools", "card_classes")]

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name in RESERVED or Service.objects.filter(name=name).exists():
            raise forms.ValidationError(_("这个名称已经有业务在用，换一个。"))
        return name

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("model") == OTHER:
            for field in ("weights_path", "kv_bytes"):
                if data.get(field) in (None, "") and field not in self.errors:
                    self.add_error(field, _("选“其他模型”时要填。"))
            self._check_other(data.get("weights_path") or "", data.get("kv_bytes"))
        if (data.get("min_replicas") or 0) > (data.get("max_replicas") or 64):
            self.add_error("max_replicas", _("不能少于最少实例。"))
        known = self.shape()
        longest = known.max_context if known is not None else None
        if longest and (data.get("max_model_len") or 0) > longest:
            self.add_error("max_model_len", _("这个模型最长 %(n)s。") % {"n": f"{longest:,}"})
        for field in ("weights", "kv_cap"):
            if data.get(field) == 0:
                self.add_error(field, _("要大于 0。"))
        check_audience(self, data)
        return data

    def clean_weights_path(self) -> str:
        path: str = self.cleaned_data["weights_path"]
        return clean_path(path) if path else path

    def _check_other(self, path: str, kv_bytes: int | None) -> None:
        """One folder of weights is one model: another number for it is a mistake of one of the two."""
        known = described_otherwise(path, kv_bytes) if path and kv_bytes is not None else None
        if known is not None:
            said = _("这个路径已经是模型 %(name)s，每个 token 的 KV 记着 %(n)s 字节。从列表里选它。")
            self.add_error("kv_bytes", said % {"name": known.name, "n": f"{known.kv_bytes_per_token:,}"})

    def shape(self) -> Shape | None:
        """Of the chosen model; None for one that the catalogue does not know and nobody described yet."""
        data = getattr(self, "cleaned_data", {})
        given = str(data.get("model", "")), data.get("weights_path") or "", data.get("kv_bytes")
        return shape(*given, data.get("read") or "")

    def answerable(self) -> bool:
        """Can the planner be asked? It needs sizes and rules, not what the thing is called."""
        return self.is_bound and set(self.errors) <= NAMING

    def missing(self) -> list[str]:
        """Labels of what must still be filled in, or is wrong."""
        return [str(self.fields[name].label) for name in self.errors if name in self.fields] if self.is_bound else []

    def suggested(self) -> DraftForm:
        """The same draft with the claim filled in: weights of the model, KV for the calls it is meant for."""
        if self.given is None:
            return self
        self.full_clean()
        data, known = self.given.copy(), self.shape()
        unit = self.cleaned_data.get("unit") or "gib"
        if known is not None and known.weights_mib is not None:
            each_mib = math.ceil(known.weights_mib / self.per_replica)
            data["weights"] = str(from_mib(each_mib, unit))
            data["headroom"] = str(from_mib(headroom_mib(each_mib), unit))
        if known is not None:
            tokens, length = self.cleaned_data.get("tokens") or 0, self.cleaned_data.get("max_model_len") or 0
            needed = max(tokens * (self.cleaned_data.get("concurrency") or 1), length)
            data["kv_cap"] = str(from_mib(math.ceil(needed * known.kv_bytes / MIB / self.per_replica), unit))
        return DraftForm(self.person, data).unjudged()

    @property
    def per_replica(self) -> int:
        """Cards of one copy."""
        return self.cleaned_data.get("cards_per_replica") or 1

    def mib(self, field: str) -> int:
        return to_mib(self.cleaned_data[field], self.cleaned_data["unit"])

    def core(self, rules: Policy) -> CoreService:
        """What the planner judges."""
        data, known = self.cleaned_data, self.shape()
        return CoreService(
            name=data.get("name", ""),
            tenant=data["tenant"].slug if data.get("tenant") else "",
            claim=Claim(self.mib("weights"), self.mib("kv_cap"), self.mib("headroom"), rules.default_overhead_mib),
            profile=Profile(data["profile"]),
            tier=Tier(data["tier"]),
            priority=data["priority"],
            min_replicas=data["min_replicas"],
            max_replicas=data["max_replicas"],
            pools=frozenset(pool.name for pool in data["pools"]),
            card_classes=frozenset(data["card_classes"]),
            min_compute_cap=known.min_compute_cap if known is not None else 0.0,
            one_request_mib=math.ceil(
                data["max_model_len"] * (known.kv_bytes if known is not None else 0) / MIB / self.per_replica
            ),
            cards_per_replica=self.per_replica,
        )


def check_audience(form: forms.BaseForm, data: dict[str, Any]) -> None:
    """Named companies are named, and are kept only where they count."""
    if data.get("audience") != Service.Audience.NAMED:
        data["audience_tenants"] = Tenant.objects.none()
    elif not data.get("audience_tenants"):
        form.add_error("audience_tenants", _("至少选一家公司，或换一个范围。"))


def headroom_mib(weights_mib: int) -> int:
    return max(HEADROOM_MIN_MIB, math.ceil(weights_mib * HEADROOM_SHARE))


def save(form: DraftForm) -> Service:
    """The row, and the model's where it is new. Run inside a transaction."""
    data, known = form.cleaned_data, form.shape()
    assert known is not None, "a valid form has a shape"
    service = Service.objects.create(
        name=data["name"],
        label=data["label"],
        tenant=data["tenant"],
        model=model_row(known, form.mib("weights") * form.per_replica),
        audience=data["audience"],
        profile=data["profile"],
        tier=data["tier"],
        priority=data["priority"],
        weights_mib=form.mib("weights"),
        kv_cap_mib=form.mib("kv_cap"),
        headroom_mib=form.mib("headroom"),
        cards_per_replica=form.per_replica,
        max_model_len=data["max_model_len"],
        max_num_seqs=data["concurrency"],
        min_replicas=data["min_replicas"],
        max_replicas=data["max_replicas"],
        card_classes=data["card_classes"],
        hold_cap_s=data["hold_cap_s"],
    )
    service.pools.set(data["pools"])
    service.audience_tenants.set(data["audience_tenants"])
    return service
