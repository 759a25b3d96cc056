"""What a run's caller asked for, as the run and the gates that are stored, with the defaults filled in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from core.errors import NobodyMayDecide, NoPlace
from core.gates import Action, GateDoc, Kind
from core.ids import gate_id
from core.places import Place
from core.policy import Person, Policy, PolicyRequest, can_be_decided
from core.questions import AskUserQuestion
from core.requests import (
    ApprovalRequest,
    CallRequest,
    CustomCall,
    FormCall,
    LinkCall,
    QuestionCall,
    RunRequest,
)
from core.runs import RunDoc
from core.workspaces import ANYWHERE, Serving


def run_doc(
    run_id: str,
    request: RunRequest,
    owner: str,
    *,
    now_ms: int,
    channel: str | None,
    fallback: str | None = None,
    serving: Serving = ANYWHERE,
) -> RunDoc:
    """The run's own part. ``channel`` is where its card goes if it names no place, ``fallback`` if that takes none;
    both are channels of the default workspace."""
    pending = request.pending
    if not serving.default:
        channel = fallback = None
    place = request.place or (Place(channel=channel) if channel else None)
    escalate = request.escalate
    if escalate and escalate.approvers is not None:
        escalate = escalate.model_copy(update={"approvers": serving.principals(escalate.approvers)})
    return RunDoc(
        id=run_id,
        host=request.host,
        owner=owner,
        external_id=request.external_id,
        title=request.title,
        place=place,
        requester=serving.person(request.requester) if request.requester else None,
        created_at=now_ms,
        size=len(pending.calls) + len(pending.approvals),
        remind_after_s=tuple(sorted(set(request.remind_after_s))),
        escalate=escalate,
        fallback=fallback,
        team=serving.team,
    )


def gate_docs(doc: RunDoc, request: RunRequest, serving: Serving = ANYWHERE) -> list[GateDoc]:
    """The run's gates: the calls in their order, then the approvals in theirs."""
    responders = _stored(_responders(request.policy, doc.place), serving)
    approvers = _stored(_approvers(request.policy), serving)
    calls = [_call(doc, index, item, responders) for index, item in enumerate(request.pending.calls)]
    return calls + [
        _approval(doc, index, item, approvers)
        for index, item in enumerate(request.pending.approvals, start=len(calls))
    ]


def _call(doc: RunDoc, index: int, item: CallRequest, policy: Policy) -> GateDoc:
    args = item.args
    offered: tuple[Action, ...] = (Action.ANSWER, Action.DECLINE)
    match item:
        case FormCall():
            offered = tuple(Action(control) for control in item.form.controls)
        case LinkCall():
            offered = tuple(Action(control) for control in item.link.controls)
        case CustomCall():
            offered = (Action.ANSWER, Action.DECLINE, Action.CANCEL)
    return GateDoc(
        id=gate_id(doc.id, index),
        index=index,
        kind=Kind.QUESTION if isinstance(item, QuestionCall) else Kind(item.kind),
        category="calls",
        tool_call_id=item.tool_call_id,
        tool_name=item.tool_name,
        args=args.model_dump(mode="json", by_alias=True) if isinstance(args, AskUserQuestion) else args,
        policy=policy,
        offered=offered,
        form=item.form if isinstance(item, FormCall) else None,
        link=item.link if isinstance(item, LinkCall) else None,
        answer_schema=item.answer_schema if isinstance(item, CustomCall) else None,
    )


def _approval(doc: RunDoc, index: int, item: ApprovalRequest, policy: Policy) -> GateDoc:
    always = () if item.always is None else (Action.APPROVE_ALWAYS,)
    return GateDoc(
        id=gate_id(doc.id, index),
        index=index,
        kind=Kind.APPROVAL,
        category="approvals",
        tool_call_id=item.tool_call_id,
        tool_name=item.tool_name,
        args=item.args,
        args_digest=item.args_digest,
        reason=item.reason,
        risk=item.risk,
        policy=policy,
        offered=(Action.APPROVE, *always, Action.DENY),
        args_schema=item.args_schema,
        saves=tuple(item.always or ()),
    )


def _responders(asked: PolicyRequest, place: Place | None) -> Policy:
    if asked.responders is not None:
        return Policy(deciders=tuple(asked.responders))
    # whoever can read the card may answer it: the members of the channel, or the one person of the DM
    return Policy(deciders=(place.user if place and place.user else "channel",))


def _approvers(asked: PolicyRequest) -> Policy:
    deciders = ("admins",) if asked.approvers is None else tuple(asked.approvers)
    return Policy(deciders=deciders, **asked.model_dump(exclude={"responders", "approvers"}))


def _stored(policy: Policy, serving: Serving) -> Policy:
    return policy.model_copy(update={"deciders": tuple(serving.principals(policy.deciders))})


def check_decidable(
    gate: GateDoc, policy: Policy, doc: RunDoc, admins: Sequence[str], *, home: str | None = None
) -> None:
    """Refuse what nobody could ever decide, before anybody waits for it. Raises NoPlace or NobodyMayDecide."""
    if doc.place is None and not any(p.startswith("key:") for p in policy.deciders):
        raise NoPlace
    approval = gate.kind is Kind.APPROVAL
    requester = doc.requester if approval else None
    need = policy.quorum if approval else 1
    channel = bool(doc.place and doc.place.channel)

    def enough(requester: Person | None) -> bool:
        return can_be_decided(
            policy, requester=requester, admins=admins, quorum=need, home=home, channel=channel
        )

    if not enough(requester):
        who = "approvers" if approval else "responders"
        besides = " besides the requester" if requester and not policy.self_approval else ""
        or_admins = ", or set ASKGATE_ADMINS" if approval else ""
        raise NobodyMayDecide(
            f"Nobody could ever decide {gate.tool_call_id!r}: "
            f"name at least {need} {who}{besides} in the policy{or_admins}.",
            extra={"asked": gate, "need": need, "besides": requester if enough(None) else None},
        )


def callback_text(request: RunRequest) -> str | None:
    """The callback as it is stored, beside the run and not in it: nothing that shows a run can show the secret."""
    if request.callback is None:
        return None
    return json.dumps({"url": request.callback.url, "secret": request.callback.secret.get_secret_value()})


def body_digest(request: RunRequest) -> str:
    """What tells one body from another that comes under the same Idempotency-Key."""
    # arguments given as text may nest as deep as canonical JSON goes, and the body around them one deeper
    body = request.model_dump(mode="json")
    if request.callback:
        body["callback"]["secret"] = request.callback.secret.get_secret_value()
    text = json.dumps(body, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
