"""Requests, and what was said and done about each.

Two approvers at most, so both stand in the row of the request itself: the database can compare them with who asked.
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


class State(models.TextChoices):
    OPEN = "open", pgettext_lazy("request", "待审")
    RETURNED = "returned", pgettext_lazy("request", "退回修改")
    APPROVED = "approved", pgettext_lazy("request", "已批准，未到时")
    IN_FORCE = "in_force", pgettext_lazy("request", "生效")
    REJECTED = "rejected", pgettext_lazy("request", "未批准")
    WITHDRAWN = "withdrawn", pgettext_lazy("request", "已撤回")
    LAPSED = "lapsed", pgettext_lazy("request", "过期未决")
    FAILED = "failed", pgettext_lazy("request", "批准了，没能生效")
    ENDED = "ended", pgettext_lazy("request", "已结束")


#: States from which nothing happens any more.
OVER = frozenset({State.REJECTED, State.WITHDRAWN, State.LAPSED, State.FAILED, State.ENDED})


class Ended(models.TextChoices):
    """Why something that was in force is not any more."""

    UNTIL = "until", _("到期")
    REVOKED = "revoked", _("有人收回")
    REPLACED = "replaced", _("被后来的取代")
    UNREVIEWED = "unreviewed", _("紧急生效后没有在限期内复核")
    REFUSED = "refused", _("紧急生效后复核不同意")


class Request(models.Model):
    """Somebody asks that something be so, from a time until a time. Every step is a conditional update of `version`."""

    kind = models.CharField(max_length=12, help_text="key of console.requests.kinds")
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    version = models.PositiveIntegerField(default=1, help_text="counts every change of this row: a decision names one")
    tenant = models.ForeignKey(
        "accounts.Tenant",
        models.CASCADE,
        null=True,
        related_name="requests",
        help_text="whose; empty: the site's",
    )
    service = models.ForeignKey("catalog.Service", models.SET_NULL, null=True, related_name="requests")
    subject = models.CharField(max_length=120, help_text="what it is about, as it was called then")
    wanted = models.JSONField(default=dict, help_text="what the kind asks for")
    why = models.CharField(max_length=400)
    starts_at = models.DateTimeField(null=True, help_text="empty: as soon as it is approved")
    until = models.DateTimeField(null=True, help_text="empty: until somebody takes it back")
    asked_by = models.ForeignKey("accounts.User", models.PROTECT, related_name="+")
    asked_at = models.DateTimeField(db_index=True)
    handed_to = models.ForeignKey(
        "accounts.User", models.SET_NULL, null=True, related_name="+", help_text="who is to decide; empty: any approver"
    )
    urgent = models.BooleanField(default=False, help_text="break-glass: in force at once, reviewed afterwards")
    review_by = models.DateTimeField(null=True, help_text="an urgent one that nobody approved by then ends")
    # the decision
    steps = models.PositiveSmallIntegerField(default=1, help_text="approvers it takes")
    first_by = models.ForeignKey("accounts.User", models.PROTECT, null=True, related_name="+")
    first_at = models.DateTimeField(null=True)
    second_by = models.ForeignKey("accounts.User", models.PROTECT, null=True, related_name="+")
    second_at = models.DateTimeField(null=True)
    refused_by = models.ForeignKey("accounts.User", models.PROTECT, null=True, related_name="+")
    refused_at = models.DateTimeField(null=True)
    conditions = models.CharField(max_length=400, blank=True, help_text="under which it was approved")
    reason = models.CharField(max_length=400, blank=True, help_text="of a rejection, a return, or a failure")
    consequences = models.JSONField(null=True, help_text="what the last decider saw it would do: frozen then")
    # what came of it
    applied_at = models.DateTimeField(null=True)
    undo = models.JSONField(default=dict, help_text="what its kind needs to take it back")
    ended_at = models.DateTimeField(null=True)
    ended_by = models.ForeignKey("accounts.User", models.SET_NULL, null=True, related_name="+")
    end_why = models.CharField(max_length=10, choices=Ended.choices, blank=True)

    class Meta:
        ordering = ("-id",)
        indexes = [models.Index(fields=["state", "until"]), models.Index(fields=["service", "kind", "state"])]
        constraints = [
            models.CheckConstraint(
                name="nobody_decides_their_own",
                condition=~Q(first_by=F("asked_by")) & ~Q(second_by=F("asked_by")) & ~Q(refused_by=F("asked_by")),
            ),
            models.CheckConstraint(
                name="two_approvers_are_two_people",
                condition=Q(second_by=None) | (Q(first_by__isnull=False) & ~Q(second_by=F("first_by"))),
            ),
            models.CheckConstraint(
                name="in_force_by_its_approvers_or_urgent",
                condition=~Q(state__in=["approved", "in_force"])
                | Q(urgent=True)
                | Q(steps=1, first_by__isnull=False)
                | Q(steps=2, second_by__isnull=False),
            ),
            models.CheckConstraint(name="one_or_two_approvers", condition=Q(steps__in=[1, 2])),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject} {self.state}"

    @property
    def over(self) -> bool:
        return self.state in OVER

    @property
    def unreviewed(self) -> bool:
        """In force at once, and nobody has looked yet."""
        return self.urgent and self.state == State.IN_FORCE and self.first_by_id is None

    @property
    def decided_by(self) -> Any:
        """The last who agreed, or who refused; None: nobody yet."""
        return self.refused_by or self.second_by or self.first_by

    @property
    def decided_at(self) -> Any:
        return self.refused_at or self.second_at or self.first_at

    @property
    def deciders(self) -> set[int]:
        return {pk for pk in (self.first_by_id, self.second_by_id, self.refused_by_id) if pk is not None}


class Entry(models.Model):
    """One thing that was said or done about a request. Written once, never changed."""

    class Act(models.TextChoices):
        ASKED = "asked", _("提出")
        SAID = "said", _("说")
        CHANGED = "changed", pgettext_lazy("record", "改后再提")
        RETURNED = "returned", pgettext_lazy("record", "退回修改")
        FIRST = "first", _("第一人同意，等第二人")
        APPROVED = "approved", pgettext_lazy("record", "批准")
        REJECTED = "rejected", pgettext_lazy("record", "不批准")
        WITHDRAWN = "withdrawn", pgettext_lazy("record", "撤回")
        HANDED = "handed", pgettext_lazy("record", "转给")
        ATTACHED = "attached", _("附上")
        DETACHED = "detached", _("拿掉附件")
        REMINDED = "reminded", pgettext_lazy("record", "催办")
        URGENT = "urgent", _("紧急生效")
        REVIEWED = "reviewed", _("复核同意")
        IN_FORCE = "in_force", pgettext_lazy("record", "生效")
        COLLECTED = "collected", _("领取")
        FAILED = "failed", _("没能生效")
        LAPSED = "lapsed", _("过期，没有决定")
        ENDED = "ended", _("结束")

    request = models.ForeignKey(Request, models.CASCADE, related_name="entries")
    at = models.DateTimeField()
    by = models.ForeignKey("accounts.User", models.SET_NULL, null=True, related_name="+", help_text="empty: by itself")
    act = models.CharField(max_length=10, choices=Act.choices)
    text = models.CharField(max_length=1000, blank=True)
    numbers = models.JSONField(default=dict, help_text="what goes with it: whom to, until when, from where")

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.request_id} {self.act}"


class Attachment(models.Model):
    """A file that goes with a request. Its bytes lie under the home folder by a random name."""

    request = models.ForeignKey(Request, models.CASCADE, related_name="attachments")
    name = models.CharField(max_length=120, help_text="as it was called; never a path")
    kind = models.CharField(max_length=100, help_text="its type, as its bytes say")
    nbytes = models.PositiveIntegerField()
    digest = models.CharField(max_length=64, help_text="SHA-256 of its bytes")
    stored = models.CharField(max_length=32, unique=True, help_text="its random name on the disk")
    by = models.ForeignKey("accounts.User", models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField()

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return self.name


class Draft(models.Model):
    """What a person typed into a form and did not send; theirs alone, of each kind one."""

    person = models.ForeignKey("accounts.User", models.CASCADE, related_name="+")
    kind = models.CharField(max_length=12, help_text="key of console.requests.kinds")
    fields = models.JSONField(default=dict, help_text="name: values, as a browser sends them")
    saved_at = models.DateTimeField(db_index=True)
    closed_at = models.DateTimeField(
        null=True, help_text="sent or thrown away: what a page opened before that still saves is late"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["person", "kind"], name="one_draft_a_person_and_kind")]

    def __str__(self) -> str:
        return f"{self.kind} {self.person_id}"
