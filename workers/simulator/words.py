"""Readable Chinese answers, the same for the same prompt, and a token count that needs no tokenizer's files."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator

# One line a part of the sentence: subject, manner, verb, object, mark.
_SENTENCE = """
系统 平台 模型 团队 用户 客户 报表 数据 设备 合同 工单 订单 知识库 流程 项目 供应商 服务 接口 算力 显存
已经 正在 可以 需要 能够 逐步 及时 稳定地 自动 持续 按计划 重新 统一 认真 快速
处理 检查 更新 汇总 分析 核对 优化 记录 通知 分配 评估 归档 提交 审批 恢复 整理 安排 监控
请求 结果 指标 任务 文件 风险 问题 成本 资源 进度 日志 方案 预算 说明 质量 排期 清单 意见
， 。 ； 。
"""
_PARTS_OF_SPEECH = [line.split() for line in _SENTENCE.strip().splitlines()]
VOCABULARY = [word for part in _PARTS_OF_SPEECH for word in part]
ENCODED = [json.dumps(word, ensure_ascii=False).encode() for word in VOCABULARY]
_PARTS = tuple(len(part) for part in _PARTS_OF_SPEECH)
_OFFSETS = tuple(sum(_PARTS[:number]) for number in range(len(_PARTS)))
_TOKEN = re.compile(r"[A-Za-z]{1,6}|[0-9]{1,3}|\s+|.", re.DOTALL)

MIN_ANSWER, ANSWER_SPREAD = 40, 200  # tokens of an answer that ends by itself: shorter chats to half a page


def count_tokens(text: str) -> int:
    """Tokens of `text`: one for a Chinese character or mark, for up to six letters, three digits, or a gap."""
    return sum(1 for _ in _TOKEN.finditer(text))


def seed_of(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def natural_length(seed: int) -> int:
    """After how many tokens the answer to a prompt of this seed ends by itself."""
    return MIN_ANSWER + seed % ANSWER_SPREAD


def word_numbers(seed: int) -> Iterator[int]:
    """Endless indices into VOCABULARY: subject, manner, verb, object, mark, and again."""
    state = seed
    while True:
        for size, offset in zip(_PARTS, _OFFSETS, strict=True):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            yield offset + (state >> 16) % size
