"""Django settings: every value that differs between sites comes from the environment."""

from __future__ import annotations

import os
import secrets
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlparse

BASE = Path(__file__).resolve().parent.parent
HOME = Path(os.environ.get("GONGKA_HOME", BASE / "var"))
DEBUG = os.environ.get("GONGKA_DEBUG", "") == "1"


def secret_key() -> str:
    """From the environment, else a file made once: a key of one's own without a step to forget."""
    if key := os.environ.get("GONGKA_SECRET"):
        return key
    path = HOME / "secret"
    if not path.exists():
        HOME.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(48))
    return path.read_text().strip()


def database(url: str) -> dict[str, object]:
    parts = urlparse(url)
    if parts.scheme in ("postgres", "postgresql"):
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path.lstrip("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": unquote(parts.hostname or "") or parse_qs(parts.query).get("host", [""])[0],  # ?host=: a socket
            "PORT": str(parts.port or ""),
            "CONN_MAX_AGE": 600,
        }
    if parts.scheme != "sqlite":
        raise ValueError("DATABASE_URL must begin with postgres:// or sqlite:///")
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": parts.path.replace("//", "/", 1) if parts.path.startswith("//") else parts.path,
        # WAL alone is not enough: a read-then-write transaction cannot wait out its upgrade and fails at once.
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "detect_types": 0,  # each column is read by its field: twice translated costs a page of 1,000 rows 20 ms
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
        "CONN_MAX_AGE": None,
    }


SECRET_KEY = secret_key()
ALLOWED_HOSTS = os.environ.get("GONGKA_ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]").split(",")
GATEWAY_URL = os.environ.get("GONGKA_GATEWAY_URL", "http://127.0.0.1:8080")  # printed in examples, as callers reach it
DECISIONS_SECRET = os.environ.get("GONGKA_DECISIONS_SECRET", "")  # of decisions taken elsewhere; empty: there are none
#: Folders with weights that this machine sees too; ":" between several; empty: models are described by hand.
WEIGHTS_ROOTS = [Path(root) for root in os.environ.get("GONGKA_WEIGHTS_ROOTS", "").split(os.pathsep) if root]
DRAFT_DAYS = int(os.environ.get("GONGKA_DRAFT_DAYS", "30"))  # what was typed and not sent is kept so long
CSRF_TRUSTED_ORIGINS = [origin for origin in os.environ.get("GONGKA_ORIGINS", "").split(",") if origin]
REDIS_URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
DATABASES = {"default": database(os.environ.get("DATABASE_URL", f"sqlite:///{HOME / 'gongka.sqlite3'}"))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "channels",
    "console.accounts",
    "console.fleet",
    "console.catalog",
    "console.policies",
    "console.usage",
    "console.journal",
    "console.money",
    "console.jobs",
    "console.repack",
    "console.requests",
    "console.audit",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "console.headers.whole_files",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "console.headers.content_policy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",  # last: it turns a lock-out into the answer
    "console.audit.middleware.Audit",
]
ROOT_URLCONF = "console.urls"
ASGI_APPLICATION = "console.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE / "templates"],
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "console.context.page",
            ],
            "builtins": [
                "django.templatetags.i18n",
                "django.templatetags.l10n",
                "django.templatetags.static",
                "console.filters",
                "console.marks",
                "console.requests.marks",
            ],
        },
    }
]

# Who is signed in
AUTH_USER_MODEL = "accounts.User"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher", "console.accounts.passwords.FirstPassword"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "console.accounts.passwords.LongEnough", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]  # the name alone would let a stranger lock anybody out
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False  # who goes on trying does not make the owner wait longer
AXES_LOCKOUT_CALLABLE = "console.accounts.views.locked_out"
AXES_ENABLE_ADMIN = False
AXES_DISABLE_ACCESS_LOG = True  # sessions are rows already
AXES_VERBOSE = False
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "board"
LOGOUT_REDIRECT_URL = "login"
SECURE_COOKIES = os.environ.get("GONGKA_HTTPS", "") == "1"  # off only where nothing but loopback speaks to us
SESSION_COOKIE_NAME = "gongka_session"  # not Django's: another site on the same host name must not share it
SESSION_COOKIE_AGE = 8 * 3600  # one shift
SESSION_COOKIE_SECURE = SECURE_COOKIES
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_NAME = "gongka_csrf"
CSRF_COOKIE_HTTPONLY = True  # htmx sends the token from the page, no script reads the cookie
CSRF_COOKIE_SECURE = SECURE_COOKIES
CSRF_FAILURE_VIEW = "console.views.stale_form"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
if SECURE_COOKIES:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = 30 * 86400

# Page assets come out of node_modules as they are (npm ci), our own beside them; nothing from another site.
NODE = BASE / "node_modules"
STATIC_URL = "static/"
STATIC_ROOT = os.environ.get("GONGKA_STATIC") or None
STATICFILES_DIRS = [
    BASE / "console" / "static",
    *(
        (prefix, folder)
        for prefix, folder in (
            ("tabler/css", NODE / "@tabler" / "core" / "dist" / "css"),
            ("tabler/js", NODE / "@tabler" / "core" / "dist" / "js"),
            ("htmx", NODE / "htmx.org" / "dist"),
        )
        if folder.is_dir()
    ),
]
WHITENOISE_USE_FINDERS = True
WHITENOISE_MAX_AGE = 300

# Pub/sub, not lists: what nobody listens to must not pile up, and a page that missed a message asks again.
CHANNEL_LAYERS = {
    "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [REDIS_URL]}}
}

LANGUAGE_CODE = "zh-hans"
LANGUAGES = [("zh-hans", "简体中文"), ("en", "English")]  # each in its own words
LOCALE_PATHS = [BASE / "console" / "locale"]
LANGUAGE_COOKIE_NAME = "gongka_language"
LANGUAGE_COOKIE_AGE = 365 * 86400
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_SECURE = SECURE_COOKIES
TIME_ZONE = os.environ.get("GONGKA_TIME_ZONE", "Asia/Shanghai")
USE_TZ = True

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"},
        "one_line": {"()": "console.logs.OneLine", "format": "%(asctime)s %(levelname)s %(name)s: %(message)s"},
    },
    "filters": {"refusals": {"()": "console.logs.Refusals"}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "line"},
        "stderr_short": {"class": "logging.StreamHandler", "formatter": "one_line"},
    },
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        # Django's own console handler shows only while debugging, and mails admins we do not have.
        "django": {"handlers": [], "level": "INFO"},
        "django.request": {"level": "INFO", "filters": ["refusals"]},
        # One line a request would be the log; httpx prints whole addresses, which may carry tokens.
        "channels_redis": {"handlers": ["stderr_short"], "level": "INFO", "propagate": False},
        "httpx": {"level": "WARNING"},
        "axes": {"level": "WARNING"},  # four lines a login otherwise; a lock-out is a warning
        "django.server": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
    },
}
