"""Values of `scheduler.policy.Policy` that somebody set: what is in force, and every version that ever was."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


class Layer(models.TextChoices):
    GROUP = "group", _("集团")
    POOL = "pool", _("资源池")
    SERVICE = "service", pgettext_lazy("one", "业务")


class PolicyValue(models.Model):
    """One value in force; what is not here comes from the wider layer, at last from the default.

    Written by `change.apply` alone.
    """

    layer = models.CharField(max_length=8, choices=Layer.choices, default=Layer.GROUP)
    subject = models.CharField(max_length=80, blank=True, help_text="name of the pool or service; empty: the group")
    name = models.CharField(max_length=40)
    value = models.FloatField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["layer", "subject", "name"], name="one_value_each")]

    def __str__(self) -> str:
        return f"{self.layer} {self.subject} {self.name}={self.value}"


class PolicyVersion(models.Model):
    """One change of one layer: all values it sets from then on, and those it set before.

    In force from `effective_at`, once `applied_at` is set; one that waits can be withdrawn.
    """

    layer = models.CharField(max_length=8, choices=Layer.choices)
    subject = models.CharField(max_length=80, blank=True)
    values = models.JSONField(default=dict, help_text="all that the layer sets, by name")
    changes = models.JSONField(default=dict, help_text="name: [before, after]; null: not set at this layer")
    note = models.CharField(max_length=200, help_text="why")
    by = models.ForeignKey("accounts.User", models.SET_NULL, null=True, related_name="+")
    by_name = models.CharField(max_length=150, help_text="as they were called then")
    at = models.DateTimeField(db_index=True)
    effective_at = models.DateTimeField()
    applied_at = models.DateTimeField(null=True)
    withdrawn_at = models.DateTimeField(null=True)
    back_to = models.ForeignKey("self", models.SET_NULL, null=True, related_name="+", help_text="a roll-back to it")

    class Meta:
        ordering = ("-id",)
        indexes = [models.Index(fields=["layer", "subject"])]
        constraints = [
            models.CheckConstraint(name="withdrawn_or_applied", condition=Q(applied_at=None) | Q(withdrawn_at=None))
        ]

    def __str__(self) -> str:
        return f"{self.pk} {self.layer} {self.subject}"

    @property
    def waits(self) -> bool:
        return self.applied_at is None and self.withdrawn_at is None
