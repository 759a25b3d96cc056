"""Redis as people run it: what holds on one server holds behind Sentinel, on a cluster, by TLS, for a limited user."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from redis.exceptions import NoPermissionError

from bot.commands.findings import Finding
from bot.commands.store_checks import check_store
from core.agenda import Worker
from core.bell import POLL_S, Bell
from core.engine import ResumeEngine
from core.errors import AlreadySettled, NotAllowed, StoreUnavailable
from core.gates import Action, Outcome
from core.parsing import Wait
from core.policy import Key, Person
from core.runs import Run, RunStatus
from core.settings import Settings
from core.store.connect import fast_client
from core.store.replicas import replicated
from tests.conftest import ANA, BEN, CHO, HOME
from tests.failovers import LONGEST_CLICK_S, Flight, Lost, Seen, compare
from tests.runs import FOCUSED, approval, question_call, run_request
from tests.stores import engine_on, events
from tests.tls import Authority, TlsDoor
from tests.topologies import (
    HASTY_MS,
    SERVICE,
    Cluster,
    Node,
    SetUp,
    Watched,
    cluster,
    free_ports,
    fresh,
    led_by_another,
    one_server,
    running,
    until,
    watched,
)

DESIGN = Path(__file__).parents[2] / "docs" / "design.md"
T = TypeVar("T")
ONE = Wait(1, 500)
"""Wait for one replica."""


def kept(start: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """What a whole file's tests share: servers depend on no event loop, but to start and end them takes one."""
    with asyncio.Runner() as runner:
        yield runner.run(start.__aenter__())
        runner.run(start.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def sentinels_kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    yield from kept(watched(tmp_path_factory.mktemp("sentinels")))


@pytest.fixture(scope="module")
def cluster_kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    yield from kept(cluster(tmp_path_factory.mktemp("cluster")))


@pytest.fixture
async def sentinels(sentinels_kept: Watched) -> Watched:
    await fresh(sentinels_kept)
    return sentinels_kept


@pytest.fixture
async def nodes(cluster_kept: Cluster) -> Cluster:
    await fresh(cluster_kept)
    return cluster_kept


@pytest.fixture(params=["sentinels_kept", "cluster_kept"])
def either_kept(request: pytest.FixtureRequest) -> SetUp:
    found: SetUp = request.getfixturevalue(request.param)
    return found


@pytest.fixture
async def either(either_kept: SetUp) -> SetUp:
    await fresh(either_kept)
    return either_kept


# the main job


async def main_job(url: str, wait: Wait | None = None) -> None:
    """All that people and hosts do, over two engines, as two processes would do it."""
    async with engine_on(url, wait) as one, engine_on(url, wait) as other:
        async with asyncio.timeout(10):
            await one.bell.listening.wait()
            await other.bell.listening.wait()
        request = run_request([question_call()], [approval()], state="opaque")
        run, made = await one.suspend(request, owner="ci", idempotency_key="first")
        assert made
        assert (await other.suspend(request, owner="ci", idempotency_key="first")) == (run, False)
        asked, tool = (gate.id for gate in run.gates)
        await other.draft(asked, ANA, {"0": [1]})
        with pytest.raises(NotAllowed):
            await one.decide(tool, Action.APPROVE, by=Person(team=HOME, user="U7"), via="slack")
        await one.decide(asked, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
        waiting = asyncio.create_task(other.wait(run.id, 10))
        claiming = asyncio.create_task(other.resumes.claim("api", limit=1, wait_s=10, lease_s=30))
        await until(lambda: heard_for(other.bell, run.id), "a waiter")
        before = asyncio.get_running_loop().time()
        await one.decide(tool, Action.APPROVE, by=BEN, via="slack")
        assert (await waiting).status is not RunStatus.WAITING
        [resume] = await claiming
        assert asyncio.get_running_loop().time() - before < POLL_S / 2, "nobody rang"
        assert resume.state == "opaque"
        with pytest.raises(AlreadySettled):
            await other.decide(tool, Action.DENY, by=CHO, via="slack")
        assert (await one.resumes.ack(run.id, resume.lease, by=Key(key="ci"))).status is RunStatus.RESUMED

        others = [await one.suspend(run_request(), owner="ci", idempotency_key=f"{n}") for n in range(8)]
        assert len({made.id[4:6] for made, _ in others}) == 4, "all partitions"
        gone = others[0][0]
        await other.cancel(gone.id, "changed my mind", by=Key(key="ci"), via="api")
        assert (await one.run(gone.id)).gates[0].status is Outcome.CANCELLED
        drawn: list[str] = []

        async def card(run_id: str, _tries: int) -> None:
            drawn.append(run_id)

        await Worker(other.store, other.bell, {"card": card}).run_once()
        assert set(drawn) == {run.id, *(made.id for made, _ in others)}
        listed = [gate.id async for _, _, gate in one.gates(only_open=True)]
        assert sorted(listed) == sorted(made.gates[0].id for made, _ in others[1:])
        assert (await events(one, run.id))[-1]["event"] == "run.resumed"
        assert abs(await one.store.server_ms() - one.store.clock.now_ms()) < 2_000
        for partition in range(one.store.partitions):
            await one.store.audit.verify(partition)


async def heard_for(bell: Bell, run_id: str) -> bool:
    return f"run:{run_id}" in bell._ears


async def test_the_main_job_behind_sentinels(sentinels: Watched) -> None:
    await main_job(sentinels.url, ONE)


async def test_the_main_job_on_a_cluster(nodes: Cluster) -> None:
    await main_job(nodes.url, ONE)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def client_files(authority: Authority) -> str:
    certificate, key = authority.issue("client")
    return f"ssl_ca_certs={authority.ca}&ssl_certfile={certificate}&ssl_keyfile={key}"


async def test_the_main_job_by_tls_with_a_certificate_on_each_side(
    tmp_path: Path, authority: Authority
) -> None:
    async with one_server(tmp_path) as server:
        door = TlsDoor(free_ports(1)[0], server.port, authority.context())
        async with door.open():
            await main_job(f"rediss://127.0.0.1:{door.port}/0?{client_files(authority)}")
            assert door.by_tls > 0
            for slip in ("", f"?ssl_ca_certs={authority.ca}", "?ssl_cert_reqs=none&ssl_check_hostname=no"):
                async with engine_on(f"rediss://127.0.0.1:{door.port}{slip}") as engine:
                    with pytest.raises(StoreUnavailable):
                        await engine.store.ping()
        assert door.plain == 0


async def test_the_main_job_by_tls_on_a_cluster(tmp_path: Path, authority: Authority) -> None:
    port, bus, announced = free_ports(3)
    options = [
        ("cluster-enabled", "yes"),
        ("cluster-port", str(bus)),
        ("cluster-announce-port", str(announced)),
    ]
    node = Node(tmp_path / "node", port, options)
    door = TlsDoor(announced, port, authority.context())
    async with running(node), door.open():
        await node.ask("CLUSTER", "ADDSLOTSRANGE", 0, 16383)

        async def ok() -> bool:
            return "cluster_state:ok" in await node.ask("CLUSTER", "INFO")

        await until(ok, "the cluster")
        await main_job(f"rediss+cluster://127.0.0.1:{announced}?{client_files(authority)}")
        assert door.by_tls > 0
        assert door.plain == 0


async def test_the_main_job_by_tls_behind_a_sentinel(tmp_path: Path, authority: Authority) -> None:
    context = authority.context()
    server_port, watch_port, server_door, watch_door = free_ports(4)
    server = Node(tmp_path / "server", server_port)
    monitor = [("sentinel monitor", f"main 127.0.0.1 {server_door} 1")]
    sentinel = Node(tmp_path / "sentinel", watch_port, monitor, sentinel=True)
    async with (
        TlsDoor(server_door, server_port, context).open() as to_server,
        TlsDoor(watch_door, watch_port, context).open() as to_sentinel,
        running(server, sentinel),
    ):
        await main_job(f"rediss+sentinel://127.0.0.1:{watch_door}/main?{client_files(authority)}")
        assert to_server.by_tls > 0
        assert to_sentinel.by_tls > 0
        assert to_sentinel.plain == 0


def documented_user() -> str:
    """The rule for askgate's user, as the design page has it."""
    [rule] = re.findall(r"^    user askgate (.*)$", DESIGN.read_text(), re.MULTILINE)
    return str(rule)


async def test_the_main_job_and_the_doctor_as_the_user_that_the_papers_name(tmp_path: Path) -> None:
    async with one_server(tmp_path, ("user", f"askgate {documented_user()}")) as server:
        url = f"redis://askgate:secret@127.0.0.1:{server.port}/0"
        await main_job(url)
        found = await doctor(url)
        assert {finding.state for finding in found.values()} == {"ok"}
        async with fast_client(url) as client:
            for words in (
                ("GET", "other"),
                ("PUBLISH", "other", "x"),
                ("FLUSHALL",),
                ("CONFIG", "SET", "save", ""),
            ):
                with pytest.raises(NoPermissionError):
                    await client.execute_command(*words)


async def test_a_user_that_may_not_is_a_store_that_refuses(tmp_path: Path) -> None:
    async with one_server(tmp_path, ("user", "poor on >secret ~other:* &* +@all")) as server:
        for login in ("poor:secret", "poor:wrong"):
            async with engine_on(f"redis://{login}@127.0.0.1:{server.port}") as engine:
                with pytest.raises(StoreUnavailable, match="refuses askgate's user"):
                    await engine.suspend(run_request(), owner="ci")


# what the doctor says


async def doctor(url: str, wait: Wait | None = None) -> dict[str, Finding]:
    settings = Settings(ASKGATE_REDIS_WAIT=f"{wait.replicas}:{wait.timeout_ms}" if wait else "")  # type: ignore[call-arg]
    return {finding.what: finding async for finding in check_store(url, settings)}


async def test_the_doctor_says_what_a_failover_of_sentinels_would_lose(sentinels: Watched) -> None:
    found = await doctor(sentinels.url)
    assert {finding.state for finding in found.values()} == {"ok"}
    assert found["store"].said.endswith("as the sentinels name it")
    assert "1; a failover may lose what had not reached one" in found["replicas"].said
    assert "3 answer; 2 have to agree" in found["sentinels"].said
    assert "a failover to one loses nothing" in (await doctor(sentinels.url, ONE))["replicas"].said
    short = (await doctor(sentinels.url, Wait(2, 500)))["replicas"]
    assert (short.state, short.mend) == ("fault", "start the replicas, or wait for fewer")
    assert "1 in step, and ASKGATE_REDIS_WAIT waits for 2: nobody can decide anything" in short.said
    last = sentinels.sentinels[2]
    last.kill()
    silent = (await doctor(sentinels.url))["sentinels"]
    assert silent.state == "fault"
    assert f"1 of 3 named cannot say who leads: 127.0.0.1:{last.port}" in silent.said
    unknown = await doctor(sentinels.url.replace(f"/{SERVICE}", "/other"))
    assert (unknown["store"].state, unknown["sentinels"].state) == ("fault", "fault")


async def test_the_doctor_looks_at_every_primary_of_a_cluster(nodes: Cluster) -> None:
    found = await doctor(nodes.url)
    assert {finding.state for finding in found.values()} == {"ok"}
    assert found["store"].said.endswith("a cluster of 3 primaries")
    assert found["fsync"].said.startswith("on each of 3 primaries: always")
    ill, _ = await nodes.pair(1)
    await ill.ask("CONFIG", "SET", "appendfsync", "everysec")
    try:
        fault = (await doctor(nodes.url))["fsync"]
    finally:
        await ill.ask("CONFIG", "SET", "appendfsync", "always")
    assert fault.state == "fault"
    assert fault.said.startswith(f"127.0.0.1:{ill.port}: everysec")


# writes that wait for replicas


def question(run: Run) -> str:
    return run.gates[0].id


async def pairs(set_up: SetUp) -> list[tuple[Node, Node]]:
    return [await set_up.pair(number) for number in range(3 if isinstance(set_up, Cluster) else 1)]


async def test_what_reached_no_replica_is_not_acknowledged_and_is_found_by_the_next_click(
    either: SetUp,
) -> None:
    async with engine_on(either.url, ONE) as engine:
        run, _ = await engine.suspend(run_request(), owner="ci")
        async with contextlib.AsyncExitStack() as cut:
            for _, standing in await pairs(either):
                await cut.enter_async_context(standing.cut_off())
            with pytest.raises(StoreUnavailable, match="may have been saved, but 0 of 1 replicas have it"):
                await engine.decide(question(run), Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
            # nor is anybody told who was first, which a failover could undo
            with pytest.raises(StoreUnavailable, match="may have been saved"):
                await engine.decide(question(run), Action.DECLINE, by=BEN, via="slack")
        await until(either.settled, "the replicas")
        with pytest.raises(AlreadySettled) as refused:
            await engine.decide(question(run), Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
        assert refused.value.extra["gate"].decision.votes[0].by == ANA


async def test_a_repeated_call_that_writes_nothing_waits_for_the_first_ones_write(either: SetUp) -> None:
    """As one does whose first reply was lost: its second connection has written nothing that WAIT could ask for."""
    mark, key = "ag:{00}:mark", "ag:{00}:x"
    async with contextlib.AsyncExitStack() as stack:
        one, other = fast_client(either.url), fast_client(either.url)
        stack.push_async_callback(one.aclose)
        stack.push_async_callback(other.aclose)
        assert await replicated(other, ONE, mark, "GET", key) is None
        async with contextlib.AsyncExitStack() as cut:
            for _, standing in await pairs(either):
                await cut.enter_async_context(standing.cut_off())
            await one.execute_command("SET", key, "1")
            with pytest.raises(StoreUnavailable):
                await replicated(other, ONE, mark, "GET", key)
        await until(either.settled, "the replicas")
        assert await replicated(other, ONE, mark, "GET", key) == "1"


# failovers


@contextlib.asynccontextmanager
async def stopped(node: Node) -> AsyncIterator[None]:
    """A server that hangs meanwhile."""
    node.send(signal.SIGSTOP)
    try:
        yield
    finally:
        node.send(signal.SIGCONT)


async def crash(set_up: SetUp) -> None:
    """The server that leads is killed, and started again once another leads."""
    leading, _ = await set_up.pair()
    leading.kill()
    await led_by_another(set_up, leading)
    leading.start()


async def hang(set_up: SetUp) -> None:
    """The server that leads hangs until another leads; then it goes on with what callers had sent it."""
    leading, _ = await set_up.pair()
    async with stopped(leading):
        await led_by_another(set_up, leading)


async def planned(set_up: SetUp) -> None:
    """Somebody has the other server lead."""
    leading, _ = await set_up.pair()
    await set_up.fail_over()
    await led_by_another(set_up, leading)


slow = pytest.mark.slow
HOW = pytest.mark.parametrize(
    ("either_kept", "how"),
    [
        ("sentinels_kept", crash),
        ("cluster_kept", crash),
        ("cluster_kept", hang),
        pytest.param("sentinels_kept", hang, marks=slow),
        pytest.param("sentinels_kept", planned, marks=slow),
        pytest.param("cluster_kept", planned, marks=slow),
    ],
    indirect=["either_kept"],
)
SEEDS = pytest.mark.parametrize("seed", [1, pytest.param(2, marks=slow)])
How = Callable[[SetUp], Awaitable[None]]


async def flown(set_up: SetUp, how: How, wait: Wait | None, runs: int, seed: int) -> tuple[Seen, Lost]:
    """Fail over while runs are in flight, and compare what was promised with what is there."""
    await set_up.hasten(HASTY_MS)
    async with engine_on(set_up.url, wait) as one, engine_on(set_up.url, wait) as other:

        async def fail_over() -> None:
            await how(set_up)
            await until(set_up.settled, "a settled set-up")

        seen = await Flight((one, other), runs, seed).during(fail_over)
        assert seen.slowest_s < LONGEST_CLICK_S
        for engine in (one, other):
            async with asyncio.timeout(10):
                await engine.bell.listening.wait()
        lost = await compare(one, seen)
        for partition in range(one.store.partitions):
            await one.store.audit.verify(partition)
        return seen, lost


@HOW
@SEEDS
@pytest.mark.parametrize("runs", [40, pytest.param(200, marks=slow)])
async def test_with_wait_every_acknowledged_decision_outlives_the_server_that_took_it(
    either: SetUp, how: How, runs: int, seed: int
) -> None:
    seen, lost = await flown(either, how, ONE, runs, seed)
    assert seen.decided.keys() | seen.told.keys() == set(seen.opened)
    assert lost == Lost(told=lost.told)
    assert set(seen.taken_up.values()) == {1}
    assert {len(bodies) for bodies in seen.bodies.values()} == {1}


@pytest.mark.slow
@HOW
@SEEDS
async def test_without_wait_a_failover_may_lose_decisions_and_breaks_nothing_else(
    either: SetUp, how: How, seed: int
) -> None:
    seen, lost = await flown(either, how, None, 200, seed)
    print(
        f"{how.__name__}: of {len(seen.decided)} decisions {lost.decisions} are lost, of 200 runs {lost.runs}"
    )


@pytest.mark.parametrize(
    "either_kept", ["sentinels_kept", pytest.param("cluster_kept", marks=slow)], indirect=True
)
@pytest.mark.parametrize("wait", [None, ONE])
async def test_what_had_not_reached_the_replica_is_lost_with_its_server_unless_it_was_waited_for(
    either: SetUp, wait: Wait | None
) -> None:
    await either.hasten(HASTY_MS)
    leading, standing = await either.pair()
    async with engine_on(either.url, wait) as engine:
        opened = [(await engine.suspend(run_request(), owner="ci"))[0] for _ in range(8)]
        acknowledged = []
        async with standing.cut_off():
            for run in opened:
                with contextlib.suppress(StoreUnavailable):
                    await engine.decide(question(run), Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
                    acknowledged.append(run.id)
            leading.kill()
        await led_by_another(either, leading)
        leading.start()
        open_again = [
            run_id for run_id in acknowledged if (await engine.run(run_id)).status is RunStatus.WAITING
        ]
        assert bool(open_again) == (wait is None)
        for run in opened:  # whoever finds it open decides it anew, and once
            await until(partial(decided, engine, question(run)), "a decision")
            names = [event["event"] for event in await events(engine, run.id)]
            assert names.count("gate.settled") == 1
            assert (await engine.run(run.id)).status is RunStatus.SETTLED


async def test_a_server_that_hangs_for_good_is_left_when_another_leads(either: SetUp) -> None:
    await either.hasten(HASTY_MS)
    leading, _ = await either.pair()
    async with engine_on(either.url) as engine:
        opened = [(await engine.suspend(run_request(), owner="ci"))[0] for _ in range(8)]
        async with stopped(leading):
            await led_by_another(either, leading)
            for run in opened:
                await until(
                    partial(decided, engine, question(run)), "a decision", seconds=2 * LONGEST_CLICK_S
                )


async def test_a_bell_leaves_a_server_that_says_nothing_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.bell.QUIET_S", 0.2)
    async with one_server(tmp_path) as server, engine_on(f"redis://127.0.0.1:{server.port}") as engine:

        async def silent() -> bool:
            return not engine.bell.listening.is_set()

        async with asyncio.timeout(5):
            await engine.bell.listening.wait()
        async with stopped(server):
            await until(silent, "a bell that knows that it hears nothing")
        async with asyncio.timeout(5):
            await engine.bell.listening.wait()


async def decided(engine: ResumeEngine, gate: str) -> bool:
    try:
        await engine.decide(gate, Action.ANSWER, by=BEN, via="slack", values=FOCUSED)
    except AlreadySettled:
        return True
    except StoreUnavailable:  # until the server that was killed is a replica
        return False
    return True
