"""Every number of every rule, with unit, default, range and why. Rules hold none of their own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from scheduler.layers import NOTHING_SET, Overrides


def number(default: float | int, unit: str, low: float, high: float, why: str) -> Any:
    return field(default=default, metadata={"unit": unit, "low": low, "high": high, "why": why})


@dataclass(frozen=True, slots=True)
class Policy:
    # Memory
    buffer_pct: int = number(8, "%", 0, 30, "share of a card that belongs to nobody: absorbs a spike before a kill")
    default_overhead_mib: int = number(
        600, "MiB", 0, 8192, "device context, graphs and allocator of one process, until measured"
    )
    default_residue_mib: int = number(1300, "MiB", 0, 16384, "what a sleeping engine still holds, until measured")
    oversell_online_pct: int = number(15, "%", 0, 100, "KV oversell on a card of online services only")
    oversell_mixed_pct: int = number(35, "%", 0, 100, "KV oversell on any other card: lowfreq and batch peaks differ")
    regrant_below_pct: int = number(
        90,
        "%",
        0,
        100,
        "of its KV cap: an online copy granted less has its lowfreq neighbours give at their next start",
    )
    max_replicas_per_card: int = number(4, "replicas", 1, 16, "awake ones; more share the chip too thinly")
    max_sleepers_per_card: int = number(4, "replicas", 0, 16, "asleep ones; each leaves a residue")
    release_tolerance_pct: int = number(2, "%", 0, 20, "of a card: differences below it are noise of the driver")
    release_timeout_s: int = number(60, "s", 5, 600, "memory not back by then is external and unexplained")
    host_floor_mib: int = number(16384, "MiB", 0, 1048576, "of a host's memory, never given to sleepers")
    host_floor_pct: int = number(20, "%", 0, 100, "the same as a share; the larger counts")
    cold_sleep_pct: int = number(
        75,
        "%",
        0,
        100,
        "of what sleepers may take: cold services sleep in it whose loads took longer than a caller is held",
    )
    # Reclaim
    idle_unload_s: int = number(
        1200, "s", 30, 86400, "idle time before a replica may go: 20 min was the field's balance"
    )
    grace_s: int = number(300, "s", 0, 3600, "notice before unloading; a call in it cancels")
    min_loaded_s: int = number(
        300, "s", 0, 86400, "stays at least this long once loaded, or models swap back and forth"
    )
    grace_room_s: int = number(5, "s", 0, 60, "notice when a waiting call needs the room")
    small_model_mib: int = number(1024, "MiB", 0, 16384, "weights below it are always kept: unloading frees too little")
    fast_first_token_s: float = number(1.0, "s", 0, 60, "services that must answer faster are always kept")
    half_empty_pct: int = number(50, "%", 0, 100, "a card used less keeps its idle replicas while nobody was refused")
    refused_window_s: int = number(3600, "s", 60, 86400, "how long a refusal in the pool counts as scarcity")
    no_sleep_idle_factor: int = number(2, "times", 1, 10, "a warm service that cannot sleep keeps its memory longer")
    waterline_pct: int = number(85, "%", 1, 100, "of a pool's memory: from here on owners are told who would go first")
    waterline_notice_s: int = number(1800, "s", 60, 86400, "an owner is told so long before its idle copy may go")
    waterline_idle_pct: int = number(
        50, "%", 0, 100, "of its idle limit a copy must have behind it to be told of: each call would tell anew"
    )
    thrash_pct: int = number(50, "%", 1, 100, "loads and anti-swap waits an hour against calls: half is swapping")
    thrash_least: int = number(4, "loads", 1, 1000, "an hour, or two calls and two loads would ring")
    harmful_within_s: int = number(86400, "s", 60, 604800, "a cold call that fails so soon after a reclaim blames it")
    regret_within_s: int = number(900, "s", 60, 86400, "a cold start so soon after a reclaim: it was not worth it")
    regrets_a_week: int = number(10, "regrets", 1, 1000, "so many propose a longer idle time")
    # Advice
    advice_linger_s: int = number(
        10, "s", 1, 600, "a wish not repeated for so long is gone: a busy card says no for a tick"
    )
    advice_asked_s: int = number(
        600, "s", 1, 86400, "a caller who was told that it waits for approval comes back: so long what he needs stands"
    )
    advice_refresh_s: int = number(
        60, "s", 1, 3600, "numbers of a standing advice are written so often: rows, not a stream"
    )
    advice_approved_s: int = number(
        600, "s", 10, 86400, "what was approved and could not be done by then is asked anew"
    )
    # Forecast and preload
    forecast_weeks: int = number(5, "weeks", 1, 26, "history that hourly probabilities rest on")
    forecast_decay_pct: int = number(80, "%", 10, 100, "what a week counts against the one after it: habits change")
    forecast_prior_days: int = number(
        3, "days", 1, 60, "the coarser kind of day counts as so many days: two hits are no habit yet"
    )
    forecast_tolerance_s: int = number(120, "s", 0, 900, "a periodic job may begin so much early or late")
    forecast_repeats: int = number(3, "times", 2, 12, "a job at the same minute so often is periodic")
    forecast_occasions: int = number(
        5, "times", 2, 24, "the last occasions are looked at: a job that ended is forgotten"
    )
    forecast_every_s: int = number(300, "s", 10, 86400, "each service's forecast is looked at again so often")
    session_gap_s: int = number(1200, "s", 60, 86400, "a call after so long without one begins a session")
    rare_sessions: int = number(
        40, "sessions", 1, 1000, "with more in the weeks above older ones are forgotten; months matter for the rare"
    )
    preload_at_pct: int = number(50, "%", 1, 100, "probability of a call within the horizon that a load is worth")
    preload_horizon_s: int = number(
        3600, "s", 60, 86400, "a preload is of use when a call comes so soon after its hour"
    )
    preload_lead_s: int = number(120, "s", 0, 3600, "so long before its hour or minute it shall be ready")
    preload_tries: int = number(
        2, "services", 1, 1000, "looked at in one plan: at nine much is due, and a plan is short"
    )
    preload_judged: int = number(20, "preloads", 5, 200, "the last ones are looked at to say whether they are of use")
    preload_used_pct: int = number(40, "%", 0, 100, "of use less often than that: no automatic preload any more")
    hit_wait_s: float = number(2.0, "s", 0, 60, "a session that waits no longer for its first answer is a hit")
    forecast_idle_pct: int = number(30, "%", 0, 100, "expected so likely within the horizon, an idle copy stays")
    forecast_room_pct: int = number(
        50, "%", 0, 100, "expected so likely before it could be loaded again, it does not go for room"
    )
    prefetch_quiet_s: int = number(30, "s", 1, 3600, "a host without load or eviction for so long may prefetch")
    prefetch_card_pct: int = number(80, "%", 0, 100, "prefetches fill a card no further: the rest is for callers")
    prefetch_tries: int = number(3, "services", 1, 50, "looked at in one plan, in turn: a plan has little time")
    # Tiers
    hot_calls_7d: int = number(5000, "calls", 1, 10000000, "more in 7 days make a service hot: kept awake")
    warm_calls_7d: int = number(
        500, "calls", 0, 10000000, "more in 7 days make it warm: asleep in host memory when idle"
    )
    tier_band_pct: int = number(10, "%", 0, 50, "so far past a threshold a week must be, or tiers would swing")
    tier_first_s: int = number(
        86400, "s", 0, 604800, "a new service keeps its first tier so long: a few hours say little"
    )
    hot_memory_pct: int = number(50, "%", 1, 100, "of the cards' memory the fitted hot tier may fill: the rest swaps")
    tiers_fitted: int = number(
        0, "0 or 1", 0, 1, "1: thresholds fitted to the farm each week hold instead of the two above"
    )
    tiers_weekday: int = number(
        0, "weekday", 0, 6, "of the weekly recomputation, 0 is Monday: whole weeks are compared"
    )
    tiers_hour: int = number(3, "hour", 0, 23, "of site time, when nobody notices a change")
    # Drain
    drain_min_s: int = number(15, "s", 1, 600, "lower bound of a drain")
    drain_factor: float = number(3.0, "times", 1, 20, "of the mean answer, added to the lower bound")
    drain_max_s: int = number(600, "s", 15, 3600, "upper bound of a drain that may cut")
    drain_overdue_s: int = number(1800, "s", 60, 86400, "a convenience drain that cannot end goes back to ready")
    left_alone_s: int = number(3600, "s", 0, 86400, "and is then left alone this long")
    # Pressure
    pressure_pct: int = number(
        93, "%", 50, 100, "measured use from which a card is under pressure: what is left is gone in seconds"
    )
    pressure_samples: int = number(2, "samples", 1, 60, "over the line in a row: one alone may be a passing peak")
    pressure_buffer_pct: int = number(50, "%", 0, 100, "of the buffer: with less free no second sample is waited for")
    relief_pct: int = number(85, "%", 30, 99, "measured use below which pressure is over: apart from where it begins")
    pressure_drain_s: int = number(20, "s", 1, 600, "a victim's calls may take so long: relief is due within 30 s")
    pressure_calls_s: int = number(300, "s", 10, 3600, "who was not called for so long goes before who was")
    rebuild_within_s: int = number(1800, "s", 10, 86400, "an evicted copy not rebuilt by then waits for its next call")
    evicted_apart_s: int = number(
        600, "s", 0, 86400, "not back on the card it was evicted from, or the two push each other out again"
    )
    # Money
    host_memory_fen_gib_h: int = number(
        0, "fen", 0, 100000, "a GiB of host memory and hour: sleepers' second bill, free unless a site wants it"
    )
    cost_late_s: int = number(
        300, "s", 60, 3300, "an hour is booked so long after its end: reports of a silent host may still come"
    )
    cost_sample_s: int = number(10, "s", 1, 300, "how often cards are measured for the bill: a mean of 360 an hour")
    price_jump_factor: int = number(10, "times", 2, 1000, "a price that changes by more needs a second person")
    budget_warn_pct: int = number(80, "%", 1, 100, "of a card budget: early enough to act before anything shrinks")
    budget_forecast_h: int = number(168, "h", 1, 744, "the forecast goes on as the last hours did: a week has all days")
    # Requests
    approvers_whitelist: int = number(1, "people", 1, 2, "who must agree that a service is kept from reclaim")
    approvers_budget: int = number(1, "people", 1, 2, "who must agree to a budget")
    approvers_quota: int = number(1, "people", 1, 2, "who must agree to a quota: what is promised binds everybody")
    approvers_audience: int = number(1, "people", 1, 2, "who must agree that other companies may call a service")
    approvers_service: int = number(1, "people", 1, 2, "who must agree to a new service")
    approvers_policy: int = number(1, "people", 1, 2, "who must agree to a change of the policy")
    approvers_key: int = number(1, "people", 1, 2, "who must agree to a key with wide scope")
    wide_key_approval: int = number(
        1, "0 or 1", 0, 1, "1: a company gets a key to all its services by request only; a key to named ones at once"
    )
    group_policy_approval: int = number(
        0, "0 or 1", 0, 1, "1: the group's policy is changed by request only, the centre's own operators too"
    )
    two_approvers_fen: int = number(
        5_000_000, "fen", 0, 10**12, "a request of more money a month takes two people, whatever its kind"
    )
    two_approvers_s: int = number(
        90 * 86400, "s", 3600, 3650 * 86400, "keeping memory for longer than a quarter takes two people"
    )
    request_seen_s: int = number(
        1800, "s", 60, 86400, "consequences older than this are worked out again before they are decided on"
    )
    request_remind_s: int = number(86400, "s", 3600, 30 * 86400, "a request that waits so long is put before all again")
    request_expiry_s: int = number(
        3 * 86400, "s", 3600, 60 * 86400, "its people are told so long before what was granted ends"
    )
    signed_within_s: int = number(
        300, "s", 10, 3600, "a decision signed elsewhere counts so long: clocks differ, and a copy of it must not last"
    )
    urgent_review_s: int = number(
        86400, "s", 3600, 7 * 86400, "what an operator put in force alone ends unless somebody agreed by then"
    )
    # Compute isolation
    batch_from_min: int = number(
        1320, "minute of the day", 0, 1439, "site time at which batch may run freely: 22:00, when people have gone"
    )
    batch_until_min: int = number(420, "minute of the day", 0, 1439, "and until which: 07:00, before they come")
    batch_day_calls: int = number(
        4, "calls", 0, 1024, "of batch services at once on a card outside the window: a trickle nobody feels"
    )
    batch_least_calls: int = number(1, "calls", 1, 64, "a controller slows batch down and never starves it")
    batch_keep_pct: int = number(50, "%", 5, 95, "of batch calls left at once when a neighbour is slowed: halved")
    batch_step_calls: int = number(1, "calls", 1, 64, "more again once the neighbour is well: slowly, or it swings")
    batch_lower_s: int = number(30, "s", 1, 600, "between two steps down: what is measured follows some slots later")
    batch_raise_s: int = number(60, "s", 1, 3600, "between two steps up")
    neighbour_rise_day_pct: int = number(
        8, "%", 1, 1000, "of an online service's P99 beside batch by day: the field's own bound"
    )
    neighbour_rise_night_pct: int = number(12, "%", 1, 1000, "and within the batch window")
    quiet_after_s: int = number(300, "s", 0, 3600, "without a batch call, a P99 is the neighbour's own")
    quiet_every_s: int = number(60, "s", 5, 3600, "how often such a P99 is learned")
    quiet_weight_pct: int = number(20, "%", 1, 100, "of a newly learned one: traffic changes over a day")
    quiet_noise_pct: int = number(1, "%", 0, 50, "a smaller change of it is not written")
    throttle_rise_pct: int = number(20, "%", 1, 1000, "disturbance of a neighbour at which a preload is called off")
    throttle_after_s: int = number(10, "s", 0, 600, "a load younger than a slot of measurement caused nothing yet")
    throttle_pause_s: int = number(300, "s", 0, 86400, "no new preload on the host after one was called off")
    # Advisor
    wait_fen_per_s: float = number(10.0, "fen", 0, 10000, "a second of a waiting person: 360 yuan an hour")
    wait_weight_background: float = number(0.1, "", 0, 1, "a background job's waiting against a person's")
    wait_weight_timer: float = number(0.0, "", 0, 1, "a timer waits for nothing: it can be served ahead")
    # Symptoms
    full_pct: int = number(85, "%", 1, 100, "of a pool's memory taken in the mean: as good as full")
    idle_util_pct: int = number(10, "%", 0, 100, "mean load of its chips below which all that memory does little")
    few_calls_24h: int = number(20, "calls", 0, 100000, "a day: such a service need not stay awake")
    first_call_slow_s: float = number(2.0, "s", 0, 600, "a first call that waits longer is felt")
    first_call_days: int = number(3, "days", 1, 7, "of the last seven: once is chance")
    slow_p99_ms: float = number(800.0, "ms", 1, 600000, "P99 over which a service counts as slow that set no target")
    capped_least: int = number(3, "calls", 1, 10000, "a day ended at the hold cap before anybody calls it a symptom")
    capped_pct: int = number(5, "%", 0, 100, "of the day's calls")
    dead_after_s: int = number(120, "s", 0, 86400, "without a copy after a failed load: longer than the quick retries")
    # Load
    max_loads_per_host: int = number(2, "loads", 1, 16, "concurrent loads share the host's storage")
    load_init_s: float = number(4.0, "s", 0, 600, "engine start beside reading weights, until learned")
    load_warm_up_s: float = number(1.0, "s", 0, 600, "graphs and first token, until learned")
    load_streams: int = number(4, "streams", 1, 64, "files read side by side from local storage; more gain nothing")
    load_stream_gain_pct: int = number(20, "%", 0, 100, "what each further stream adds to the first, until measured")
    load_local_mib_s: int = number(2000, "MiB/s", 10, 100000, "a local disk, where the farm has none to go by")
    load_learns_pct: int = number(10, "%", 1, 100, "of a new load against all before: storage is replaced, and wears")
    load_prior_loads: float = number(
        1.0, "loads", 0.1, 100, "what a host says of its storage counts as so many, at nothing and at a large model"
    )
    load_recency_pct: int = number(80, "%", 10, 100, "what a load counts against the one after it")
    wake_s: float = number(3.0, "s", 0, 120, "waking from host memory, until learned")
    stop_s: float = number(5.0, "s", 0, 120, "stop or sleep and two samples that show the memory back")
    load_times_kept: int = number(10, "loads", 1, 100, "an estimate looks at the last ones only")
    load_deviations: float = number(2.0, "times", 0, 10, "mean absolute deviations below the mean: the lower bound")
    eta_floor_s: float = number(1.0, "s", 0, 60, "what is not ready yet is never told as zero")
    # Engine
    typical_tokens: int = number(
        2048, "tokens", 128, 1048576, "prompt and answer of one call, until 7 days are learned"
    )
    max_queued_calls: int = number(256, "calls", 1, 65536, "that an engine queues itself before it says 503")
    engine_stall_s: int = number(
        120, "s", 10, 3600, "with calls running and no token counted: longer than a long prompt takes, then it hangs"
    )
    # KV memory of a running engine
    kv_full_pct: int = number(95, "%", 50, 100, "of the granted KV with calls waiting: the engine has outgrown it")
    kv_full_samples: int = number(2, "samples", 1, 60, "so in a row: one alone may be a passing peak")
    kv_relief_pct: int = number(85, "%", 10, 99, "below it the engine has room again: apart from where it begins")
    kv_admit_pct: int = number(90, "%", 10, 100, "of an engine's KV tokens that calls in flight may want")
    kv_tight_pct: int = number(
        70, "%", 10, 100, "the same while its KV is full and neither a copy nor a larger grant is to be had"
    )
    kv_placements: int = number(
        2, "services", 1, 1000, "whose growth is worked out in one plan, in turn: each looks at all cards"
    )
    regrant_gain_pct: int = number(10, "%", 1, 1000, "more KV than now, or a start for a larger grant is not worth it")
    # Hold
    hold_small_s: int = number(15, "s", 1, 180, "how long a plain call is held for a small model")
    hold_large_s: int = number(30, "s", 1, 180, "and for a large one")
    hold_large_mib: int = number(16384, "MiB", 0, 1048576, "weights from which a model counts as large")
    hold_stream_s: int = number(120, "s", 1, 900, "a stream that is told its progress may wait this long")
    hold_own_max_s: int = number(180, "s", 1, 900, "a service's own cap may not be longer")
    # Scaling
    scale_look_s: int = number(5, "s", 1, 60, "between two looks at a service's load")
    scale_looks: int = number(2, "looks", 1, 60, "in a row over a line: one alone may be a passing peak")
    scale_queue_calls: int = number(16, "calls", 0, 10000, "waiting in all: with more, another copy is worth its load")
    scale_load_pct: int = number(70, "%", 10, 100, "of its capacity a copy shall carry: the rest is for peaks")
    scale_again_pct: int = number(
        150, "%", 100, 1000, "of the calls that waited: raised again while a start is pending"
    )
    scale_keep_s: int = number(
        30, "s", 5, 600, "a raise waits so long for room or its turn once nothing is over a line"
    )
    scale_memory_s: int = number(86400, "s", 0, 604800, "a scale-in remembers where it came from: mornings are alike")
    scale_memory_pct: int = number(150, "%", 100, 1000, "of what is needed: it comes back no further than that")
    scale_in_s: int = number(1200, "s", 60, 86400, "of low load before copies go: a pause is no evening")
    scale_in_waiting: int = number(2, "calls", 0, 1000, "waiting at most, all that time")
    capacity_first_pct: int = number(50, "%", 5, 100, "of max_num_seqs, until more was carried within the target")
    capacity_decay_pct: int = number(5, "%", 0, 50, "a day: what was carried a week ago may have been other calls")
    capacity_days: int = number(7, "days", 1, 60, "the best of these: a week has all kinds of days")
    # P99
    p99_target_ms: int = number(800, "ms", 10, 600000, "over it people notice; a service may set its own")
    p99_window_s: int = number(60, "s", 10, 300, "what P99 is read over: long enough to outlast one odd call")
    p99_stretch_s: int = number(300, "s", 10, 3600, "a quiet service's window is stretched so far, not further")
    p99_samples: int = number(50, "calls", 10, 10000, "with fewer the highest one would be called the 99th percentile")
    disturbance_window_s: int = number(30, "s", 10, 300, "gaps between chunks now: a neighbour is felt within it")
    disturbance_past_s: int = number(300, "s", 30, 3600, "and what they are compared with")
    # Orders
    order_lapses_s: int = number(1800, "s", 10, 86400, "a button that could not be obeyed by then means nothing more")
    # Faults
    retry_first_s: int = number(0, "s", 0, 600, "back-off before the first new try on the same card")
    retry_second_s: int = number(10, "s", 0, 600, "before the second")
    retry_third_s: int = number(30, "s", 0, 600, "before the third; then another card")
    max_failed_cards: int = number(3, "cards", 1, 16, "after so many the service is down")
    down_retry_s: int = number(300, "s", 10, 86400, "a service that is down is tried again this often")
    silent_s: int = number(15, "s", 2, 600, "a host silent for longer gets nothing new")
    lost_s: int = number(60, "s", 10, 600, "a silent host's replicas are rebuilt elsewhere after this")
    freeze_hosts: int = number(2, "hosts", 2, 64, "so many silent hosts at least freeze the farm")
    freeze_pct: int = number(30, "%", 1, 100, "and more than this share of all")
    freeze_window_s: int = number(60, "s", 5, 600, "when they fell silent within this time")
    # Repack
    repack_from_min: int = number(60, "minute of the day", 0, 1439, "site time from which moves are made: 01:00")
    repack_until_min: int = number(300, "minute of the day", 0, 1439, "and until which a move may begin: 05:00")
    repack_propose_min: int = number(
        960, "minute of the day", 0, 1439, "moves that wait for approval are proposed: 16:00"
    )
    repack_from_pct: int = number(15, "%", 0, 100, "stranded share of a pool from which a nightly search is worth it")
    repack_exact_cards: int = number(40, "cards", 2, 1000, "the exact search looks at those that strand most")
    repack_exact_sizes: int = number(8, "sizes", 1, 64, "of expected claims it tells apart; neighbours count as one")
    repack_max_moves: int = number(12, "moves", 1, 200, "of one proposal: each is a load, and people read the list")
    repack_gain_mib: int = number(1024, "MiB", 0, 1048576, "that a move must make usable, or it is not worth a load")
    repack_tries: int = number(60, "sets", 1, 10000, "of copies looked at for each step of the search: bounds its time")
    repack_starts: int = number(8, "beginnings", 1, 100, "of the search: one alone may end where nothing leads on")
    repack_search_s: int = number(60, "s", 1, 3600, "that the exact search may take to better the heuristic's answer")
    # Scores of placement (higher is better; weights of the terms)
    score_fragmentation: float = number(4.0, "", 0, 100, "keep room usable for the expected mix")
    score_best_fit: float = number(2.0, "", 0, 100, "fill cards that are already in use")
    score_profile: float = number(3.0, "", 0, 100, "online beside lowfreq, not beside online")
    busy_neighbour_pct: int = number(
        2, "%", 1, 100, "of a week that its calls take: from there on a lowfreq service slows whom it sits beside"
    )
    score_price: float = number(2.0, "", 0, 100, "the cheapest class that qualifies")
    score_spread: float = number(3.0, "", 0, 100, "replicas of one service on different hosts")
    score_local: float = number(1.0, "", 0, 100, "hosts that read the weights faster")
    score_near: float = number(1.0, "", 0, 100, "hosts that have the weights in memory, or on their own disk")
    score_lent: float = number(25.0, "", 0, 100, "elastic cards last: more than all other scores together may gain")
    score_n1: float = number(2.0, "", 0, 100, "if this card died, its copies should find a home elsewhere")
    small_prefers_cheap: float = number(
        2.0, "times", 1, 10, "a small model's price score: it gains little by a fast card"
    )
    cheap_model_mib: int = number(
        8192, "MiB", 0, 131072, "weights below it make a model small enough to prefer cheap cards"
    )
    latency_compute_cap: float = number(
        8.0, "", 0, 20, "cards below it are old: no large model that must answer fast is placed there"
    )

    # What was set for pools and services, over what stands above.
    overrides: Overrides = field(default=NOTHING_SET, hash=False)
    _narrow: dict[tuple[str, str], Policy] = field(default_factory=dict, init=False, compare=False, repr=False)

    def of_pool(self, pool: str) -> Policy:
        """What holds for cards of a pool."""
        return self if self.overrides is NOTHING_SET else self.of_service("", pool)

    def of_service(self, service: str, pool: str = "") -> Policy:
        """What holds for a service, on a card of `pool` where it is on one."""
        if self.overrides is NOTHING_SET or not self.overrides:
            return self
        known = self._narrow.get((pool, service))
        if known is None:
            values = self.overrides.of(pool, service)
            typed = {name: type(getattr(self, name))(value) for name, value in values.items()}
            known = replace(self, **typed, overrides=NOTHING_SET) if typed else self
            self._narrow[pool, service] = known
        return known


#: Used where nobody set anything.
DEFAULT = Policy()
