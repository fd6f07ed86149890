"""Where: pools, hosts, cards. What a host reports is written by ingesting its reports only."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Pool(models.Model):
    class Mode(models.TextChoices):
        OBSERVE = "observe", _("观察")
        SUGGEST = "suggest", _("建议")
        ENFORCE = "enforce", _("执行")

    class Purpose(models.TextChoices):
        RESIDENT = "resident", _("常驻")
        ONDEMAND = "ondemand", _("按需")
        ELASTIC = "elastic", _("弹性")
        PILOT = "pilot", _("试点")

    class Kv(models.TextChoices):
        STATIC = "static", _("启动时定额")
        ELASTIC = "elastic", _("按页增减（暂不可用）")

    name = models.SlugField(unique=True)
    label = models.CharField(max_length=60)
    purpose = models.CharField(max_length=10, choices=Purpose.choices, default=Purpose.ONDEMAND)
    mode = models.CharField(max_length=10, choices=Mode.choices, default=Mode.ENFORCE)
    tenants = models.ManyToManyField("accounts.Tenant", blank=True, help_text="empty: any")
    kv = models.CharField(max_length=8, choices=Kv.choices, default=Kv.STATIC)
    owner = models.ForeignKey(
        "accounts.Tenant",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="owned_pools",
        help_text="pays what nobody uses; empty: the centre",
    )
    refused_at = models.DateTimeField(null=True, help_text="a wish found no room in it then")
    level = models.JSONField(
        default=dict, blank=True, help_text="last look: used_pct, awake on-demand services, and the n it has room for"
    )
    # fragmentation, measured every few seconds by control
    free_mib = models.PositiveBigIntegerField(null=True)
    stranded_mib = models.PositiveBigIntegerField(null=True, help_text="free, and of no use to the expected mix")
    stranded_at = models.DateTimeField(null=True)
    prefetch = models.JSONField(default=list, blank=True, help_text="names of services loaded in idle moments")

    def __str__(self) -> str:
        return self.label

    @property
    def stranded_pct(self) -> float | None:
        """F: of the free memory, the share that the expected mix cannot use. None: not measured; 0: nothing is free."""
        if self.free_mib is None or self.stranded_mib is None:
            return None
        return 100 * self.stranded_mib / self.free_mib if self.free_mib else 0.0


class Quota(models.Model):
    """What a company was promised of a pool, and how far beyond it may go. No row: no limit, and no promise."""

    tenant = models.ForeignKey("accounts.Tenant", models.CASCADE, related_name="quotas")
    pool = models.ForeignKey(Pool, models.CASCADE, related_name="quotas")
    guaranteed_mib = models.PositiveBigIntegerField()
    borrowable_mib = models.PositiveBigIntegerField(help_text="beyond the guarantee, while others leave theirs unused")

    class Meta:
        ordering = ("pool__label", "tenant__ordinal")
        constraints = [models.UniqueConstraint(fields=["tenant", "pool"], name="one_quota_a_tenant_and_pool")]

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.pool_id} {self.guaranteed_mib}+{self.borrowable_mib}"


class Host(models.Model):
    class Storage(models.TextChoices):
        LOCAL = "local", _("本机盘")
        NETWORK = "network", _("网络存储")

    name = models.SlugField(unique=True)
    rack = models.CharField(max_length=40, blank=True)
    storage = models.CharField(
        max_length=8, choices=Storage.choices, default=Storage.LOCAL, help_text="of weights: only local is parallel"
    )
    simulated = models.BooleanField(default=False)
    cordoned = models.BooleanField(default=False)
    declared_gone = models.BooleanField(default=False, help_text="an operator says it will not come back")
    maintenance_at = models.DateTimeField(null=True, blank=True, help_text="it shall be empty by then; empty: no plan")
    maintenance_of = models.PositiveSmallIntegerField(default=0, help_text="copies that were there when it began")
    door_token = models.CharField(max_length=64)
    want_generation = models.PositiveBigIntegerField(
        default=0, help_text="raised when any want of this host is recorded"
    )
    # below: written by ingesting reports
    seen_at = models.DateTimeField(null=True)
    boot = models.CharField(max_length=40, blank=True)
    report_seq = models.PositiveBigIntegerField(default=0, help_text="of the last report taken in, within one boot")
    cards_at = models.DateTimeField(null=True, help_text="time of the last card sample; empty: telemetry is silent")
    report_generation = models.PositiveBigIntegerField(default=0)
    version = models.CharField(max_length=40, blank=True)
    door_url = models.CharField(max_length=200, blank=True)
    door_ok = models.BooleanField(default=False)
    memory_mib = models.PositiveIntegerField(default=0)
    bandwidth_mib_s = models.PositiveIntegerField(default=1000)
    skew_s = models.FloatField(default=0.0, help_text="report time against stream entry time")

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Card(models.Model):
    uuid = models.CharField(max_length=80, unique=True)
    host = models.ForeignKey(Host, models.CASCADE, related_name="cards")
    index = models.PositiveSmallIntegerField()
    number = models.PositiveIntegerField(
        _("卡号"), null=True, help_text="two digits on the board, in order of enrolment"
    )
    name = models.CharField(max_length=80, help_text="as the driver names it")
    card_class = models.CharField(max_length=40, help_text="the catalogue's id")
    compute_cap = models.FloatField(default=8.0)
    price_fen_h = models.PositiveIntegerField(default=0)
    pool = models.ForeignKey(Pool, models.PROTECT, related_name="cards")
    cordoned = models.BooleanField(default=False)
    # below: written by ingesting reports
    total_mib = models.PositiveIntegerField(default=0)
    reserved_mib = models.PositiveIntegerField(default=0)
    free_mib = models.PositiveIntegerField(null=True)
    baseline_mib = models.PositiveIntegerField(
        null=True, help_text="used when nothing of ours runs; set where processes cannot be measured one by one"
    )
    util_pct = models.PositiveSmallIntegerField(null=True)
    healthy = models.BooleanField(default=True)
    note = models.CharField(max_length=200, blank=True)
    group = models.CharField(max_length=40, blank=True, help_text="of cards joined by fast links, within the host")
    sampled_at = models.DateTimeField(null=True)
    pressed_samples = models.PositiveSmallIntegerField(
        default=0, help_text="samples over the pressure line, kept until relieved: scheduler.pressed"
    )
    slice_of = models.CharField(max_length=80, blank=True, help_text="card that it is a slice of; empty: whole")
    release = models.JSONField(default=dict, blank=True, help_text="memory on its way back: scheduler.memory.Release")

    # below: written by the isolation controller, workers/control/isolate.py
    batch_calls = models.PositiveSmallIntegerField(
        null=True, help_text="of batch services at once, for the sake of a neighbour; empty: no limit"
    )
    batch_calls_at = models.DateTimeField(null=True, help_text="of its last change")
    batch_lowered_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("host__name", "index")

    def __str__(self) -> str:
        return f"{self.host}/{self.index}"

    @property
    def used_mib(self) -> int | None:
        """Measured; None: not known."""
        return None if self.free_mib is None else self.total_mib - self.free_mib


class ForeignUse(models.Model):
    """Somebody else has the card (or all cards of the host) for a while: nothing new is placed there meanwhile."""

    host = models.ForeignKey(Host, models.CASCADE, related_name="foreign_uses")
    card = models.ForeignKey(Card, models.CASCADE, null=True, blank=True, related_name="foreign_uses")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    note = models.CharField(max_length=120)

    class Meta:
        ordering = ("starts_at",)
        constraints = [
            models.CheckConstraint(
                name="foreign_use_ends_after_it_starts", condition=models.Q(ends_at__gt=models.F("starts_at"))
            )
        ]

    def __str__(self) -> str:
        return f"{self.card or self.host} {self.note}"
