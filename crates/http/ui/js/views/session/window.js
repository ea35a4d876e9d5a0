// What the model's window holds, estimated from the log. Pure.

/** @typedef {import('../../types.js').LogEvent} LogEvent */
/** @typedef {{kind: string, name: string, seq: number, tokens: number, note: string}} Part */

const WORDS = /** @type {Record<string, string>} */ ({ system: 'system prompt and tools', input: 'messages of people', answer: 'answers', thinking: 'thinking', call: 'tool calls', result: 'tool results', note: 'notes', summary: 'summary' });

/** @param {string} kind */
export const partWord = (kind) => WORDS[kind] ?? kind;

/** About four bytes are a token. @param {string} text */
const tokens = (text) => Math.ceil((text?.length ?? 0) / 4);

/**
 * The parts of the next request, in its order, scaled to what the provider last counted.
 * @param {LogEvent[]} events
 * @returns {{parts: Part[], counted: number}}
 */
export function windowOf(events) {
  /** @type {Part[]} */
  let parts = [];
  /** @type {Map<string, string>} */
  const names = new Map();
  let counted = 0;
  let reply = 0;
  const add = (/** @type {string} */ kind, /** @type {string} */ name, /** @type {number} */ seq, /** @type {string} */ text) => {
    if (text) parts.push({ kind, name, seq, tokens: tokens(text), note: '' });
  };
  for (const event of events) {
    switch (event.type) {
      case 'input.accepted':
        for (const block of event.content ?? []) {
          if (block.type === 'text') add('input', event.by, event.seq, block.text);
          else parts.push({ kind: 'input', name: block.type, seq: event.seq, tokens: 1500, note: '' });
        }
        break;
      case 'note.injected':
        add('note', event.kind, event.seq, event.text);
        break;
      case 'model.finished': {
        const { usage } = event;
        if (usage) {
          counted = usage.input + usage.cache_read + usage.cache_write;
          reply = parts.length;
        }
        for (const block of event.content ?? []) {
          if (block.type === 'text') add('answer', 'answer', event.seq, block.text);
          else if (block.type === 'thinking') add('thinking', 'thinking', event.seq, block.text);
          else if (block.type === 'tool_use') add('call', block.name, event.seq, JSON.stringify(block.input));
        }
        break;
      }
      case 'tool.proposed':
        names.set(event.tool_call, event.name);
        break;
      case 'tool.finished':
        add('result', names.get(event.tool_call) ?? 'tool', event.seq, event.llm_text);
        break;
      case 'context.compacted':
        parts = [...parts.filter((part) => part.seq < event.from_seq), { kind: 'summary', name: 'summary', seq: event.seq, tokens: tokens(event.summary), note: `in place of events ${event.from_seq} to ${event.to_seq}` }, ...parts.filter((part) => part.seq > event.to_seq)];
        for (const file of event.files ?? []) add('summary', file.path, event.seq, file.text);
        counted = 0;
        break;
      case 'context.pruned':
        for (const part of parts) if (part.kind === 'result' && part.seq <= event.to_seq) Object.assign(part, { tokens: 12, note: 'pruned' });
        counted = 0;
        break;
      case 'context.truncated':
        for (const part of parts) {
          if (part.kind === 'result' && part.tokens > event.max_result_bytes / 4) Object.assign(part, { tokens: Math.ceil(event.max_result_bytes / 4), note: 'cut' });
        }
        counted = 0;
        break;
      case 'context.trimmed':
        parts = parts.filter((part) => part.seq > event.to_seq || part.kind === 'input');
        counted = 0;
        break;
      case 'session.rewound':
        parts = parts.filter((part) => part.seq <= event.to_seq || part.seq > event.from_seq);
        counted = 0;
        break;
      default:
    }
  }
  // What the provider counted, less what we see in the log, is the system prompt and the tools.
  const seen = parts.slice(0, reply).reduce((sum, part) => sum + part.tokens, 0);
  if (counted > seen) parts.unshift({ kind: 'system', name: 'system prompt and tools', seq: 0, tokens: counted - seen, note: '' });
  return { parts, counted };
}

/**
 * Requests with what the cache gave.
 * @param {LogEvent[]} events
 * @returns {{seq: number, at: string, model: string, fresh: number, read: number, written: number, out: number, cost: number}[]}
 */
export function requestsOf(events) {
  /** @type {Map<string, string>} */
  const models = new Map();
  const requests = [];
  for (const event of events) {
    if (event.type === 'model.started') models.set(event.call, event.configured ?? event.model);
    if (event.type !== 'model.finished' || !event.usage) continue;
    const { input, output, cache_read, cache_write } = event.usage;
    requests.push({ seq: event.seq, at: event.at, model: models.get(event.call) ?? '', fresh: input, read: cache_read, written: cache_write, out: output, cost: event.cost_usd ?? 0 });
  }
  return requests;
}
