"""Every flow runs the congestion control that was asked for, or the cell fails and says why."""

import pytest
from guest.cells import experiment, run

pytestmark = pytest.mark.guest
PATH = "rate: 10 Mbit/s, rtt: 10 ms"


@pytest.fixture(scope="module")
def profiles(tmp_path_factory):
    text = experiment(
        "profiles",
        path=PATH,
        flows=(
            "{cca: bbr2, profile: $profile, duration: 2 s}, {cca: bbr3, duration: 2 s}, "
            "{cca: bbr1, duration: 2 s}"
        ),
        more="vary: {profile: [v2alpha, draft01]}",
    )
    return run(tmp_path_factory.mktemp("profiles"), text)


@pytest.mark.parametrize("profile", ["v2alpha", "draft01"])
def test_the_kernel_runs_the_profile_of_the_condition(profiles, profile):
    assert profiles.wrong() == {}
    stands = profiles.cell(f"profile={profile},r1").manifest.provenance.congestion_controls
    assert [(one.kernel_name, one.profile) for one in stands] == [
        ("fab_bbr2", profile),
        ("fab_bbr3", "v3"),
        ("bbr", None),
    ]
    assert len({one.source for one in stands if one.source}) == 1


def test_the_sockets_of_each_flow_carry_its_congestion_control(profiles):
    sockets = profiles.set.sockets(columns=["flow", "side", "cca"])
    sending = sockets[sockets.side == "sender"]
    assert {flow: set(rows.cca) for flow, rows in sending.groupby("flow")} == {
        0: {"fab_bbr2"},
        1: {"fab_bbr3"},
        2: {"bbr"},
    }


@pytest.mark.parametrize(
    ("cca", "lacks"), [("bbr2", "h1 has no bbr2; it offers "), ("bbr3", "h1 has bbr without a version; ")]
)
def test_googles_bbr_on_a_mainline_kernel_is_refused_with_host_offer_and_remedy(tmp_path, cca, lacks):
    text = experiment("google", path=PATH, flows=f"{{cca: {cca}, implementation: google, duration: 1 s}}")
    (reason,) = run(tmp_path, text).summary.failed.values()
    assert lacks in reason
    assert reason.endswith("boot a kernel from Google's tree there, or take implementation: fabbbr")
