"""Check all pinned packages for known vulnerabilities; say so when the advisories cannot be reached."""

import json
import subprocess
import sys

_UNKNOWN = 3  # `.ci/check` says so, and does not say "ok".


def main() -> None:
    """Exit 1 when a pinned package has a known vulnerability, naming it and its fix; exit 3 when that is unknown."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", "requirements.lock", "--require-hashes"]
    options = ["--disable-pip", "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    try:
        dependencies = json.loads(done.stdout)["dependencies"]
    except (json.JSONDecodeError, KeyError):
        print(f"The dependencies could not be audited: {' '.join(done.stderr.strip().splitlines()[-1:])}")
        sys.exit(_UNKNOWN)
    unknown = [dependency for dependency in dependencies if "skip_reason" in dependency]
    found = [
        f"{dependency['name']} {dependency['version']}: {flaw['id']}, fixed in {flaw['fix_versions']}"
        for dependency in dependencies
        for flaw in dependency.get("vulns", ())
    ]
    print("\n".join([*found, f"{len(dependencies) - len(unknown)} dependencies audited, {len(found)} flaws."]))
    if unknown:
        print(f"{len(unknown)} could not be audited: the advisories cannot be reached from here.")
    sys.exit(1 if found else _UNKNOWN if unknown else 0)


if __name__ == "__main__":
    main()
