"""The experimenter's home as FABRIC's JupyterHub gives it: token, configuration, environment."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

from fabbbr.sandbox import names

_FRESH_S = 365 * 24 * 3600.0
"""fablib looks at the age of its cache; this one never gets old, also when a virtual clock jumps."""


def furnish(home: Path, token: Mapping[str, object], logins: Mapping[str, str]) -> None:
    """Write what the portal and the hub would have put there; keys are made by fablib on its first use.

    ``logins`` says who logs in on which image: fablib would fetch that from the internet.
    """
    configuration = home / "work" / "fabric_config"
    configuration.mkdir(parents=True)
    token_file = home / ".tokens.json"
    token_file.touch(mode=0o600)
    token_file.write_text(json.dumps(token, indent=2))
    (configuration / "fabric_rc").write_text(
        "".join(f"export {key}={value}\n" for key, value in _settings(home).items())
    )
    cache = home / ".fabric" / "cache"
    cache.mkdir(parents=True)
    images = cache / "os_images.json"
    images.write_text(
        json.dumps({image: {"default_user": user, "description": image} for image, user in logins.items()})
    )
    fresh_s = time.time() + _FRESH_S
    os.utime(images, (fresh_s, fresh_s))


def environment(home: Path, authority: Path, outer: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a command in the sandbox: the caller's, without what leads out of it."""
    leading_out = ("FABRIC_", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "SSH_")
    kept = {key: value for key, value in outer.items() if not key.startswith(leading_out)}
    trusted = dict.fromkeys(("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE"), str(authority))
    return kept | trusted | _settings(home) | {"HOME": str(home), "FABBBR_SANDBOX": f"https://{names.ADMIN}"}


def _settings(home: Path) -> dict[str, str]:
    configuration = home / "work" / "fabric_config"
    return {
        "FABRIC_CREDMGR_HOST": names.CREDENTIAL_MANAGER,
        "FABRIC_ORCHESTRATOR_HOST": names.ORCHESTRATOR,
        "FABRIC_CORE_API_HOST": names.CORE_API,
        "FABRIC_AM_HOST": names.ARTIFACTS,
        "FABRIC_TOKEN_LOCATION": str(home / ".tokens.json"),
        "FABRIC_PROJECT_ID": names.PROJECT_ID,
        "FABRIC_BASTION_HOST": names.BASTION,
        "FABRIC_BASTION_USERNAME": names.BASTION_LOGIN,
        "FABRIC_BASTION_KEY_LOCATION": str(configuration / "fabric_bastion_key"),
        "FABRIC_SLICE_PRIVATE_KEY_FILE": str(configuration / "slice_key"),
        "FABRIC_SLICE_PUBLIC_KEY_FILE": str(configuration / "slice_key.pub"),
        "FABRIC_BASTION_SSH_CONFIG_FILE": str(configuration / "ssh_config"),
        "FABRIC_LOG_FILE": str(home / "fablib.log"),
        "FABRIC_LOG_LEVEL": "INFO",
    }
