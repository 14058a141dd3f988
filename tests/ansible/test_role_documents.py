"""What the documents of the roles and their modules promise is what they take."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import ansible.module_utils
import pytest
import yaml
from rooms import PLAYBOOKS, REPOSITORY

ROLES = ("measurement", "software_switch", "tcp_host")
MODULES = sorted(
    (role, file.stem) for role in ROLES for file in (PLAYBOOKS / "roles" / role / "library").glob("*.py")
)


@pytest.mark.parametrize("role", ROLES)
def test_the_page_the_defaults_and_the_argument_spec_name_the_same_variables_and_defaults(role):
    defaults = yaml.safe_load(
        (PLAYBOOKS / "roles" / role / "defaults" / "main.yml").read_text(encoding="utf-8")
    )
    spec = yaml.safe_load(
        (PLAYBOOKS / "roles" / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8")
    )
    for entry in spec["argument_specs"].values():
        assert {name: option["default"] for name, option in entry["options"].items()} == defaults
    page = (REPOSITORY / "docs" / "ansible.md").read_text(encoding="utf-8")
    assert set(re.findall(rf"^\| `({role}_\w+)` \|", page, re.MULTILINE)) == set(defaults)


@pytest.fixture(scope="module")
def shown():
    """What ansible-doc shows of each module."""
    folders = ":".join(str(PLAYBOOKS / "roles" / role / "library") for role in ROLES)
    names = {module for _, module in MODULES}
    tool = Path(sys.executable).parent / "ansible-doc"
    done = subprocess.run(
        (tool, "--json", "--type=module", "--module-path", folders, *names),
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.parametrize(("role", "module"), MODULES)
def test_the_documented_options_of_a_module_are_its_argument_spec(shown, monkeypatch, role, module):
    folder = PLAYBOOKS / "roles" / role
    monkeypatch.setattr(
        ansible.module_utils, "__path__", [*ansible.module_utils.__path__, str(folder / "module_utils")]
    )
    spec = runpy.run_path(str(folder / "library" / f"{module}.py"))["ARGUMENT_SPEC"]
    documented = shown[module]["doc"]["options"]
    assert without_descriptions(documented) == as_documented(spec)
    tasks = yaml.safe_load(shown[module]["examples"])
    assert any(module in task for task in tasks)


def without_descriptions(options):
    told = {}
    for name, option in options.items():
        assert option["description"]
        told[name] = {key: value for key, value in option.items() if key != "description"}
        if "suboptions" in option:
            told[name]["suboptions"] = without_descriptions(option["suboptions"])
    return told


def as_documented(spec):
    renamed = {"options": "suboptions"}
    return {
        name: {
            renamed.get(key, key): as_documented(value) if key == "options" else value
            for key, value in one.items()
        }
        for name, one in spec.items()
    }


@pytest.mark.parametrize("role", ROLES)
def test_a_role_that_is_copied_alone_has_all_that_its_modules_import(tmp_path, role):
    """What roles share stands beside them; a copy that follows links has it."""
    copied = tmp_path / role
    subprocess.run(("cp", "-rL", PLAYBOOKS / "roles" / role, copied), check=True, timeout=60)
    own = {file.stem for file in (copied / "module_utils").glob("*.py")}
    imported = set()
    for file in copied.rglob("*.py"):
        imported |= set(
            re.findall(r"^from ansible\.module_utils\.(fab_\w+) import", file.read_text(), re.MULTILINE)
        )
    assert imported == own
