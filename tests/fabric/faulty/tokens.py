"""A revoked token is refused by 401 and a new manager gets another; a refresh token serves once."""

import json
import os
from pathlib import Path

from fabrictestbed.external_api.credmgr_client import CredmgrClient
from fabrictestbed_extensions.fablib.fablib import FablibManager

location = Path(os.environ["FABRIC_TOKEN_LOCATION"])
spent = json.loads(location.read_text())["refresh_token"]
fablib = FablibManager()
try:
    fablib.get_slices()
except Exception as error:
    assert "401" in str(error), error
else:
    raise AssertionError("a revoked token was good enough")
assert json.loads(location.read_text())["refresh_token"] != spent, (
    "fablib refreshes when it loads, and rotates"
)
assert FablibManager().get_slices() == []
try:
    client = CredmgrClient(os.environ["FABRIC_CREDMGR_HOST"])
    client.refresh(refresh_token=spent, project_id=os.environ["FABRIC_PROJECT_ID"])
except Exception as error:
    assert "has been used already" in str(error), error
else:
    raise AssertionError("a refresh token served twice")
