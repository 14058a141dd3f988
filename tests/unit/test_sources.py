"""The sources of a module: what belongs to them, the digest that knows them, the names that they register."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabbbr import sources
from fabbbr.errors import SpecError
from fabbbr.sources import Sources

MODULE = """\
// a comment with struct tcp_congestion_ops gone = { .name = "gone" };
/* and another
   struct tcp_congestion_ops gone = { .name = "gone" }; */
#include <net/tcp.h>
static struct tcp_congestion_ops mine __read_mostly = {
	.flags	= TCP_CONG_NEEDS_ECN,
	.name	= "mine",
};
static struct other_ops not_ours = { .name = "other" };
"""


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "tcp_mine"
    place.mkdir()
    (place / "tcp_mine.c").write_text(MODULE)
    return place


def test_what_was_built_before_and_what_lies_about_is_no_part_of_a_module(folder):
    clean = sources.read(folder).sha256
    for left in (
        "tcp_mine.o",
        "tcp_mine.ko",
        "tcp_mine.mod.c",
        ".tcp_mine.o.cmd",
        "Module.symvers",
        "README.md",
    ):
        (folder / left).write_text("left over")
    (folder / ".git").mkdir()
    (folder / ".git" / "hook.c").write_text("int x;")
    assert sources.read(folder).sha256 == clean


@pytest.mark.parametrize("name", ["tcp_mine.c", "more.h", "Kbuild", "sub/deep.c"])
def test_another_byte_of_any_source_is_another_module(folder, name):
    (folder / "Kbuild").write_text("obj-m := tcp_mine.o\n")
    before = sources.read(folder).sha256
    (folder / "sub").mkdir()
    with (folder / name).open("a") as file:
        file.write(" ")
    assert sources.read(folder).sha256 != before


def test_the_same_sources_elsewhere_and_the_file_alone_are_the_same_module(folder, tmp_path):
    here = sources.read(folder).sha256
    assert sources.read(folder / "tcp_mine.c").sha256 == here
    assert sources.read(folder.rename(tmp_path / "moved")).sha256 == here


@given(st.dictionaries(st.sampled_from(["a.c", "b.c", "a.cb.c"]), st.binary(max_size=4), min_size=1))
def test_two_sets_of_files_share_no_digest(files):
    def canonical(contents):
        return Sources(place="x", contents=dict(sorted(contents.items()))).canonical

    for name in files:
        fewer = {other: content for other, content in files.items() if other != name}
        assert canonical(fewer) != canonical(files)
        assert canonical({**files, name: files[name] + b"x"}) != canonical(files)


def test_the_names_that_a_module_registers_are_told_with_file_and_line(folder):
    (named,) = sources.read(folder).names
    assert (named.name, named.file, named.line) == ("mine", "tcp_mine.c", 7)


def test_a_place_is_shown_as_the_user_named_it(folder):
    assert sources.read(folder).place_of("/build/tcp_mine.c", 3) == f"{folder}/tcp_mine.c:3"
    assert sources.read(folder / "tcp_mine.c").place_of("tcp_mine.c", 3) == f"{folder}/tcp_mine.c:3"
    assert sources.read(folder).place_of("include/net/tcp.h", 3) == "include/net/tcp.h:3"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((), "no .c file in it"),
        (("a.c", "b.c"), "add a Kbuild with obj-m := a.o, or name one of the files"),
    ],
)
def test_a_folder_that_is_no_module_is_refused_with_the_remedy(tmp_path, names, said):
    for name in names:
        (tmp_path / name).write_text("")
    with pytest.raises(SpecError, match=said):
        sources.read(tmp_path)


@pytest.mark.parametrize(("name", "said"), [("none", "no module at"), ("notes.txt", "no C source")])
def test_what_is_no_module_is_refused(tmp_path, name, said):
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(SpecError, match=said):
        sources.read(tmp_path / name)
