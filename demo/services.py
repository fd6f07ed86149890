"""The 24 services of the demo: what a group of five companies would really run. Sizes are GiB, as people write them."""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler.world import Profile, Tier

HOT, WARM, COLD = Tier.HOT, Tier.WARM, Tier.COLD
ONLINE, BATCH, LOWFREQ = Profile.ONLINE, Profile.BATCH, Profile.LOWFREQ
LARGE, MIDDLE, SMALL = "a800-80", "l20", "a10"  # ids of the catalogue


@dataclass(frozen=True, slots=True)
class Plan:
    """One service. Weights come from the catalogue; KV and headroom are its claim; `calls` is its share of traffic."""

    name: str
    label: str
    tenant: str
    model: str
    dtype: str
    kv_gib: float
    headroom_gib: float
    tier: Tier
    profile: Profile
    classes: tuple[str, ...]
    priority: int = 50
    calls: float = 0.0
    min_replicas: int = 0
    max_replicas: int = 1
    waiter: str = "person"
    audience: str = "own"
    named: tuple[str, ...] = ()
    hold_cap_s: int | None = None
    max_num_seqs: int = 16
    tags: frozenset[str] = field(default_factory=frozenset)


#: Cold, called by nobody but the demo's check: a load of about 10 s that one streaming call waits for ...
CHECK_STREAM = "contract-review"
#: ... and one of about 6 s for a plain call.
CHECK_PLAIN = "meeting-minutes"
#: Every morning at half past nine the day's documents come at once: more copies than its two are needed for a while.
RUSH = "waybill-extract"

SERVICES: tuple[Plan, ...] = (
    # kept awake: light enough to be there seconds after a start; two of them on two hosts
    Plan(
        "hotline-qa",
        "热线问答",
        "energy",
        "qwen2.5-14b-instruct",
        "int4",
        14,
        2,
        HOT,
        ONLINE,
        (LARGE, MIDDLE),
        90,
        24,
        2,
        4,
    ),
    Plan(
        "code-helper",
        "代码助手",
        "manufacturing",
        "qwen2.5-coder-32b",
        "int4",
        16,
        3,
        HOT,
        ONLINE,
        (LARGE,),
        70,
        10,
        1,
        2,
    ),
    Plan("property-service", "物业客服", "estate", "qwen3-8b", "int4", 10, 2, HOT, ONLINE, (MIDDLE,), 80, 14, 1, 3),
    Plan(
        RUSH,
        "单据识别",
        "logistics",
        "qwen2.5-vl-7b",
        "int4",
        6,
        1.5,
        HOT,
        ONLINE,
        (SMALL,),
        80,
        16,
        2,
        8,
        max_num_seqs=4,
    ),
    Plan(
        "intent-classify",
        "意图识别",
        "energy",
        "qwen3-0.6b",
        "bf16",
        3,
        0.5,
        HOT,
        ONLINE,
        (SMALL,),
        85,
        20,
        2,
        4,
        audience="group",
    ),
    # asleep when idle
    Plan(
        "text-screen",
        "文本审核",
        "finance",
        "qwen2.5-1.5b-instruct",
        "bf16",
        3,
        1,
        WARM,
        ONLINE,
        (SMALL,),
        75,
        5,
        audience="group",
    ),
    Plan("fund-qa", "理财问答", "finance", "qwen3-8b", "bf16", 12, 2, WARM, ONLINE, (MIDDLE,), 65, 4, 0, 2),
    Plan(
        "process-helper",
        "工艺助手",
        "manufacturing",
        "qwen2.5-7b-instruct",
        "bf16",
        4,
        1.4,
        WARM,
        LOWFREQ,
        (SMALL, MIDDLE),
        55,
        3,
    ),
    Plan("route-qa", "路线问答", "logistics", "glm-4-9b", "bf16", 8, 2, WARM, LOWFREQ, (MIDDLE,), 50, 3),
    Plan(
        "inspection-report",
        "巡检报告",
        "energy",
        "qwen3-14b",
        "int4",
        12,
        2,
        WARM,
        BATCH,
        (MIDDLE,),
        40,
        2,
        waiter="background",
    ),
    Plan("equipment-kb", "设备知识库", "energy", "glm-4-32b-0414", "int4", 12, 3, WARM, LOWFREQ, (LARGE,), 50, 2),
    Plan("drawing-qa", "图纸问答", "manufacturing", "qwen2.5-vl-32b", "int4", 16, 4, WARM, LOWFREQ, (LARGE,), 50, 2),
    Plan("schedule-notes", "排产解释", "manufacturing", "qwen3-32b", "int4", 12, 2, WARM, LOWFREQ, (LARGE,), 50, 2),
    Plan(
        "official-writer",
        "公文写作",
        "estate",
        "qwen2.5-14b-instruct",
        "bf16",
        12,
        3,
        WARM,
        LOWFREQ,
        (LARGE,),
        50,
        2,
        audience="named",
        named=("energy", "logistics"),
    ),
    Plan(
        "risk-summary",
        "风控摘要",
        "finance",
        "deepseek-r1-distill-qwen-32b",
        "bf16",
        9,
        2,
        WARM,
        LOWFREQ,
        (LARGE,),
        60,
        1,
    ),
    Plan("due-diligence", "尽调问答", "finance", "qwen3-32b", "bf16", 9, 2, WARM, LOWFREQ, (LARGE,), 50, 0.6),
    Plan(
        "tender-check",
        "标书检查",
        "manufacturing",
        "qwen3-30b-a3b",
        "bf16",
        12,
        3,
        WARM,
        BATCH,
        (LARGE,),
        40,
        0.6,
        waiter="background",
    ),
    # stopped when idle
    Plan(
        "doc-translate",
        "文献翻译",
        "logistics",
        "qwen3-14b",
        "bf16",
        10,
        3,
        COLD,
        BATCH,
        (LARGE,),
        35,
        0.3,
        waiter="background",
    ),
    Plan(
        "estate-valuation",
        "估价说明",
        "estate",
        "deepseek-r1-distill-qwen-14b",
        "bf16",
        10,
        3,
        COLD,
        LOWFREQ,
        (LARGE,),
        45,
        0.3,
    ),
    Plan(
        "product-copy",
        "商品文案",
        "estate",
        "deepseek-r1-distill-qwen-7b",
        "bf16",
        4,
        1.4,
        COLD,
        LOWFREQ,
        (SMALL,),
        40,
        0.4,
    ),
    Plan(
        "research-writer",
        "研报生成",
        "energy",
        "deepseek-r1-distill-llama-70b",
        "int4",
        22,
        4,
        COLD,
        LOWFREQ,
        (LARGE,),
        40,
        0.2,
    ),
    Plan(
        "monday-report",
        "周一经营报告",
        "finance",
        "qwen2.5-72b-instruct",
        "int4",
        24,
        4,
        COLD,
        BATCH,
        (LARGE,),
        30,
        0.1,
        waiter="timer",
        hold_cap_s=120,
    ),
    Plan(
        CHECK_STREAM,
        "合同审阅",
        "estate",
        "qwen2.5-7b-instruct",
        "bf16",
        6,
        2,
        COLD,
        LOWFREQ,
        (MIDDLE,),
        60,
        0,
        audience="group",
        hold_cap_s=60,
    ),
    Plan(
        CHECK_PLAIN,
        "会议纪要",
        "logistics",
        "qwen2.5-3b-instruct",
        "bf16",
        4,
        1,
        COLD,
        LOWFREQ,
        (SMALL,),
        60,
        0,
        audience="group",
        hold_cap_s=45,
    ),
)
