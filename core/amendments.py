"""Amendments: who may decide a pending gate, and until when, changed after it was opened. Each is in the audit.

A vote counts only while its person may decide: whoever hands the decision over takes the vote along, or a quorum of two
could be one person and the friend whom they named in their stead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from core.clock import iso
from core.errors import (
    AlreadySettled,
    ArgumentsChanged,
    AskgateError,
    Expired,
    Invalid,
    NotAllowed,
    NotFound,
    NotWaiting,
    Refused,
)
from core.escalations import MAX_TIMEOUT_S
from core.gates import Gate, Kind, Vote, speaker
from core.ids import run_of
from core.opening import check_decidable
from core.policy import Actor, Directory, Person, Policy, Principal, check_admin, check_allowed
from core.runs import Run
from core.store.codec import spliced
from core.store.store import Store
from core.workspaces import Workspaces

STALE_TRIES = 5
Item = dict[str, Any]


class Amendments:
    """Extends, reassigns, delegates and escalates. Admins, and keys (whoever has one runs askgate), may amend."""

    def __init__(
        self,
        store: Store,
        *,
        admins: Sequence[str],
        home: str | None,
        directory: Directory,
        workspaces: Workspaces,
    ) -> None:
        self._store = store
        self._admins = admins
        self._home = home
        self._directory = directory
        self._workspaces = workspaces

    def _home_of(self, run: Run) -> str | None:
        return run.doc.team or self._home

    async def extend(self, gate: str, seconds: int, *, by: Actor, via: str) -> Run:
        """Put a gate's deadline off by so many seconds; never to more than 30 days after it was opened.

        Raises NotAllowed, CannotVerify, Invalid, NotFound, AlreadySettled, Expired or StoreUnavailable.
        """

        async def later(run: Run, found: Gate) -> Item:
            deadline = found.deadline + seconds * 1000
            latest = found.opened_at + MAX_TIMEOUT_S * 1000
            if seconds < 1 or deadline > latest:
                raise Invalid(f"wanted a later deadline, at most 30 days after it was opened ({iso(latest)})")
            return {"deadline": deadline, "fields": spliced({"until": iso(deadline)})}

        return await self._amend(gate, "gate.extended", later, by=by, via=via, admin=True)

    async def reassign(self, gate: str, deciders: Sequence[Principal], *, by: Actor, via: str) -> Run:
        """Let others decide a gate, instead of those who might so far; votes of who may no longer are void.

        Raises as `extend` does, and NobodyMayDecide.
        """

        async def handed_over(run: Run, found: Gate) -> Item:
            serving = await self._workspaces.serving(run.doc.team)
            named = tuple(serving.principals(deciders))
            return await self._policy(run, found, named, found.votes, reason=None)

        return await self._amend(gate, "gate.reassigned", handed_over, by=by, via=via, admin=True)

    async def delegate(self, gate: str, to: Person, *, by: Person, via: str) -> Run:
        """A person who is named as a decider of a gate names another in their stead, and has no vote any longer.

        Raises as `reassign` does.
        """

        async def in_their_stead(run: Run, found: Gate) -> Item:
            own = (
                {f"{by.team}:{by.user}", by.user}
                if by.team == self._home_of(run)
                else {f"{by.team}:{by.user}"}
            )
            others = [p for p in found.policy.deciders if p not in own]
            if len(others) == len(found.policy.deciders):
                raise NotAllowed("Only somebody who is named as a decider can name another in their stead.")
            own_votes = [vote for vote in found.votes if vote.by == by]
            deciders = (*others, f"{to.team}:{to.user}")
            return await self._policy(run, found, deciders, own_votes, reason="delegated")

        return await self._amend(gate, "gate.reassigned", in_their_stead, by=by, via=via)

    async def check_admin(self, run: Run, gate: str | None, *, by: Actor, via: str) -> None:
        """Refuse, with a word in the audit, who may not do what admins may; ``gate`` None: with a whole run.

        Raises NotAllowed, CannotVerify or StoreUnavailable.
        """
        try:
            await check_admin(self._admins, by, home=self._home, directory=self._directory)
        except Refused as refusal:
            await self._store.refuse(run, gate, by=by.model_dump(), via=via, reason=refusal.slug)
            raise

    async def resend(self, run: Run, *, by: Actor, via: str) -> None:
        """Have a run's card sent again, at the end of its conversation; the messages that show it are taken back.

        Raises NotAllowed, CannotVerify, NotWaiting, NotFound or StoreUnavailable.
        """
        await self.check_admin(run, None, by=by, via=via)
        match await self._store.resend(run, by=by.model_dump(), via=via):
            case "missing":
                raise NotFound(f"There is no run {run.id}.")
            case "unplaced":
                raise NotWaiting("The run has no card: it names no place for one.")
            case "settled":
                raise NotWaiting("Nothing is pending there, so the card is not sent again.")

    async def escalate(self, run_id: str) -> None:
        """What a run's escalation says: more approvers for what is still pending. Its card then goes to more places."""
        for _ in range(STALE_TRIES):
            run = await self._store.read(run_id)
            if run is None or run.doc.escalate is None or not run.open or run.escalated:
                return
            more = run.doc.escalate.approvers or []
            items = []
            for gate in run.gates:
                if gate.pending and (gate.doc.kind is Kind.APPROVAL or not more):
                    deciders = tuple(dict.fromkeys((*gate.policy.deciders, *more)))
                    policy = gate.policy.model_copy(update={"deciders": deciders})
                    items.append(_item(gate, {"policy": policy.model_dump_json(), "fields": ""}))
            word, _ = await self._store.amend(
                run, items, event="gate.escalated", by=None, via="clock", flag="escalated"
            )
            if word == "amended":
                return

    async def _policy(
        self, run: Run, gate: Gate, deciders: tuple[str, ...], votes: Sequence[Vote], *, reason: str | None
    ) -> Item:
        """The change to other deciders. Of these ``votes`` those are void whose person may decide no longer."""
        policy = gate.policy.model_copy(update={"deciders": deciders})
        check_decidable(gate.doc, policy, run.doc, self._admins, home=self._home_of(run))
        void = [vote.by for vote in votes if not await self._may_decide(run, gate, policy, vote.by)]
        named = [by.model_dump() for by in void] or None
        return {
            "policy": Policy.model_dump_json(policy),
            "void": [speaker(by) for by in void],
            "votes": " ".join(vote.token for vote in gate.votes),
            "fields": spliced({"reason": reason, "deciders": list(deciders), "void": named}),
        }

    async def _may_decide(self, run: Run, gate: Gate, policy: Policy, by: Actor) -> bool:
        """False also for whom nobody can look up now: such a vote has to be given again."""
        try:
            await check_allowed(
                policy,
                by,
                approval=gate.doc.kind is Kind.APPROVAL,
                approving=False,
                requester=run.doc.requester,
                home=self._home_of(run),
                channel=run.doc.place.channel if run.doc.place else None,
                admins=self._admins,
                directory=self._directory,
            )
        except NotAllowed:
            return False
        return True

    async def _amend(
        self,
        gate: str,
        event: str,
        change: Callable[[Run, Gate], Awaitable[Item]],
        *,
        by: Actor,
        via: str,
        admin: bool = False,
    ) -> Run:
        run_id, index = run_of(gate)
        for _ in range(STALE_TRIES):
            run = await self._store.read(run_id)
            if run is None or index >= len(run.gates):
                raise NotFound(f"There is no gate {gate}.")
            found = run.gates[index]
            try:
                if admin:
                    await check_admin(self._admins, by, home=self._home, directory=self._directory)
                item = _item(found, await change(run, found))
            except (Refused, Invalid) as refusal:
                raise await self._refused(run, found, by, via, refusal) from None
            word, _ = await self._store.amend(run, [item], event=event, by=by.model_dump(), via=via)
            if word == "amended":
                return await self._store.read(run_id) or run
            if word != "stale":
                extra = {"run": run, "gate": found}
                late = Expired(extra=extra) if word == "expired" else AlreadySettled(extra=extra)
                raise await self._refused(run, found, by, via, late)
        raise ArgumentsChanged("The gate keeps changing; try again.")

    async def _refused(
        self, run: Run, gate: Gate, by: Actor, via: str, refusal: AskgateError
    ) -> AskgateError:
        await self._store.refuse(run, gate.id, by=by.model_dump(), via=via, reason=refusal.slug)
        return refusal


def _item(gate: Gate, change: Item) -> Item:
    return {"index": gate.doc.index, "rev": str(gate.rev), **change}
