"""What the documents of the role and its modules promise is what they take and give."""

import json
import re
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path

import ansible.module_utils
import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
ROLE = REPOSITORY / "playbooks" / "roles" / "bbr"
MODULES = sorted(file.stem for file in (ROLE / "library").iterdir() if file.suffix == ".py")


def documented() -> dict[str, str]:
    page = (REPOSITORY / "docs" / "bbr-role.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(bbr_\w+)` \| `([^`]+)` \| ", page, re.MULTILINE)
    return dict(rows)


def test_the_page_the_defaults_and_the_argument_spec_name_the_same_variables_and_defaults():
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text(encoding="utf-8"))
    spec = yaml.safe_load((ROLE / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
    options = spec["argument_specs"]["main"]["options"]
    assert {name: option["default"] for name, option in options.items()} == defaults
    assert {name: yaml.safe_load(text) for name, text in documented().items()} == defaults


def test_every_file_that_the_digests_speak_of_is_copied_to_the_node():
    names = yaml.safe_load((ROLE / "vars" / "main.yml").read_text(encoding="utf-8"))
    assert set(names["bbr_hashed_for_module"]) <= set(names["bbr_module_files"])
    assert set(names["bbr_hashed_for_bpf"]) <= set(names["bbr_bpf_files"])
    for name in names["bbr_module_files"] + names["bbr_bpf_files"]:
        assert (ROLE / "files" / name).is_file()


def test_the_digests_are_taken_of_the_same_files_in_the_same_order_as_by_the_makefiles():
    names = yaml.safe_load((ROLE / "vars" / "main.yml").read_text(encoding="utf-8"))
    kbuild = (ROLE / "files" / "Kbuild").read_text(encoding="ascii")
    listed = re.search(r"addprefix \$\(fab_bbr_folder\)/,([^)]*)\)", kbuild)
    assert listed
    assert listed[1].split() == names["bbr_hashed_for_module"]
    makefile = (ROLE / "files" / "bpf" / "Makefile").read_text(encoding="ascii")
    sources = re.search(r"^SOURCES := (.*)$", makefile, re.MULTILINE)
    assert sources
    inside = [
        name.removeprefix("../") if name.startswith("../") else f"bpf/{name}" for name in sources[1].split()
    ]
    assert inside == names["bbr_hashed_for_bpf"]


def test_an_old_make_takes_nothing_in_the_kbuild_file_for_a_comment():
    """Before 4.3 (Ubuntu 20.04, Rocky 8) ``#`` begins one even in ``$(shell …)``; only ``\\#`` does not."""
    for line in (ROLE / "files" / "Kbuild").read_text(encoding="ascii").splitlines():
        assert line.startswith("#") or not re.search(r"(?<!\\)#", line), line


@pytest.fixture(scope="module")
def shown():
    """What ansible-doc shows of each module of the role."""
    done = subprocess.run(
        (Path(sys.executable).parent / "ansible-doc", "--json", "--type=module",
         "--module-path", ROLE / "library", *MODULES),
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.parametrize("module", MODULES)
def test_the_documented_options_of_a_module_are_its_argument_spec(shown, monkeypatch, module):
    folders = [*ansible.module_utils.__path__, str(ROLE / "module_utils")]
    monkeypatch.setattr(ansible.module_utils, "__path__", folders)
    spec = runpy.run_path(str(ROLE / "library" / f"{module}.py")).get("ARGUMENT_SPEC", {})
    said = shown[module]["doc"].get("options", {})
    for option in said.values():
        assert option.pop("description")
    assert said == spec
    assert shown[module]["doc"]["short_description"]
    tasks = yaml.safe_load(shown[module]["examples"])
    assert any(module in task for task in tasks)


def test_the_documented_return_values_are_what_a_module_returns(shown, node, this_machine):
    node.offer("reno", "fab_bbr2", "fab_bbr3")
    node.load(source="50", profile="v2alpha")
    answers = {
        "fab_bbr_info": node.ask("fab_bbr_info"),
        "fab_bbr_kernel_module": node.ask("fab_bbr_kernel_module", source="50"),
        "fab_bbr_profile": node.ask("fab_bbr_profile", profile="v2alpha"),
        "fab_loopback_flow": this_machine.ask("fab_loopback_flow", congestion_controls=["reno"]),
    }
    assert list(answers) == MODULES
    for module, answer in answers.items():
        assert set(answer) - {"changed", "invocation"} == set(shown[module]["return"])


def registering(tasks, *, conditional=False):
    """(variable, whether its task may be skipped) of every task that registers one."""
    for task in tasks:
        skipped = conditional or "when" in task
        if "register" in task:
            yield task["register"], skipped
        for part in ("block", "rescue", "always"):
            yield from registering(task.get(part, []), conditional=skipped)


def test_what_several_tasks_register_is_never_registered_by_one_that_may_be_skipped():
    """A skipped task registers that it was skipped, in place of what was known."""
    found = [
        one
        for file in sorted((ROLE / "tasks").glob("*.yml"))
        for one in registering(yaml.safe_load(file.read_text(encoding="utf-8")))
    ]
    times = Counter(name for name, _ in found)
    assert [name for name, skipped in found if skipped and times[name] > 1] == []
