// Drives a session to its end with openapi-fetch and the types that openapi-typescript made, and answers its question on
// the way.
import assert from "node:assert";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const { AGENTD_URL, AGENTD_TOKEN, AGENTD_WORKDIR, AGENTD_PROMPT } = process.env;
assert(AGENTD_WORKDIR && AGENTD_PROMPT);
const client = createClient<paths>({
  baseUrl: AGENTD_URL,
  headers: { Authorization: `Bearer ${AGENTD_TOKEN}` },
});

const asked = await client.POST("/v1/sessions", {
  params: { header: { Prefer: "wait=500", "Idempotency-Key": "typescript-1" } },
  body: { workdir: AGENTD_WORKDIR, prompt: AGENTD_PROMPT, mode: "default" },
});
assert(asked.data && "turn" in asked.data && asked.data.approvals?.length, JSON.stringify(asked));
for (const { approval } of asked.data.approvals) {
  const decided = await client.POST("/v1/approvals/{approval}/decision", {
    params: { path: { approval } },
    body: { decision: "allow", policy: true },
  });
  assert(decided.data, JSON.stringify(decided.error));
}

const { session } = asked.data;
const sent = await client.POST("/v1/sessions/{session}/inputs", {
  params: { path: { session }, header: { Prefer: "wait=500" } },
  body: { content: "Thank you." },
});
assert(sent.data && "turn" in sent.data && sent.data.turn?.success, JSON.stringify(sent));

const page = await client.GET("/v1/sessions/{session}/events", {
  params: { path: { session }, query: { after: 0 } },
});
assert(page.data && typeof page.data !== "string", JSON.stringify(page.error));
const ends = page.data.items.filter(
  (event): event is components["schemas"]["TurnFinishedEvent"] => event.type === "turn.finished",
);
assert(ends.length > 0 && ends.every((end) => end.reason === "completed"), JSON.stringify(ends));
console.log("completed");
