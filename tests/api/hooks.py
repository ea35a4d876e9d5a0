"""What Schemathesis cannot know: a directory that exists, without which no session is ever created, and which token is its
own, which it must not revoke.

Only requests that are meant to be accepted are changed; those that must be refused stay as they are.
"""

import os

import schemathesis
from schemathesis.cli import EventHandler, handler

OWN_TOKEN = "schemathesis"
WORKDIR = os.environ["AGENTD_WORKDIR"]
# Their values name things of this node, such as models; made up ones are refused.
NAMES = ("agent", "budget", "labels", "model", "parent", "rules", "tools")


@schemathesis.hook
def before_call(context, case, kwargs):
    operation = case.operation.definition.raw["operationId"]
    if operation == "token_revoke" and case.path_parameters.get("name") == OWN_TOKEN:
        case.path_parameters["name"] = "another"
    positive = case.meta is not None and case.meta.generation.mode.is_positive
    if positive and operation == "session_create":
        if isinstance(case.body, dict) and isinstance(case.body.get("workdir"), str):
            case.body["workdir"] = WORKDIR
            for name in NAMES:
                case.body.pop(name, None)


@handler()
class Links(EventHandler):
    """Writes the links of the description that were followed, one per line. Those that Schemathesis infers do not count."""

    def __init__(self, *args, **params):
        self.followed = set()

    def handle_event(self, ctx, event):
        recorder = getattr(event, "recorder", None)
        for case in recorder.cases.values() if recorder is not None else ():
            link = case.transition
            if link is not None and case.is_transition_applied and not link.is_inferred:
                self.followed.add(link.id)

    def shutdown(self, ctx):
        with open(os.environ["AGENTD_LINKS"], "w") as file:
            file.writelines(f"{link}\n" for link in sorted(self.followed))
