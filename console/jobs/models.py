"""Work that lasts, and who leads: a job is a row with progress and cancel; the lease lets one control plan."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Job(models.Model):
    class State(models.TextChoices):
        WAITING = "waiting", _("等待")
        RUNNING = "running", _("进行中")
        DONE = "done", _("完成")
        FAILED = "failed", _("失败")
        CANCELLED = "cancelled", _("已取消")

    kind = models.CharField(max_length=40)
    arguments = models.JSONField(default=dict)
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    progress = models.FloatField(default=0.0)
    note = models.CharField(max_length=200, blank=True)
    result = models.JSONField(default=dict)
    cancel = models.BooleanField(default=False, help_text="somebody asked it to end")
    holder = models.CharField(max_length=80, blank=True)
    lease_until = models.DateTimeField(null=True)
    tries = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.kind} {self.state}"


class Lease(models.Model):
    """One planner at a time. The token fences: a holder that lost it can record nothing more."""

    name = models.CharField(max_length=20, primary_key=True)
    holder = models.CharField(max_length=80, blank=True)
    token = models.PositiveBigIntegerField(default=0)
    until = models.DateTimeField()
    route_version = models.PositiveBigIntegerField(
        default=0, help_text="raised when the set of routed replicas changes"
    )

    def __str__(self) -> str:
        return f"{self.name} {self.token}"


class Daily(models.Model):
    """When daily and weekly work was last done: an in-memory schedule forgets over a restart."""

    name = models.CharField(max_length=40, primary_key=True)
    done_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
