"""How to call a service, to be copied: no key is ever printed, the person's own goes in its place."""

from __future__ import annotations

import json

from django.utils.translation import gettext as _

from console.catalog.models import Service

EMBEDDING = "embedding"


def curl(service: Service, gateway: str) -> str:
    path, body = _call(service)
    text = json.dumps(body, ensure_ascii=False)
    return "\n".join(
        (
            f"curl -N {gateway}/v1/{path} \\",
            '  -H "Authorization: Bearer $GONGKA_KEY" \\',
            '  -H "Content-Type: application/json" \\',
            f"  -d '{text}'",
        )
    )


def _call(service: Service) -> tuple[str, dict[str, object]]:
    question = _("用一句话介绍你自己")
    if service.model.task.startswith(EMBEDDING):
        return "embeddings", {"model": service.name, "input": question}
    messages = [{"role": "user", "content": question}]
    return "chat/completions", {"model": service.name, "stream": True, "messages": messages}


def python(service: Service, gateway: str) -> str:
    lines = [
        "import os",
        "from openai import OpenAI",
        "",
        f'client = OpenAI(base_url="{gateway}/v1", api_key=os.environ["GONGKA_KEY"])',
    ]
    question = _("用一句话介绍你自己")
    if service.model.task.startswith(EMBEDDING):
        lines.append(f'answer = client.embeddings.create(model="{service.name}", input="{question}")')
        return "\n".join([*lines, "print(len(answer.data[0].embedding))"])
    lines += [
        "stream = client.chat.completions.create(",
        f'    model="{service.name}", stream=True,',
        f'    messages=[{{"role": "user", "content": "{question}"}}],',
        ")",
        "for chunk in stream:",
        "    if chunk.choices:",
        '        print(chunk.choices[0].delta.content or "", end="", flush=True)',
    ]
    return "\n".join(lines)
