"""One caller's request on its way through the core: streamed word by word, or gathered and answered whole."""

from __future__ import annotations

import os
import time
from itertools import islice

from workers.simulator import shapes
from workers.simulator.asked import Asked
from workers.simulator.batch import Sequence
from workers.simulator.core import Core
from workers.simulator.http1 import Reply, Request
from workers.simulator.words import ENCODED, VOCABULARY, seed_of, word_numbers

EMPTY_WORD = b'""'
EMBEDDING_SIZE = 64  # numbers of an embedding: enough to compare, cheap to send


def request_name(request: Request, prefix: str) -> str:
    """The caller's `x-request-id` behind the kind's prefix, else a new name."""
    return prefix + (request.headers.get("x-request-id") or os.urandom(8).hex())


class Generation:
    """A chat or completion call from admission to its last byte."""

    def __init__(self, core: Core, reply: Reply, wanted: Asked, shape: shapes.Chat) -> None:
        self.core = core
        self.reply = reply
        self.wanted = wanted
        self.shape = shape
        self.words: list[str] = []
        self.made = 0
        words = word_numbers(seed_of(wanted.text))
        emit = self._stream_token if wanted.stream else self._gather_token
        self.sequence = Sequence(wanted.prompt_tokens, wanted.limit, wanted.natural, words, emit)

    def begin(self) -> None:
        """Answers at once when the queue is full; in a burst a stream learns it only after its 200."""
        if self.core.full():
            self.core.metrics.rejections += 1
            self.reply.send(503, shapes.error(shapes.BUSY, "Service Unavailable", 503))
            return
        if self.wanted.stream:
            self.reply.start()
        self.reply.on_hang_up = self._hung_up
        if not self.core.submit(self.sequence, self._core_died):
            self._fail(shapes.BUSY, "Service Unavailable", 503)

    def _hung_up(self) -> None:
        self.core.ended(self.sequence)

    def _core_died(self) -> None:
        self._fail(shapes.DEAD, "InternalServerError", 500)

    def _fail(self, text: str, kind: str, status: int) -> None:
        if self.wanted.stream:
            self.reply.write(shapes.error_event(text, kind, status))
            self.reply.end()
        else:
            self.reply.send(status, shapes.error(text, kind, status))

    def _counted(self) -> bytes:
        """The usage member of a chunk, where the caller asked for one in each."""
        if not self.wanted.continuous_usage:
            return b""
        counts = shapes.usage(self.wanted.prompt_tokens, self.made) | {"completion_tokens_details": None}
        return b',"usage":' + shapes.dump(counts)

    def _stream_token(self, number: int, reason: str | None) -> None:
        first = self.shape.first(self._counted()) if self.made == 0 else b""
        word = ENCODED[number] if number >= 0 else EMPTY_WORD
        self.made += number >= 0
        if first:
            self.reply.write(first)
        if reason is None:
            self.reply.write(self.shape.token(word, self._counted()))
            return
        self.reply.write(self.shape.last(word, reason, self._counted(), not self.wanted.include_usage))
        if self.wanted.include_usage:
            self.reply.write(self.shape.totals(self.wanted.prompt_tokens, self.made))
        self.reply.write(shapes.DONE)
        self.core.ended(self.sequence)
        self.reply.end()

    def _gather_token(self, number: int, reason: str | None) -> None:
        if number >= 0:
            self.words.append(VOCABULARY[number])
        if reason:
            made = len(self.words)
            self.core.ended(self.sequence)
            self.reply.send(200, self.shape.whole("".join(self.words), reason, self.wanted.prompt_tokens, made))


class Embedding:
    """One `/v1/embeddings` call: every input is a sequence of its own that ends with its prompt."""

    def __init__(self, core: Core, reply: Reply, texts: list[tuple[str, int]], name: str) -> None:
        self.core = core
        self.reply = reply
        self.texts = texts
        self.name = name
        self.open: set[Sequence] = set()

    def begin(self) -> None:
        if self.core.full():
            self.core.metrics.rejections += 1
            self.reply.send(503, shapes.error(shapes.BUSY, "Service Unavailable", 503))
            return
        self.reply.on_hang_up = self._stop
        sequences = [Sequence(tokens, 1, 1, word_numbers(0), self._one_done, pooling=True) for _, tokens in self.texts]
        self.open = set(sequences)
        for sequence in sequences:
            if not self.core.submit(sequence, self._core_died):
                self._stop()
                self.reply.send(503, shapes.error(shapes.BUSY, "Service Unavailable", 503))
                return

    def _stop(self) -> None:
        for sequence in self.open:
            self.core.ended(sequence)
        self.open.clear()

    def _core_died(self) -> None:
        self.reply.send(500, shapes.error(shapes.DEAD, "InternalServerError", 500))

    def _one_done(self, number: int, reason: str | None) -> None:
        finished = {one for one in self.open if one.made or reason == "abort"}
        for sequence in finished:
            self.open.discard(sequence)
            self.core.ended(sequence)
        if not self.open:
            self.reply.send(200, self._body())

    def _body(self) -> bytes:
        data = [
            {"index": number, "object": "embedding", "embedding": embedding(text)}
            for number, (text, _) in enumerate(self.texts)
        ]
        tokens = sum(tokens for _, tokens in self.texts)
        counts = {
            "prompt_tokens": tokens,
            "total_tokens": tokens,
            "completion_tokens": 0,
            "prompt_tokens_details": None,
        }
        head = {"id": self.name, "object": "list", "created": int(time.time()), "model": self.core.flags.served_name}
        return shapes.dump(head | {"data": data, "usage": counts})


def embedding(text: str) -> list[float]:
    """A unit vector that is the same for the same text."""
    raw = [number - 40.0 for number in islice(word_numbers(seed_of(text)), EMBEDDING_SIZE)]
    length = sum(one * one for one in raw) ** 0.5 or 1.0
    return [round(one / length, 6) for one in raw]
