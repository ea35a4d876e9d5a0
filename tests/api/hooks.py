"""What Schemathesis cannot know: a directory that exists, without which no session is ever created, and which token is its
own, which it must not revoke.

Only requests that are meant to be accepted are changed; those that must be refused stay as they are.
"""

import os

import schemathesis

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
