"""Settled runs pushed to callbacks: signed, frozen, tried for three days, and only where they may go."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import freezegun
import pytest
from aiohttp.resolver import ThreadedResolver
from dirty_equals import IsPartialDict
from freezegun import freeze_time
from freezegun.api import FrozenDateTimeFactory
from redis.asyncio import Redis
from structlog.testing import capture_logs

from core import callbacks
from core.agenda import Worker
from core.api.views import RunView, dumped
from core.callbacks import Callbacks
from core.egress import Reach
from core.engine import ResumeEngine
from core.errors import NotFailed
from core.gates import Action
from core.policy import Key
from core.runs import Card, Run
from tests.conftest import LOOPBACK
from tests.integration.conftest import KEY_POLICY, Api
from tests.integration.receiver import SECRET, Names, Receiver
from tests.integration.test_crash import doomed
from tests.runs import FOCUSED, approval, body, question_call, run_request
from tests.stores import events
from tests.tls import Authority

CI = Key(key="ci")
START = datetime(2026, 1, 1, tzinfo=UTC)
NewEngine = Callable[..., ResumeEngine]


@pytest.fixture
def clock() -> Iterator[FrozenDateTimeFactory]:
    with freeze_time(START, real_asyncio=True) as moved:
        yield moved


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver().serving() as receiver:
        yield receiver


@pytest.fixture
async def engine(new_engine: NewEngine) -> ResumeEngine:
    return new_engine(callback_allow=(LOOPBACK,))


def worker(engine: ResumeEngine, **more: Any) -> Worker:
    return Worker(engine.store, engine.bell, {"callback": Callbacks(engine, **more).push})


async def opened(engine: ResumeEngine, url: str, **more: Any) -> Run:
    """A run without a card, so that nothing else is on the agenda."""
    callback = {"url": url, "secret": SECRET}
    request = run_request(
        [question_call()], [approval()], callback=callback, policy=KEY_POLICY, place=None, **more
    )
    run, _ = await engine.suspend(request, owner="ci")
    return run


async def settled(engine: ResumeEngine, url: str, **more: Any) -> Run:
    run = await opened(engine, url, **more)
    await engine.decide(run.gates[0].id, Action.ANSWER, by=CI, via="api", values=FOCUSED)
    return await engine.decide(run.gates[1].id, Action.APPROVE, by=CI, via="api")


async def claimed(engine: ResumeEngine) -> list[str]:
    return [r.run.id for r in await engine.resumes.claim("api", limit=10, wait_s=0, lease_s=30)]


async def test_a_settled_run_is_pushed_signed_and_counts_as_taken_up(
    engine: ResumeEngine, receiver: Receiver
) -> None:
    run = await settled(engine, receiver.url, state="opaque", external_id="thread-7")
    assert await worker(engine).run_once() == 1
    [post] = receiver.posts
    assert post.message == {
        "id": post.id,
        "type": "run.settled",
        "run": dumped(RunView.of(run)),
        "idempotency_key": f"{run.id}:1",
        "state": "opaque",
    }
    assert post.message["run"]["results"]["calls"]["question-1"]["value"] == FOCUSED
    assert post.headers["content-type"] == "application/json"
    run = await engine.run(run.id)
    assert (run.status, run.error) == ("resumed", None)
    assert (await events(engine, run.id))[-1] == IsPartialDict(
        {"event": "run.resumed", "by": None, "from": "host"}
    )
    assert await claimed(engine) == []
    assert await worker(engine).run_once() == 0


async def test_nothing_is_pushed_before_all_is_settled_nor_for_a_run_without_callback(
    engine: ResumeEngine, receiver: Receiver
) -> None:
    run = await opened(engine, receiver.url)
    await engine.decide(run.gates[0].id, Action.ANSWER, by=CI, via="api", values=FOCUSED)
    other, _ = await engine.suspend(run_request(policy=KEY_POLICY, place=None), owner="ci")
    await engine.cancel(other.id, None, by=CI, via="api")
    assert await worker(engine).run_once() == 0
    assert receiver.posts == []


async def test_silence_is_pushed_too(
    engine: ResumeEngine, receiver: Receiver, clock: FrozenDateTimeFactory
) -> None:
    await opened(engine, receiver.url, timeout_s=60)
    clock.tick(60)
    await worker(engine).run_once()
    [post] = receiver.posts
    results = post.message["run"]["results"]
    assert results["calls"]["question-1"] == IsPartialDict(status="failed", outcome="expired", by=[])


async def test_a_refused_message_comes_again_in_the_same_bytes_signed_anew(
    engine: ResumeEngine, receiver: Receiver, clock: FrozenDateTimeFactory
) -> None:
    receiver.script = [500, 503, 404]
    run = await settled(engine, receiver.url)
    pusher = worker(engine)
    for status in (500, 503, 404):
        assert await pusher.run_once() == 1
        run = await engine.run(run.id)
        assert (run.status, run.error) == ("settled", f"callback: it answered {status}")
        assert await pusher.run_once() == 0
        # what the run looks like changes, what is sent does not
        await engine.store.set_cards(run, [Card(channel="C1", ts=f"{status}.1", gates=(0, 1))])
        clock.tick(3600)
    await pusher.run_once()
    assert (await engine.run(run.id)).status == "resumed"
    assert len(receiver.posts) == 4
    assert len({post.raw for post in receiver.posts}) == 1
    assert len({post.id for post in receiver.posts}) == 1
    assert len({post.headers["webhook-timestamp"] for post in receiver.posts}) == 4
    assert len({post.headers["webhook-signature"] for post in receiver.posts}) == 4


async def test_a_receiver_whose_reply_is_lost_gets_the_same_id_twice(
    engine: ResumeEngine, receiver: Receiver, clock: FrozenDateTimeFactory
) -> None:
    receiver.script = ["drop"]
    run = await settled(engine, receiver.url)
    await worker(engine).run_once()
    assert (await engine.run(run.id)).error == "callback: it cannot be reached (ServerDisconnectedError)"
    clock.tick(2)
    await worker(engine).run_once()
    first, second = receiver.posts
    assert (first.id, first.raw) == (second.id, second.raw)
    assert (await engine.run(run.id)).status == "resumed"


async def test_another_process_goes_on_with_the_message_of_one_that_was_killed(
    new_engine: NewEngine, engine: ResumeEngine, receiver: Receiver, redis_url: str
) -> None:
    receiver.script = ["hang"]
    run = await settled(engine, receiver.url)
    async with doomed(redis_url, "push", run.id) as process:
        await receiver.arrived.wait()
        assert await process.kill() == []
    assert await claimed(engine) == []  # its lease holds a while
    with freeze_time(datetime.now(UTC) + timedelta(seconds=31), real_asyncio=True):
        await worker(new_engine(callback_allow=(LOOPBACK,))).run_once()
    first, second = receiver.posts
    assert (first.id, first.raw) == (second.id, second.raw)
    assert (await engine.run(run.id)).status == "resumed"


async def test_after_three_days_it_is_given_up_and_the_run_stays_in_its_queue(
    engine: ResumeEngine, receiver: Receiver, clock: FrozenDateTimeFactory
) -> None:
    receiver.script = [500]
    run = await settled(engine, receiver.url)
    pusher = worker(engine)
    tries = 0
    while did := await pusher.run_once():
        tries += did
        clock.tick(6 * 3600)
        receiver.script = [500]
    assert tries == 3 * 24 / 6 + 1
    run = await engine.run(run.id)
    assert (run.status, run.error) == ("settled", "callback: it answered 500")
    said = [event for event in await events(engine, run.id) if event["event"] == "run.failed"]
    assert said == [IsPartialDict(reason="callback: it answered 500", by=None)]
    clock.tick(timedelta(days=4))
    assert await pusher.run_once() == 0
    # an admin has it tried for three days more, with the same message
    receiver.script = [500]
    await engine.dead_letters.requeue(run.id, by=CI, via="api")
    assert await pusher.run_once() == 1
    clock.tick(3)
    assert await pusher.run_once() == 1
    assert (await engine.run(run.id)).status == "resumed"
    assert len({(post.id, post.raw) for post in receiver.posts}) == 1
    with pytest.raises(NotFailed):
        await engine.dead_letters.requeue(run.id, by=CI, via="api")


async def test_a_run_that_was_given_up_can_be_claimed(
    engine: ResumeEngine, receiver: Receiver, clock: FrozenDateTimeFactory
) -> None:
    receiver.script = [500] * 2
    run = await settled(engine, receiver.url)
    await worker(engine).run_once()
    clock.tick(timedelta(days=3))
    await worker(engine).run_once()
    [resume] = await engine.resumes.claim("api", limit=10, wait_s=0, lease_s=30)
    assert resume.key == receiver.posts[0].message["idempotency_key"]
    assert json.loads(resume.body) == receiver.posts[0].message["run"]["results"]
    assert (await engine.resumes.ack(run.id, resume.lease, by=CI)).status == "resumed"


def test_the_waits_grow_from_a_second_to_an_hour() -> None:
    for elapsed, longest in ((0, 1000), (900, 1000), (60_000, 60_000), (10**9, 3_600_000)):
        waits = {callbacks.wait_ms(elapsed) for _ in range(50)}
        assert longest / 2 <= min(waits) < max(waits) <= longest


# one at a time


async def test_who_holds_the_lease_is_not_pushed_past_and_an_ack_ends_the_push(
    engine: ResumeEngine, receiver: Receiver, clock: FrozenDateTimeFactory
) -> None:
    run = await settled(engine, receiver.url)
    [resume] = await engine.resumes.claim("api", limit=10, wait_s=0, lease_s=30)
    await worker(engine).run_once()
    assert receiver.posts == []
    await engine.resumes.ack(run.id, resume.lease, by=CI)
    clock.tick(60)
    assert await worker(engine).run_once() == 0
    assert receiver.posts == []


async def test_when_a_host_gives_the_run_back_or_loses_its_lease_it_is_pushed(
    engine: ResumeEngine, receiver: Receiver, clock: FrozenDateTimeFactory
) -> None:
    await settled(engine, receiver.url)
    [resume] = await engine.resumes.claim("api", limit=10, wait_s=0, lease_s=30)
    await worker(engine).run_once()
    clock.tick(32)
    await worker(engine).run_once()
    [post] = receiver.posts
    assert post.message["idempotency_key"] == resume.key


async def test_nobody_can_claim_a_run_while_it_is_being_pushed(
    engine: ResumeEngine, receiver: Receiver
) -> None:
    receiver.script = ["hang"]
    run = await settled(engine, receiver.url)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(worker(engine).run_once())
        await receiver.arrived.wait()
        assert (await engine.run(run.id)).status == "resuming"
        assert await claimed(engine) == []
        receiver.go_on.set()
    assert (await engine.run(run.id)).status == "resumed"


async def test_tries_of_a_push_are_no_tries_of_a_host(
    engine: ResumeEngine, receiver: Receiver, clock: FrozenDateTimeFactory
) -> None:
    receiver.script = [500] * 22
    await settled(engine, receiver.url)
    for _ in range(22):
        assert await worker(engine).run_once() == 1
        clock.tick(3600)
    [resume] = await engine.resumes.claim("api", limit=10, wait_s=0, lease_s=30)
    assert resume.tries == 1


async def test_a_lease_that_ran_out_under_a_push_leaves_the_run_to_who_claimed_it(
    engine: ResumeEngine, receiver: Receiver, clock: FrozenDateTimeFactory
) -> None:
    receiver.script = ["hang"]
    run = await settled(engine, receiver.url)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(worker(engine).run_once())
        await receiver.arrived.wait()
        clock.tick(31)
        [resume] = await engine.resumes.claim("api", limit=10, wait_s=0, lease_s=30)
        receiver.go_on.set()
    assert (await engine.run(run.id)).status == "resuming"
    assert (await engine.resumes.ack(run.id, resume.lease, by=CI)).status == "resumed"
    clock.tick(60)
    assert await worker(engine).run_once() == 0
    assert len(receiver.posts) == 1


async def test_receivers_that_hang_leave_the_worker_room(
    engine: ResumeEngine, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callbacks, "MAX_AT_ONCE", 2)
    receiver.script = ["hang", "hang"]
    for _ in range(4):
        await settled(engine, receiver.url)
    async with asyncio.TaskGroup() as tasks:
        pushing = tasks.create_task(worker(engine).run_once())
        while len(receiver.posts) < 2:
            receiver.arrived.clear()
            await receiver.arrived.wait()
        receiver.go_on.set()
        assert await pushing == 4
    assert len(receiver.posts) == 2  # the others come again a second later


# what a receiver may do, and where it may be


async def test_a_redirect_is_not_followed(engine: ResumeEngine, receiver: Receiver) -> None:
    receiver.script = ["redirect"]
    run = await settled(engine, receiver.url)
    await worker(engine).run_once()
    assert (await engine.run(run.id)).error == "callback: it answered 307"
    assert receiver.others == []


async def test_an_answer_without_end_is_not_read(engine: ResumeEngine, receiver: Receiver) -> None:
    receiver.script = ["flood"]
    run = await settled(engine, receiver.url)
    await worker(engine).run_once()
    assert (await engine.run(run.id)).status == "resumed"
    assert receiver.sent < 16 << 20  # what the sockets between hold


async def test_a_receiver_that_does_not_answer_is_given_up_in_time(
    engine: ResumeEngine, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callbacks, "TIMEOUT_S", 0.1)
    receiver.script = ["hang"]
    run = await settled(engine, receiver.url)
    await worker(engine).run_once()
    assert (await engine.run(run.id)).error == "callback: no answer within 0.1 s"


async def test_proxies_of_the_environment_are_not_used(
    engine: ResumeEngine, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    await settled(engine, receiver.url)
    await worker(engine).run_once()
    assert len(receiver.posts) == 1


async def test_a_port_where_nobody_listens_is_tried_again(engine: ResumeEngine) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        run = await settled(engine, f"http://127.0.0.1:{taken.getsockname()[1]}/")
        await worker(engine).run_once()
    assert (await engine.run(run.id)).error == "callback: it cannot be reached (ClientConnectorError)"


async def test_a_name_is_looked_up_once_a_try_and_connected_to_there(
    engine: ResumeEngine, receiver: Receiver, clock: FrozenDateTimeFactory
) -> None:
    receiver.script = [500]
    names = Names([["127.0.0.1"], ["127.0.0.1"], ["10.0.0.1"]])
    url = f"http://hooks.example.com:{receiver.port}/hook"
    run = await settled(engine, url)
    pusher = worker(engine, resolver=names)
    await pusher.run_once()
    assert (names.asked, len(receiver.posts)) == (1, 1)
    assert receiver.posts[0].headers["host"] == f"hooks.example.com:{receiver.port}"
    clock.tick(2)
    await pusher.run_once()
    assert (names.asked, len(receiver.posts)) == (2, 2)
    assert (await engine.run(run.id)).status == "resumed"


async def test_a_name_that_changes_to_a_private_address_is_refused_from_then_on(
    new_engine: NewEngine, receiver: Receiver, clock: FrozenDateTimeFactory
) -> None:
    """DNS rebinding: the first look-up says a public address, the next one this machine."""
    engine = new_engine()
    names = Names([["203.0.114.1"], ["127.0.0.1"]])
    run = await settled(engine, f"https://hooks.example.com:{receiver.port}/hook")
    pusher = worker(engine, resolver=names)
    guarded = callbacks.Guarded(Reach(), "https", names)
    assert [item["host"] for item in await guarded.resolve("hooks.example.com")] == ["203.0.114.1"]
    await pusher.run_once()
    assert (await engine.run(run.id)).error == (
        "callback: refused, 'hooks.example.com' is or leads to a loopback address"
    )
    assert names.asked == 2
    assert receiver.posts == []


@pytest.mark.parametrize(
    ("url", "address", "error"),
    [
        ("https://h.example/", "127.0.0.1", "a loopback address"),
        ("https://h.example/", "10.0.0.1", "a private address"),
        ("https://h.example/", "169.254.169.254", "a link-local address"),
        ("https://h.example/", "224.0.0.1", "a multicast address"),
        ("https://h.example/", "240.0.0.1", "a reserved address"),
        ("https://h.example/", "::ffff:10.0.0.1", "an IPv4-mapped address"),
        ("https://h.example/", "fe80::1", "a link-local address"),
        ("https://h.example/", "fd00::1", "a private address"),
    ],
)
async def test_a_name_that_leads_to_a_private_address_is_refused(
    new_engine: NewEngine, url: str, address: str, error: str
) -> None:
    engine = new_engine()
    run = await settled(engine, url)
    await worker(engine, resolver=Names([[address]])).run_once()
    assert (await engine.run(run.id)).error == f"callback: refused, 'h.example' is or leads to {error}"


async def test_a_certificate_has_to_be_trusted_and_of_the_name_in_the_url(
    new_engine: NewEngine, tmp_path: Path, clock: FrozenDateTimeFactory
) -> None:
    clock.move_to(time_of_this_machine())
    authority = Authority(tmp_path)
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(*authority.issue("receiver"))
    trusting = ssl.create_default_context(cafile=authority.ca)
    engine = new_engine(callback_allow=(LOOPBACK,))
    async with Receiver().serving(served) as receiver:
        run = await settled(engine, f"https://127.0.0.1:{receiver.port}/hook")
        named = await settled(engine, f"https://hooks.example.com:{receiver.port}/hook")
        names = Names([["127.0.0.1"]])
        await worker(engine, resolver=names).run_once()
        clock.tick(2)
        assert receiver.posts == []
        await worker(engine, resolver=names, tls=trusting).run_once()
        assert [post.message["run"]["id"] for post in receiver.posts] == [run.id]
    assert (await engine.run(run.id)).status == "resumed"
    refused = "callback: it cannot be reached (ClientConnectorCertificateError)"
    assert (await engine.run(named.id)).error == refused


def time_of_this_machine() -> datetime:
    """TLS looks at the real clock, whatever a test makes of it."""
    return datetime.fromtimestamp(freezegun.api.real_time(), UTC)


async def test_the_names_of_this_machine_lead_to_it_and_are_refused(new_engine: NewEngine) -> None:
    """The real resolver knows the old forms of addresses, which the check at the opening may not know."""
    guarded = callbacks.Guarded(Reach(), "https", ThreadedResolver())
    for name in ("localhost", "127.1", "2130706433"):
        with pytest.raises(OSError, match="a loopback address"):
            await guarded.resolve(name, 443)


async def test_an_address_that_is_no_longer_allowed_is_not_called(
    new_engine: NewEngine, engine: ResumeEngine, receiver: Receiver
) -> None:
    run = await settled(engine, receiver.url)
    await worker(new_engine()).run_once()
    assert (
        await engine.run(run.id)
    ).error == "callback: refused, '127.0.0.1' is or leads to a loopback address"
    assert receiver.posts == []


async def test_a_plain_http_url_of_a_public_host_is_refused(new_engine: NewEngine) -> None:
    engine = new_engine(callback_allow=(LOOPBACK,))
    run = await settled(engine, "http://h.example/")
    await worker(engine, resolver=Names([["93.184.216.34"]])).run_once()
    assert (await engine.run(run.id)).error == "callback: refused, wanted an https URL"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("https://127.0.0.1/x", "'127.0.0.1' is or leads to a loopback address"),
        ("https://[fd00::1]/", "'fd00::1' is or leads to a private address"),
        ("https://0x7f.1:8443/", "'0x7f.1' is or leads to a loopback address"),
        ("http://hooks.example.com/", "wanted an https URL"),
    ],
)
async def test_a_callback_that_may_not_be_called_is_refused_when_the_run_is_opened(
    api: Api, new_engine: NewEngine, new_api: Any, url: str, says: str
) -> None:
    api = await new_api(new_engine())
    callback = {"url": url, "secret": SECRET}
    problem = await api.refused("POST", "/runs", body(callback=callback), status=422, slug="invalid")
    assert problem["errors"] == [{"loc": ["callback", "url"], "msg": says, "type": "address"}]
    assert "ASKGATE_CALLBACK_ALLOW" in problem["detail"]


async def test_the_secret_and_the_url_are_in_no_log_no_answer_and_no_event(
    new_api: Any, engine: ResumeEngine, receiver: Receiver, redis: Redis, capfd: pytest.CaptureFixture[str]
) -> None:
    receiver.script = [500, "drop"]
    api = await new_api(engine)
    with capture_logs() as logs:
        opened = await api.open(body(callback={"url": receiver.url, "secret": SECRET}, policy=KEY_POLICY))
        answers = {"calls": {"question-1": {"status": "returned", "value": FOCUSED}}}
        await api.post(f"/runs/{opened['id']}/resume", answers)
        for _ in range(3):
            await worker(engine).run_once()
            async for key in redis.scan_iter("ag:*:agenda"):
                for member in await redis.zrange(key, 0, -1):
                    await redis.zadd(key, {member: 0})
        shown = [await api.get(f"/runs/{opened['id']}"), await api.get(f"/gates/{opened['gates'][0]['id']}")]
        shown += [await api.audit(), (await engine.run(opened["id"])).model_dump_json()]
    assert {entry["event"] for entry in logs} >= {"callback.failed", "callback.taken"}
    written = f"{logs} {shown} {capfd.readouterr()}"
    assert SECRET.removeprefix("whsec_") not in written
    assert "in-the-url" not in written
    assert "secret words" not in written
    assert len(receiver.posts) == 3
