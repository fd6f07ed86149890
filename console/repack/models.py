"""A proposal is numbered moves with what they gain; each move has a state of its own."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Proposal(models.Model):
    """Of one pool. Sizes are MiB; `free_mib` is the same before and after, for moving frees nothing."""

    class Method(models.TextChoices):
        HEURISTIC = "heuristic", _("启发式")
        EXACT = "exact", _("精确求解")

    pool = models.ForeignKey("fleet.Pool", models.CASCADE, related_name="proposals")
    at = models.DateTimeField()
    by = models.ForeignKey("accounts.User", models.SET_NULL, null=True, related_name="+", help_text="empty: nightly")
    job = models.ForeignKey("jobs.Job", models.SET_NULL, null=True, related_name="proposals")
    method = models.CharField(max_length=10, choices=Method.choices, default=Method.HEURISTIC)
    free_mib = models.PositiveBigIntegerField()
    stranded_before_mib = models.PositiveBigIntegerField()
    stranded_after_mib = models.PositiveBigIntegerField()
    empty_before = models.PositiveIntegerField()
    empty_after = models.PositiveIntegerField()
    until = models.DateTimeField(help_text="what has not begun by then lapses")
    closed_at = models.DateTimeField(null=True, help_text="no move is open any more")

    class Meta:
        ordering = ("-id",)
        constraints = [
            models.UniqueConstraint(
                fields=["pool"], condition=models.Q(closed_at=None), name="one_open_proposal_a_pool"
            )
        ]

    def __str__(self) -> str:
        return f"{self.pool_id} {self.at:%Y-%m-%d %H:%M}"

    @property
    def before_pct(self) -> float:
        return 100 * self.stranded_before_mib / self.free_mib if self.free_mib else 0.0

    @property
    def after_pct(self) -> float:
        return 100 * self.stranded_after_mib / self.free_mib if self.free_mib else 0.0


class Move(models.Model):
    """The copy of `replica` starts on `target`, and when it is ready the old one leaves `source`."""

    class Status(models.TextChoices):
        PROPOSED = "proposed", _("待定")
        APPROVED = "approved", _("已批准")
        RUNNING = "running", _("进行中")
        DONE = "done", _("完成")
        SKIPPED = "skipped", _("略过")
        FAILED = "failed", _("失败")

    OPEN = (Status.PROPOSED, Status.APPROVED, Status.RUNNING)

    proposal = models.ForeignKey(Proposal, models.CASCADE, related_name="moves")
    number = models.PositiveSmallIntegerField()
    service = models.ForeignKey("catalog.Service", models.CASCADE, related_name="+")
    replica = models.ForeignKey("catalog.Replica", models.SET_NULL, null=True, related_name="+")
    source = models.JSONField(help_text="card UUIDs")
    target = models.JSONField(help_text="card UUIDs")
    after_pct = models.FloatField(help_text="fragmentation of the pool once it is done")
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.PROPOSED)
    # below: written by a person's click
    decided_by = models.ForeignKey("accounts.User", models.SET_NULL, null=True, related_name="+")
    # below: written by recording plans
    copy = models.ForeignKey("catalog.Replica", models.SET_NULL, null=True, related_name="+")
    began_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    why = models.CharField(max_length=24, blank=True, help_text="code of the refusal that ended it")

    class Meta:
        ordering = ("number",)
        constraints = [models.UniqueConstraint(fields=["proposal", "number"], name="one_move_a_number")]
        indexes = [models.Index(fields=["status"])]

    def __str__(self) -> str:
        return f"{self.proposal_id}.{self.number} {self.status}"
