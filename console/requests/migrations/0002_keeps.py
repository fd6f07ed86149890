"""What was asked to be kept before there were requests becomes requests, each in the state that it was in."""

from django.db import migrations
from django.utils import timezone


def carry_over(apps, schema_editor):
    Keep, Request = apps.get_model("catalog", "Keep"), apps.get_model("requests", "Request")
    now = timezone.now()
    for keep in Keep.objects.select_related("service").exclude(asked_by=None).order_by("pk"):
        Request.objects.create(**as_request(keep, now))


def as_request(keep, now):
    own = keep.decided_by_id in (None, keep.asked_by_id)  # who may give orders granted it themselves
    decided = None if own else keep.decided_by_id
    fields = {
        "kind": "whitelist",
        "tenant_id": keep.service.tenant_id,
        "service_id": keep.service_id,
        "subject": keep.service.label,
        "wanted": {"service": keep.service.name},
        "why": keep.why,
        "until": keep.until,
        "asked_by_id": keep.asked_by_id,
        "asked_at": keep.asked_at,
        "ended_at": keep.ended_at,
        "ended_by_id": keep.ended_by_id,
    }
    if keep.granted is None:
        over = "withdrawn" if keep.ended_at is not None else "lapsed" if keep.until <= now else "open"
        return fields | {"state": over}
    if not keep.granted:
        return fields | {"state": "rejected", "refused_by_id": decided, "refused_at": keep.decided_at}
    fields |= {"first_by_id": decided, "first_at": None if own else keep.decided_at, "urgent": own}
    fields |= {"applied_at": keep.decided_at}
    if keep.ended_at is not None:
        return fields | {"state": "ended", "end_why": "revoked"}
    if keep.until <= now:
        return fields | {"state": "ended", "end_why": "until", "ended_at": keep.until}
    return fields | {"state": "in_force"}


class Migration(migrations.Migration):
    dependencies = [
        ("requests", "0001_first"),
        ("catalog", "0013_batch_hours"),
    ]

    operations = [
        migrations.RunPython(carry_over, migrations.RunPython.noop),
    ]
