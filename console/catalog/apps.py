from django.apps import AppConfig

from console import quick_times


class CatalogConfig(AppConfig):
    name = "console.catalog"

    def ready(self) -> None:
        quick_times.register()
