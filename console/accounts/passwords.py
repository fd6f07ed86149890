"""Passwords: the rule of length in our words, and the first ones, which somebody else hands over."""

from __future__ import annotations

import secrets

from django.contrib.auth.hashers import PBKDF2PasswordHasher, get_hasher
from django.contrib.auth.password_validation import MinimumLengthValidator
from django.utils.translation import gettext as _

#: Without what is mistaken for something else when read aloud or typed from paper.
LETTERS = "abcdefghjkmnpqrstuvwxyzACDEFGHJKLMNPQRTUVWXY34679"
FIRST_LENGTH = 20  # of 49 letters: 112 bits


class LongEnough(MinimumLengthValidator):
    """OPTIONS: `min_length`, in characters. Django's own sentence is not in every language of the console."""

    def get_error_message(self) -> str:
        return _("新密码太短，至少 %(n)d 个字符。") % {"n": self.min_length}


class FirstPassword(PBKDF2PasswordHasher):
    """Of passwords that are 112 random bits: nobody guesses them, stretched or not.

    Five hundred people of a list are hashed in a second or two instead of minutes, and Django changes the hash to the
    usual one when such a password is used. A wrong one costs as much as any: its answer tells nothing by its time.
    """

    algorithm = "first"
    iterations = 1000

    def verify(self, password: str, encoded: str) -> bool:
        right: bool = super().verify(password, encoded)
        if not right:
            usual = get_hasher("default")
            usual.encode(password, usual.salt())
        return right


def first_password() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(FIRST_LENGTH))


def first_hash(password: str) -> str:
    """For the column of a person's password; only of what `first_password` made."""
    hasher = FirstPassword()
    encoded: str = hasher.encode(password, hasher.salt())
    return encoded
