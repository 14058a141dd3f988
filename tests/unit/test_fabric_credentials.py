"""What FABRIC would refuse later is refused before: tokens, keys, names of hosts."""

import base64
import json
import re
import shutil
import subprocess
from datetime import datetime, timedelta, timezone

import pytest

from fabbbr.backends.fabric.answers import Settings, written
from fabbbr.backends.fabric.credentials import (
    EARLY,
    fingerprint,
    read_token,
    require_bastion_key,
    require_hosts,
    require_keys,
    require_public_key,
    slice_keys,
    unusable,
)
from fabbbr.errors import EnvironmentUnfitError

NOW = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)
KINDS = {
    "rsa-3072": ("-t", "rsa", "-b", "3072"),
    "rsa-2048": ("-t", "rsa", "-b", "2048"),
    "ecdsa-256": ("-t", "ecdsa", "-b", "256"),
    "ecdsa-521": ("-t", "ecdsa", "-b", "521"),
    "ed25519": ("-t", "ed25519"),
}
needs_keygen = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="no ssh-keygen")


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    for name, words in KINDS.items():
        subprocess.run(("ssh-keygen", "-q", *words, "-N", "", "-f", folder / name), check=True)
    return folder


def settings(slice_key, bastion_key):
    return Settings(
        project_id="p",
        bastion_host="bastion",
        bastion_user="alice",
        bastion_key=str(bastion_key),
        slice_key=str(slice_key),
        slice_public_key=f"{slice_key}.pub",
        token_file="/nowhere",  # noqa: S106 - a path
    )


def jwt(**claims):
    coded = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"header.{coded}.signature"


@pytest.mark.parametrize(
    ("held", "ends"),
    [
        ({"id_token": "a.b.c", "expires_at": written(NOW)}, NOW),
        ({"id_token": jwt(exp=int(NOW.timestamp()))}, NOW),
        ({"id_token": jwt(exp=1), "expires_at": written(NOW)}, NOW),
        ({"id_token": "a.b.c"}, None),
        ({"id_token": jwt(sub="me"), "expires_at": "tomorrow"}, None),
        ({"id_token": jwt(exp=10**30)}, None),
        ({"id_token": "opaque"}, None),
    ],
)
def test_the_end_of_a_token_comes_from_its_file_or_from_itself(tmp_path, held, ends):
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps(held))
    assert read_token(path).ends == ends


def test_a_token_ends_within_what_is_left_of_it(tmp_path):
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps({"id_token": "a.b.c", "expires_at": written(NOW + EARLY)}))
    token = read_token(path)
    assert token.ends_within(EARLY, NOW)
    assert not token.ends_within(EARLY, NOW - timedelta(seconds=1))
    assert not token.ends_within(timedelta(0), NOW)


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"id_token": 5}', '"text"'])
def test_without_a_token_the_error_names_the_file_and_the_remedy(tmp_path, text):
    path = tmp_path / "tokens.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(EnvironmentUnfitError, match=rf"{re.escape(str(path))}.*fabric-cli configure setup"):
        read_token(path)


def test_an_unusable_token_has_ended_or_is_not_accepted(tmp_path):
    assert "expired at 2026-05-04 12:00 UTC" in str(unusable(tmp_path, NOW, NOW))
    assert "is not accepted" in str(unusable(tmp_path, NOW + EARLY, NOW))
    assert "is not accepted" in str(unusable(tmp_path, None, NOW))


@pytest.mark.parametrize(
    "host", ["https://orchestrator.fabric-testbed.net", "host:443", "host/path", "", None, "a b", "-x"]
)
def test_a_host_is_a_bare_name(host):
    with pytest.raises(EnvironmentUnfitError, match=r"FABRIC_X_HOST is .*bare name"):
        require_hosts({"FABRIC_X_HOST": host})


def test_names_and_addresses_are_hosts():
    require_hosts({"a": "cm.fabric-testbed.net", "b": "127.0.0.1", "c": "2001:db8::1", "d": "x"})


@needs_keygen
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("rsa-3072", None),
        ("rsa-2048", "an RSA key of 2048 bits; FABRIC takes RSA of at least 3072 bits or ECDSA; make one: "),
        ("ecdsa-256", None),
        ("ecdsa-521", None),
        ("ed25519", "a key of the kind 'ssh-ed25519'; FABRIC takes"),
    ],
)
def test_keys_that_fabric_takes(keys, name, fault):
    text = (keys / f"{name}.pub").read_text()
    if fault is None:
        require_public_key(text, "key.pub")
        return
    with pytest.raises(EnvironmentUnfitError, match=f"key.pub holds {fault}"):
        require_public_key(text, "key.pub")


@pytest.mark.parametrize(
    "text", ["", "ssh-rsa", "ssh-rsa !!!!", "ssh-rsa AAAA", "ssh-rsa AAAAAQ==", "ssh-rsa AAAAB3NzaC1yc2E="]
)
def test_what_is_no_key_is_said_to_be_none(text):
    with pytest.raises(EnvironmentUnfitError, match=r"key\.pub: .* is no public key of OpenSSH"):
        require_public_key(text, "key.pub")


@needs_keygen
@pytest.mark.parametrize("name", KINDS)
def test_the_fingerprint_is_that_of_ssh_keygen(keys, name):
    said = subprocess.run(
        ("ssh-keygen", "-l", "-E", "md5", "-f", keys / f"{name}.pub"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert fingerprint((keys / f"{name}.pub").read_text()) == said.stdout.split()[1]


@needs_keygen
def test_two_good_keys_give_the_public_one(keys):
    assert require_keys(settings(keys / "ecdsa-256", keys / "rsa-3072")).startswith("ecdsa-sha2-nistp256 ")


@needs_keygen
def test_keys_that_others_may_read_that_are_one_or_are_missing_are_refused(keys, tmp_path):
    good = keys / "ecdsa-256"
    with pytest.raises(EnvironmentUnfitError, match="both slice and bastion key"):
        require_keys(settings(good, good))
    with pytest.raises(EnvironmentUnfitError, match=r"the bastion key .*/none cannot be read"):
        require_keys(settings(good, tmp_path / "none"))
    loose = tmp_path / "loose"
    shutil.copy(good, loose)
    loose.chmod(0o644)
    with pytest.raises(EnvironmentUnfitError, match=r"others may read the slice key.*chmod 600"):
        require_keys(settings(loose, good))
    loose.chmod(0o600)
    with pytest.raises(EnvironmentUnfitError, match=r"public slice key .*/loose\.pub cannot be read"):
        require_keys(settings(loose, good))


@needs_keygen
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, None),
        ({"fabric_key_type": "sliver"}, "is not known to FABRIC's portal"),
        ({"fingerprint": "MD5:00"}, "is not known to FABRIC's portal"),
        ({"expires_on": (NOW - timedelta(days=1)).isoformat()}, "expired on 2026-05-03"),
        ({"expires_on": "2026-05-03 10:00:00"}, "expired on 2026-05-03"),
        ({"expires_on": None}, None),
    ],
)
def test_the_portal_must_know_the_bastion_key(keys, change, fault):
    mine = fingerprint((keys / "rsa-3072.pub").read_text())
    key = {
        "fingerprint": mine,
        "fabric_key_type": "bastion",
        "expires_on": (NOW + timedelta(days=1)).isoformat(),
        **change,
    }
    held = settings(keys / "ecdsa-256", keys / "rsa-3072")
    if fault is None:
        require_bastion_key(held, {"sshkeys": [key]}, NOW)
        return
    with pytest.raises(EnvironmentUnfitError, match=fault):
        require_bastion_key(held, {"sshkeys": [key]}, NOW)


def test_a_bastion_key_without_its_public_half_cannot_be_judged(tmp_path):
    require_bastion_key(settings(tmp_path / "a", tmp_path / "b"), {"sshkeys": []}, NOW)


@needs_keygen
def test_the_offer_tells_the_key_that_machines_would_get(keys, tmp_path):
    (key,) = slice_keys(settings(keys / "ed25519", keys / "rsa-3072"))
    assert (key.kind, key.place) == ("ssh-ed25519", f"{keys}/ed25519.pub")
    assert slice_keys(settings(tmp_path / "none", tmp_path / "none")) == ()
