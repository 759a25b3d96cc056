"""Who may decide: every kind of principal, and no by default."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from core.errors import CannotVerify, NotAllowed, SelfApproval
from core.policy import (
    Actor,
    Key,
    NoDirectory,
    Person,
    Policy,
    PolicyRequest,
    can_be_decided,
    check_allowed,
    is_among,
)

HOME = "T1"
ANA = Person(team=HOME, user="U1")
BEN = Person(team=HOME, user="U2")
GUEST = Person(team="T2", user="U9")
NAMESAKE = Person(team="T2", user="U1")
CI = Key(key="ci")


class Members:
    """Channel C1 and group S1 have Ana; any other cannot be looked up."""

    async def in_channel(self, channel: str, person: Person) -> bool:
        return self._has(channel == "C1", person)

    async def in_group(self, group: str, person: Person) -> bool:
        return self._has(group == "S1", person)

    async def is_active(self, person: Person) -> bool:
        if person.user == "U9UNSURE":
            raise CannotVerify
        return person.user != "U9GONE"

    def _has(self, known: bool, person: Person) -> bool:
        if not known:
            raise CannotVerify
        return person.user == "U1"


async def said(
    deciders: Sequence[str],
    actor: Actor,
    *,
    approval: bool = True,
    approving: bool = True,
    requester: Person | None = None,
    self_approval: bool = False,
    home: str | None = HOME,
    channel: str | None = "C1",
    admins: Sequence[str] = (),
    speaks_for: Person | None = None,
) -> str:
    """`yes`, or the slug of the refusal."""
    try:
        await check_allowed(
            Policy(deciders=tuple(deciders), self_approval=self_approval),
            actor,
            approval=approval,
            approving=approving,
            requester=requester,
            home=home,
            channel=channel,
            admins=admins,
            directory=Members(),
            speaks_for=speaks_for,
        )
    except NotAllowed as refusal:
        return refusal.slug
    return "yes"


@pytest.mark.parametrize(
    ("deciders", "actor", "expected"),
    [
        ([], ANA, "not-allowed"),
        (["U1"], ANA, "yes"),
        (["U1"], BEN, "not-allowed"),
        (["U1"], NAMESAKE, "not-allowed"),
        (["T1:U1"], ANA, "yes"),
        (["T2:U9"], GUEST, "yes"),
        (["T2:U1"], ANA, "not-allowed"),
        (["U9"], GUEST, "not-allowed"),
        (["anyone"], BEN, "yes"),
        (["anyone"], GUEST, "not-allowed"),
        (["channel"], ANA, "yes"),
        (["channel"], BEN, "not-allowed"),
        (["channel"], NAMESAKE, "not-allowed"),
        (["S1"], ANA, "yes"),
        (["S1"], BEN, "not-allowed"),
        (["S1"], NAMESAKE, "not-allowed"),
        (["S404"], ANA, "cannot-verify"),
        (["S404"], GUEST, "not-allowed"),
        (["S404", "U1"], ANA, "yes"),
        (["S404", "S1"], ANA, "yes"),
        (["S404", "S1"], BEN, "cannot-verify"),
        (["key:ci"], ANA, "not-allowed"),
        (["admins"], ANA, "not-allowed"),
    ],
)
async def test_a_person_decides_only_where_the_policy_says_so(
    deciders: list[str], actor: Person, expected: str
) -> None:
    assert await said(deciders, actor) == expected


@pytest.mark.parametrize(
    ("deciders", "approval", "expected"),
    [
        ([], True, "not-allowed"),
        (["key:ci"], True, "yes"),
        (["key:ci"], False, "yes"),
        (["key:c"], True, "not-allowed"),
        (["key:CI"], True, "not-allowed"),
        (["anyone"], True, "not-allowed"),
        (["anyone"], False, "yes"),
        (["channel", "U1", "S1", "admins"], False, "not-allowed"),
    ],
)
async def test_a_key_decides_only_where_it_is_named_or_anyone_may_answer(
    deciders: list[str], approval: bool, expected: str
) -> None:
    assert await said(deciders, CI, approval=approval) == expected


async def test_speaking_for_somebody_gives_a_key_no_more_rights() -> None:
    assert await said(["U1"], CI, speaks_for=ANA) == "not-allowed"
    assert await said(["key:ci"], CI, speaks_for=GUEST) == "yes"


@pytest.mark.parametrize("admins", [["U1"], ["T1:U1"], ["S1"], ["U8", "U1"]])
async def test_admins_are_whom_the_settings_name(admins: list[str]) -> None:
    assert await said(["admins"], ANA, admins=admins) == "yes"
    assert await said(["admins"], BEN, admins=admins) == "not-allowed"
    assert await said(["U2"], ANA, admins=admins) == "not-allowed"  # an admin decides nothing by being one


async def test_nobody_is_at_home_before_the_home_is_known() -> None:
    for deciders in (["U1"], ["anyone"], ["channel"], ["S1"]):
        assert await said(deciders, ANA, home=None) == "not-allowed"
    assert await said(["T1:U1"], ANA, home=None) == "yes"


async def test_without_a_channel_nobody_is_a_member_of_it() -> None:
    assert await said(["channel"], ANA, channel=None) == "not-allowed"


async def test_without_a_directory_groups_and_channels_refuse() -> None:
    for principal in ("S1", "channel"):
        with pytest.raises(CannotVerify):
            await is_among([principal], ANA, home=HOME, channel="C1", directory=NoDirectory())


async def test_the_requester_does_not_approve_but_may_reject() -> None:
    assert await said(["U1", "U2"], ANA, requester=ANA) == SelfApproval.slug
    assert await said(["anyone"], ANA, requester=ANA) == SelfApproval.slug
    assert await said(["U1"], ANA, requester=ANA, approving=False) == "yes"
    assert await said(["U1"], ANA, requester=ANA, self_approval=True) == "yes"
    assert await said(["U1"], ANA, requester=NAMESAKE) == "yes"
    assert await said(["key:ci"], CI, requester=ANA, speaks_for=ANA) == SelfApproval.slug


people = st.builds(Person, team=st.sampled_from(["T1", "T2"]), user=st.sampled_from(["U1", "U2", "W3"]))
principals = st.sampled_from(
    ["U1", "U2", "W3", "T1:U1", "T2:U1", "T2:W3", "S1", "S404", "channel", "anyone", "admins", "key:ci"]
)


def model(deciders: Sequence[str], person: Person, admins: Sequence[str], channel: str | None) -> str:
    """The rules again, as one sentence each."""
    named = {p for p in deciders if p != "admins"} | (set(admins) if "admins" in deciders else set())
    at_home = person.team == HOME
    if f"{person.team}:{person.user}" in named:
        return "yes"
    if at_home and (person.user in named or "anyone" in named):
        return "yes"
    if at_home and person.user == "U1" and ("S1" in named or ("channel" in named and channel == "C1")):
        return "yes"
    if at_home and ("S404" in named or ("channel" in named and channel == "C404")):
        return "cannot-verify"
    return "not-allowed"


@given(
    deciders=st.lists(principals, max_size=6),
    person=people,
    admins=st.lists(st.sampled_from(["U1", "T2:U1", "S1", "S404"]), max_size=3),
    channel=st.sampled_from(["C1", "C404", None]),
)
async def test_any_policy_says_what_the_rules_say(
    deciders: list[str], person: Person, admins: list[str], channel: str | None
) -> None:
    expected = model(deciders, person, admins, channel)
    assert await said(deciders, person, admins=admins, channel=channel) == expected


@pytest.mark.parametrize("value", ["U1", "W1", "T2:U9", "E2:W9", "S1", "channel", "anyone", "key:a.B-c_1"])
def test_every_kind_of_principal_can_be_named(value: str) -> None:
    assert PolicyRequest(responders=[value], approvers=[value]).approvers == [value]


@pytest.mark.parametrize(
    "value",
    [
        "",
        "u1",
        "U",
        "U1 ",
        "U1\n",
        " U1",
        "@ana",
        "Ana",
        "admins",
        "everyone",
        "C1",
        "T2:S1",
        "T2",
        "key:",
        "key:a b",
    ],
)
@pytest.mark.parametrize("field", ["responders", "approvers"])
def test_what_is_no_principal_is_refused_with_what_is_wanted(field: str, value: str) -> None:
    with pytest.raises(ValidationError, match=re.escape('wanted a user ("U1" or "T2:U9")')):
        PolicyRequest.model_validate({field: [value]})


@pytest.mark.parametrize(
    "wrong",
    [
        {"quorum": 0},
        {"quorum": 33},
        {"reject_quorum": 0},
        {"quorum": "two"},
        {"reason": "sometimes"},
        {"approvers": ["U1"] * 257},
        {"approver": ["U1"]},
    ],
)
def test_a_policy_out_of_bounds_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        PolicyRequest.model_validate(wrong)


@pytest.mark.parametrize(
    ("deciders", "quorum", "expected"),
    [
        ([], 1, False),
        (["U1"], 1, True),
        (["U1"], 2, False),
        (["U1", "U2"], 2, True),
        (["U1", "T1:U1"], 2, False),
        (["U1", "T2:U1"], 2, True),
        (["admins"], 1, False),
        (["S1"], 9, True),
        (["anyone"], 9, True),
        (["channel"], 9, True),
        (["key:ci"], 1, True),
        (["key:ci"], 2, False),
        (["key:ci", "U1"], 2, True),
        (["key:ci", "key:cd"], 2, True),
    ],
)
def test_whether_a_quorum_can_be_reached(deciders: list[str], quorum: int, expected: bool) -> None:
    policy = Policy(deciders=tuple(deciders))
    assert can_be_decided(policy, requester=None, admins=(), quorum=quorum, home=HOME) is expected


def test_the_requester_does_not_count_towards_a_quorum() -> None:
    policy = Policy(deciders=("U1", "T1:U1", "U2"))
    for requester, expected in ((ANA, False), (NAMESAKE, True), (None, True)):
        assert can_be_decided(policy, requester=requester, admins=(), quorum=2, home=HOME) is expected
    allowed = Policy(deciders=("U1", "U2"), self_approval=True)
    assert can_be_decided(allowed, requester=ANA, admins=(), quorum=2, home=HOME)
    assert not can_be_decided(Policy(deciders=("U1",)), requester=ANA, admins=(), quorum=1)


def test_admins_count_and_a_channel_only_where_there_is_one() -> None:
    admins = Policy(deciders=("admins",))
    assert can_be_decided(admins, requester=None, admins=("U1", "U2"), quorum=2)
    assert can_be_decided(admins, requester=None, admins=("S1",), quorum=2)
    channel = Policy(deciders=("channel",))
    assert not can_be_decided(channel, requester=None, admins=(), quorum=1, channel=False)


async def test_who_is_deactivated_is_among_nobody_and_who_cannot_be_told_goes_by_what_names_them() -> None:
    for principal in ("U9GONE", "anyone", f"{HOME}:U9GONE"):
        gone = Person(team=HOME, user="U9GONE")
        assert not await is_among([principal], gone, home=HOME, channel="C1", directory=Members())
    unsure = Person(team=HOME, user="U9UNSURE")
    assert await is_among(["U9UNSURE"], unsure, home=HOME, channel="C1", directory=Members())
    assert not await is_among(["U9GONE"], unsure, home=HOME, channel="C1", directory=Members())
