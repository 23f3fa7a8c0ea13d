"""The policy in force in a pod."""

from __future__ import annotations

import json
import logging
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headway_runtime.exchange import policy_file
from headway_runtime.policy import SignedPolicy, decode, encode
from headway_runtime.sidecar.acceptance import Outcome
from headway_runtime.sidecar.policies import Policies
from headway_runtime.sidecar.settings import Settings
from tests.unit.runtime.policies import KEY_ID, POD, PRIVATE_KEY, SERVICE, policy, publish, signed


@pytest.fixture
def settings(tmp_path: Path) -> Any:
    (tmp_path / "run").mkdir()
    publish(tmp_path / "policy", policy(1, 0, 0))
    return Settings(tmp_path / "run", tmp_path / "policy", SERVICE, POD)


@pytest.fixture
def policies(settings: Settings) -> Any:
    made = Policies(settings)
    made.follow_config_map()
    return made


def push(policies: Any, sent: Any) -> Any:
    return policies.push(signed(sent).to_json()).outcome


def in_file(settings: Settings) -> Any:
    return decode(policy_file.read(settings.run_dir / policy_file.FILE_NAME))


def test_the_baseline_is_handed_to_the_engine(policies: Any, settings: Settings) -> None:
    assert policies.current == in_file(settings) == policy(1, 0, 0)


def test_a_pushed_policy_is_handed_to_the_engine(policies: Any, settings: Settings) -> None:
    assert push(policies, policy(1, 1, 1, token_budget=512)) is Outcome.APPLIED
    assert in_file(settings).token_budget == 512


def test_a_policy_that_is_not_taken_changes_nothing(policies: Any, settings: Settings) -> None:
    push(policies, policy(1, 1, 1))
    assert push(policies, policy(1, 0, 5, token_budget=1)) is Outcome.OUTDATED
    assert in_file(settings) == policy(1, 1, 1)


@pytest.mark.parametrize("field", ["payload", "signature"])
def test_a_forged_policy_is_refused(policies: Any, field: Any) -> None:
    good = signed(policy(1, 1, 1))
    forged = {"payload": encode(policy(9, 9, 9)), "signature": bytes(64)}
    answer = policies.push(replace(good, **{field: forged[field]}).to_json())
    assert answer.outcome is Outcome.BAD_SIGNATURE


def test_a_policy_under_an_unpublished_key_is_refused(policies: Any) -> None:
    answer = policies.push(replace(signed(policy(1, 1, 1)), key_id="0" * 16).to_json())
    assert answer.outcome is Outcome.UNKNOWN_KEY


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"payload": 1}', b"\xff" * 100, b"{" * 100_000]
)
def test_a_body_that_is_no_policy_is_refused(policies: Any, body: bytes) -> None:
    assert policies.push(body).outcome is Outcome.BAD_FORMAT


def test_a_signed_document_that_is_no_policy_is_refused(policies: Any) -> None:
    payload = json.dumps({"version": 1}).encode()
    answer = policies.push(SignedPolicy(payload, PRIVATE_KEY.sign(payload), KEY_ID).to_json())
    assert answer.outcome is Outcome.BAD_FORMAT


def test_a_refusal_is_logged_without_what_was_sent(
    policies: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        policies.push(b'{"payload": "c2VjcmV0", "signature": "", "keyId": "secret-key"}')
    assert "UnknownKey" in caplog.text
    assert "secret" not in caplog.text
    assert "c2VjcmV0" not in caplog.text


def test_the_policy_in_force_survives_a_restart(policies: Any, settings: Settings) -> None:
    push(policies, policy(1, 1, 1, token_budget=512))
    restarted = Policies(settings)
    restarted.follow_config_map()
    assert restarted.current == policy(1, 1, 1, token_budget=512)


def test_a_torn_file_from_the_last_run_is_replaced_by_the_baseline(settings: Settings) -> None:
    (settings.run_dir / policy_file.FILE_NAME).write_bytes(b"HEADWAY-POLICY torn")
    policies = Policies(settings)
    assert policies.current is None
    policies.follow_config_map()
    assert in_file(settings) == policy(1, 0, 0)


def test_a_file_left_by_another_service_is_not_taken(settings: Settings) -> None:
    policy_file.write(
        settings.run_dir / policy_file.FILE_NAME, encode(policy(9, 0, 0, service="x"))
    )
    assert Policies(settings).current is None


def test_a_new_baseline_replaces_pushed_policies_of_older_generations(
    policies: Any, settings: Settings
) -> None:
    push(policies, policy(1, 7, 7))
    publish(settings.policy_dir, policy(2, 0, 0))
    policies.follow_config_map()
    assert in_file(settings) == policy(2, 0, 0)


def test_an_old_baseline_does_not_replace_what_was_pushed(
    policies: Any, settings: Settings
) -> None:
    push(policies, policy(2, 1, 1))
    publish(settings.policy_dir, policy(1, 0, 0, token_budget=99))
    policies.follow_config_map()
    assert in_file(settings) == policy(2, 1, 1)


def test_a_change_by_the_kubelets_link_is_seen(tmp_path: Path) -> None:
    for name, generation in (("..1", 1), ("..2", 2)):
        publish(tmp_path / name, policy(generation, 0, 0))
    directory = tmp_path / "policy"
    directory.mkdir()
    (directory / "..data").symlink_to("../..1")
    for name in ("baseline.json", "keys.json"):
        (directory / name).symlink_to(f"..data/{name}")
    (tmp_path / "run").mkdir()
    policies = Policies(Settings(tmp_path / "run", directory, SERVICE, POD))
    policies.follow_config_map()
    (directory / "..next").symlink_to("../..2")
    (directory / "..next").rename(directory / "..data")
    policies.follow_config_map()
    assert policies.current == policy(2, 0, 0)


def test_an_unchanged_config_map_is_not_read_again(
    policies: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Policies, "_read_baseline", lambda _: pytest.fail("read again"))
    policies.follow_config_map()


def test_a_baseline_that_could_not_be_written_is_tried_again(
    policies: Any, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    publish(settings.policy_dir, policy(2, 0, 0))
    with monkeypatch.context() as broken:
        broken.setattr(policy_file, "write", full)
        with pytest.raises(OSError, match="no space left"):
            policies.follow_config_map()
    policies.follow_config_map()
    assert in_file(settings) == policy(2, 0, 0)


@pytest.mark.parametrize(
    "keys", ['{"keys": {}}', "{", '{"keys": {"a": "short"}}', "[]", "[" * 100_000]
)
def test_unreadable_keys_leave_the_last_good_ones(
    policies: Any, settings: Settings, keys: Any
) -> None:
    (settings.policy_dir / "keys.json").write_text(keys)
    policies.follow_config_map()
    assert push(policies, policy(1, 1, 1)) is Outcome.APPLIED


def test_without_a_config_map_nothing_is_in_force(settings: Settings) -> None:
    shutil.rmtree(settings.policy_dir)
    policies = Policies(settings)
    policies.follow_config_map()
    assert policies.current is None


def test_a_baseline_for_another_service_is_not_taken(settings: Settings) -> None:
    publish(settings.policy_dir, policy(1, 0, 0, service="other"))
    policies = Policies(settings)
    policies.follow_config_map()
    assert policies.current is None


def test_outcomes_are_counted(policies: Any) -> None:
    push(policies, policy(1, 1, 1))
    push(policies, policy(1, 1, 1))
    policies.push(b"")
    assert policies.outcomes == {
        Outcome.APPLIED: 1,
        Outcome.ALREADY_APPLIED: 1,
        Outcome.BAD_FORMAT: 1,
    }
