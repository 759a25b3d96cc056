"""One person's word on one gate: who may say it, whether it holds, and what the store takes of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core import approvals
from core.answers import Answer, check_answer
from core.clock import iso
from core.diffs import diff
from core.errors import AlreadySettled, ArgumentsChanged, AskgateError, Expired, Refused
from core.gates import Edit, Gate, Kind, Outcome, Vote, speaker
from core.policy import Actor, Directory, Person, check_allowed
from core.runs import Run
from core.store.codec import spliced
from core.store.store import Store


@dataclass(frozen=True, slots=True)
class Decider:
    """Checks what people say at the door, and writes down what is refused there."""

    store: Store
    admins: Sequence[str]
    home: str | None
    directory: Directory

    async def item(
        self, run: Run, answer: Answer, by: Actor, via: str, token: str, speaks_for: Person | None
    ) -> dict[str, Any]:
        """Check one answer against the stored gate and make of it what the script takes. Raises a Refused."""
        gate = run.gates[answer.index]
        policy, approval = gate.policy, gate.doc.kind is Kind.APPROVAL
        try:
            if not gate.pending:
                raise too_late(gate)
            await self.check_allowed(run, gate, by, approving=answer.action.approves, speaks_for=speaks_for)
            values = check_answer(gate, answer)
            digest = gate.digest if approval else answer.digest
            if approval and not _saw(answer, values, digest):
                raise ArgumentsChanged
        except Refused as refusal:
            raise await self.refused(run, gate, by, via, refusal) from None
        person: Actor = speaks_for or by
        edit = self._edit(gate, person, values) if answer.action.approves and values is not None else None
        if edit:
            digest = edit.to_digest
        vote = Vote(
            action=answer.action,
            by=person,
            at=self.store.clock.now_ms(),
            via=via,
            token=token,
            comment=(answer.comment or "").strip() or None,
            digest=digest,
        )
        extra: dict[str, Any] = {"digest": digest} if approval else {"values": values}
        item = {
            "index": answer.index,
            "rev": str(gate.rev),
            "action": answer.action,
            "outcome": answer.action.outcome,
            "need": policy.need(answer.action.outcome == Outcome.APPROVED) if approval else 1,
            # who speaks, and in whose name: one vote a key, and one a person
            "speaker": speaker(by),
            "person": speaker(person),
            "token": token,
            "vote": vote.model_dump_json(exclude_none=True),
            "extra": spliced(extra),
            "fields": spliced(
                self.store.record.decided(
                    gate.doc, digest=digest, values=None if approval else values, comment=vote.comment
                )
            ),
        }
        if edit:
            item["edit"] = {
                "args": json.dumps(values, ensure_ascii=False),
                "record": edit.model_dump_json(),
                "fields": spliced(
                    self.store.record.edited(
                        gate.doc, was=edit.from_digest, digest=edit.to_digest, args=values
                    )
                ),
            }
        return item

    def _edit(self, gate: Gate, person: Actor, values: Any) -> Edit | None:
        """What an approver changed; None if the arguments are the same after all."""
        before, after = gate.digest or "", approvals.digest(values)
        if before == after:
            return None
        return Edit(
            by=person,
            at=self.store.clock.now_ms(),
            from_digest=before,
            to_digest=after,
            diff=diff(gate.arguments, values),
        )

    async def check_allowed(
        self, run: Run, gate: Gate, by: Actor, *, approving: bool, speaks_for: Person | None = None
    ) -> None:
        """Refuse who may not decide a gate. Raises NotAllowed, SelfApproval or CannotVerify."""
        await check_allowed(
            gate.policy,
            by,
            approval=gate.doc.kind is Kind.APPROVAL,
            approving=approving,
            requester=run.doc.requester,
            home=run.doc.team or self.home,
            channel=run.doc.place.channel if run.doc.place else None,
            admins=self.admins,
            directory=self.directory,
            speaks_for=speaks_for,
        )

    async def refused(self, run: Run, gate: Gate, by: Actor, via: str, refusal: Refused) -> Refused:
        """Write down a refusal, and give it back with the run and the gate that it is about."""
        # whoever meets one of these clicked on something that the card should no longer offer
        mend = via == "slack" and isinstance(refusal, AlreadySettled | Expired | ArgumentsChanged)
        await self.store.refuse(run, gate.id, by=by.model_dump(), via=via, reason=refusal.slug, mend=mend)
        refusal.extra.setdefault("run", run)
        refusal.extra.setdefault("gate", gate)
        return refusal

    async def note_refused(self, run: Run, by: Actor, via: str, refusal: type[AskgateError]) -> None:
        """Write down a refusal that is about a whole run."""
        await self.store.refuse(run, None, by=by.model_dump(), via=via, reason=refusal.slug)


def too_late(gate: Gate) -> Refused:
    """Why a gate that is settled, or past its deadline, takes nothing more."""
    if gate.status in ("pending", Outcome.EXPIRED):
        return Expired(f"The deadline passed at {iso(gate.deadline)}.")
    return AlreadySettled(f"This was {gate.status} already.")


def _saw(answer: Answer, values: Any, digest: str | None) -> bool:
    """Whether somebody means the arguments of this digest: they saw them, or they wrote them, perhaps a moment ago."""
    if answer.digest is None or answer.digest == digest:
        return True
    return answer.action.approves and values is not None and approvals.digest(values) == digest
