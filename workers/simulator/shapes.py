"""The JSON bodies of vLLM 0.32's answers, key for key in the captured order; chunks are cut from prepared bytes."""

from __future__ import annotations

import json
from typing import Any

FINGERPRINT = "vllm-0.32.0-simulated"
DONE = b"data: [DONE]\n\n"
BUSY = "The engine is currently busy and cannot accept new requests. Please try again later or on a different instance."
DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."


def dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def error(message: str, kind: str, code: int, param: str | None = None) -> bytes:
    return dump({"error": {"message": message, "type": kind, "param": param, "code": code}})


def error_event(message: str, kind: str, code: int) -> bytes:
    """An error inside a stream whose status was 200 already: with spaces, and followed by [DONE], as the real one."""
    body = json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}, ensure_ascii=False)
    return b"data: " + body.encode() + b"\n\n" + DONE


def validation(kind: str, where: str, message: str, entry: str, context: str = "") -> bytes:
    """FastAPI's validation error as vLLM words it."""
    what = f"'type': '{kind}', 'loc': '{where}', 'msg': '{message}', 'input': '{entry}'{context}"
    return error(f"1 validation error:\n  {{{what}}}", "Bad Request", 400, where)


def usage(prompt_tokens: int, made: int) -> dict[str, Any]:
    return {"prompt_tokens": prompt_tokens, "total_tokens": prompt_tokens + made, "completion_tokens": made}


def whole_usage(prompt_tokens: int, made: int) -> dict[str, Any]:
    return usage(prompt_tokens, made) | {"prompt_tokens_details": None, "completion_tokens_details": None}


class Chat:
    """Bodies of `/v1/chat/completions`."""

    prefix = "chatcmpl-"

    def __init__(self, name: str, created: int, model: str) -> None:
        self.name, self.created, self.model = name, created, model
        head = {"id": name, "object": "chat.completion.chunk", "created": created, "model": model}
        self._head = b"data: " + dump(head)[:-1] + b',"choices":['
        self._open = self._head + b'{"index":0,"delta":{"content":'
        self._rest = b'},"logprobs":null,"finish_reason":null,"token_ids":null}]'

    def first(self, counted: bytes) -> bytes:
        """The chunk that gives the role; `counted` is a usage member with its comma, or nothing."""
        choice = b'{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]'
        return b'%b%b%b,"prompt_token_ids":null,"prompt_text":null}\n\n' % (self._head, choice, counted)

    def token(self, word: bytes, counted: bytes) -> bytes:
        """`word` is a JSON string."""
        return b"%b%b%b%b}\n\n" % (self._open, word, self._rest, counted)

    def last(self, word: bytes, reason: str, counted: bytes, fingerprint: bool) -> bytes:
        end = b'},"logprobs":null,"finish_reason":"%b","stop_reason":null,"token_ids":null}]' % reason.encode()
        print_ = b',"system_fingerprint":"%b"' % FINGERPRINT.encode() if fingerprint else b""
        return b"%b%b%b%b%b}\n\n" % (self._open, word, end, counted, print_)

    def totals(self, prompt_tokens: int, made: int) -> bytes:
        counts = dump(usage(prompt_tokens, made))
        return b'%b],"usage":%b,"system_fingerprint":"%b"}\n\n' % (self._head, counts, FINGERPRINT.encode())

    def whole(self, text: str, reason: str, prompt_tokens: int, made: int) -> bytes:
        message = {"role": "assistant", "content": text, "refusal": None, "annotations": None, "audio": None}
        message |= {"function_call": None, "reasoning": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason, "stop_reason": None}
        choice |= {"token_ids": None, "routed_experts": None}
        return dump(
            {"id": self.name, "object": "chat.completion", "created": self.created, "model": self.model}
            | {"choices": [choice], "service_tier": None, "system_fingerprint": FINGERPRINT}
            | {"usage": whole_usage(prompt_tokens, made), "prompt_logprobs": None, "prompt_token_ids": None}
            | {"prompt_text": None, "kv_transfer_params": None, "ec_transfer_params": None, "metrics": None}
        )


class Completion(Chat):
    """Bodies of `/v1/completions`: a text in place of a message, and no chunk for a role."""

    prefix = "cmpl-"

    def __init__(self, name: str, created: int, model: str) -> None:
        super().__init__(name, created, model)
        head = {"id": name, "object": "text_completion", "created": created, "model": model}
        self._head = b"data: " + dump(head)[:-1] + b',"choices":['
        self._open = self._head + b'{"index":0,"text":'
        self._rest = b"," + self._tail(b"null")

    @staticmethod
    def _tail(reason: bytes) -> bytes:
        return (
            b'"logprobs":null,"finish_reason":%b,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]' % reason
        )

    def first(self, counted: bytes) -> bytes:
        return b""

    def last(self, word: bytes, reason: str, counted: bytes, fingerprint: bool) -> bytes:
        return b"%b%b,%b%b}\n\n" % (self._open, word, self._tail(b'"%b"' % reason.encode()), counted)

    def whole(self, text: str, reason: str, prompt_tokens: int, made: int) -> bytes:
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": reason, "stop_reason": None}
        choice |= {"token_ids": None, "prompt_logprobs": None, "prompt_token_ids": None, "routed_experts": None}
        return dump(
            {"id": self.name, "object": "text_completion", "created": self.created, "model": self.model}
            | {"choices": [choice], "service_tier": None, "system_fingerprint": FINGERPRINT}
            | {"usage": whole_usage(prompt_tokens, made), "kv_transfer_params": None}
            | {"ec_transfer_params": None, "metrics": None}
        )


def models(served_name: str, root: str, max_model_len: int, created: int, permission: str) -> bytes:
    """`/v1/models`."""
    rights = {"allow_create_engine": False, "allow_sampling": True, "allow_logprobs": True}
    rights |= {"allow_search_indices": False, "allow_view": True, "allow_fine_tuning": False}
    grant = {"id": permission, "object": "model_permission", "created": created} | rights
    grant |= {"organization": "*", "group": None, "is_blocking": False}
    one = {"id": served_name, "object": "model", "created": created, "owned_by": "vllm", "root": root}
    one |= {"parent": None, "max_model_len": max_model_len, "permission": [grant]}
    return dump({"object": "list", "data": [one]})
