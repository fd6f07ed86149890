"""What is said of folders that cannot be read, of numbers that cannot be told, and of shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.catalog.weights.problem import Code, Unknown, Unreadable

PROBLEMS: Mapping[Code, Any] = {
    Code.NO_ROOTS: gettext_lazy("这个站点没有给控制台权重目录：请运维设 GONGKA_WEIGHTS_ROOTS，或照目录、自己填。"),
    Code.BAD_PATH: gettext_lazy("要权重目录下的相对路径，不以 / 开头，也没有 ..。"),
    Code.OUTSIDE: gettext_lazy("它指到权重目录之外，没有读。把文件放进权重目录，或改链接。"),
    Code.NOT_THERE: gettext_lazy("权重目录下没有这个文件夹。看看路径写对没有，文件拷完没有。"),
    Code.FORBIDDEN: gettext_lazy("读不了：控制台没有权限，或存储出错。请运维看这个文件的权限。"),
    Code.NO_CONFIG: gettext_lazy("文件夹里没有 config.json，或它不是普通文件。"),
    Code.NO_WEIGHTS: gettext_lazy("文件夹里没有 safetensors 权重，别的格式读不了。"),
    Code.TOO_LONG: gettext_lazy("比这种文件该有的长得多，没有读。看看它是不是完好的。"),
    Code.NOT_JSON: gettext_lazy("不是完好的 JSON。重新下载这个文件。"),
    Code.NOT_SAFETENSORS: gettext_lazy("不是完好的 safetensors 文件。重新下载它。"),
    Code.BAD_OFFSETS: gettext_lazy("文件头里的位置前后对不上，不可信。重新下载它。"),
    Code.CUT_OFF: gettext_lazy("文件比它的头说的短：还没有拷完，或拷断了。"),
    Code.BAD_INDEX: gettext_lazy("索引里写的不是同一个文件夹里的 safetensors 文件名。"),
    Code.SHARD_MISSING: gettext_lazy("索引里写着的文件没有，或不是普通文件：还没有拷完。"),
    Code.TOO_MANY_FILES: gettext_lazy("索引里写的文件太多，不像是真的。"),
}
UNKNOWN: Mapping[Unknown, Any] = {
    Unknown.NO_LAYERS: gettext_lazy("config.json 没有说有几层"),
    Unknown.NO_HEADS: gettext_lazy("config.json 没有说清 KV 头数和每头的宽度"),
    Unknown.UNEVEN: gettext_lazy("各层不一样，算法不认识"),
    Unknown.OTHER_MEMORY: gettext_lazy("有的层用别的记忆方式（如 Mamba），算法不认识"),
    Unknown.CROSS_ATTENTION: gettext_lazy("编码器加解码器，KV 还随输入的长度变"),
    Unknown.SPARSE_INDEX: gettext_lazy("稀疏注意力另有一份索引缓存，算法不认识"),
}
ATTENTION: Mapping[str, Any] = {
    "mha": gettext_lazy("MHA，每个头都留 KV"),
    "gqa": gettext_lazy("GQA，几个头共用一份 KV"),
    "mqa": gettext_lazy("MQA，所有头共用一份 KV"),
    "mla": gettext_lazy("MLA，KV 压成一份潜向量"),
    "hybrid": gettext_lazy("混合：只有一部分层随上下文留 KV"),
    "encoder": gettext_lazy("编码器，不留 KV"),
    "unknown": gettext_lazy("不认识"),
}
#: Of `Model.shape`.
PARTS: Mapping[str, Any] = {
    "architecture": gettext_lazy("结构"),
    "attention": gettext_lazy("注意力"),
    "layers": gettext_lazy("层数"),
    "kv_layers": gettext_lazy("留 KV 的层"),
    "sliding_layers": gettext_lazy("其中滑动窗口的层，按全长算"),
    "kv_heads": gettext_lazy("KV 头数"),
    "head_dim": gettext_lazy("每头宽度"),
    "hidden": gettext_lazy("隐层宽度"),
    "precision": gettext_lazy("权重精度"),
    "tensors": gettext_lazy("张量数"),
}
FIELDS: Mapping[str, Any] = {
    "name": gettext_lazy("名称"),
    "task": gettext_lazy("任务"),
    "weights": gettext_lazy("权重路径"),
    "weights_mib": gettext_lazy("权重，MiB"),
    "kv_bytes_per_token": gettext_lazy("每个 token 的 KV 字节数"),
    "max_context": gettext_lazy("最长上下文，token"),
    "min_compute_cap": gettext_lazy("最低计算能力"),
    "shards": gettext_lazy("权重文件数"),
}


def problem(why: Unreadable) -> str:
    """The sentence for a person, with the file's name where it is about one."""
    said = str(PROBLEMS[why.code])
    return _("%(file)s：%(said)s") % {"file": why.file, "said": said} if why.file else said


def parts(shape: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """(label, value) of what is known of a shape."""
    known = [(key, shape[key]) for key in PARTS if shape.get(key) not in (None, "", 0) or key == "kv_layers" in shape]
    return [(PARTS[key], ATTENTION.get(str(value), value) if key == "attention" else value) for key, value in known]
