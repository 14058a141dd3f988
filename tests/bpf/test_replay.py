"""The core gives the same answer in BPF as in user space, bit by bit."""

import ctypes
from pathlib import Path

import pytest
from bpf.path import Path as NetworkPath
from bpf.replay import ACK, INIT, PROFILES, STATES, UNKNOWN, V1, Ack, BpfCore, Call, UserCore
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = [pytest.mark.bpf, pytest.mark.xdist_group("bpf")]
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def user(compile_library):
    return UserCore(compile_library(HERE / "replay_user.c"))


@pytest.fixture(scope="module")
def bpf(compile_bpf, user):
    with BpfCore(compile_bpf(HERE / "replay.bpf.c"), size_of_memory=user.size_of_memory) as core:
        yield core


PATHS = {
    "20 packets, counters wrap": {
        "packets_per_s": 1000,
        "rtt_us": 20_000,
        "buffer_packets": 30,
        "origin": 2**32 - 5000,
    },
    "120 packets": {"packets_per_s": 3000, "rtt_us": 40_000, "buffer_packets": 100, "origin": 0},
}
"""By what fills them; more than 63 packets let the Reno clock of the probes end at its limit."""


@pytest.mark.parametrize("profile", PROFILES, ids=["v2alpha", "draft01", "v3", "v1", "v1cap3"])
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_a_flow_on_a_lossy_path_takes_the_same_way_in_bpf_and_in_user_space(user, bpf, profile, path):
    states, acks = set(), 0
    for call in NetworkPath(**path, loss_ratio=0.002, seed=7).calls(
        user, profile=profile, duration_us=13_000_000
    ):
        assert user(call) == bpf(call), f"after {acks} ACKs, state {user.state}"
        states.add(user.state)
        acks += call.kind == ACK
    assert acks > 8000
    # Version 1 has one state where the later ones have four.
    assert states == set(STATES) if profile < V1 else {"Startup", "Drain", "ProbeRTT"} < states


COUNTER = st.one_of(
    st.integers(0, 200), st.integers(0, UNKNOWN), st.integers(UNKNOWN - 200, UNKNOWN)
)  # fmt: skip
ACKS = st.builds(
    Ack,
    **{name: COUNTER for name, kind in Ack._fields_ if kind is ctypes.c_uint32 and name != "mss"},
    **{name: st.booleans() for name, kind in Ack._fields_ if kind is ctypes.c_bool},
    now_us=st.integers(0, 2**45),
    mss=st.integers(1, 65535),
)
CALLS = st.builds(Call, kind=st.integers(ACK, ACK + 4), ack=ACKS)
FIRST_CALL = st.builds(
    Call, kind=st.just(INIT), profile=st.sampled_from(PROFILES), seed=COUNTER, ack=ACKS
)  # fmt: skip


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(first=FIRST_CALL, others=st.lists(CALLS, min_size=1, max_size=40))
def test_no_sequence_of_calls_tells_bpf_from_user_space(user, bpf, first, others):
    for number, call in enumerate((first, *others)):
        assert user(call) == bpf(call), f"after call {number}, of kind {call.kind}"
