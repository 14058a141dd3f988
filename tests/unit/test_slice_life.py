"""The life of a slice on a testbed that fails at every point in turn: the same command goes on."""

import json
import re
import subprocess
import sys
from datetime import timedelta

import pytest
from made_up_testbed import AFTER, BEFORE, Provider, World
from offers import offer

from fabbbr.backends.channel import ChannelError
from fabbbr.backends.provider import ProviderError
from fabbbr.errors import BackendError, EnvironmentUnfitError, PlanError, StoreError, UsageError
from fabbbr.slice import ending, life, opening, state
from fabbbr.slice.asking import Decision
from fabbbr.slice.state import MeasuredPair, Wish
from fabbbr.spec.experiment import SliceChoice
from fabbbr.trust import Trust

TWO_SITE = SliceChoice(name="two_site")
PAIR = MeasuredPair(sender="h1", receiver="h2", rtt_s=0.026, lost=0.0, rate_bps=9.4e9)


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


class Study:
    """One user's commands, one after the other, in one world."""

    def __init__(self):
        self.world = World()
        self.prepared = 0
        self.measured = 0
        self.said = []

    def wish(self, **changes):
        return Wish(**{"backend": "fabric", "definition": TWO_SITE, "sites": ("DALL", "SALT"), **changes})

    def create(self, name="study", *, prepare=True, agree=lambda _: True, **changes):
        provider, wish = Provider(self.world), self.wish(**changes)
        way = life.Way(
            clock=self.world.clock,
            tell=lambda phase, text: self.said.append((phase, text)),
            prepare=self._prepare if prepare else None,
            measure=self._measure,
            agree=agree,
            answer_s=60.0,
        )
        return life.create(name, wish, Decision(name, wish, provider, Trust()), provider, way)

    def _prepare(self, inventory, tell):
        self.world.may_fail("prepare", BEFORE)
        self.prepared += 1
        self.inventory = inventory

    def _measure(self, *_):
        self.world.may_fail("measure", BEFORE)
        self.measured += 1
        return (PAIR,)

    def there(self, name="study"):
        provider = Provider(self.world)
        live = provider.find(name)
        return opening.Found(name=name, known=state.load(name), live=live, provider=provider)

    def tear_down(self, name="study"):
        ending.tear_down(self.there(name), self.world.clock, lambda _: None)


@pytest.fixture
def study():
    return Study()


def left():
    folder = state.folder()
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_slice_is_made_prepared_measured_and_remembered(study):
    made = study.create()
    assert made.phase == "measured"
    assert made.prepared
    assert made.pairs == (PAIR,)
    assert made.id == "id-study"
    assert state.load("study") == made
    assert (study.world.submitted, study.prepared, study.measured) == (1, 1, 1)
    assert list(study.inventory["all"]["children"]["fabbbr"]["children"]["software_switches"]["hosts"]) == [
        "sw"
    ]
    assert left() == ["study.json"]
    assert (state.folder() / "study.json").stat().st_mode & 0o777 == 0o600


def test_made_once_more_nothing_is_done(study):
    first = study.create()
    assert study.create() == first
    assert (study.world.submitted, study.prepared, study.measured) == (1, 1, 1)


POINTS = [
    ("find", BEFORE), ("offer", BEFORE), ("submit", BEFORE), ("submit", AFTER), ("refresh", BEFORE),
    ("prepare", BEFORE), ("measure", BEFORE),
]  # fmt: skip
"""Where it may end; each verb with and without its effect."""


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
def test_interrupted_anywhere_the_same_command_goes_on_and_nothing_is_made_twice(study, point, error):
    study.world.failing[point] = [error()]
    with pytest.raises(error):
        study.create()
    made = study.create()
    assert made.phase == "measured"
    assert study.world.submitted == 1
    assert list(study.world.slices) == ["study"]
    study.tear_down()
    assert not study.world.slices
    assert left() == []


@pytest.mark.parametrize("point", [point for point in POINTS if point[0] != "refresh"])
def test_what_the_testbed_refuses_ends_the_command_and_the_next_goes_on(study, point):
    study.world.failing[point] = [ProviderError("the token has expired; get a new one")]
    with pytest.raises(BackendError, match="the token has expired"):
        study.create()
    assert study.create().phase == "measured"
    assert study.world.submitted == 1


UNFIT = EnvironmentUnfitError("name spaces can be made here and not entered")


def test_what_this_machine_could_not_ask_for_is_no_slice(study):
    study.world.failing["submit", BEFORE] = [UNFIT]
    with pytest.raises(EnvironmentUnfitError):
        study.create()
    assert left() == []


@pytest.mark.parametrize("doubt", ["it is there", "nobody can say", "an earlier call may have asked"])
def test_in_doubt_it_is_remembered_and_the_same_command_goes_on(study, doubt):
    point = ("submit", AFTER if doubt == "it is there" else BEFORE)
    if doubt == "an earlier call may have asked":
        study.world.failing[point] = [KeyboardInterrupt()]
        with pytest.raises(KeyboardInterrupt):
            study.create()
    study.world.failing[point] = [UNFIT]

    def agree(_):
        if doubt == "nobody can say":
            study.world.failing["find", BEFORE] = [ProviderError("it does not answer")]
        return True

    with pytest.raises(EnvironmentUnfitError):
        study.create(agree=agree)
    assert left() == ["study.json"]
    assert study.create().phase == "measured"
    assert study.world.submitted == 1


@pytest.mark.parametrize("point", POINTS)
def test_interrupted_anywhere_teardown_leaves_nothing(study, point):
    study.world.failing[point] = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        study.create()
    study.tear_down()
    assert not study.world.slices
    assert left() == []


@pytest.mark.parametrize("count", range(6))
def test_interrupted_at_any_save_the_same_command_goes_on(study, monkeypatch, count):
    """What was done and not remembered is found again, or done again."""
    save, saved = state.save, []

    def failing(now):
        if len(saved) == count:
            raise KeyboardInterrupt
        saved.append(now.phase)
        return save(now)

    with monkeypatch.context() as patched:
        patched.setattr(state, "save", failing)
        with pytest.raises(KeyboardInterrupt):
            study.create()
    assert study.create().phase == "measured"
    assert study.world.submitted == 1
    assert saved == ["asked", "submitted", "up", "reached", "prepared", "measured"][:count]


def test_a_testbed_that_cannot_be_asked_for_a_while_is_waited_for(study):
    study.world.failing[("refresh", BEFORE)] = [ProviderError("502")] * 5
    assert study.create().phase == "measured"
    assert ("up", "the testbed cannot be asked just now: 502") in study.said


def test_a_testbed_that_cannot_be_asked_for_long_is_an_error_and_the_slice_stays(study):
    study.world.failing[("refresh", BEFORE)] = [ProviderError("502")] * 100
    with pytest.raises(ProviderError, match="502"):
        study.create()
    assert state.load("study").phase == "submitted"
    study.world.failing.clear()
    assert study.create().phase == "measured"
    assert study.world.submitted == 1


def test_a_slice_that_never_comes_up_is_given_up_in_time(study):
    study.world.boot_s = 1e9
    with pytest.raises(ProviderError, match=r"not up after 30 minutes.*slice teardown study"):
        study.create()
    assert study.world.clock.seconds < life.COME_UP_S + 60


def test_a_slice_that_failed_says_the_testbed_s_reason_and_how_to_go_on(study):
    study.world.broken["study"] = "node h2: Insufficient resources"
    with pytest.raises(
        ProviderError, match="Insufficient resources; give it back with 'fabbbr slice teardown study'"
    ):
        study.create()
    with pytest.raises(ProviderError, match="Insufficient resources"):
        study.create()
    study.tear_down()
    study.world.broken.clear()
    assert study.create().phase == "measured"


def test_a_machine_that_answers_late_is_waited_for(study):
    study.world.failing[("run", BEFORE)] = [ChannelError("Connection refused")] * 7
    assert study.create().phase == "measured"


def test_a_machine_that_never_answers_is_named_with_its_last_reason(study):
    study.world.failing[("run", BEFORE)] = [ChannelError("Connection refused")] * 10_000
    with pytest.raises(
        BackendError, match="machine h1: not usable within 60 s: Connection refused"
    ) as refused:
        study.create()
    assert "machine h2: " in str(refused.value)
    assert "machine sw: " in str(refused.value)
    assert state.load("study").phase == "up"
    study.world.failing.clear()
    assert study.create().phase == "measured"


def test_what_would_be_refused_is_refused_before_anything_is_asked_for(study):
    study.world.offer = offer(tags=())
    with pytest.raises(PlanError, match=r"Slice\.Multisite"):
        study.create()
    assert study.world.submitted == 0
    assert left() == []


def test_who_says_no_reserves_nothing(study):
    with pytest.raises(UsageError, match="not created, as you said"):
        study.create(agree=lambda _: False)
    assert study.world.submitted == 0
    assert left() == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sites": ("DALL", "FIU")}, "machines h2 site: SALT there, FIU asked"),
        ({"size": "knit6"}, "machines h1 size cores: 2 there, 16 asked"),
        ({"lease_s": 3600.0}, "lease_s: 86400.0 there, 3600.0 asked"),
        ({"nic": "NIC_ConnectX_6"}, "cables access nic: NIC_Basic there, NIC_ConnectX_6 asked"),
        (
            {"definition": SliceChoice(name="rtt_pair"), "sites": ("DALL", "GPN", "SALT")},
            "definition name: two_site",
        ),
        ({"backend": "mininet"}, "backend: fabric there, mininet asked"),
    ],
)
def test_another_slice_under_the_same_name_is_refused_with_what_differs(study, changes, said):
    study.create()
    with pytest.raises(UsageError, match=re.escape(said)):
        study.create(**changes)
    assert study.world.submitted == 1


def test_the_same_slice_in_other_words_is_the_same(study):
    study.create()
    assert study.create(sites=("receiver=SALT", "sender=DALL")).phase == "measured"
    assert study.world.submitted == 1


def test_sites_by_lot_stay_what_they_are_though_the_offer_has_changed(study):
    first = study.create(sites=("random",), seed=3)
    drawn = {machine.site for machine in first.reservation.machines}
    study.world.offer = offer(**{site: {"state": "in maintenance"} for site in drawn})
    assert study.create(sites=("random",), seed=3) == first


def test_sites_by_lot_stay_though_nobody_heard_whether_it_was_submitted(study):
    seed = next(seed for seed in range(100) if _redrawn(study, seed))
    study.world.failing[("submit", BEFORE)] = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        study.create(sites=("random",), seed=seed)
    decided = state.load("study").reservation
    study.world.offer = offer(**dict.fromkeys(set(offer().sites) - {one.site for one in decided.machines}))
    assert study.create(sites=("random",), seed=seed).reservation == decided


def _redrawn(study, seed):
    """Whether the lot, among none but the sites that it drew, would give them to the places the other way."""
    first = _sites_drawn(study, seed)
    study.world.offer = offer(**dict.fromkeys(set(offer().sites) - set(first)))
    again = _sites_drawn(study, seed)
    study.world.offer = offer()
    return again != first


def _sites_drawn(study, seed):
    decision = Decision("study", study.wish(sites=("random",), seed=seed), Provider(study.world), Trust())
    return [machine.site for machine in decision.asked().reservation.machines]


def test_left_half_made_by_the_testbed_it_is_asked_for_once_more(study):
    study.world.failing[("submit", AFTER)] = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        study.create()
    study.world.half.add("study")
    assert study.create().phase == "measured"


def test_a_slice_is_found_again_by_its_name_when_nothing_is_remembered(study):
    study.create()
    state.forget("study")
    assert study.there().live.state == "ok"
    assert study.create().phase == "measured"
    assert study.world.submitted == 1
    state.forget("study")
    study.tear_down()
    assert not study.world.slices


def test_a_slice_that_is_found_but_was_asked_otherwise_is_refused(study):
    study.create()
    state.forget("study")
    with pytest.raises(UsageError, match="machine h2: at SALT there, FIU asked"):
        study.create(sites=("DALL", "FIU"))


def test_a_slice_whose_lease_ended_is_made_anew(study):
    study.create()
    study.world.slices.clear()
    assert study.create().phase == "measured"
    assert study.world.submitted == 2
    assert any("is gone, as after its lease" in text for _, text in study.said)


def test_prepared_later_is_prepared_and_measured_again(study):
    assert not study.create(prepare=False).prepared
    assert (study.prepared, study.measured) == (0, 1)
    assert study.create().prepared
    assert (study.prepared, study.measured) == (1, 2)
    assert study.create(prepare=False).prepared, "what was done stays done"
    assert (study.prepared, study.measured) == (1, 2)


def test_two_at_once_on_one_slice_are_refused(study):
    with (
        state.only_worker("study"),
        pytest.raises(UsageError, match="another fabbbr is at work on slice study"),
    ):
        study.create()
    assert study.create().phase == "measured"


def test_the_lock_of_a_killed_process_is_no_lock(study, tmp_path):
    holds = (
        "from fabbbr.slice import state; import os\nwith state.only_worker('study'): os.kill(os.getpid(), 9)"
    )
    subprocess.run((sys.executable, "-c", holds), check=False)
    assert left() == [".study.lock"]
    assert study.create().phase == "measured"


# --- what is remembered


def test_a_damaged_file_is_refused_with_what_to_do(study):
    study.create()
    file = state.folder() / "study.json"
    for text in ("", "{}", "[1]", file.read_text().replace('"format": 1', '"format": 2')):
        file.write_text(text)
        with pytest.raises(StoreError, match=r"move it away.*finds the slice without it"):
            state.load("study")


def test_names_are_those_of_whole_files(study):
    study.create("one")
    study.create("two.b")
    (state.folder() / ".x.json.1.partial").touch()
    assert state.names() == ("one", "two.b")


def test_no_secret_is_remembered(study):
    study.create()
    words = json.dumps(json.loads((state.folder() / "study.json").read_text())).lower()
    assert not re.search(r"token|password|private", words)


# --- renewing


def test_a_lease_is_moved_and_remembered_as_the_testbed_says(study):
    study.create()
    wanted = study.world.clock.now() + timedelta(days=3)
    assert ending.renew(study.there(), wanted, study.world.clock) == wanted
    assert state.load("study").lease_end == wanted


def test_a_lease_that_is_shorter_than_asked_is_said_to_be(study):
    study.create()
    wanted = study.world.clock.now() + timedelta(days=30)
    got = ending.renew(study.there(), wanted, study.world.clock)
    assert got < wanted
    assert ending.fell_short(wanted, got)
    assert not ending.fell_short(wanted, wanted - timedelta(seconds=30))


@pytest.mark.parametrize(("hours", "said"), [(-1, "is over"), (1, "already")])
def test_an_instant_that_is_over_or_not_later_is_refused(study, hours, said):
    study.create()
    with pytest.raises(UsageError, match=said):
        ending.renew(study.there(), study.world.clock.now() + timedelta(hours=hours), study.world.clock)


@pytest.mark.parametrize(
    ("left_h", "needed_h", "said"),
    [
        (None, 5, ""),
        (24, 0, ""),
        (24, 30, "ends in 24.0 h.*and 30.0 h are needed; 'fabbbr slice renew study --for 24h'"),
        (1.5, 0, "ends in 1.5 h"),
        (-1, 0, "ended at"),
    ],
)
def test_a_lease_that_ends_soon_or_too_soon_is_warned_of(study, left_h, needed_h, said):
    now = study.world.clock.now()
    end = None if left_h is None else now + timedelta(hours=left_h)
    warning = opening.lease_warning("study", end, now, needed_s=needed_h * 3600)
    assert bool(warning) == bool(said)
    assert re.search(said, warning)


# --- tearing down


def test_teardown_waits_until_it_is_gone(study):
    study.create()
    before = study.world.clock.seconds
    study.tear_down()
    assert study.world.clock.seconds - before >= 20
    assert not study.world.slices


def test_teardown_of_what_is_still_made_waits_until_it_may_go(study):
    study.world.failing[("submit", AFTER)] = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        study.create()
    study.tear_down()
    assert not study.world.slices


@pytest.mark.parametrize("point", [("delete", BEFORE), ("delete", AFTER), ("refresh", BEFORE)])
def test_interrupted_teardown_goes_on(study, point):
    study.create()
    study.world.failing[point] = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        study.tear_down()
    assert left() == ["study.json"]
    study.tear_down()
    assert not study.world.slices
    assert left() == []


def test_a_slice_that_does_not_go_is_not_forgotten(study):
    study.create()
    study.world.failing[("delete", BEFORE)] = [ProviderError("500")] * 10_000
    with pytest.raises(ProviderError, match="not gone after 15 minutes \\(500\\)"):
        study.tear_down()
    assert left() == ["study.json"]


# --- opening


def opened(study, monkeypatch, name="study"):
    monkeypatch.setattr(opening, "open_provider", lambda *_: Provider(study.world))
    return opening.load(name)


def test_a_slice_is_opened_with_all_that_a_run_needs(study, monkeypatch):
    made = study.create()
    with opened(study, monkeypatch) as there:
        assert there.reservation == made.reservation
        assert there.live.state == "ok"
        assert there.known == made


def test_a_slice_that_was_not_made_to_the_end_is_not_opened(study, monkeypatch):
    study.world.failing[("measure", BEFORE)] = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        study.create()
    with pytest.raises(UsageError, match="not made to the end"), opened(study, monkeypatch):
        pass


def test_a_slice_that_is_gone_is_not_opened(study, monkeypatch):
    study.create()
    study.world.slices.clear()
    with pytest.raises(ProviderError, match="it is gone, as after its lease"), opened(study, monkeypatch):
        pass


def test_an_unknown_slice_is_refused_with_those_that_there_are(study, monkeypatch):
    study.create()
    with (
        pytest.raises(UsageError, match="no slice studdy is remembered; did you mean 'study'"),
        opened(study, monkeypatch, "studdy"),
    ):
        pass


def test_state_is_not_written_where_there_is_no_place_for_it(study, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(StoreError, match="set XDG_STATE_HOME"):
        study.create()
    assert study.world.submitted == 0
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
