"""What the ground decides without a network: distances, and the files of a node."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabbbr.sandbox.control.sites import POSITIONS, SITES
from fabbbr.sandbox.ground.cables import _road_address
from fabbbr.sandbox.ground.distances import MEASURED_RTT_MS, great_circle_km, rtt_ms
from fabbbr.sandbox.ground.images import DISTRIBUTIONS, LOGIN_OF, files

NAMES = st.sampled_from(sorted(SITES))


def test_every_measured_pair_is_of_two_sites_on_the_map():
    assert all(len(pair) == 2 and pair <= POSITIONS.keys() for pair in MEASURED_RTT_MS)


@given(NAMES, NAMES)
def test_distance_is_the_same_both_ways_and_none_to_oneself(one, other):
    assert rtt_ms(one, other, POSITIONS) == rtt_ms(other, one, POSITIONS)
    assert rtt_ms(one, one, POSITIONS) == 0


@pytest.mark.parametrize(
    ("one", "other", "km"),
    [
        ((0.0, 0.0), (0.0, 180.0), 20015.1),
        ((90.0, 0.0), (-90.0, 0.0), 20015.1),
        ((0.0, 0.0), (0.0, 1.0), 111.2),
    ],
)
def test_great_circle(one, other, km):
    assert great_circle_km(one, other) == pytest.approx(km, abs=0.1)


def test_published_time_wins_over_the_map():
    assert rtt_ms("GPN", "FIU", POSITIONS) == 113


@given(NAMES, NAMES)
def test_no_site_is_nearer_than_light_in_fibre_allows(one, other):
    if frozenset({one, other}) not in MEASURED_RTT_MS:
        assert (
            rtt_ms(one, other, POSITIONS) + 0.1 >= 2 * great_circle_km(POSITIONS[one], POSITIONS[other]) / 200
        )


@pytest.mark.parametrize("version", [4, 6])
def test_every_cable_between_routers_has_two_addresses_of_its_own(version):
    numbers = range(len(SITES))
    addresses = [_road_address(a, b, version) for a in numbers for b in numbers if a != b]
    assert len(set(addresses)) == len(addresses)


@pytest.mark.parametrize("image", sorted(DISTRIBUTIONS))
def test_node_has_the_image_s_user_and_name(image):
    made = files(image, LOGIN_OF[image], "h1", "key")
    user = LOGIN_OF[image]
    assert f"\n{user}:x:1000:1000::/home/{user}:/bin/bash\n" in made["etc/passwd"].text
    assert f"{user} ALL=(ALL:ALL) NOPASSWD: ALL\n" in made["etc/sudoers"].text
    assert made["etc/sudoers"].mode == 0o440
    release = dict(line.split("=", 1) for line in made["etc/os-release"].text.splitlines())
    family, number = re.fullmatch(r"(?:default|docker)_([a-z]+)_?(\d+)(?:_stream)?", image).groups()
    assert release["ID"].strip('"') == family
    assert release["VERSION_ID"].strip('"').split(".")[0] == number
    assert "127.0.1.1 h1\n" in made["etc/hosts"].text


def test_numbers_of_accounts_are_not_given_twice():
    made = files("default_rocky_9", "rocky", "h1", "key")
    for name in ("etc/passwd", "etc/group"):
        numbers = [line.split(":")[2] for line in made[name].text.splitlines()]
        assert len(set(numbers)) == len(numbers)


def test_bastion_gives_nobody_a_shell_and_nobody_sudo():
    made = files("default_rocky_9", "alice", "bastion-1", "key", jump_only=True)
    assert "ForceCommand /usr/sbin/nologin" in made["etc/ssh/sshd_config"].text
    assert "etc/sudoers" not in made
