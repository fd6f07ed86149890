from django.apps import AppConfig


class RepackConfig(AppConfig):
    name = "console.repack"
