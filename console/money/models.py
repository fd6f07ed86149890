"""What it costs: who held how much of which card when, hours booked from that, prices, budgets, advice, symptoms.

Names, not keys, in all that is booked: a bill outlives the service, the card and the company it was for.
"""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduler.advisor import Mode
from scheduler.call_budget import Unit
from scheduler.cost import Part


class Holding(models.Model):
    """One replica held so much of one card for a while. Written by control as it happens; `ended` empty: still."""

    replica = models.PositiveBigIntegerField()
    card = models.CharField(max_length=80, help_text="UUID")
    service = models.CharField(max_length=50)
    tenant = models.CharField(max_length=50)
    began = models.DateTimeField()
    ended = models.DateTimeField(null=True)
    weights_mib = models.PositiveIntegerField(default=0)
    kv_mib = models.PositiveIntegerField(default=0)
    headroom_mib = models.PositiveIntegerField(default=0)
    overhead_mib = models.PositiveIntegerField(default=0)
    residue_mib = models.PositiveIntegerField(default=0)
    host_mib = models.PositiveIntegerField(default=0, help_text="weights of a sleeper, in host memory")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["replica", "card"], condition=models.Q(ended=None), name="one_open_holding_each"
            )
        ]
        indexes = [models.Index(fields=["ended"]), models.Index(fields=["began"])]

    def __str__(self) -> str:
        return f"{self.service}#{self.replica} {self.card}"


class CardHour(models.Model):
    """One card in one hour (UTC): sums of its samples, and once it is booked the rows its price was split into."""

    card = models.CharField(max_length=80, help_text="UUID")
    hour = models.DateTimeField()
    total_mib = models.PositiveIntegerField(default=0)
    reserved_mib = models.PositiveIntegerField(default=0)
    samples = models.PositiveIntegerField(default=0, help_text="in which the card could be measured")
    used_mib = models.PositiveBigIntegerField(default=0, help_text="sum over samples of what its driver says is taken")
    external_mib = models.PositiveBigIntegerField(default=0, help_text="sum over samples of what others took")
    util_samples = models.PositiveIntegerField(default=0)
    util_pct = models.PositiveBigIntegerField(default=0, help_text="sum over its samples")
    replicas = models.JSONField(default=dict, help_text="replica: [samples, sum of measured MiB]")
    # below: written once, by booking
    booked_at = models.DateTimeField(null=True)
    price_fen = models.PositiveIntegerField(null=True)
    rows = models.JSONField(default=list, help_text="[part, tenant, service, replica, MiB·s, fen]")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["card", "hour"], name="one_row_a_card_and_hour")]
        indexes = [models.Index(fields=["hour"])]

    def __str__(self) -> str:
        return f"{self.card} {self.hour:%m-%d %H}"


class PoolHour(models.Model):
    """How often in an hour (UTC) a wish in the pool was refused or waited for want of memory."""

    pool = models.CharField(max_length=50)
    hour = models.DateTimeField()
    samples = models.PositiveIntegerField(default=0)
    contended = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pool", "hour"], name="one_row_a_pool_and_hour")]

    def __str__(self) -> str:
        return f"{self.pool} {self.hour:%m-%d %H}"


class Bill(models.TextChoices):
    CARD = "card", _("卡时")
    HOST = "host", _("主机内存")


class CostDay(models.Model):
    """Booked hours of one day of site time, summed: what a tenant pays for one part of one service on one card."""

    day = models.DateField()
    bill = models.CharField(max_length=4, choices=Bill.choices, default=Bill.CARD)
    tenant = models.CharField(max_length=50, blank=True, help_text="who pays; empty: the centre")
    service = models.CharField(max_length=50, blank=True)
    card = models.CharField(max_length=80, help_text="UUID")
    part = models.CharField(max_length=10, choices=[(part.value, part.value) for part in Part])
    mib_s = models.PositiveBigIntegerField(default=0)
    fen = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["day", "bill", "tenant", "service", "card", "part"], name="one_row_a_day_and_part"
            )
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.tenant} {self.service} {self.part} {self.fen}"


class KeyCost(models.Model):
    """What calls with one key took of their services' cost in a month of site time."""

    month = models.DateField(help_text="its first day")
    tenant = models.CharField(max_length=50)
    key_id = models.PositiveBigIntegerField()
    fen = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["month", "tenant", "key_id"], name="one_row_a_key_and_month")]

    def __str__(self) -> str:
        return f"{self.month} {self.key_id} {self.fen}"


class Price(models.Model):
    """Fen an hour of a card class from an hour on. One that needs a second person counts once it is approved."""

    card_class = models.CharField(max_length=40)
    fen_h = models.PositiveIntegerField()
    starts_at = models.DateTimeField()
    needs_second = models.BooleanField(default=False, help_text="changes by more than policy.price_jump_factor")
    made_at = models.DateTimeField(auto_now_add=True)
    made_by = models.ForeignKey("accounts.User", models.SET_NULL, null=True, related_name="+")
    approved_by = models.ForeignKey("accounts.User", models.SET_NULL, null=True, blank=True, related_name="+")
    approved_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("card_class", "starts_at", "id")

    def __str__(self) -> str:
        return f"{self.card_class} {self.fen_h} {self.starts_at:%Y-%m-%d %H}"

    @property
    def counts(self) -> bool:
        return not self.needs_second or self.approved_at is not None


class CardBudget(models.Model):
    """Yuan a month (kept in fen) that a tenant, or one of its services, may cost. The figures are of `month`."""

    tenant = models.ForeignKey("accounts.Tenant", models.CASCADE, related_name="card_budgets")
    service = models.ForeignKey(
        "catalog.Service", models.CASCADE, null=True, blank=True, related_name="card_budgets", help_text="empty: all"
    )
    limit_fen = models.PositiveBigIntegerField()
    # below: written by booking
    month = models.DateField(null=True, help_text="its first day, in site time")
    spent_fen = models.PositiveBigIntegerField(default=0)
    forecast_fen = models.PositiveBigIntegerField(null=True, help_text="at the end of the month")
    as_of = models.DateTimeField(null=True, help_text="end of the last booked hour")
    told = models.CharField(max_length=8, blank=True, help_text="what its owner was told this month: warned, spent")

    class Meta:
        ordering = ("tenant__ordinal", "service__name")
        constraints = [
            models.UniqueConstraint(fields=["tenant", "service"], name="one_card_budget_a_service"),
            models.UniqueConstraint(
                fields=["tenant"], condition=models.Q(service=None), name="one_card_budget_a_tenant"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.service_id} {self.limit_fen}"


class CallBudget(models.Model):
    """Tokens or fen a month that calls of a tenant, or with one of its keys, may use: then they are refused."""

    tenant = models.ForeignKey("accounts.Tenant", models.CASCADE, related_name="call_budgets")
    key = models.ForeignKey("accounts.ApiKey", models.CASCADE, null=True, blank=True, help_text="empty: all its keys")
    unit = models.CharField(
        max_length=6, choices=[(Unit.TOKENS.value, "token"), (Unit.FEN.value, _("元"))], default=Unit.TOKENS
    )
    limit = models.PositiveBigIntegerField(help_text="in tokens, or in fen")
    # below: written by control, from the hours' counts
    used = models.PositiveBigIntegerField(default=0)
    counted = models.PositiveBigIntegerField(default=0, help_text="of it, what hours before `counted_until` add up to")
    counted_until = models.DateTimeField(null=True)
    resets_at = models.DateTimeField(null=True, help_text="end of the month that is counted")

    class Meta:
        ordering = ("tenant__ordinal", "key_id")
        constraints = [
            models.UniqueConstraint(fields=["tenant", "key", "unit"], name="one_call_budget_a_key"),
            models.UniqueConstraint(
                fields=["tenant", "unit"], condition=models.Q(key=None), name="one_call_budget_a_tenant"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.key_id} {self.limit} {self.unit}"


class Residency(models.Model):
    """Resident, warm or on demand: what the advisor says of a service, with both prices of each way."""

    service = models.OneToOneField("catalog.Service", models.CASCADE, related_name="residency")
    mode = models.CharField(max_length=8, choices=[(mode.value, mode.value) for mode in Mode])
    why = models.CharField(max_length=16, blank=True, help_text="the boundary case that decides; empty: the sums")
    numbers = models.JSONField(default=dict)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.service_id} {self.mode}"


class Symptom(models.Model):
    """Something that is wrong with the way memory is used: kept while it lasts, closed when it is gone."""

    kind = models.CharField(max_length=16)
    service = models.ForeignKey("catalog.Service", models.CASCADE, null=True, related_name="symptoms")
    pool = models.ForeignKey("fleet.Pool", models.CASCADE, null=True, related_name="symptoms")
    numbers = models.JSONField(default=dict)
    others = models.JSONField(default=list, help_text="[service, MiB] it names besides its own")
    remedies = models.JSONField(default=list, help_text="[cure, service, replica]")
    opened_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, db_index=True)

    class Meta:
        ordering = ("-opened_at", "-id")
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "service"], condition=models.Q(closed_at=None), name="one_open_symptom_a_service"
            ),
            models.UniqueConstraint(
                fields=["kind", "pool"], condition=models.Q(closed_at=None), name="one_open_symptom_a_pool"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.service_id or self.pool_id}"
