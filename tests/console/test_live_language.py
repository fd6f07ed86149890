"""The figures that arrive live are words too: each browser hears them in the language of its page."""

from __future__ import annotations

import json
import time

import pytest

from console.board import rows
from console.live import Board, language_of


def figures(board: Board, language: str) -> str:
    return json.dumps(json.loads(board.text(None, language=language))["keys"], ensure_ascii=False)


@pytest.mark.django_db
def test_one_board_is_told_in_two_languages(farm):
    board = Board()
    board.read(rows.now(time.time()))
    assert "个就绪" in figures(board, "zh-hans")
    assert '"ready"' in figures(board, "en")
    assert "个就绪" in figures(board, "zh-hans")  # nothing stays switched over


@pytest.mark.parametrize(
    ("query", "language"),
    [(b"language=en", "en"), (b"", "zh-hans"), (b"language=xx", "zh-hans"), (b"\xff=\xfe&language=", "zh-hans")],
)
def test_a_page_names_its_language_and_nothing_else_counts(query, language):
    assert language_of(query) == language
