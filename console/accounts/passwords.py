"""The rule of length, in our words: Django's own sentence is not in every language of the console."""

from __future__ import annotations

from django.contrib.auth.password_validation import MinimumLengthValidator
from django.utils.translation import gettext as _


class LongEnough(MinimumLengthValidator):
    """OPTIONS: `min_length`, in characters."""

    def get_error_message(self) -> str:
        return _("新密码太短，至少 %(n)d 个字符。") % {"n": self.min_length}
