"""The manifests for Kubernetes: they fit together, and the daemon that they describe is this one."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from session_runtime.app.serve import LAST_GRACE_S
from session_runtime.cli import serve
from session_runtime.transports.http.server import GRACE_S
from tests.deploy.files import KUBERNETES, UID, environment, loaded, manifest

CONFIG = KUBERNETES / "config.toml"


@pytest.fixture
def pod() -> Any:
    return manifest("deployment")["spec"]["template"]["spec"]


@pytest.fixture
def container(pod: Any) -> Any:
    [found] = pod["containers"]
    return found


def env_of(container: Any) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container["env"]}


def test_everything_that_is_there_is_applied_but_for_what_would_be_set_back_by_each_apply() -> None:
    said = manifest("kustomization")
    others = {"kustomization.yaml", "autoscaler.yaml"}
    assert others | set(said["resources"]) == {path.name for path in KUBERNETES.glob("*.yaml")}
    assert not others & set(said["resources"])
    assert "replicas" in manifest("deployment")["spec"]
    [generated] = said["configMapGenerator"]
    assert generated["files"] == [CONFIG.name]


def test_the_daemon_accepts_its_configuration_and_its_variables(
    container: Any, tmp_path: Path
) -> None:
    snapshot = loaded(CONFIG, tmp_path, env_of(container))
    assert snapshot.warnings == ()
    key = snapshot.settings.models["main"].api_key
    assert key is not None
    assert key.get_secret_value().startswith("a secret")
    assert snapshot.settings.http.port == container["ports"][0]["containerPort"]
    with serve.command.make_context(container["args"][0], container["args"][1:]) as context:
        assert context.params["as_json"] is True


@pytest.mark.requirement("REL-5")
def test_configuration_and_secrets_are_folders_so_that_edits_reach_the_daemon(
    pod: Any, container: Any
) -> None:
    mounts = {each["name"]: each for each in container["volumeMounts"]}
    assert not any("subPath" in each for each in mounts.values())
    path = Path(environment()["SESSION_RUNTIME_CONFIG"])
    assert mounts["configuration"]["mountPath"] == str(path.parent)
    for value in env_of(container).values():
        assert Path(value).parent == Path(mounts["secrets"]["mountPath"])
    [generated] = manifest("kustomization")["configMapGenerator"]
    assert generated["options"] == {"disableNameSuffixHash": True}
    volumes = {each["name"]: each for each in pod["volumes"]}
    assert volumes["configuration"]["configMap"] == {"name": generated["name"]}


def test_only_the_state_and_tmp_can_be_written(pod: Any, container: Any) -> None:
    writable = {
        each["name"]: each["mountPath"]
        for each in container["volumeMounts"]
        if not each.get("readOnly")
    }
    state = environment()["SESSION_RUNTIME__RUNTIME__STATE_DIR"]
    assert writable == {"state": state, "tmp": "/tmp"}
    volumes = {each["name"]: each for each in pod["volumes"]}
    assert all("emptyDir" in volumes[name] for name in writable)


def test_the_pod_is_as_restricted_as_its_namespace_wants(pod: Any, container: Any) -> None:
    enforced = "pod-security.kubernetes.io/enforce"
    assert manifest("namespace")["metadata"]["labels"][enforced] == "restricted"
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": UID,
        "runAsGroup": UID,
        "fsGroup": UID,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("probe", "path"),
    [("startupProbe", "/healthz"), ("readinessProbe", "/readyz"), ("livenessProbe", "/healthz")],
)
def test_probes_ask_what_the_daemon_answers(container: Any, probe: str, path: str) -> None:
    names = [each["name"] for each in container["ports"]]
    assert container[probe]["httpGet"] == {"path": path, "port": names[0]}


@pytest.mark.requirement("REL-8a")
def test_a_stop_may_take_as_long_as_asks_may_run(pod: Any, container: Any, tmp_path: Path) -> None:
    drain_s = loaded(CONFIG, tmp_path, env_of(container)).settings.runtime.drain_timeout_s
    program, before_s = container["lifecycle"]["preStop"]["exec"]["command"]
    assert program == "sleep"
    needed_s = int(before_s) + drain_s + 2 * GRACE_S + LAST_GRACE_S
    assert pod["terminationGracePeriodSeconds"] > needed_s


def test_one_slow_answer_takes_no_pod_out_of_the_service(container: Any) -> None:
    ready = container["readinessProbe"]
    assert (ready["timeoutSeconds"], ready["failureThreshold"]) == (3, 3)


def test_only_backends_reach_the_daemon_and_it_never_reaches_what_tells_secrets() -> None:
    policy = manifest("network")["spec"]
    [ingress], [egress] = policy["ingress"], policy["egress"]
    container = manifest("deployment")["spec"]["template"]["spec"]["containers"][0]
    assert ingress["ports"] == [{"port": container["ports"][0]["name"]}]
    assert {"podSelector": {}} in ingress["from"]
    assert all(each for each in ingress["from"])
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    blocks = {
        each["ipBlock"]["cidr"]: each["ipBlock"] for each in egress["to"] if "ipBlock" in each
    }
    assert blocks["0.0.0.0/0"]["except"] == ["169.254.169.254/32"]


def test_all_manifests_mean_the_same_pods() -> None:
    deployment = manifest("deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    for selector in (
        deployment["spec"]["selector"]["matchLabels"],
        manifest("service")["spec"]["selector"],
        manifest("disruption")["spec"]["selector"]["matchLabels"],
        manifest("network")["spec"]["podSelector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()
    target = manifest("autoscaler")["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Deployment", deployment["metadata"]["name"])
    ports = manifest("service")["spec"]["ports"]
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert ports[0]["targetPort"] == container["ports"][0]["name"]


def test_no_update_takes_a_replica_away_before_another_one_is_ready() -> None:
    spec = manifest("deployment")["spec"]
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert spec["replicas"] >= manifest("autoscaler")["spec"]["minReplicas"]


@pytest.mark.parametrize("path", sorted(KUBERNETES.glob("*.yaml")), ids=lambda path: path.name)
def test_no_manifest_holds_a_secret(path: Path) -> None:
    kinds = [each["kind"] for each in yaml.safe_load_all(path.read_text("utf-8"))]
    assert "Secret" not in kinds
