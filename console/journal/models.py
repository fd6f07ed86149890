"""Why and what came of it: decisions with reason and numbers, and what hosts reported of each replica."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Decision(models.Model):
    """One thing the planner did, or wanted and was refused. Written once by recording a plan, never changed."""

    at = models.DateTimeField(db_index=True)
    verb = models.CharField(max_length=8)
    reason = models.CharField(max_length=16)
    service = models.ForeignKey("catalog.Service", models.SET_NULL, null=True, related_name="decisions")
    replica = models.ForeignKey("catalog.Replica", models.SET_NULL, null=True, related_name="decisions")
    card = models.ForeignKey("fleet.Card", models.SET_NULL, null=True, related_name="decisions")
    numbers = models.JSONField(default=dict)
    refusal = models.CharField(max_length=24, blank=True, help_text="why not; empty: it was done")
    fence = models.PositiveBigIntegerField(default=0, help_text="token of the lease under which it was recorded")

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.verb} {self.service_id} {self.reason} {self.refusal}"


class Advice(models.Model):
    """What the planner would do and the pool's mode does not let: one row as long as the wish stands.

    `subject` is a replica, or for a start the n-th copy of a service. In `suggest` a click approves it: the next plan
    that still wants it does it.
    """

    pool = models.ForeignKey("fleet.Pool", models.CASCADE, related_name="advice")
    subject = models.CharField(max_length=80)
    verb = models.CharField(max_length=8)
    reason = models.CharField(max_length=16)
    told = models.CharField(max_length=24, help_text="not_managed or awaiting_approval: what waiting callers hear")
    service = models.ForeignKey("catalog.Service", models.CASCADE, null=True, related_name="advice")
    replica = models.ForeignKey("catalog.Replica", models.CASCADE, null=True, related_name="advice")
    card = models.ForeignKey("fleet.Card", models.SET_NULL, null=True, related_name="advice")
    numbers = models.JSONField(default=dict)
    opened_at = models.DateTimeField()
    refreshed_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, help_text="done, or nobody wishes it any more")
    outcome = models.CharField(max_length=8, blank=True, help_text="done or gone; empty: it stands")
    # below: written by a person's click
    approved_by = models.ForeignKey("accounts.User", models.SET_NULL, null=True, related_name="+")
    approved_at = models.DateTimeField(null=True)
    approved_until = models.DateTimeField(null=True, help_text="not done by then it is asked anew")

    class Meta:
        ordering = ("-id",)
        constraints = [
            models.UniqueConstraint(
                fields=["pool", "subject", "verb", "reason"],
                condition=models.Q(closed_at=None),
                name="one_open_advice_each",
            )
        ]

    def __str__(self) -> str:
        return f"{self.verb} {self.subject} {self.reason} {self.outcome}"


class Notice(models.Model):
    """Something its people should know before it happens, or weigh: one row as long as it is so."""

    class Kind(models.TextChoices):
        RECLAIM = "reclaim", _("即将被收回")
        WATERLINE = "waterline", _("资源池水位高")
        THRASH = "thrash", _("来回换入换出")
        REGRET = "regret", _("收回得太早")
        TIERS = "tiers", _("档位门槛提议")
        WAITING = "waiting", _("申请在等决定")
        EXPIRY = "expiry", _("批准的快到期")

    kind = models.CharField(max_length=10, choices=Kind.choices)
    subject = models.CharField(max_length=80)
    service = models.ForeignKey("catalog.Service", models.CASCADE, null=True, related_name="notices")
    replica = models.ForeignKey("catalog.Replica", models.CASCADE, null=True, related_name="notices")
    pool = models.ForeignKey("fleet.Pool", models.CASCADE, null=True, related_name="notices")
    numbers = models.JSONField(default=dict)
    opened_at = models.DateTimeField()
    refreshed_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-id",)
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "subject"], condition=models.Q(closed_at=None), name="one_open_notice_each"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class ReclaimDay(models.Model):
    """What giving memory back cost a service on one day of site time."""

    day = models.DateField()
    service = models.ForeignKey("catalog.Service", models.CASCADE, related_name="reclaim_days")
    reclaims = models.PositiveIntegerField(default=0)
    harmful = models.PositiveIntegerField(default=0, help_text="calls that failed or passed their hold cap for it")
    regrets = models.PositiveIntegerField(default=0, help_text="cold starts too soon after one")

    class Meta:
        ordering = ("-day",)
        constraints = [models.UniqueConstraint(fields=["day", "service"], name="one_reclaim_day_each")]

    def __str__(self) -> str:
        return f"{self.day} {self.service_id}"


class Event(models.Model):
    """What became of a decision: a replica was seen in a new phase. Written by ingesting a report, never changed."""

    at = models.DateTimeField(db_index=True)
    phase = models.CharField(max_length=8, help_text="ready, asleep, stopped or failed")
    service = models.ForeignKey("catalog.Service", models.SET_NULL, null=True, related_name="events")
    replica = models.ForeignKey("catalog.Replica", models.SET_NULL, null=True, related_name="events")
    card = models.ForeignKey("fleet.Card", models.SET_NULL, null=True, related_name="events")
    seconds = models.FloatField(null=True, help_text="since it was wanted; of a start or wake as the host measured it")
    how = models.CharField(max_length=24, blank=True, help_text="start or wake; of a failure its type")
    text = models.CharField(max_length=200, blank=True, help_text="the engine's own words")

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.phase} {self.service_id} {self.how}"


class Change(models.Model):
    """What a person changed: who, when, and the fields that differ, before and after. Never changed itself."""

    at = models.DateTimeField(db_index=True)
    by = models.ForeignKey("accounts.User", models.SET_NULL, null=True, related_name="+")
    by_name = models.CharField(max_length=150, help_text="as they were called then")
    subject = models.CharField(max_length=80, help_text="name of what was changed")
    service = models.ForeignKey("catalog.Service", models.SET_NULL, null=True, related_name="changes")
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.by_name} {self.subject} {', '.join(self.after)}"
