"""What each number of the policy is called and why it is there, in Chinese; English has the words of the core itself.

In the order of the page. A number that is missing here fails a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from scheduler.settable import numbers

Words = dict[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Section:
    """Numbers of one subject: name → (label, why)."""

    key: str
    title: Any
    words: Words


MEMORY: Words = {
    "buffer_pct": ("缓冲池", "每张卡留出这一份不属于任何人，邻居冲高时先吃它，不杀进程。"),
    "default_overhead_mib": ("进程开销", "一个引擎进程除权重以外的固定占用，测到之前先按它算。"),
    "default_residue_mib": ("休眠残留", "休眠的引擎仍占着的显存，测到之前先按它算。"),
    "oversell_online_pct": ("KV 超卖上限（全在线）", "卡上全是在线业务时，它们的高峰会撞在一起，所以压得低。"),
    "oversell_mixed_pct": ("KV 超卖上限（混部）", "卡上有低频或批处理时，高峰错开，可以多卖一些。"),
    "regrant_below_pct": ("让出 KV 的界线", "在线业务得到的 KV 不足上限的这个比例时，让低频邻居下次启动时少拿。"),
    "max_replicas_per_card": ("每卡运行实例数", "再多就把芯片分得太碎。"),
    "max_sleepers_per_card": ("每卡休眠实例数", "每个休眠实例都留着一点显存。"),
    "release_tolerance_pct": ("归还误差", "差额小于卡的这个比例，算驱动的噪声。"),
    "release_timeout_s": ("归还时限", "到时还没还回来的显存算外部占用，并报警。"),
    "host_floor_mib": ("主机内存保底", "主机内存里从不给休眠实例用的部分。"),
    "host_floor_pct": ("主机内存保底比例", "同上，按比例；两者取大。"),
    "cold_sleep_pct": (
        "低频休眠份额",
        "占休眠可用主机内存与席位的比例：实测加载比挂起上限还久的低频业务在此休眠；0 为一律停止。",
    ),
}
RECLAIM: Words = {
    "idle_unload_s": ("空闲卸载时限", "多久没人调用就可以收回。短了省显存、多冷启动，长了相反。"),
    "grace_s": ("宽限", "通知之后等多久才动手，期间来请求就取消。"),
    "min_loaded_s": ("最短装载", "刚装上的不马上卸，防止来回换。"),
    "grace_room_s": ("让位宽限", "有人在等地方时，空闲的邻居得到的通知时间。"),
    "small_model_mib": ("小模型不收", "权重小于它的一直留着，收回也腾不出多少。"),
    "fast_first_token_s": ("首字要求高的不收", "要求首字快过它的业务一直留着。"),
    "half_empty_pct": ("半空的卡不收", "卡占用低于它、又没人被拒绝过，空闲实例就留着。"),
    "refused_window_s": ("紧张记多久", "有人被拒绝之后，多久之内算紧张。"),
    "no_sleep_idle_factor": ("不能休眠的多留几倍", "中频而不能休眠的业务，冷启动更贵，多留一些。"),
    "waterline_pct": ("水位线", "资源池显存用到这里，就提前告诉可能被收回的业务。"),
    "waterline_notice_s": ("提前多久告知", "空闲实例可能被收回前，提前这么久通知负责人。"),
    "waterline_idle_pct": ("闲到多少才告知", "空闲不到时限的这个比例不告知，否则每次调用都响。"),
    "thrash_pct": ("来回换入换出", "每小时的加载加上等待次数达到调用数的这个比例，算来回换。"),
    "thrash_least": ("至少几次才算", "太少的次数说明不了问题。"),
    "harmful_within_s": ("误伤追溯", "收回之后这段时间内调用失败，算收回造成的。"),
    "regret_within_s": ("后悔窗口", "收回后这么快又冷启动，算收得不值。"),
    "regrets_a_week": ("每周后悔几次提议", "到这个次数就提议加长空闲时限。"),
}
ADVICE: Words = {
    "advice_linger_s": ("建议保留", "多久没有再提，就算不需要了。"),
    "advice_asked_s": ("等批的需求保留", "调用方被告知等人点头，会再来：这么久之内，为它让位的建议还在。"),
    "advice_refresh_s": ("建议刷新", "挂着的建议多久更新一次数字。"),
    "advice_approved_s": ("批准有效期", "批准后这么久还做不成，要重新问。"),
    "order_lapses_s": ("按钮有效期", "按下的按钮到时还做不到，就不再做。"),
}
FORECAST: Words = {
    "forecast_weeks": ("看几周的历史", "每小时的概率由这么多周得出。"),
    "forecast_decay_pct": ("上一周的分量", "前一周与后一周相比占多少，习惯会变。"),
    "forecast_prior_days": ("粗分类的分量", "样本少时，粗一级的日子算这么多天，两次巧合不成规律。"),
    "forecast_tolerance_s": ("定时任务误差", "定时任务早到晚到这么多仍算同一个点。"),
    "forecast_repeats": ("重复几次算定时", "同一分钟出现这么多次，算定时任务。"),
    "forecast_occasions": ("看最近几次", "停掉的任务会被忘记。"),
    "forecast_every_s": ("多久重算", "每个业务的预测隔这么久再看一次。"),
    "session_gap_s": ("会话间隔", "隔这么久没调用之后的第一次，算新的会话。"),
    "rare_sessions": ("稀少业务", "会话多过它的业务只记最近几周，少的才按月找规律。"),
    "preload_at_pct": ("预热概率", "到这个概率就提前装。"),
    "preload_horizon_s": ("预热有效时间", "这段时间内来了调用，预热才算用上。"),
    "preload_lead_s": ("提前量", "比预计的时刻早这么多就要准备好。"),
    "preload_judged": ("看最近几次预热", "由它们判断预热有没有用。"),
    "preload_tries": ("一次计划看几个", "九点一到要装的很多，一次计划只看这些，其余轮到再看。"),
    "preload_used_pct": ("预热用上的比例", "低于它就不再自动预热，并告诉负责人。"),
    "hit_wait_s": ("命中的等待", "首次调用等得不超过它，算命中。"),
    "forecast_idle_pct": ("快来了就不收", "预计很可能来，空闲的也先留着。"),
    "forecast_room_pct": ("快来了不让位", "在它能重新装好之前很可能就来，不为别人让位。"),
    "prefetch_quiet_s": ("空闲窗口", "主机安静这么久，才趁空预取。"),
    "prefetch_card_pct": ("预取装到多满", "预取最多把卡装到这里，其余留给调用。"),
    "prefetch_tries": ("每轮看几个", "一次规划时间很短，轮着看。"),
}
TIERS: Words = {
    "hot_calls_7d": ("高频门槛", "7 天调用多过它就常驻。"),
    "warm_calls_7d": ("中频门槛", "7 天调用多过它，空闲时休眠而不卸载。"),
    "tier_band_pct": ("滞回", "门槛上下各让这么多，免得来回跳。"),
    "tier_first_s": ("新业务先不动", "新业务先用初始档位，几小时的数据说明不了什么。"),
    "hot_memory_pct": ("高频可占显存", "按现场拟合门槛时，高频业务最多占这么多。"),
    "tiers_fitted": ("用拟合的门槛", "1：每周按现场拟合的门槛代替上面两个。"),
    "tiers_weekday": ("每周哪天重算", "0 是星期一；整周对整周。"),
    "tiers_hour": ("几点重算", "现场时间，没人注意的时候。"),
}
DRAIN: Words = {
    "drain_min_s": ("排空下限", "再短也给这么久。"),
    "drain_factor": ("排空倍数", "平均应答时间乘以它，加上下限。"),
    "drain_max_s": ("排空上限", "允许打断的排空，最多等这么久。"),
    "drain_overdue_s": ("排不空就放弃", "为我们方便的排空过了这么久还没完，就恢复服务。"),
    "left_alone_s": ("之后不打扰", "恢复之后这么久内不再因方便而动它。"),
}
SCALE: Words = {
    "scale_look_s": ("多久看一次", "每个业务的负载隔这么久看一眼。"),
    "scale_looks": ("连续几次才扩", "一次可能只是瞬间的尖峰。"),
    "scale_queue_calls": ("排队多少就扩", "网关与引擎里一共等着的调用多过它，值得多装一个。"),
    "scale_load_pct": ("每个实例扛几成", "按能力的这个比例算，余下的留给高峰。"),
    "scale_again_pct": ("再扩的增幅", "还有实例在装时，排队再涨这么多才再扩。"),
    "scale_keep_s": ("扩容保留", "负载回落后，还在等位置的扩容保留这么久。"),
    "scale_memory_s": ("缩容记多久", "缩之前有几个，记这么久，第二天早上常常一样。"),
    "scale_memory_pct": ("回到几成", "按记住的数扩，但不超过所需的这个比例。"),
    "scale_in_s": ("低负载多久才缩", "短暂的停顿不是晚上。"),
    "scale_in_waiting": ("缩容时最多等几个", "这段时间里等着的一直不多过它。"),
    "capacity_first_pct": ("初始能力", "学到之前，按最大并发的这个比例算。"),
    "capacity_decay_pct": ("能力每天打折", "一周前扛得住的，可能是另一种调用。"),
    "capacity_days": ("看几天", "一周里什么日子都有，取最好的。"),
    "p99_target_ms": ("P99 目标", "超过它人会觉得慢；业务可以自己设。"),
}
PRESSURE: Words = {
    "pressure_pct": ("压力线", "实测占用到这里，剩下的几秒就会用完。"),
    "pressure_samples": ("连续几次采样", "一次可能只是瞬间的尖峰。"),
    "pressure_buffer_pct": ("缓冲只剩多少不等", "空闲少于缓冲池的这个比例，不等第二次采样。"),
    "relief_pct": ("解除线", "降到这里压力才算过去，与压力线隔开。"),
    "pressure_drain_s": ("压力下的排空", "被驱逐的实例最多还能答这么久。"),
    "pressure_calls_s": ("近期调用", "这么久没人调用的先走。"),
    "rebuild_within_s": ("重建时限", "过了这么久还没在别处重建，就等下一次调用。"),
    "evicted_apart_s": ("不马上回来", "被驱逐的实例这么久内不回原卡，免得互相挤。"),
}
KV: Words = {
    "kv_full_pct": ("KV 满", "KV 用到这里而且有排队，说明已经不够用。"),
    "kv_full_samples": ("连续几次采样", "一次可能只是瞬间的尖峰。"),
    "kv_relief_pct": ("KV 缓解线", "降到这里才算又有余地。"),
    "kv_admit_pct": ("在途词元上限", "在途调用最多占引擎 KV 词元的这个比例。"),
    "kv_tight_pct": ("收紧后的上限", "KV 满又无法扩时，收紧到这里。"),
    "kv_placements": ("一次计划看几个", "每个都要看所有的卡，其余的轮到再看。"),
    "regrant_gain_pct": ("值得重启的增量", "多拿不到这么多 KV，不值得为它重启。"),
    "typical_tokens": ("典型词元数", "学到 7 天之前，一次调用按这么多词元算。"),
    "max_queued_calls": ("引擎排队上限", "引擎自己排这么多，再多就回 503。"),
    "engine_stall_s": ("多久没产出算挂死", "有调用在跑却这么久没出词元，就当它挂死。"),
}
BATCH: Words = {
    "batch_from_min": ("批处理窗口开始", "现场时间当天的第几分钟，人下班之后。"),
    "batch_until_min": ("批处理窗口结束", "到第几分钟为止，人上班之前。"),
    "batch_day_calls": ("白天并发", "窗口之外，一张卡上批处理同时跑这么多，邻居感觉不到。"),
    "batch_least_calls": ("最低并发", "再慢也留这么多，不饿死。"),
    "batch_keep_pct": ("一次降到", "邻居变慢时，批处理并发立刻降到这个比例。"),
    "batch_step_calls": ("一次升几个", "邻居恢复后慢慢加，否则会来回摆。"),
    "batch_lower_s": ("两次下调间隔", "测到的变化会晚一点。"),
    "batch_raise_s": ("两次上调间隔", "加得比降得慢。"),
    "neighbour_rise_day_pct": ("邻居 P99 升幅（白天）", "白天超过它就降批处理。"),
    "neighbour_rise_night_pct": ("邻居 P99 升幅（窗口内）", "窗口内可以宽一些。"),
    "quiet_after_s": ("安静多久算独处", "这么久没有批处理，测到的 P99 算邻居自己的。"),
    "quiet_every_s": ("多久学一次", "独处的 P99 隔这么久学一次。"),
    "quiet_weight_pct": ("新值的分量", "流量一天里会变。"),
    "quiet_noise_pct": ("变化太小不记", "小于它的变化不写。"),
    "throttle_rise_pct": ("预热让路", "预热使邻居变慢这么多，就取消。"),
    "throttle_after_s": ("装多久才算它的", "刚开始的加载还造成不了什么。"),
    "throttle_pause_s": ("取消后歇多久", "同一主机这么久不再预热。"),
}
REPACK: Words = {
    "repack_from_min": ("整理窗口开始", "现场时间当天的第几分钟起可以移动。"),
    "repack_until_min": ("整理窗口结束", "到第几分钟为止还可以开始移动。"),
    "repack_propose_min": ("几点提出", "要审批的移动在这时提出，下班前有人看。"),
    "repack_from_pct": ("碎片率到多少才整理", "资源池里用不上的空闲到这个比例，才值得找一遍。"),
    "repack_exact_cards": ("精确搜索看几张卡", "只看碎得最厉害的这些。"),
    "repack_exact_sizes": ("区分几种大小", "相近的需求算一种。"),
    "repack_max_moves": ("一次最多几步", "每一步都是一次加载，清单也要有人看。"),
    "repack_gain_mib": ("一步至少腾出", "腾不出这么多可用显存，不值得一次加载。"),
    "repack_tries": ("每步试几组", "限制搜索的时间。"),
    "repack_starts": ("从几个开头找", "只从一个开头找，可能走进死胡同。"),
    "repack_search_s": ("精确搜索时限", "最多用这么久改进快速算法的答案。"),
}
HOLD: Words = {
    "hold_small_s": ("小模型挂起上限", "普通调用等小模型加载的最长时间。"),
    "hold_large_s": ("大模型挂起上限", "等大模型的最长时间。"),
    "hold_large_mib": ("多大算大模型", "按权重大小分。"),
    "hold_stream_s": ("流式挂起上限", "看得到进度的流可以等更久。"),
    "hold_own_max_s": ("业务自设上限", "业务自己设的也不能超过它。"),
    "eta_floor_s": ("最短预计", "没就绪就不说 0 秒。"),
}
LATENCY: Words = {
    "p99_window_s": ("P99 看多久", "够长，不被一次偶然左右。"),
    "p99_stretch_s": ("最多看多久", "调用少时窗口拉长到这里为止。"),
    "p99_samples": ("至少几次", "再少就把最慢的一次当成了 P99。"),
    "disturbance_window_s": ("干扰看多久", "邻居的影响在这段时间里看得出来。"),
    "disturbance_past_s": ("与多久比", "和自己之前这段时间比。"),
}
LOAD: Words = {
    "max_loads_per_host": ("每主机同时加载", "同时加载要分存储带宽。"),
    "load_init_s": ("启动时间", "读权重之外的启动时间，学到之前先按它算。"),
    "load_warm_up_s": ("预热时间", "图编译与首字，学到之前先按它算。"),
    "load_streams": ("并行读几路", "本地存储并行读，再多也快不了。"),
    "load_stream_gain_pct": ("每多一路快多少", "测到之前先按它算。"),
    "load_local_mib_s": ("本地盘速度", "现场没有可参考的时候用。"),
    "load_learns_pct": ("新测带宽的分量", "一次加载对已知带宽影响多少。"),
    "load_recency_pct": ("上一次的分量", "前一次加载与后一次相比占多少。"),
    "wake_s": ("唤醒时间", "学到之前先按它算。"),
    "stop_s": ("停止并归还", "停止或休眠，加两次采样。"),
    "load_prior_loads": ("主机自报的分量", "主机说的存储带宽抵得上这么多次实测。"),
    "load_times_kept": ("看最近几次", "估计只看这么多次。"),
    "load_deviations": ("下限取几倍偏差", "均值减去这么多倍平均偏差，是有把握的下限。"),
}
FAULTS: Words = {
    "retry_first_s": ("第一次重试等待", "同一张卡上马上再试。"),
    "retry_second_s": ("第二次重试等待", "再等久一点。"),
    "retry_third_s": ("第三次重试等待", "还不行就换卡。"),
    "max_failed_cards": ("试几张卡", "都不行就算业务不可用。"),
    "down_retry_s": ("不可用多久再试", "隔这么久自动再试。"),
    "silent_s": ("主机沉默", "沉默超过它就不给新任务。"),
    "lost_s": ("主机失联", "沉默这么久，实例到别处重建。"),
    "freeze_hosts": ("冻结的主机数", "同时沉默这么多台，而且超过比例，就全场冻结。"),
    "freeze_pct": ("冻结的比例", "超过全部主机的这个比例。"),
    "freeze_window_s": ("同时的定义", "在这段时间内先后沉默。"),
}
SCORES: Words = {
    "score_fragmentation": ("少留碎片", "尽量给将来的业务留下放得下的空位。"),
    "score_best_fit": ("先填半满的卡", "优先用已经在用的卡。"),
    "score_profile": ("画像互补", "在线配低频，不配在线。"),
    "busy_neighbour_pct": ("忙邻居界线", "低频业务一周里有这么多时间在算，就按在线的邻居看待。"),
    "score_price": ("用便宜的卡", "够用的卡里选便宜的。"),
    "score_spread": ("分散", "同一业务的实例放在不同主机。"),
    "score_local": ("读得快的主机", "读权重快的优先。"),
    "score_near": ("权重已在手边", "内存或本地盘里已有权重的主机优先。"),
    "score_lent": ("弹性池最后用", "大过其他所有项之和。"),
    "score_n1": ("坏一张卡也有去处", "这张卡坏了，上面的实例别处放得下。"),
    "small_prefers_cheap": ("小模型偏好便宜卡", "小模型用快卡得益不多，价格分乘以它。"),
    "cheap_model_mib": ("多小算小模型", "权重小于它就偏好便宜卡。"),
    "latency_compute_cap": ("算力代次下限", "低于它的旧卡不放要求首字快的大模型。"),
}
MONEY: Words = {
    "host_memory_fen_gib_h": ("主机内存单价", "每 GiB 每小时；休眠实例的第二张账单，默认不收。"),
    "cost_late_s": ("入账等待", "一小时结束后等这么久再入账，沉默主机的报告可能还会来。"),
    "cost_sample_s": ("计费采样", "多久量一次卡。"),
    "price_jump_factor": ("改价要复核", "价格变化超过这么多倍，要第二个人确认。"),
    "budget_warn_pct": ("预算预警", "够早，还来得及处理。"),
    "budget_forecast_h": ("预测看多久", "按最近这些小时外推，一周里什么日子都有。"),
    "wait_fen_per_s": ("等一秒值多少", "有人在等的一秒，10 分即每小时 360 元。"),
    "wait_weight_background": ("后台等待的分量", "与有人在等相比。"),
    "wait_weight_timer": ("定时等待的分量", "定时任务可以提前准备，等待不值钱。"),
}
SYMPTOMS: Words = {
    "full_pct": ("显存算满", "资源池平均占用到这里算满。"),
    "idle_util_pct": ("算力算闲", "芯片平均忙碌低于它，显存白占。"),
    "few_calls_24h": ("调用算少", "一天不到这么多次，不必一直醒着。"),
    "first_call_slow_s": ("首次算慢", "首次调用等过它，人会感觉到。"),
    "first_call_days": ("几天才算", "最近七天里有这么多天，一次只是偶然。"),
    "capped_least": ("超时至少几次", "一天里撞上挂起上限这么多次才算症状。"),
    "capped_pct": ("超时占比", "占当天调用的比例。"),
    "slow_p99_ms": ("P99 算慢", "没有设目标的业务，P99 超过它算慢。"),
    "dead_after_s": ("多久没起来", "加载失败后这么久没有实例，比快速重试长。"),
}
REQUESTS: Words = {
    "approvers_whitelist": ("白名单要几人批", "同意一个业务不被收回要几个人。"),
    "approvers_budget": ("预算要几人批", "同意一个预算要几个人。"),
    "approvers_quota": ("配额要几人批", "同意一个配额要几个人：承诺出去的，大家都要让。"),
    "approvers_audience": ("开放范围要几人批", "同意别的公司调用一个业务要几个人。"),
    "approvers_service": ("新业务要几人批", "同意登记一个新业务要几个人。"),
    "approvers_policy": ("改策略要几人批", "同意改策略要几个人。"),
    "approvers_key": ("大范围密钥要几人批", "同意一个范围大的密钥要几个人。"),
    "wide_key_approval": ("大范围密钥要审批", "1：公司要能调用全部业务的密钥，只能申请；指定业务的照常自己建。"),
    "group_policy_approval": ("改集团策略要审批", "1：集团的策略只能通过申请来改，运维也一样。"),
    "two_approvers_fen": ("多少钱要两人批", "每月超过它的申请，不论哪一类，都要两个人。"),
    "two_approvers_s": ("多久要两人批", "占着显存超过一个季度，要两个人。"),
    "request_seen_s": ("后果多久算旧", "看到的后果比它还旧，决定之前要重新算。"),
    "request_remind_s": ("多久没人管就提醒", "等了这么久的申请再提醒所有审批人。"),
    "request_expiry_s": ("到期前多久提醒", "批准的东西到期之前这么久告诉当事人。"),
    "signed_within_s": ("签名多久有效", "办公系统签过名的决定这么久之内算数，钟有快慢，抄走的也用不久。"),
    "urgent_review_s": ("紧急生效的复核限期", "运维一人先生效的，到时没有人同意就结束。"),
}

SECTIONS = (
    Section("memory", _("显存与装箱"), MEMORY),
    Section("tiers", _("档位"), TIERS),
    Section("reclaim", _("保活与回收"), RECLAIM),
    Section("forecast", _("预测与预热"), FORECAST),
    Section("hold", _("冷启动与挂起"), HOLD),
    Section("load", _("加载估计"), LOAD),
    Section("drain", _("排空"), DRAIN),
    Section("scale", _("扩缩"), SCALE),
    Section("pressure", _("显存压力"), PRESSURE),
    Section("kv", _("引擎与 KV"), KV),
    Section("batch", _("批量与算力"), BATCH),
    Section("repack", _("碎片整理"), REPACK),
    Section("latency", _("P99 与干扰"), LATENCY),
    Section("scores", _("放置打分"), SCORES),
    Section("faults", _("故障与失联"), FAULTS),
    Section("advice", _("建议与按钮"), ADVICE),
    Section("money", _("费用与预算"), MONEY),
    Section("symptoms", _("体检"), SYMPTOMS),
    Section("requests", _("申请与审批"), REQUESTS),
)
UNITS = {
    "s": _("秒"),
    "ms": _("毫秒"),
    "looks": _("次"),
    "moves": _("步"),
    "sizes": _("种"),
    "sets": _("组"),
    "beginnings": _("个开局"),
    "MiB": "MiB",
    "MiB/s": "MiB/s",
    "%": "%",
    "h": _("小时"),
    "fen": _("分"),
    "times": _("倍或次"),
    "calls": _("次"),
    "samples": _("次采样"),
    "replicas": _("个实例"),
    "loads": _("次加载"),
    "hosts": _("台"),
    "cards": _("张卡"),
    "people": _("人"),
    "weeks": _("周"),
    "days": _("天"),
    "weekday": _("星期"),
    "hour": _("点"),
    "tokens": _("词元"),
    "sessions": _("次会话"),
    "preloads": _("次预热"),
    "services": _("个业务"),
    "streams": _("路"),
    "regrets": _("次"),
    "minute of the day": _("分钟"),
    "0 or 1": "",
    "": "",
}
_SUFFIXES = ("_s", "_pct", "_mib", "_fen", "_h")


def in_english() -> bool:
    return (get_language() or "").startswith("en")


def label(name: str) -> str:
    """What the number is called."""
    if not in_english():
        return _known(name)[0]
    bare = next((name.removesuffix(end) for end in _SUFFIXES if name.endswith(end)), name)
    return bare.replace("_", " ").capitalize()


def why(name: str) -> str:
    """Why it is there."""
    if not in_english():
        return _known(name)[1]
    text: str = numbers()[name]["why"]
    return text[:1].upper() + text[1:] + "."


def _known(name: str) -> tuple[str, str]:
    return next((s.words[name] for s in SECTIONS if name in s.words), (name, ""))


def section_of(name: str) -> str:
    return next((s.key for s in SECTIONS if name in s.words), SECTIONS[0].key)
