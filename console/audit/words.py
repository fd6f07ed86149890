"""Acts in words: what the button of an address does, or how somebody came and went."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

SIGNED_IN, SIGNED_OUT, FAILED, LOCKED_OUT = "signed_in", "signed_out", "sign_in_failed", "locked_out"

ACTS: dict[str, Any] = {
    SIGNED_IN: _("登录"),
    SIGNED_OUT: _("退出"),
    FAILED: _("登录失败"),
    LOCKED_OUT: _("登录锁定"),
    "password": _("改自己的密码"),
    "member-new": _("加成员"),
    "member": _("改成员"),
    "member-import-save": _("导入成员"),
    "member-access": _("停用或恢复成员"),
    "member-password": _("重置密码"),
    "tenant-new": _("新建公司"),
    "tenant-edit": _("改公司"),
    "tenant-import-save": _("导入公司"),
    "application-new": _("新建应用"),
    "application-edit": _("改应用"),
    "application-remove": _("删除应用"),
    "key-application": _("改密钥的应用"),
    "key-new": _("新建密钥"),
    "key-rotate": _("轮换密钥"),
    "key-revoke": _("吊销密钥"),
    "service-register": _("登记业务"),
    "services-import-write": _("成批改业务"),
    "service-edit": _("改业务"),
    "service-preload": _("预热"),
    "service-preloads": _("开关自动预热"),
    "service-prefetch": _("改空闲预取"),
    "service-stop": _("停止业务"),
    "service-replica": _("操作实例"),
    "service-whitelist": _("申请保留"),
    "service-whitelist-end": _("结束保留"),
    "request-new": _("提申请"),
    "request-again": _("改后再提"),
    "request-decision": _("审批申请"),
    "api-request-decision": _("在别处审批申请"),
    "request-act": _("处理申请"),
    "request-end": _("结束申请"),
    "request-key": _("领取密钥"),
    "request-absences": _("定代理审批人"),
    "advice-approve": _("照建议做"),
    "advice-mode": _("改资源池模式"),
    "advice-keep": _("申请保留"),
    "policy-save": _("改策略"),
    "policy-withdraw": _("撤回策略版本"),
    "card-budget-new": _("新建卡预算"),
    "card-budget-end": _("结束卡预算"),
    "call-budget-new": _("新建调用预算"),
    "call-budget-end": _("结束调用预算"),
    "quota-new": _("新建配额"),
    "quota-edit": _("改配额"),
    "quota-end": _("取消配额"),
    "price-new": _("新建价格"),
    "price-approve": _("批准价格"),
    "pool-owner": _("改资源池归属"),
    "board-cordon": _("停用或恢复卡"),
    "host-cordon": _("停用或恢复主机"),
    "host-maintenance": _("排定维护"),
    "host-maintenance-end": _("结束维护"),
    "host-storage": _("改存储类别"),
    "host-gone": _("宣布主机不再回来"),
    "host-foreign": _("登记外部占用"),
    "host-foreign-end": _("取消外部占用"),
    "repack-search": _("求更好的整理方案"),
    "repack-cancel": _("取消计算"),
    "repack-approve": _("批准整理"),
    "repack-move-approve": _("批准一步整理"),
    "repack-move-skip": _("跳过一步整理"),
    "audit-csv": _("导出审计"),
    "audit-xlsx": _("导出审计"),
}


def word(act: str) -> str:
    return str(ACTS.get(act, act))
