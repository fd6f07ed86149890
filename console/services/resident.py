"""The field of resident hours: written as a person writes them, kept as data."""

from __future__ import annotations

from typing import Any

from django import forms

from console.workdays import read, said


class HoursField(forms.Field):
    """`工作日 08:00-18:00; 周六 09:00-12:00` ↔ [{"days", "from", "to"}]. Empty: no resident hours."""

    widget = forms.TextInput

    def to_python(self, value: Any) -> list[dict[str, str]]:
        if isinstance(value, list):
            return value
        return read(value or "")

    def prepare_value(self, value: Any) -> Any:
        return said(value, "; ") if isinstance(value, list) else value
