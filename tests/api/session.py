"""Drives a session to its end with the client that openapi-python-client made, and answers its question on the way."""

import os

import httpx
from agentd_client import AuthenticatedClient
from agentd_client.api.approval import approval_decide
from agentd_client.api.input_ import input_send
from agentd_client.api.session import session_attach, session_create
from agentd_client.models import (
    CreatedWaited,
    CreateParams,
    Decided,
    DecideParams,
    Decision,
    EndReason,
    EventPage,
    PermissionMode,
    SendParams,
    SentWaited,
    TurnFinishedEvent,
)

client = AuthenticatedClient(
    base_url=os.environ["AGENTD_URL"],
    token=os.environ["AGENTD_TOKEN"],
    timeout=httpx.Timeout(600),
)
task = CreateParams(
    workdir=os.environ["AGENTD_WORKDIR"],
    prompt=os.environ["AGENTD_PROMPT"],
    mode=PermissionMode.DEFAULT,
)
asked = session_create.sync(client=client, body=task, prefer="wait=500", idempotency_key="python-1")
assert isinstance(asked, CreatedWaited) and asked.approvals, asked
for approval in asked.approvals:
    allow = DecideParams(decision=Decision.ALLOW, policy=True)
    decided = approval_decide.sync(str(approval.approval), client=client, body=allow)
    assert isinstance(decided, Decided), decided

session = str(asked.session)
thanks = SendParams(content="Thank you.")
sent = input_send.sync(session, client=client, body=thanks, prefer="wait=500")
assert isinstance(sent, SentWaited) and sent.turn and sent.turn.success, sent

page = session_attach.sync(session, client=client, after=0)
assert isinstance(page, EventPage), page
ends = [event for event in page.items if isinstance(event, TurnFinishedEvent)]
assert ends and all(end.reason == EndReason.COMPLETED for end in ends), page
print("completed")
