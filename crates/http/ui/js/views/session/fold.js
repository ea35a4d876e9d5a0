// Turns a session's log into what people read: inputs, answers, tool calls with all that belongs to them, notes. Pure.

/** @typedef {import('../../types.js').LogEvent} LogEvent */
/** @typedef {{number: number, started: LogEvent, failed?: LogEvent, finished?: LogEvent}} Attempt */
/** @typedef {{id: string, asked: LogEvent, decided?: LogEvent, escalated?: LogEvent}} Question */

/**
 * One thing in the transcript. `seq` is that of its first event; `last` is that of its newest.
 * @typedef {object} Item
 * @property {'input'|'turn'|'end'|'model'|'tool'|'question'|'note'} kind
 * @property {string} key
 * @property {number} index its place among all items
 * @property {number} seq
 * @property {number} last
 * @property {LogEvent} event
 * @property {boolean} [imported] from a foreign log: nothing in it can be acted on
 * @property {boolean} [past] no longer part of the conversation, because of a rewind
 * @property {number} [turn] the number of the turn
 * @property {Attempt[]} [attempts]
 * @property {Question[]} [questions]
 * @property {LogEvent[]} [verdicts]
 * @property {LogEvent[]} [hooks]
 * @property {LogEvent} [proposed]
 * @property {LogEvent} [started]
 * @property {LogEvent} [finished]
 * @property {LogEvent} [child]
 * @property {LogEvent} [childEnd]
 * @property {LogEvent} [joined]
 * @property {LogEvent} [cancelled]
 * @property {LogEvent} [begin] of an end: the start of the turn
 */

/** Events that belong to another item and have no line of their own. */
const SILENT = new Set(['session.moved', 'intent.classified', 'hook.finished']);

export class Fold {
  constructor() {
    /** @type {Item[]} */
    this.items = [];
    /** @type {Map<string, Item>} */
    this.tools = new Map();
    /** @type {Map<string, Item>} */
    this.calls = new Map();
    /** @type {Map<string, Item>} */
    this.inputs = new Map();
    /** @type {Map<string, {item: Item, question: Question}>} */
    this.questions = new Map();
    /** @type {Map<string, LogEvent>} */
    this.turns = new Map();
    this.turn = 0;
    /** The newest list of things to do. @type {{content: string, status: string}[]} */
    this.todo = [];
    /** Items that the last `add` changed. @type {Set<Item>} */
    this.dirty = new Set();
  }

  /** @param {LogEvent} event */
  add(event) {
    if (event.type === 'imported.event') {
      const quoted = event.event;
      if (quoted && typeof quoted === 'object') this.fold({ ...quoted, seq: event.seq }, true);
    } else {
      this.fold(event, false);
    }
  }

  /**
   * @param {LogEvent} event
   * @param {boolean} imported
   */
  fold(event, imported) {
    const [family] = event.type.split('.');
    switch (event.type) {
      case 'input.accepted':
        this.inputs.set(event.input, this.push('input', event.input, event, imported));
        return;
      case 'input.cancelled':
        return this.change(this.inputs.get(event.input), event, 'cancelled');
      case 'turn.started':
        this.turn += 1;
        this.turns.set(event.turn ?? '', event);
        this.push('turn', event.turn ?? String(event.seq), event, imported);
        return this.join(event);
      case 'turn.finished': {
        const end = this.push('end', event.turn ?? String(event.seq), event, imported);
        const begin = this.turns.get(event.turn ?? '');
        if (begin) end.begin = begin;
        return;
      }
      case 'model.started':
      case 'model.finished':
      case 'model.failed':
        return this.attempt(event, imported);
      case 'tool.proposed':
        return this.change(this.tool(event, imported), event, 'proposed');
      case 'tool.started':
        return this.change(this.tool(event, imported), event, 'started');
      case 'tool.finished':
        return this.change(this.tool(event, imported), event, 'finished');
      case 'subagent.started':
        return this.change(this.tool(event, imported), event, 'child');
      case 'subagent.finished':
        return this.change(this.tool(event, imported), event, 'childEnd');
      case 'verdict.given': {
        const item = this.tool(event, imported);
        (item.verdicts ??= []).push(event);
        return this.touch(item, event);
      }
      case 'approval.asked': {
        const item = event.tool_call ? this.tool(event, imported) : this.push('question', event.approval, event, imported);
        const question = { id: event.approval, asked: event };
        (item.questions ??= []).push(question);
        this.questions.set(event.approval, { item, question });
        return this.touch(item, event);
      }
      case 'approval.decided':
      case 'approval.escalated': {
        const found = this.questions.get(event.approval);
        if (!found) return;
        if (event.type === 'approval.decided') found.question.decided = event;
        else found.question.escalated = event;
        return this.touch(found.item, event);
      }
      case 'hook.finished':
        if (event.tool_call) {
          const item = this.tool(event, imported);
          (item.hooks ??= []).push(event);
          return this.touch(item, event);
        }
        if (event.status !== 'ok' || event.decision || event.context) this.push('note', String(event.seq), event, imported);
        return;
      case 'todo.updated':
        this.todo = event.items ?? [];
        break;
      case 'session.rewound':
        for (const item of this.items) {
          if (item.seq > event.to_seq && item.seq <= event.from_seq && !item.past) {
            item.past = true;
            this.dirty.add(item);
          }
        }
        break;
      default:
        if (SILENT.has(event.type)) return;
    }
    if (family !== 'model' && family !== 'tool') this.push('note', String(event.seq), event, imported);
  }

  /**
   * @param {Item['kind']} kind
   * @param {string} key
   * @param {LogEvent} event
   * @param {boolean} imported
   * @returns {Item}
   */
  push(kind, key, event, imported) {
    /** @type {Item} */
    const item = { kind, key: `${kind}-${key}`, index: this.items.length, seq: event.seq, last: event.seq, event, turn: this.turn };
    if (imported) item.imported = true;
    this.items.push(item);
    this.dirty.add(item);
    return item;
  }

  /** @param {Item} item @param {LogEvent} event */
  touch(item, event) {
    item.last = Math.max(item.last, event.seq);
    this.dirty.add(item);
  }

  /**
   * @param {Item|undefined} item
   * @param {LogEvent} event
   * @param {'proposed'|'started'|'finished'|'child'|'childEnd'|'cancelled'|'joined'} part
   */
  change(item, event, part) {
    if (!item) return;
    item[part] = event;
    this.touch(item, event);
  }

  /** @param {LogEvent} event @param {boolean} imported @returns {Item} */
  tool(event, imported) {
    const id = event.tool_call ?? String(event.seq);
    const known = this.tools.get(id);
    if (known) return known;
    const item = this.push('tool', id, event, imported);
    this.tools.set(id, item);
    return item;
  }

  /** @param {LogEvent} event @param {boolean} imported */
  attempt(event, imported) {
    let item = this.calls.get(event.call);
    if (!item) {
      item = this.push('model', event.call, event, imported);
      item.attempts = [];
      this.calls.set(event.call, item);
    }
    const attempts = item.attempts ?? [];
    let attempt = attempts.find((one) => one.number === event.attempt);
    if (!attempt) {
      attempt = { number: event.attempt, started: event };
      attempts.push(attempt);
    }
    if (event.type === 'model.finished') attempt.finished = event;
    if (event.type === 'model.failed') attempt.failed = event;
    this.touch(item, event);
    if (event.type === 'model.started') this.join(event);
  }

  /** Inputs join the conversation. @param {LogEvent} event */
  join(event) {
    for (const input of event.inputs ?? []) {
      const item = this.inputs.get(input);
      if (item && !item.joined) this.change(item, event, 'joined');
    }
  }
}

/** The question of an item that waits for an answer. @param {Item} item @returns {Question|null} */
export function openQuestion(item) {
  if (item.imported) return null;
  return item.questions?.find((question) => !question.decided) ?? null;
}

/** The attempt that runs or was last. @param {Item} item @returns {Attempt|null} */
export const lastAttempt = (item) => item.attempts?.at(-1) ?? null;

/** Whether a model call is running. @param {Item} item */
export function isRunning(item) {
  const last = lastAttempt(item);
  return item.kind === 'model' && last !== null && !last.finished && !last.failed && !item.imported;
}

/**
 * How a tool call stands, as a word.
 * @param {Item} item
 * @returns {'proposed'|'asks'|'running'|'ok'|'error'|'denied'|'interrupted'|'timeout'}
 */
export function toolState(item) {
  if (item.finished) return item.finished.status;
  if (openQuestion(item)) return 'asks';
  return item.started ? 'running' : 'proposed';
}
