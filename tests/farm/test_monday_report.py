"""S04 on the running farm: rows of the past make its periodic minute come soon, all else is real."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from tests.farm.corner import Corner
from tests.farm.harness import Farm, wait_for
from tests.farm.streams import Caller
from tests.farm.watcher import Watcher

pytestmark = [pytest.mark.farm, pytest.mark.timeout(400)]

AHEAD_S = 50  # at least, until the minute: a load of 4 s, 20 s of lead, and a slow machine
#: Five weekly runs at that minute, as counting usage would have written them; then the forecast is made anew.
_PAST = """
from datetime import timedelta
from console.catalog.models import Forecast
from console.state import moment
from console.usage.models import Session
for week in range(1, 6):
    start = moment({at}) - timedelta(weeks=week)
    Session.objects.create(service='report', start=start, last=start + timedelta(minutes=5))
Forecast.objects.filter(service__name='report').delete()
"""


@pytest.fixture
def corner(farm: Farm, watched: Watcher) -> Iterator[Corner]:
    made = Corner(farm, {"report": 50, "other": 50})
    farm.policy(preload_lead_s=20, min_loaded_s=1)
    yield made
    farm.django(
        "from console.usage.models import DailyForecast, Session\n"
        "for rows in (DailyForecast, Session): rows.objects.filter(service='report').delete()"
    )


def one(farm: Farm, query: str) -> tuple[object, ...]:
    return (farm.rows(query) or [()])[0]


def judged(farm: Farm) -> tuple[object, ...]:
    return one(farm, "select sessions, hits, preloads, used from usage_dailyforecast where service = 'report'")


def noticed(farm: Farm) -> bool:
    copies = ",".join(str(pk) for pk, _, _ in farm.replicas("report")) or "0"
    query = f"select count(*) from catalog_replica where drain_at is not null and id in ({copies})"
    return bool(one(farm, query)[0])


def whitelist(farm: Farm) -> None:
    farm.django(
        "from datetime import timedelta\nfrom django.utils import timezone\n"
        "from console.catalog.models import Service\n"
        "until = timezone.now() + timedelta(hours=1)\n"
        "Service.objects.filter(name='report').update(whitelisted_until=until)"
    )


def test_the_report_is_ready_before_its_minute_and_stays_for_who_needs_it(corner: Corner) -> None:
    farm = corner.farm
    at = (int(time.time()) + AHEAD_S) // 60 * 60 + 60
    farm.django(_PAST.format(at=at))

    wait_for("ready", lambda: farm.replicas("report"), AHEAD_S + 60)
    assert time.time() < at
    verb, reason, numbers = one(
        farm,
        "select d.verb, d.reason, d.numbers from journal_decision d join catalog_service s on s.id = d.service_id"
        " where s.name = 'report' and d.refusal = '' order by d.id limit 1",
    )
    assert (verb, reason) == ("start", "forecast")
    assert (json.loads(str(numbers))["expected_at"], json.loads(str(numbers))["rule"]) == (at, "periodic")

    wait_for("its minute", lambda: time.time() >= at, 120)
    reply = farm.ask("report")
    assert reply.status_code == 200, reply.text
    assert int(reply.headers.get("x-gongka-hold-ms", "0")) < 2000
    wait_for("a hit, and a preload of use", lambda: judged(farm) == (1, 1, 1, 1), 60)

    # given notice, a call in the grace calls that off, and is in flight past what was the deadline
    farm.policy(idle_unload_s=2, grace_s=20, half_empty_pct=0)
    wait_for("notice", lambda: noticed(farm), 90)
    deadline = time.time() + 20
    stream = Caller(farm, "report", max_tokens=900)
    wait_for("the notice is taken back", lambda: not noticed(farm) and farm.replicas("report"), 20)
    wait_for("the deadline", lambda: time.time() > deadline or stream.done, 40)
    assert farm.replicas("report")
    assert stream.join().whole, stream.error

    # on the whitelist it goes for nobody
    whitelist(farm)
    corner.rest("report")
    refused = farm.ask("other")
    assert refused.status_code == 503, refused.text
    assert refused.json()["error"]["code"] == "no_capacity"
    assert farm.replicas("report")
    assert not noticed(farm)
