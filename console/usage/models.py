"""How much: calls by the hour, and how far each gateway's records have been taken in."""

from __future__ import annotations

from django.db import models


class HourlyCalls(models.Model):
    """Calls of one service by one caller's key in one hour (UTC)."""

    hour = models.DateTimeField()
    service = models.CharField(max_length=50)
    tenant = models.CharField(max_length=50, help_text="the caller's")
    key_id = models.PositiveBigIntegerField()
    calls = models.PositiveIntegerField(default=0)
    ok = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    abandoned = models.PositiveIntegerField(default=0)
    refused = models.PositiveIntegerField(default=0)
    cut = models.PositiveIntegerField(default=0)
    cold = models.PositiveIntegerField(default=0, help_text="calls that had to wait for a load or a wake")
    capped = models.PositiveIntegerField(default=0, help_text="refused after they were held as long as calls may be")
    total_ms = models.PositiveBigIntegerField(default=0, help_text="of calls that ended well, hold excluded")
    hold_ms = models.PositiveBigIntegerField(default=0)
    hold_max_ms = models.PositiveIntegerField(default=0, help_text="the longest that one of them was held")
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    generated_tokens = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["hour", "service", "tenant", "key_id"], name="one_row_an_hour")]
        indexes = [
            models.Index(fields=["tenant", "hour"]),
            models.Index(fields=["service", "hour"], name="hours_by_service"),
        ]

    def __str__(self) -> str:
        return f"{self.hour:%m-%d %H} {self.service} {self.calls}"


class Session(models.Model):
    """Calls of a service without a longer pause: what the forecast knows of minutes. `hit`: its first did not wait."""

    service = models.CharField(max_length=50)
    start = models.DateTimeField()
    last = models.DateTimeField()
    hit = models.BooleanField(default=True)

    class Meta:
        indexes = [models.Index(fields=["service", "last"], name="session_by_service")]

    def __str__(self) -> str:
        return f"{self.service} {self.start:%m-%d %H:%M}"


class DailyForecast(models.Model):
    """What came of a day's forecasts of one service: sessions and those that did not wait, preloads and their use."""

    day = models.DateField(help_text="of site time")
    service = models.CharField(max_length=50)
    sessions = models.PositiveIntegerField(default=0)
    hits = models.PositiveIntegerField(default=0)
    preloads = models.PositiveIntegerField(default=0)
    used = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["day", "service"], name="one_forecast_row_a_day")]

    def __str__(self) -> str:
        return f"{self.day} {self.service} {self.hits}/{self.sessions}"


class UsageCursor(models.Model):
    """The highest record number of a gateway that is counted in `HourlyCalls`."""

    gateway = models.CharField(max_length=60, primary_key=True)
    seq = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.gateway} {self.seq}"
