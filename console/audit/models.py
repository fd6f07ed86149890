"""The audit's one table. Rows stand alone: no foreign key, so that nothing that ends can take a row with it."""

from __future__ import annotations

from datetime import timedelta

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.utils.translation import gettext_lazy as _

from console.accounts.models import Role
from console.audit.words import word

#: The database itself refuses to delete what is younger (`append_only.py`); logs are kept at least so long.
LEAST = timedelta(days=180)


class Entry(models.Model):
    """One act of one person, or one try that was refused."""

    class Outcome(models.TextChoices):
        DONE = "done", _("已做")
        DENIED = "denied", _("被拒绝")

    at = models.DateTimeField(db_index=True)
    username = models.CharField(max_length=150, db_index=True, help_text="as typed, where nobody signed in")
    full_name = models.CharField(max_length=60, blank=True)
    role = models.CharField(max_length=16, blank=True, help_text="at that time")
    address = models.GenericIPAddressField(null=True, help_text="where the request came from")
    act = models.CharField(max_length=40, db_index=True, help_text="name of the address, or signed_in and the like")
    subject = models.CharField(max_length=120, blank=True, help_text="as it was called then")
    path = models.CharField(max_length=200, blank=True)
    outcome = models.CharField(max_length=8, choices=Outcome.choices, default=Outcome.DONE)
    changes = models.JSONField(
        default=list, encoder=DjangoJSONEncoder, help_text="[[what, which, field, before, after], …]"
    )

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.username} {self.act} {self.subject}"

    @property
    def word(self) -> str:
        return word(self.act)

    @property
    def role_word(self) -> str:
        """As roles are called now; one that is no more, as it was stored."""
        return str(dict(Role.choices).get(self.role, self.role))
