"""Forms as every page draws them: Tabler's classes, errors beside the field, `{% include "_field.html" %}` for each."""

from __future__ import annotations

from typing import Any

from django import forms
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

SELECTED = SafeString(" selected")
CLASSES: tuple[tuple[type[forms.Widget], str], ...] = (
    (forms.CheckboxInput, "form-check-input"),
    (forms.CheckboxSelectMultiple, "gk-check"),
    (forms.RadioSelect, "gk-check"),
    (forms.Select, "form-select"),
)


class Styled(forms.BaseForm):
    """Mix in before any form: `class SomeForm(Styled, forms.Form)`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        for field in self.fields.values():
            widget = field.widget
            widget.attrs["class"] = next((css for kind, css in CLASSES if isinstance(widget, kind)), "form-control")


class LongSelect(forms.Select):
    """A select box of a thousand options in one piece: Django renders each by a template of its own."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        chosen = set(map(str, self.format_value(value) or ()))
        options = ((pk, SELECTED if str(pk) in chosen else "", label) for pk, label in self.choices)
        inner = format_html_join("", '<option value="{}"{}>{}</option>', options)
        whole = self.build_attrs(self.attrs, {**(attrs or {}), "name": name})
        return format_html("<select{}>{}</select>", flatatt(whole), inner)
