"""What the role's page promises is what the role takes."""

import re
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).parents[2]
ROLE = REPOSITORY / "playbooks" / "roles" / "bbr"


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
