"""What `points status` and the page of metrics show of the service that this process is."""

import json
from typing import Any

from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from app.cli.status import status as status_command
from app.metrics.page import Page


def status() -> dict[str, Any]:
    """Return what status shows, but for what it says of web: here is none."""
    found: dict[str, Any] = json.loads(CliRunner().invoke(status_command, ["--json", "--data-dir", "/none"]).stdout)
    found["warnings"] = [one for one in found["warnings"] if not one.startswith("Whether web answers is not known")]
    return found


def figures() -> dict[str, float]:
    families = text_string_to_metric_families(Page().text().decode())
    return {sample.name: sample.value for family in families for sample in family.samples}
