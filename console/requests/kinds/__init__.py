"""Every kind of request. A new one is a file beside these and a line here."""

from __future__ import annotations

from console.requests.kind import Kind
from console.requests.kinds.audience import Audience
from console.requests.kinds.budget import Budget
from console.requests.kinds.calls import Calls
from console.requests.kinds.key import Key
from console.requests.kinds.policy import PolicyChange
from console.requests.kinds.quota import Quota
from console.requests.kinds.service import NewService
from console.requests.kinds.whitelist import Whitelist

KINDS: dict[str, Kind] = {
    kind.key: kind
    for kind in (
        Whitelist(),
        Budget(),
        Calls(),
        Quota(),
        NewService(),
        Audience(),
        PolicyChange(),
        Key(),
    )
}
