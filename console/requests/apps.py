from django.apps import AppConfig


class RequestsConfig(AppConfig):
    name = "console.requests"
