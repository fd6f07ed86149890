"""Choosing a service: a select box while there are few, a box to type in where there are many.

The box asks for what fits as one types (`/search/services`); without that it takes a name, or a label only one has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.forms.models import ModelChoiceIterator
from django.forms.utils import flatatt
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.catalog.models import Service
from console.forms import LongSelect

#: More than these are no list to choose from.
LISTED = 60
#: Told of what fits so far; who sees that many types another letter.
SUGGESTED = 20
NAMED = re.compile(r"[（(]([-\w]+)[)）]$")


def spelled(name: str, label: str) -> str:
    """As the box writes a service: 合同审阅（contract-review）."""
    return _("%(label)s（%(name)s）") % {"label": label, "name": name}


def suggestions(services: QuerySet[Service], typed: str) -> SafeString:
    """Options for what was typed so far. One query."""
    text = typed.strip()
    fit = services.filter(Q(name__icontains=text) | Q(label__icontains=text)).order_by("label", "name")
    found = fit.values_list("name", "label", "tenant__name")[:SUGGESTED]
    told = ((spelled(name, label), tenant) for name, label, tenant in found)
    return format_html_join("", '<option value="{}">{}</option>', told)


class Choices(ModelChoiceIterator):  # type: ignore[type-arg]
    """One more than a select box may hold, read once and without a model of each."""

    _few: list[tuple[Any, Any]] | None = None

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        if self._few is None:
            none = [] if self.field.empty_label is None else [("", self.field.empty_label)]
            self._few = none + list(self.queryset.values_list("name", "label")[: LISTED + 1])
        return iter(self._few)

    @property
    def many(self) -> bool:
        return sum(1 for value, _label in self if value) > LISTED


class ServiceBox(LongSelect):
    """Draws either; the field sets `choices`."""

    choices: Any

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        if not self.choices.many:
            return super().render(name, value, attrs, renderer)
        whole = self.build_attrs(self.attrs, {**(attrs or {}), "name": name, "type": "text", "autocomplete": "off"})
        fits = f"{whole.get('id', name)}-fits"
        whole |= {
            "class": "form-control", "value": self._spelled(value), "list": fits, "placeholder": self._hint(),
            "hx-get": reverse("search-services"), "hx-trigger": "focus once, input changed delay:200ms",
            "hx-target": f"#{fits}",
        }  # fmt: skip
        return format_html('<input{}><datalist id="{}"></datalist>', flatatt(whole), fits)

    def _hint(self) -> str:
        empty = next((str(label) for value, label in islice(self.choices, 1) if not value), "")
        return empty if not self.is_required and empty else _("输入名称")

    def _spelled(self, value: Any) -> str:
        """A name that was set is written with its label; what somebody typed stays as it was typed."""
        found = self.choices.queryset.filter(name=value or "").values_list("name", "label").first()
        return str(value or "") if found is None else spelled(*found)


class ServiceField(forms.ModelChoiceField):  # type: ignore[type-arg]
    """A service by its name. Give it a `queryset` of those the person may choose from."""

    iterator = Choices
    widget = ServiceBox
    queryset: QuerySet[Service]
    default_error_messages = {
        "invalid_choice": gettext_lazy("没有这个业务。"),
        "several": gettext_lazy("不止一个业务叫“%(text)s”，请写它的名称。"),
    }

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(Service.objects.none(), to_field_name="name", **kwargs)

    def to_python(self, value: Any) -> Service | None:
        text = str(value or "").strip()
        if not text:
            return None
        named = NAMED.search(text)
        found = list(self.queryset.filter(Q(name=named[1] if named else text) | Q(label=text))[:3])
        exact = [one for one in found if one.name in (text, named[1] if named else text)] or found
        if len(exact) > 1:
            raise ValidationError(self.error_messages["several"], code="several", params={"text": text})
        if not exact:
            raise ValidationError(self.error_messages["invalid_choice"], code="invalid_choice", params={"value": value})
        return exact[0]
