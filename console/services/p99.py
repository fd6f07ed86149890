"""P99 of a service as people read it: the figure, of what, over how many calls; unknown below enough of them."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from console.catalog.models import Service
from console.wire import Gateways, ServiceLatency
from scheduler.policy import Policy


@dataclass(frozen=True, slots=True)
class P99:
    """`ms` None: unknown. `over`: above the target that the service itself set."""

    ms: float | None
    detail: str
    over: bool = False


def p99_of(service: Service, gateways: Gateways, rules: Policy) -> P99:
    """Of the service's metric, hold excluded, over the last minutes of all gateways."""
    found = gateways.latencies.services.get(service.name, ServiceLatency())
    if found.p99_ms is not None:
        values = {"of": Service.Metric(service.metric).label, "n": f"{found.samples:,}"}
        detail = _("%(of)s，%(n)s 次调用") % values
    elif found.samples:
        detail = _("%(n)s 次调用，满 %(least)s 次才算") % {"n": found.samples, "least": rules.p99_samples}
    else:
        detail = _("近几分钟没有调用")
    over = service.p99_target_ms is not None and (found.p99_ms or 0.0) > service.p99_target_ms
    return P99(found.p99_ms, detail, over)
