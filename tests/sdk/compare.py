#!/usr/bin/env python3
"""Gives recorded answers to the official SDKs and compares what they read with what agentd reads.

    cargo xtask conformance --dump | python3 tests/sdk/compare.py

Each line of the input is one recording with our reading of it. The SDK gets the same bytes from a server on loopback.
Content, usage and stop reason must be equal, but for what exceptions.txt lists with a reason.
"""

import fnmatch
import http.server
import json
import os
import pathlib
import sys
import threading

HERE = pathlib.Path(__file__).parent
SKIPPED = "the Python packages anthropic and openai are not installed (tests/sdk/requirements.txt)"

STOPS = {
    # Messages
    "end_turn": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "stop_sequence": "stop_sequence",
    "pause_turn": "pause_turn",
    "refusal": "refusal",
    "model_context_window_exceeded": "context_window",
    # Chat Completions
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "content_filter",
    # Responses
    "completed": "end_turn",
    "max_output_tokens": "max_tokens",
}


def skip(reason):
    print(f"SKIPPED sdk comparison: {reason}", file=sys.stderr)
    path = os.environ.get("AGENTD_SKIPS")
    if path:
        with open(path, "a", encoding="utf-8") as skips:
            skips.write(f"{reason} (sdk comparison)\n")
    sys.exit(0)


class Recordings(http.server.BaseHTTPRequestHandler):
    """Answers a request below /N with recording N, whatever it asks."""

    protocol_version = "HTTP/1.1"
    records = []

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        answer = self.records[int(self.path.split("/")[1])]["answer"]
        body = (answer["body"] or "").encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if answer["stream"] else "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def arguments(text):
    """Arguments are an object, or the text that is none."""
    if not (text or "").strip():
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


def usage(input_all, output, read=0, written=0, reasoning=0, written_hour=0):
    """Input is counted without what came from or went to the cache. Only Messages has a cache that lasts an hour."""
    read, written = read or 0, written or 0
    return {
        "input": max((input_all or 0) - read - written, 0),
        "output": output or 0,
        "cache_read": read,
        "cache_write": written,
        "cache_write_1h": written_hour or 0,
        "reasoning": reasoning or 0,
    }


def ended(stop, refused, calls):
    """A refusal and calls have fields of their own in the SDK; we tell them by the stop reason."""
    if stop != "end_turn":
        return stop
    return "refusal" if refused else "tool_use" if calls else stop


def field(value, *path):
    for key in path:
        value = value.get(key) if isinstance(value, dict) else getattr(value, key, None)
        if value is None:
            return None
    return value


def messages(client, stream):
    ask = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "a"}]}
    if stream:
        with client.messages.stream(**ask) as events:
            message = events.get_final_message()
    else:
        message = client.messages.create(**ask)
    content = []
    for block in message.content:
        if block.type == "text":
            content.append({"text": block.text})
        elif block.type == "thinking" and block.thinking:
            content.append({"thinking": block.thinking})
        elif block.type == "tool_use":
            content.append({"call": block.name, "id": block.id, "input": block.input})
    told = message.usage
    read, written = told.cache_read_input_tokens, told.cache_creation_input_tokens
    whole = told.input_tokens + (read or 0) + (written or 0)
    thought = field(told, "output_tokens_details", "thinking_tokens")
    hour = field(told, "cache_creation", "ephemeral_1h_input_tokens")
    counted = usage(whole, told.output_tokens, read, written, thought, hour)
    return content, counted, STOPS.get(message.stop_reason)


def chat(client, stream):
    ask = {"model": "m", "messages": [{"role": "user", "content": "a"}]}
    if stream:
        from openai.lib.streaming.chat import ChatCompletionStreamState

        state = ChatCompletionStreamState()
        for chunk in client.chat.completions.create(stream=True, **ask):
            state.handle_chunk(chunk)
        completion = state.current_completion_snapshot
    else:
        completion = client.chat.completions.create(**ask)
    choice = next(choice for choice in completion.choices if choice.index == 0)
    said = choice.message
    content = []
    thought = field(said, "reasoning_content") or field(said, "reasoning")
    if thought:
        content.append({"thinking": thought})
    words = (said.content or "") + (said.refusal or "")
    if words:
        content.append({"text": words})
    for call in said.tool_calls or []:
        content.append({"call": call.function.name, "id": call.id, "input": arguments(call.function.arguments)})
    told = completion.usage
    read = field(told, "prompt_tokens_details", "cached_tokens")
    written = field(told, "prompt_tokens_details", "cache_write_tokens")
    reasoning = field(told, "completion_tokens_details", "reasoning_tokens")
    counted = usage(field(told, "prompt_tokens"), field(told, "completion_tokens"), read, written, reasoning)
    return content, counted, ended(STOPS.get(choice.finish_reason), said.refusal, said.tool_calls)


def responses(client, stream):
    ask = {"model": "m", "input": "a"}
    if stream:
        response = None
        for event in client.responses.create(stream=True, **ask):
            if event.type in ("response.completed", "response.incomplete", "response.failed"):
                response = event.response
            elif event.type == "error":
                raise RuntimeError(event.message)
    else:
        response = client.responses.create(**ask)
    if response.status == "failed":
        raise RuntimeError(response.error)
    content = []
    for item in response.output:
        if item.type == "message":
            texts = [getattr(part, "text", None) or getattr(part, "refusal", "") for part in item.content]
            content.extend({"text": text} for text in texts if text)
        elif item.type == "reasoning":
            parts = item.summary or item.content or []
            thought = "\n\n".join(part.text for part in parts)
            if thought:
                content.append({"thinking": thought})
        elif item.type == "function_call":
            content.append({"call": item.name, "id": item.call_id, "input": arguments(item.arguments)})
    told = response.usage
    read = field(told, "input_tokens_details", "cached_tokens")
    written = field(told, "input_tokens_details", "cache_write_tokens")
    reasoning = field(told, "output_tokens_details", "reasoning_tokens")
    counted = usage(field(told, "input_tokens"), field(told, "output_tokens"), read, written, reasoning)
    stop = STOPS.get(field(response, "incomplete_details", "reason") or response.status)
    refused = any(getattr(part, "refusal", None) for item in response.output for part in getattr(item, "content", None) or [])
    return content, counted, ended(stop, refused, any("call" in block for block in content))


def read(record, number, url):
    """What the official SDK of the dialect makes of a recording."""
    import anthropic
    import openai

    base = f"{url}/{number}"
    stream = record["answer"]["stream"]
    try:
        if record["dialect"] == "anthropic":
            with anthropic.Anthropic(api_key="none", base_url=base, max_retries=0) as client:
                content, counted, stop = messages(client, stream)
        else:
            with openai.OpenAI(api_key="none", base_url=base, max_retries=0) as client:
                reader = chat if record["dialect"] == "openai-chat" else responses
                content, counted, stop = reader(client, stream)
    except Exception as error:  # whatever an SDK cannot read is an outcome to compare
        return {"error": f"{type(error).__name__}: {error}"[:200]}
    return {"content": content, "usage": counted, "stop_reason": stop}


def exceptions():
    """Patterns of recordings, the fields that may differ there, and why: three columns between bars."""
    rows = []
    for line in (HERE / "exceptions.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, fields, reason = (part.strip() for part in line.split("|", 2))
            rows.append((pattern, fields.split(), reason))
    return rows


def differences(ours, theirs):
    if "error" in ours or "error" in theirs:
        return [] if "error" in ours and "error" in theirs else ["error"]
    return [key for key in ("content", "usage", "stop_reason") if ours[key] != theirs[key]]


def main():
    try:
        import anthropic  # noqa: F401
        import openai  # noqa: F401
    except ImportError:
        skip(SKIPPED)
    spoken = ("anthropic", "openai-chat", "openai-responses")
    records = [json.loads(line) for line in sys.stdin if line.strip()]
    records = [record for record in records if record["dialect"] in spoken]
    if not records:
        sys.exit("no recordings on standard input")
    Recordings.records = records
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recordings)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    rules = exceptions()
    equal, excepted, different = 0, {}, 0
    for number, record in enumerate(records):
        theirs = read(record, number, url)
        found = differences(record["ours"], theirs)
        left = []
        for key in found:
            reason = next((why for what, keys, why in rules if fnmatch.fnmatch(record["exchange"], what) and key in keys), None)
            if reason is None:
                left.append(key)
            else:
                excepted[reason] = excepted.get(reason, 0) + 1
        for key in left:
            print(f"DIFFERENT {record['exchange']}: {key}")
            print(f"  ours:   {json.dumps(record['ours'].get(key, record['ours']))[:600]}")
            print(f"  theirs: {json.dumps(theirs.get(key, theirs))[:600]}")
        different += bool(left)
        equal += not found
    for reason, count in sorted(excepted.items()):
        print(f"excepted: {count} x {reason}")
    print(f"sdk: {equal} equal, {different} different, {sum(excepted.values())} excepted")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
