// What an event of the log changes in a row of the fleet. Pure. The row is read again soon; this is for the time until then.

/**
 * @typedef {import('./types.js').Row} Row
 * @typedef {import('./types.js').LogEvent} LogEvent
 */

/** Whether the list of open approvals has to be read again. @param {LogEvent} event */
export const asks = (event) => event.type.startsWith('approval.');

/** Whether questions of the session may be void after this event. @param {LogEvent} event */
export const settles = (event) =>
  ['turn.finished', 'session.closed', 'session.deleted', 'tool.finished', 'input.accepted'].includes(event.type);

/** @param {LogEvent} event @returns {Row} */
const fresh = (event) => ({
  session: event.session,
  name: event.title ?? '',
  state: 'queued',
  reason: 'created',
  since: event.at,
  model: event.model ?? '',
  mode: event.mode ?? '',
  workdir: event.workdir ?? '',
  labels: event.labels ?? {},
  seq: event.seq,
  steps: 0,
  usage: { input: 0, output: 0, cache_read: 0, cache_write: 0, reasoning: 0 },
  cost_usd: 0,
  created_at: event.at,
  updated_at: event.at,
  parent: event.parent ?? null,
  turn: null,
  open_approvals: [],
  queue: [],
  budget: event.budget ?? { tokens: 0, usd: 0, time_ms: 0, steps: 0 },
  last_error: null,
  time_ms: 0,
});

/**
 * @param {Row|undefined} old
 * @param {LogEvent} event
 * @returns {Row|undefined} a new row; `undefined` if nothing is known of the session
 */
export function applyEvent(old, event) {
  if (!old && event.type !== 'session.created') return undefined;
  if (old && event.seq <= old.seq) return { ...old, last: old.last ?? describe(event) };
  const row = { ...(old ?? fresh(event)), seq: event.seq, updated_at: event.at, last: describe(event) };
  /** @param {string} state @param {string} reason */
  const to = (state, reason) => {
    if (row.state !== state) row.since = event.at;
    row.state = state;
    row.reason = reason;
    delete row.until;
    delete row.attempt;
    delete row.position;
  };
  switch (event.type) {
    case 'session.updated':
      if (event.title) row.name = event.title;
      if (event.model) row.model = event.model;
      if (event.labels) row.labels = event.labels;
      break;
    case 'turn.started':
      row.turn = event.turn ?? null;
      to('running(model)', 'a turn starts');
      break;
    case 'model.started':
      to('running(model)', `calls ${event.model}`);
      if (event.attempt > 1) row.attempt = event.attempt;
      break;
    case 'model.finished':
      row.steps += 1;
      row.cost_usd += event.cost_usd ?? 0;
      if (event.usage) {
        const usage = { ...row.usage };
        for (const key of /** @type {(keyof import('./types.js').Usage)[]} */ (Object.keys(usage))) usage[key] += event.usage[key] ?? 0;
        row.usage = usage;
      }
      break;
    case 'model.failed':
      if (event.retry_at) {
        to('backing_off', event.message);
        row.until = event.retry_at;
      }
      break;
    case 'tool.started':
      to('running(tool)', event.title);
      break;
    case 'approval.asked':
      to(event.kind === 'question' ? 'waiting(question)' : event.kind === 'limit' ? 'waiting(limit)' : 'waiting(approval)', event.title);
      break;
    case 'approval.decided':
      to('running(tool)', event.decision === 'deny' ? 'denied' : 'answered');
      break;
    case 'turn.finished':
      row.turn = null;
      if (event.error) to('failed', event.error.message ?? event.reason);
      else to('idle', 'waits for input');
      break;
    case 'session.paused':
      to('paused', event.reason ?? 'paused');
      break;
    case 'session.closed':
      to('closed', event.reason ?? 'closed');
      break;
    default:
  }
  return row;
}

/** @param {string} text */
const line = (text) => {
  const first = text.trimStart().split('\n', 1)[0] ?? '';
  return first.length > 120 ? `${first.slice(0, 119)}…` : first;
};

/**
 * An event in a few words, for the column "last event".
 * @param {LogEvent} event
 * @returns {string}
 */
export function describe(event) {
  switch (event.type) {
    case 'input.accepted':
      return line(`input: ${event.content?.find((/** @type {any} */ block) => block.type === 'text')?.text ?? ''}`);
    case 'model.started':
      return event.attempt > 1 ? `model call, attempt ${event.attempt}` : `model call, step ${event.step}`;
    case 'model.finished': {
      const said = event.content?.find((/** @type {any} */ block) => block.type === 'text')?.text;
      return said ? line(said) : 'the model answered';
    }
    case 'model.failed':
      return line(`model call failed: ${event.message}`);
    case 'tool.proposed':
      return `proposes ${event.name}`;
    case 'tool.started':
      return line(event.title ?? 'a tool starts');
    case 'tool.finished':
      return line(`${event.status}: ${event.display ?? ''}`);
    case 'verdict.given':
      return `verdict: ${event.verdict}`;
    case 'approval.asked':
      return line(`asks: ${event.title}`);
    case 'approval.decided':
      return `${event.decision} by ${event.by}`;
    case 'turn.finished':
      return `turn ${event.reason}`;
    default:
      return event.type.replace('.', ' ').replaceAll('_', ' ');
  }
}
