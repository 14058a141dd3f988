"""The channel over a real sshd on loopback: bytes, statuses and time limits are those of the far command."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback_sshd import cannot, sshd

from fabbbr.backends.channel import ChannelError
from fabbbr.backends.ssh.channel import SshChannel
from fabbbr.backends.ssh.config import Way, config_text

pytestmark = pytest.mark.skipif(bool(cannot()), reason=cannot() or "sshd can run")

SUDO = """#!/bin/sh
[ -e "$(dirname "$0")/refuses" ] && { echo 'sudo: a password is required' >&2; exit 1; }
while [ "$1" != -- ]; do shift; done
shift
SUDO_USED=yes exec "$@"
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sshd")
    (folder / "sudo").write_text(SUDO)
    (folder / "sudo").chmod(0o755)
    with sshd(folder, settings=(f"SetEnv PATH={folder}:/usr/sbin:/usr/bin:/sbin:/bin",)) as server:
        yield server


def reach(server, **changes):
    """A channel to the server, or to what the changed way leads to."""
    config = server.folder / "config"
    ways = [_way("far", server).model_copy(update=changes)]
    config.write_text(config_text(ways, known_hosts=server.known_hosts))
    return SshChannel(config, "far", folder="/var/lib/fabbbr", sudo=True)


@pytest.fixture(scope="module")
def channel(server):
    channel = reach(server)
    yield channel
    channel.close()


@given(words=st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8")), max_size=4))
def test_every_word_arrives_as_it_is(channel, words):
    argv = (
        "python3",
        "-c",
        "import os,sys; sys.stdout.buffer.write(b'|'.join(map(os.fsencode, sys.argv[1:])))",
    )
    done = channel.run((*argv, *words))
    assert done.stdout == b"|".join(word.encode() for word in words)
    assert done.returncode == 0


def test_bytes_in_and_out_are_the_same_and_standard_error_is_apart(channel):
    content = bytes(range(256)) * 5000
    done = channel.run(("sh", "-c", "cat; printf 'a\\377b\\n\\n' >&2"), stdin=content)
    assert (done.stdout, done.stderr, done.returncode) == (content, b"a\xffb\n\n", 0)


@pytest.mark.parametrize("status", [0, 1, 124, 127, 255])
def test_a_status_is_that_of_the_command_even_255(channel, status):
    assert channel.run(("sh", "-c", f"exit {status}")).returncode == status


def test_a_command_that_is_not_there_is_127_and_no_lost_connection(channel):
    done = channel.run(("no-such-command",))
    assert done.returncode == 127
    assert b"no-such-command" in done.stderr


def test_commands_run_through_sudo_and_one_that_refuses_is_no_status(channel, server):
    assert channel.run(("sh", "-c", "echo $SUDO_USED")).stdout == b"yes\n"
    (server.folder / "refuses").touch()
    try:
        with pytest.raises(ChannelError, match="a password is required"):
            channel.run(("true",))
    finally:
        (server.folder / "refuses").unlink()


def test_a_conversation_goes_to_and_fro_and_ends_with_the_block(channel):
    with channel.conversation(("sh", "-c", "while read line; do echo got $line; done")) as process:
        for line in (b"one", b"two"):
            process.stdin.write(line + b"\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"got " + line + b"\n"
    assert process.returncode == 0


def test_many_commands_are_one_connection(server):
    channel = reach(server)
    before = server.log.read_text().count("Accepted publickey")
    for _ in range(5):
        channel.run(("true",))
    channel.close()
    assert server.log.read_text().count("Accepted publickey") == before + 1


def test_forty_threads_at_once_are_all_served(channel):
    said = {}

    def ask(number):
        said[number] = channel.run(("sh", "-c", f"sleep 0.2; echo {number}")).stdout

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == {number: b"%d\n" % number for number in range(40)}


def test_a_time_limit_holds_though_the_command_left_a_child_that_keeps_its_output(channel):
    started = time.monotonic()
    with pytest.raises(ChannelError, match="took longer than 1 s"):
        channel.run(("sh", "-c", "sleep 40 & sleep 40"), timeout_s=1.0)
    assert time.monotonic() - started < 20, "it waited for the child"


def test_what_took_too_long_is_ended_there_too(channel, tmp_path):
    """On a busy machine half a second may be over before it has begun; then it is given longer."""
    told = tmp_path / "pid"
    for timeout_s in (0.5, 2, 8, 32):
        with pytest.raises(ChannelError):
            channel.run(("sh", "-c", "echo $$ >$0; sleep 600", str(told)), timeout_s=timeout_s)
        if told.exists() and told.read_text():
            break
    pid = int(told.read_text())
    until = time.monotonic() + 60
    while _lives(pid):
        assert time.monotonic() < until, "it runs on for ever"
        time.sleep(0.2)


def test_a_connection_that_is_killed_is_an_error_once_and_then_made_again(server):
    channel = reach(server)
    channel.run(("true",))
    masters = _masters(channel._own.path)
    assert len(masters) == 1
    os.kill(masters[0], signal.SIGTERM)
    while _lives(masters[0]):
        time.sleep(0.05)
    assert channel.run(("echo", "again")).stdout == b"again\n"
    channel.close()


def test_a_connection_lost_during_a_command_is_an_error_and_no_status(server):
    channel = reach(server)
    channel.run(("true",))
    (master,) = _masters(channel._own.path)
    timer = threading.Timer(1.0, os.kill, (master, signal.SIGKILL))
    timer.start()
    with pytest.raises(ChannelError):
        channel.run(("sleep", "30"))
    timer.join()
    assert channel.run(("echo", "again")).stdout == b"again\n", "the socket that was left must not matter"
    channel.close()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"port": 1}, "Connection refused"),
        ({"key": "/nonexistent"}, "Permission denied"),
        ({"address": "no.such.host.invalid"}, "Could not resolve"),
    ],
)
def test_who_cannot_connect_says_ssh_s_own_reason(server, changes, said):
    channel = reach(server, **changes)
    with pytest.raises(ChannelError, match=said):
        channel.run(("true",))
    channel.close()


def test_closing_leaves_no_process_and_no_folder(server):
    channel = reach(server)
    channel.run(("true",))
    folder = channel._own.path
    masters = _masters(folder)
    channel.close()
    until = time.monotonic() + 10
    while any(map(_lives, masters)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(_lives, masters))
    assert not folder.exists()


OPEN = """
import pathlib, sys, time
from fabbbr.backends.ssh.channel import SshChannel
channel = SshChannel(pathlib.Path(sys.argv[1]), "far", folder="/x")
print(channel.run(("sh", "-c", "echo $$")).returncode, channel._own.path, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGHUP])
def test_a_process_that_is_killed_leaves_no_connection_and_no_folder(server, how):
    reach(server)
    words = (sys.executable, "-c", OPEN, str(server.folder / "config"))
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        status, folder = process.stdout.readline().split()
        assert status == "0"
        (master,) = _masters(folder)
        process.send_signal(how)
    until = time.monotonic() + 10
    while (_lives(master) or Path(folder).exists()) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _lives(master)
    assert not Path(folder).exists()


@pytest.mark.parametrize("name", ["a" * 90, "100 % 'mine'", 'a"b', "%h"])
def test_folders_for_temporary_files_of_any_name_and_length_will_do(server, monkeypatch, name):
    with tempfile.TemporaryDirectory() as short:
        folder = Path(short) / name
        folder.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        channel = reach(server)
        assert channel.run(("echo", "there")).stdout == b"there\n"
        channel.close()
        assert not list(folder.iterdir())


def test_a_machine_behind_another_is_reached_through_it(server, tmp_path):
    with sshd(tmp_path / "bastion") as bastion:
        ways = (
            _way("bastion", bastion),
            _way("far", server).model_copy(update={"jump": "bastion"}),
        )
        (tmp_path / "config").write_text(config_text(ways, known_hosts=tmp_path / "known hosts"))
        channel = SshChannel(tmp_path / "config", "far", folder="/x", sudo=False)
        assert channel.run(("echo", "there")).stdout == b"there\n"
        channel.close()
        assert "Accepted publickey" in bastion.log.read_text()


def _way(name, server):
    return Way(name=name, address=server.address, user="root", port=server.port, key=str(server.key))


def _lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _masters(folder):
    """The processes that keep the connection whose socket is in ``folder``."""
    done = subprocess.run(("pgrep", "-f", f"^ssh.* {folder}/"), capture_output=True, text=True, check=False)
    return [int(pid) for pid in done.stdout.split()]
