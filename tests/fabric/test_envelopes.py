"""What the control plane answers, without a network: envelopes, refusals, and the order of its checks."""

from __future__ import annotations

import base64
import json
import threading
import time
from datetime import datetime, timedelta, timezone
from uuid import uuid4

import pytest

from fabbbr.sandbox import names
from fabbbr.sandbox.granted import Ground
from fabbbr.sandbox.journal import Journal
from fabbbr.sandbox.settings import Settings

KEY = "ssh-rsa AAAA test"
LOGINS = {"default_rocky_9": "rocky"}


class Nothing(Ground):
    """A ground that notes what is asked of it, and makes nothing."""

    def __init__(self):
        self.calls = []

    def __getattribute__(self, name):
        if name.startswith("_") or name == "calls":
            return object.__getattribute__(self, name)
        return lambda *given, **named: self.calls.append((name, *given, *named.values()))


class Client:
    """Speaks to one service after the other as fablib's clients do."""

    def __init__(self, tmp_path, **settings):
        from werkzeug.test import Client as WsgiClient

        from fabbbr.sandbox.control import plane

        self.ground = Nothing()
        self.journal = Journal(tmp_path)
        made = plane.build(Settings(scale=0.001, **settings), self.ground, self.journal, LOGINS.get)
        self.token = made.token
        self._client = WsgiClient(made.application)

    def ask(self, method, host, path, *, token="", **given):
        sent = self.token["id_token"] if token == "" else token
        headers = {} if sent is None else {"Authorization": f"Bearer {sent}"}
        return self._client.open(path, method=method, base_url=f"https://{host}", headers=headers, **given)

    def orchestrator(self, method, path, **given):
        return self.ask(method, names.ORCHESTRATOR, path, **given)

    def create(self, name="s", graph=None, **query):
        body = {"graph_model": graph or slice_graph(), "ssh_keys": [KEY]}
        return self.orchestrator("POST", "/slices/creates", query_string={"name": name} | query, json=body)

    def made(self, name="s", **query):
        """A slice that is stable; its id."""
        answer = self.create(name, **query)
        assert answer.status_code == 200, answer.text
        return self.settled(answer.json["data"][0]["slice_id"])

    def settled(self, slice_id):
        until = time.monotonic() + 30
        while self.slice(slice_id)["state"] in {"Nascent", "Configuring", "Modifying", "Closing"}:
            assert time.monotonic() < until
            time.sleep(0.01)
        return slice_id

    def slice(self, slice_id, graph_format="NONE"):
        answer = self.orchestrator("GET", f"/slices/{slice_id}", query_string={"graph_format": graph_format})
        return answer.json["data"][0]


@pytest.fixture
def client(tmp_path, fablib):
    return Client(tmp_path)


def topology(*nodes, text=None):
    from fim.graph.networkx_property_graph_disjoint import NetworkXGraphImporterDisjoint
    from fim.slivers.capacities_labels import Capacities
    from fim.user.topology import ExperimentTopology

    made = ExperimentTopology(importer=NetworkXGraphImporterDisjoint())
    if (
        text is not None
    ):  # client and server share FIM's store here: under the same name they would share the graph
        made.load(graph_string=text, new_graph_id=str(uuid4()))
    for name, site in nodes:
        made.add_node(
            name=name, site=site, capacities=Capacities(core=2, ram=8, disk=10), image_ref="default_rocky_9",
            image_type="qcow2",
        )  # fmt: skip
    return made


def slice_graph(*nodes):
    return topology(*(nodes or (("n1", "TACC"),))).serialize()


def in_days(days):
    return (datetime.now(timezone.utc) + timedelta(days=days)).strftime(names.TIME_FORMAT)


def lease_days(record):
    end = datetime.strptime(record["lease_end_time"], names.TIME_FORMAT)  # noqa: DTZ007
    return (end - datetime.now(timezone.utc)) / timedelta(days=1)


def refused(answer, status, details):
    error = answer.json["errors"][0]
    assert (answer.status_code, answer.json["status"], answer.json["type"]) == (status, status, "error")
    assert details in error["details"]
    assert answer.headers["X-Error"] == " ".join(error["details"].split())


def test_orchestrator_answers_in_its_envelope_and_leaves_out_what_is_missing(client):
    answer = client.create()
    assert answer.json.keys() == {"data", "size", "status", "type"}
    assert (answer.json["size"], answer.json["type"]) == (1, "slivers")
    sliver = answer.json["data"][0]
    assert (sliver["sliver_type"], sliver["owner_email"]) == ("NodeSliver", names.USER_EMAIL)
    assert None not in sliver["sliver"].values()


def test_core_api_answers_in_its_own_envelope(client):
    answer = client.ask("GET", names.CORE_API, "/whoami")
    assert answer.json == {
        "results": [{"uuid": names.USER_ID, "email": names.USER_EMAIL, "name": names.USER_NAME}],
        "size": 1,
        "status": 200,
        "type": "whoami",
    }


def test_claims_come_in_no_list(client):
    body = {"type": "identity", "token": client.token["id_token"]}
    answer = client.ask("POST", names.CREDENTIAL_MANAGER, "/credmgr/tokens/validate", token=None, json=body)
    assert answer.json["token"]["projects"][0]["uuid"] == names.PROJECT_ID
    payload = client.token["id_token"].split(".")[1]
    assert answer.json["token"] == json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/slices"),
        ("POST", "/slices/creates"),
        ("GET", "/resources/summary"),
        ("DELETE", "/slices/delete"),
    ],
)
@pytest.mark.parametrize("token", [None, "not.a.token"])
def test_orchestrator_lets_nobody_in_without_a_token(client, method, path, token):
    assert client.orchestrator(method, path, token=token).status_code == 401


def test_token_that_is_over_is_refused(tmp_path, fablib):
    client = Client(tmp_path, token_hours=0.0001)
    time.sleep(1.5)
    refused(client.orchestrator("GET", "/slices"), 401, "expired")


def test_refresh_token_serves_once_and_for_its_project(client):
    def refresh(token, project=names.PROJECT_ID):
        return client.ask(
            "POST", names.CREDENTIAL_MANAGER, "/credmgr/tokens/refresh", token=None,
            query_string={"project_id": project}, json={"refresh_token": token},
        )  # fmt: skip

    refused(refresh(client.token["refresh_token"], "another"), 500, "not a member of Project")
    following = refresh(client.token["refresh_token"]).json["data"][0]
    assert following["refresh_token"] != client.token["refresh_token"]
    refused(refresh(client.token["refresh_token"]), 500, "has been used already")
    assert refresh(following["refresh_token"]).status_code == 200


@pytest.mark.parametrize("path", ["/slices/none", "/nothing/here"])
def test_what_there_is_not_is_404(client, path):
    assert client.orchestrator("GET", path).status_code == 404


def test_route_of_one_host_is_not_there_on_another(client):
    assert client.ask("GET", names.CORE_API, "/slices").status_code == 404
    assert client.ask("GET", "github.com", "/whoami").status_code == 404


def test_name_is_taken_until_the_slice_is_gone(client):
    first = client.made("same")
    refused(client.create("same"), 500, "Slice same already exists")
    client.orchestrator("DELETE", f"/slices/delete/{first}")
    client.settled(first)
    assert client.slice(first)["state"] == "Dead"
    assert client.create("same").status_code == 200


def test_graph_that_fim_refuses_makes_no_slice(client):
    assert client.create(graph="<graphml/>").status_code == 500
    assert client.orchestrator("GET", "/slices").json["data"] == []


def test_policy_is_asked_before_the_slice_is_made(tmp_path, fablib):
    client = Client(tmp_path, tags=())
    two = slice_graph(("n1", "TACC"), ("n2", "UTAH"))
    refused(client.create(graph=two), 500, "Policy Violation: Your project is lacking Slice.Multisite tag")
    assert client.orchestrator("GET", "/slices").json["data"] == []


def _switch(made):
    made.add_switch(name="p4", site="TACC")


def _facility(made):
    from fim.slivers.capacities_labels import Capacities, Labels

    made.add_facility(name="far-lab", site="TACC", capacities=Capacities(bw=10), labels=Labels(vlan="100"))


def _mirror(made):
    from fim.slivers.component_catalog import ComponentModelType

    card = made.nodes["n1"].add_component(name="nic", model_type=ComponentModelType.SmartNIC_ConnectX_6)
    made.add_port_mirror_service(name="mirror", from_interface_name="x", to_interface=card.interface_list[0])


@pytest.mark.parametrize(
    ("add", "said"),
    [(_switch, "Switch p4"), (_facility, "facility port far-lab"), (_mirror, "PortMirror mirror")],
)
def test_what_there_is_no_double_of_is_refused_by_name(tmp_path, fablib, add, said):
    """Else the slice would be stable without it, and its user would wait for ever for a switch to answer."""
    client = Client(tmp_path, tags=("Component.SmartNIC", "Net.PortMirroring"))
    made = topology(("n1", "TACC"))
    add(made)
    refused(client.create(graph=made.serialize()), 500, f"The sandbox has no double of {said}")
    assert client.orchestrator("GET", "/slices").json["data"] == []


@pytest.mark.parametrize(
    ("query", "days"),
    [({}, 1), ({"lifetime": 48}, 2), ({"lifetime": 24 * 100}, 15), ({"lease_end_time": in_days(3)}, 3)],
)
def test_lease_of_a_new_slice(client, query, days):
    assert lease_days(client.slice(client.made(**query))) == pytest.approx(days, abs=0.01)


def test_lease_is_prolonged_clamped_and_never_shortened(client):
    slice_id = client.made()

    def renew(days):
        path = f"/slices/renew/{slice_id}"
        return client.orchestrator("POST", path, query_string={"lease_end_time": in_days(days)})

    assert renew(4).json["type"] == "no_content"
    client.settled(slice_id)
    assert lease_days(client.slice(slice_id)) == pytest.approx(4, abs=0.01)
    refused(renew(2), 500, "shorter than current slice end time")
    refused(renew(-1), 400, "in the past")
    renew(400)
    client.settled(slice_id)
    assert lease_days(client.slice(slice_id)) == pytest.approx(15, abs=0.01)
    refused(
        client.orchestrator("POST", f"/slices/renew/{slice_id}", query_string={"lease_end_time": "tomorrow"}),
        400,
        "not in format",
    )


def test_what_was_granted_is_in_the_graph(client):
    slice_id = client.made()
    node = topology(text=client.slice(slice_id, "GRAPHML")["model"]).nodes["n1"]
    assert node.reservation_info.reservation_state == "Active"
    assert str(node.management_ip).startswith("198.19.")
    assert node.get_property("label_allocations").instance_parent == "tacc-w1.fabric-testbed.net"
    machine = next(call[1] for call in client.ground.calls if call[0] == "add_machine")
    assert (machine.user, machine.keys, str(machine.management.ip)) == (
        "rocky",
        (KEY,),
        str(node.management_ip),
    )


def test_modification_adds_and_removes_a_node_and_what_was_granted_stays(client):
    slice_id = client.made()
    graph = topology(("n2", "TACC"), text=client.slice(slice_id, "GRAPHML")["model"])
    path = f"/slices/modify/{slice_id}"
    assert client.orchestrator("PUT", path, data=graph.serialize()).status_code == 200
    client.settled(slice_id)
    assert client.slice(slice_id)["state"] == "ModifyOK"
    refused(client.orchestrator("PUT", path, data=graph.serialize()), 500, "not yet stable, try again later")
    accepted = client.orchestrator("POST", f"{path}/accept").json["data"][0]
    assert accepted["state"] == "StableOK"
    graph = topology(text=accepted["model"])
    assert {node.reservation_info.reservation_state for node in graph.nodes.values()} == {"Active"}
    graph.remove_node(name="n1")
    client.orchestrator("PUT", path, data=graph.serialize())
    client.settled(slice_id)
    assert [call[0] for call in client.ground.calls].count("add_machine") == 2
    assert [call[0] for call in client.ground.calls].count("remove_machine") == 1
    slivers = client.orchestrator("GET", "/slivers", query_string={"slice_id": slice_id}).json["data"]
    assert [sliver["sliver"]["Name"] for sliver in slivers] == ["n2"]


def test_refused_part_of_a_modification_is_an_error_and_leaves_with_accept(client):
    slice_id = client.made()
    graph = topology(("n2", "BRIST"), text=client.slice(slice_id, "GRAPHML")["model"])
    client.orchestrator("PUT", f"/slices/modify/{slice_id}", data=graph.serialize())
    client.settled(slice_id)
    assert client.slice(slice_id)["state"] == "ModifyError"
    accepted = client.orchestrator("POST", f"/slices/modify/{slice_id}/accept").json["data"][0]
    assert accepted["state"] == "StableError"
    assert set(topology(text=accepted["model"]).nodes) == {"n1"}


def test_refused_modification_leaves_the_slice_as_it_was(tmp_path, fablib):
    client = Client(tmp_path, tags=())
    slice_id = client.made()
    before = client.slice(slice_id, "GRAPHML")
    wider = topology(("n2", "UTAH"), text=before["model"])
    graph = wider.serialize().replace(wider.graph_model.graph_id, before["graph_id"])  # as fablib sends it
    refused(client.orchestrator("PUT", f"/slices/modify/{slice_id}", data=graph), 500, "Slice.Multisite")
    after = client.slice(slice_id, "GRAPHML")
    assert set(topology(text=after["model"]).nodes) == {"n1"}
    assert (after["state"], after["graph_id"]) == ("StableOK", before["graph_id"])


def test_graph_has_a_new_name_with_every_modification(client):
    slice_id = client.made()
    before = client.slice(slice_id, "GRAPHML")
    client.orchestrator("PUT", f"/slices/modify/{slice_id}", data=before["model"])
    assert client.slice(slice_id)["graph_id"] != before["graph_id"]


def with_cards(client, slice_id, number):
    """Ask for so many dedicated cards in the node: the state that this comes to, and what is there then."""
    from fim.slivers.component_catalog import ComponentModelType

    graph = topology(text=client.slice(slice_id, "GRAPHML")["model"])
    node = graph.nodes["n1"]
    for name in [name for name in node.components if int(name[3:]) >= number]:
        node.remove_component(name)
    for missing in range(len(node.components), number):
        node.add_component(name=f"nic{missing}", model_type=ComponentModelType.SmartNIC_ConnectX_6)
    client.orchestrator("PUT", f"/slices/modify/{slice_id}", data=graph.serialize())
    state = client.slice(client.settled(slice_id))["state"]
    accepted = client.orchestrator("POST", f"/slices/modify/{slice_id}/accept").json["data"][0]
    return state, len(topology(text=accepted["model"]).nodes["n1"].components)


def free_cards(client):
    hosts = client.orchestrator("GET", "/resources/summary").json["data"][0]["hosts"]
    host = next(host for host in hosts if host["name"] == "tacc-w1.fabric-testbed.net")
    return host["components"]["SmartNIC-ConnectX-6"]["available"]


def test_cards_that_a_host_has_not_got_are_refused_and_leave_with_accept(client):
    slice_id = client.made()
    assert with_cards(client, slice_id, 2) == ("ModifyOK", 2)
    assert free_cards(client) == 0
    assert with_cards(client, slice_id, 3) == ("ModifyError", 2)


def test_card_that_is_given_back_is_free_again(client):
    slice_id = client.made()
    with_cards(client, slice_id, 2)
    assert with_cards(client, slice_id, 1) == ("ModifyOK", 1)
    assert free_cards(client) == 1


def test_ordered_error_of_a_modification_strikes_a_new_node(client):
    slice_id = client.made()
    client.ask("POST", names.ADMIN, "/faults", token=None, data="modify-error:node=n2")
    graph = topology(("n2", "TACC"), text=client.slice(slice_id, "GRAPHML")["model"])
    client.orchestrator("PUT", f"/slices/modify/{slice_id}", data=graph.serialize())
    assert client.slice(client.settled(slice_id))["state"] == "ModifyError"


def test_lease_that_ends_takes_the_nodes_away(client):
    end = (datetime.now(timezone.utc) + timedelta(seconds=3)).strftime(names.TIME_FORMAT)
    slice_id = client.create(lease_end_time=end).json["data"][0]["slice_id"]
    until = time.monotonic() + 30
    while client.slice(slice_id)["state"] != "Dead":
        assert time.monotonic() < until
        time.sleep(0.05)
    calls = [call[0] for call in client.ground.calls]
    assert calls.count("remove_machine") == calls.count("add_machine")


def test_operational_actions(client):
    slice_id = client.made()
    sliver = client.orchestrator("GET", "/slivers", query_string={"slice_id": slice_id}).json["data"][0]

    def act(operation, **data):
        path = f"/poas/create/{sliver['sliver_id']}"
        made = client.orchestrator("POST", path, json={"operation": operation, "data": data})
        if made.status_code != 200:
            return made
        until = time.monotonic() + 30
        while (told := client.orchestrator("GET", f"/poas/{made.json['data'][0]['poa_id']}").json["data"][0])[
            "state"
        ] == "Nascent":
            assert time.monotonic() < until
            time.sleep(0.01)
        return told

    assert act("reboot")["state"] == "Success"
    assert "restart_machine" in [call[0] for call in client.ground.calls]
    act("cpupin", vcpu_cpu_map=[{"vcpu": "0", "cpu": "5"}])
    host = act("cpuinfo")["info"]["cpuinfo"]["tacc-w1.fabric-testbed.net"]
    assert host["pinned_cpus"] == ["5"]
    act("addkey", keys=[{"key": "ssh-rsa BBBB", "comment": "new"}])
    assert client.ground.calls[-1][2:] == (("ssh-rsa BBBB",), ())
    refused(act("explode"), 400, "Unsupported operation")


def test_gateway_that_breaks_after_the_effect_has_made_the_slice(tmp_path, fablib):
    from fabbbr.sandbox.faults import Fault

    client = Client(tmp_path, faults=(Fault.parse("http:status=504,when=after,path=/slices/creates"),))
    assert client.create().status_code == 504
    refused(client.create(), 500, "already exists")
    assert [entry["status"] for entry in client.journal.requests()] == [504, 500]


def test_door_of_the_double_takes_orders_and_shows_what_waits(client):
    def door(method, path, **given):
        return client.ask(method, names.ADMIN, path, token=None, **given)

    assert door("POST", "/faults", data="slow:seconds=0.2,path=/whoami").status_code == 200
    assert [fault["kind"] for fault in door("GET", "/faults").json["faults"]] == ["slow"]
    begun = time.monotonic()
    client.ask("GET", names.CORE_API, "/whoami")
    assert time.monotonic() - begun >= 0.2
    assert door("GET", "/faults").json["faults"] == []
    refused(door("POST", "/faults", data="earthquake"), 400, "there is no fault 'earthquake'")
    assert door("GET", "/requests").json["requests"][-1]["path"] == "/faults"


def test_two_creations_of_one_name_at_once_make_one_slice(client):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(client.create("same"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in answers) == [200, 500, 500, 500]


@pytest.mark.parametrize("keytype", ["sliver", "bastion"])
def test_key_is_made_and_only_that_of_the_bastion_is_admitted_there(client, keytype):
    body = {"comment": "a-test-key", "description": "d", "keytype": keytype, "store_pubkey": True}
    made = client.ask("POST", names.CORE_API, "/sshkeys", json=body).json["results"][0]
    assert made["private_openssh"].startswith("-----BEGIN")
    admitted = [call[1] for call in client.ground.calls if call[0] == "admit"]
    assert admitted == ([(made["public_openssh"],)] if keytype == "bastion" else [])
    person = client.ask("GET", names.CORE_API, f"/people/{names.USER_ID}", query_string={"as_self": "true"})
    assert [key["fabric_key_type"] for key in person.json["results"][0]["sshkeys"]] == [keytype]


def test_key_with_a_comment_that_fabric_refuses_is_not_made(client):
    body = {"comment": "a b", "description": "d", "keytype": "sliver"}
    assert client.ask("POST", names.CORE_API, "/sshkeys", json=body).status_code == 400


def test_summary_includes_and_excludes_sites(client):
    def sites(**query):
        answer = client.orchestrator("GET", "/resources/summary", query_string=query)
        found = answer.json["data"][0]
        assert {host["site"] for host in found["hosts"]} == {site["name"] for site in found["sites"]}
        return {site["name"] for site in found["sites"]}

    everything = sites()
    assert sites(includes="TACC, UTAH") == {"TACC", "UTAH"}
    assert sites(excludes="TACC") == everything - {"TACC"}
