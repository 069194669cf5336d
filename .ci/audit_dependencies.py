"""Check all pinned packages for known vulnerabilities; say so when the advisories cannot be reached."""

import json
import subprocess
import sys


def main() -> None:
    """Exit 1 when a pinned package has a known vulnerability, naming it and the version that fixes it."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", "requirements.lock", "--require-hashes"]
    options = ["--disable-pip", "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    try:
        dependencies = json.loads(done.stdout)["dependencies"]
    except (json.JSONDecodeError, KeyError):
        print(f"The dependencies could not be audited: {done.stderr.strip().splitlines()[-1:]}")
        return
    unknown = [dependency for dependency in dependencies if "skip_reason" in dependency]
    found = [
        f"{dependency['name']} {dependency['version']}: {flaw['id']}, fixed in {flaw['fix_versions']}"
        for dependency in dependencies
        for flaw in dependency.get("vulns", ())
    ]
    print("\n".join([*found, f"{len(dependencies) - len(unknown)} dependencies audited, {len(found)} flaws."]))
    if unknown:
        print(f"{len(unknown)} could not be audited: the advisories cannot be reached from here.")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
