"""Names and addresses of the double's world; outside of it they belong to FABRIC itself."""

from __future__ import annotations

CREDENTIAL_MANAGER = "cm.fabric-testbed.net"
CORE_API = "uis.fabric-testbed.net"
ORCHESTRATOR = "orchestrator.fabric-testbed.net"
ARTIFACTS = "artifacts.fabric-testbed.net"
BASTION = "bastion.fabric-testbed.net"
ADMIN = "sandbox.fabric-testbed.net"
"""The double's own door, which FABRIC does not have: faults and the request log."""

CONTROL_PLANE = (CREDENTIAL_MANAGER, CORE_API, ORCHESTRATOR, ARTIFACTS, ADMIN)
CONTROL_ADDRESS = "127.77.0.2"
CLIENT_ADDRESS = "198.18.0.1"
BASTION_ADDRESS = "198.18.0.2"
CLIENT_PREFIX = 24

PROJECT_ID = "11111111-2222-4333-8444-555555555555"
PROJECT_NAME = "fabbbr sandbox"
USER_ID = "99999999-8888-4777-8666-000000000001"
USER_EMAIL = "alice@example.org"
USER_NAME = "Alice Sandbox"
BASTION_LOGIN = "alice_0000012345"

TIME_FORMAT = "%Y-%m-%d %H:%M:%S %z"
"""Of every instant in FABRIC's answers and in the token file."""
