"""What: models, the services that offer them, and their replicas."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from console.workdays import valid_hours
from scheduler.world import Act, Phase, Profile, Tier, Want

#: Tasks whose answers come token by token.
GENERATING = frozenset({"chat", "completion"})


def choices(enum: type) -> list[tuple[str, str]]:
    return [(str(member), str(member)) for member in enum]  # type: ignore[attr-defined]


class Origin(models.TextChoices):
    """Where a number of a model came from."""

    READ = "read", _("读自权重")
    CATALOGUE = "catalogue", _("随附目录")
    HAND = "hand", _("人填的")


class Model(models.Model):
    """A catalogue entry: shape and location of weights."""

    slug = models.CharField(max_length=80, unique=True)
    name = models.CharField(max_length=120)
    task = models.CharField(max_length=20, default="chat")
    weights = models.CharField(max_length=200, help_text="path under the host's weights root")
    weights_mib = models.PositiveIntegerField()
    kv_bytes_per_token = models.PositiveIntegerField()
    max_context = models.PositiveIntegerField()
    min_compute_cap = models.FloatField(default=8.0, help_text="of its dtype: bf16 8.0, fp8 8.9")
    shards = models.PositiveSmallIntegerField(
        default=1, help_text="files of its weights: read side by side where local"
    )
    shape = models.JSONField(default=dict, blank=True, help_text="layers, heads, precision, as its files say")
    origins = models.JSONField(
        default=dict,
        blank=True,
        help_text="field: Origin of its number; not there: nobody wrote it down",
    )
    read_at = models.DateTimeField(null=True, blank=True, help_text="when its files were last read")

    def __str__(self) -> str:
        return self.name


class Service(models.Model):
    """A model offered under a name, owned by one tenant."""

    class Audience(models.TextChoices):
        OWN = "own", _("本公司")
        NAMED = "named", _("指定公司")
        GROUP = "group", _("全集团")

    class Waiter(models.TextChoices):
        PERSON = "person", _("有人在等")
        BACKGROUND = "background", _("后台")
        TIMER = "timer", _("定时")

    class Metric(models.TextChoices):
        TTFT = "ttft", _("首 Token 时间")
        TPOT = "tpot", _("每 Token 时间")
        TOTAL = "total", _("总时间")

    name = models.SlugField(unique=True, help_text="callers put it in the OpenAI model field")
    label = models.CharField(max_length=60)
    tenant = models.ForeignKey("accounts.Tenant", models.PROTECT, related_name="services")
    model = models.ForeignKey(Model, models.PROTECT, related_name="services")
    audience = models.CharField(max_length=8, choices=Audience.choices, default=Audience.OWN)
    audience_tenants = models.ManyToManyField("accounts.Tenant", blank=True, related_name="+")
    profile = models.CharField(max_length=8, choices=choices(Profile), default=Profile.LOWFREQ)
    tier = models.CharField(max_length=8, choices=choices(Tier), default=Tier.WARM)
    tier_fixed = models.BooleanField(default=False, help_text="a person set the tier: it is not recomputed from calls")
    created_at = models.DateTimeField(default=timezone.now, help_text="a service younger than a week is tiered nightly")
    priority = models.PositiveSmallIntegerField(default=50, validators=[MaxValueValidator(100)])
    waiter = models.CharField(max_length=12, choices=Waiter.choices, default=Waiter.PERSON)
    # the claim of one replica
    weights_mib = models.PositiveIntegerField()
    kv_cap_mib = models.PositiveIntegerField()
    headroom_mib = models.PositiveIntegerField()
    overhead_mib = models.PositiveIntegerField(null=True, blank=True, help_text="empty: the policy's default")
    cards_per_replica = models.PositiveSmallIntegerField(
        default=1, validators=[MinValueValidator(1)], help_text="tensor parallel; the claim is that of each card"
    )
    max_model_len = models.PositiveIntegerField(default=8192)
    max_num_seqs = models.PositiveIntegerField(default=16)
    min_replicas = models.PositiveSmallIntegerField(default=0)
    max_replicas = models.PositiveSmallIntegerField(default=1)
    pools = models.ManyToManyField("fleet.Pool", blank=True, help_text="empty: any")
    card_classes = models.JSONField(default=list, blank=True)
    first_token_s = models.FloatField(null=True, blank=True)
    p99_metric = models.CharField(max_length=8, choices=Metric.choices, blank=True, help_text="empty: by its task")
    p99_target_ms = models.PositiveIntegerField(null=True, blank=True, help_text="empty: the policy's")
    hold_cap_s = models.PositiveSmallIntegerField(null=True, blank=True)
    can_sleep = models.BooleanField(default=True)
    whitelisted_until = models.DateTimeField(null=True, blank=True)
    resident_hours = models.JSONField(
        default=list,
        blank=True,
        validators=[valid_hours],
        help_text='[{"days": "workday", "from": "08:00", "to": "18:00"}], site time: always ready meanwhile',
    )
    batch_hours = models.JSONField(
        default=list,
        blank=True,
        validators=[valid_hours],
        help_text="as resident_hours: when a batch service runs freely; empty: the policy's window",
    )
    slice_required = models.BooleanField(default=False, help_text="only on hardware slices: nobody else on its chip")
    # how long a call may be, in tokens; empty: as the engine can
    max_prompt_tokens = models.PositiveIntegerField(null=True, blank=True)
    max_total_tokens = models.PositiveIntegerField(null=True, blank=True, help_text="prompt and answer")
    # calls of at least so many tokens go another way: to another service, or to a share of the replicas
    long_from_tokens = models.PositiveIntegerField(null=True, blank=True, help_text="empty: no call is long")
    long_lane = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="+")
    long_share_pct = models.PositiveSmallIntegerField(default=0, validators=[MaxValueValidator(90)])
    fallback = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="+")
    starts_28d = models.PositiveIntegerField(default=0, help_text="copies started of late; counted by control")
    # below: written by recording plans
    wished_at = models.DateTimeField(null=True, blank=True, help_text="somebody asked for it to be ready (button, API)")
    last_reclaimed_at = models.DateTimeField(null=True, blank=True)
    let_go_at = models.DateTimeField(null=True, blank=True, help_text="a person drained or stopped a copy by button")
    failures = models.JSONField(
        default=list, blank=True, help_text="[{card, at, code, message, fatal}] since last ready"
    )
    last_call_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("tenant__ordinal", "name")

    def __str__(self) -> str:
        return self.label

    @property
    def metric(self) -> str:
        """What its P99 is of: time to first token for what generates, total time for the rest, unless it chose."""
        return metric_of(self.p99_metric, self.model.task)


def metric_of(chosen: str, task: str) -> str:
    """The same from the columns it is made of."""
    return chosen or (Service.Metric.TTFT if task in GENERATING else Service.Metric.TOTAL)


class Replica(models.Model):
    """One copy on one card (or several). Two groups of columns, two writers."""

    service = models.ForeignKey(Service, models.CASCADE, related_name="replicas")
    host = models.ForeignKey("fleet.Host", models.CASCADE, related_name="replicas")
    cards = models.JSONField(help_text="card UUIDs")
    kv_granted_mib = models.PositiveIntegerField()
    external = models.BooleanField(default=False, help_text="an imported engine: measured, advised about, never moved")
    created_at = models.DateTimeField(auto_now_add=True)
    # wanted: written by recording a plan
    want = models.CharField(max_length=8, choices=choices(Want))
    want_since = models.DateTimeField()
    reason = models.CharField(max_length=16)
    attempt = models.PositiveIntegerField(default=1)
    force = models.BooleanField(default=False)
    drain_at = models.DateTimeField(null=True)
    left_alone_until = models.DateTimeField(null=True)
    unrouted_version = models.PositiveBigIntegerField(null=True, help_text="route version that no longer names it")
    # seen: written by ingesting a report
    phase = models.CharField(max_length=8, choices=choices(Phase), default=Phase.STOPPED)
    phase_attempt = models.PositiveIntegerField(default=0)
    phase_since = models.DateTimeField()
    stage = models.CharField(max_length=12, blank=True)
    progress = models.FloatField(null=True)
    measured_mib = models.PositiveIntegerField(null=True)
    residue_mib = models.PositiveIntegerField(null=True)
    kv_used_pct = models.FloatField(null=True)
    running = models.PositiveIntegerField(null=True)
    waiting = models.PositiveIntegerField(null=True)
    kv_full_samples = models.PositiveSmallIntegerField(
        default=0, help_text="samples with full KV and calls waiting, kept until relieved: scheduler.kv"
    )
    door_in_flight = models.PositiveIntegerField(null=True)
    can_sleep = models.BooleanField(default=True)
    loaded_at = models.DateTimeField(null=True)
    last_call_at = models.DateTimeField(null=True)
    failures_here = models.PositiveSmallIntegerField(default=0)
    failed_at = models.DateTimeField(null=True)
    fault = models.CharField(max_length=24, blank=True)
    fault_text = models.CharField(max_length=500, blank=True)
    fatal = models.BooleanField(default=False)
    # learned from the gateways' figures by workers/control/isolate.py
    quiet_p99_ms = models.FloatField(null=True, help_text="P99 while no batch call ran on its cards")
    ended_at = models.DateTimeField(null=True, help_text="stopped as wanted: history from here on")

    class Meta:
        indexes = [models.Index(fields=["ended_at"])]

    def __str__(self) -> str:
        return f"{self.service_id}#{self.pk}"


class Scaling(models.Model):
    """How loaded a service was of late, and how far it was scaled. Two groups of columns, two writers."""

    service = models.OneToOneField(Service, models.CASCADE, primary_key=True, related_name="scaling")
    # seen: written by looks at its load
    looks = models.TextField(help_text="JSON of scheduler.looks.Scaling, its decided part aside")
    # decided: written by recording a plan
    raised_to = models.PositiveSmallIntegerField(default=0, help_text="copies the last scale-up asked for")
    raised_waiting = models.PositiveIntegerField(default=0, help_text="calls that waited then")
    raised_at = models.DateTimeField(null=True)
    came_from = models.PositiveSmallIntegerField(default=0, help_text="copies before the last scale-in")
    came_from_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.service_id}: {self.raised_to}"


class Order(models.Model):
    """What a person asked for with a button: the planner obeys it within its time, or says why not."""

    service = models.ForeignKey(Service, models.CASCADE, related_name="orders")
    replica = models.ForeignKey(Replica, models.SET_NULL, null=True, related_name="orders")
    act = models.CharField(max_length=8, choices=choices(Act))
    count = models.PositiveSmallIntegerField(default=1, help_text="ready replicas a preload asks for")
    force = models.BooleanField(default=False)
    by = models.ForeignKey("accounts.User", models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField()
    until = models.DateTimeField(help_text="lapses then")
    # below: written by recording plans
    done_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=24, blank=True, help_text="done, or the code of the refusal")

    class Meta:
        ordering = ("-id",)
        indexes = [models.Index(fields=["done_at"])]

    def __str__(self) -> str:
        return f"{self.act} {self.service_id} {self.outcome}"


class Forecast(models.Model):
    """When calls are expected, as last worked out. Written by control; `automatic` by its owner too."""

    service = models.OneToOneField(Service, models.CASCADE, related_name="forecast")
    checked_at = models.DateTimeField(help_text="looked at again every few minutes")
    changed_at = models.DateTimeField(help_text="any of the below")
    basis = models.CharField(max_length=40, blank=True, help_text="day and policy from which it was worked out")
    hours_from = models.DateTimeField(help_text="midnight of that day")
    hours = models.JSONField(default=list, help_text="probability of a call, by the hour")
    recalls = models.JSONField(default=list, help_text="hours called the day before, 0 or 1")
    moments = models.JSONField(
        default=list, help_text="[[seconds since the epoch, probability, rule]] of periodic jobs"
    )
    load_s = models.FloatField(default=0.0, help_text="of the slowest host that may carry it")
    automatic = models.BooleanField(default=True, help_text="off: too few of its preloads were of use")
    judged = models.JSONField(default=list, help_text="[[expected at, 1 of use, 0 not]] of its last preloads")

    def __str__(self) -> str:
        return f"{self.service_id} {self.basis}"


class Reads(models.Model):
    """What real loads on a host took, by loader: `scheduler.reads.Reads`, written by ingesting reports."""

    host = models.ForeignKey("fleet.Host", models.CASCADE, related_name="reads")
    loader = models.CharField(max_length=10, help_text="scheduler.storage.loader_of")
    sums = models.JSONField(default=list, help_text="count, GiB, seconds, GiB squared, GiB times seconds; decayed")
    loads = models.PositiveIntegerField(default=0, help_text="how many there were")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["host", "loader"], name="one_sum_of_reads_each")]

    def __str__(self) -> str:
        return f"{self.host_id} {self.loader} {self.loads}"


class LoadTime(models.Model):
    """Seconds of the last 10 real starts or wakes of a service on a host, newest last."""

    service = models.ForeignKey(Service, models.CASCADE)
    host = models.ForeignKey("fleet.Host", models.CASCADE)
    kind = models.CharField(max_length=8, choices=[("start", "start"), ("wake", "wake")])
    seconds = models.JSONField(default=list)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["service", "host", "kind"], name="one_load_time_each")]

    def __str__(self) -> str:
        return f"{self.kind} {self.service_id}@{self.host_id}"
