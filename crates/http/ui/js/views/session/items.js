// The parts of a transcript that are no tool calls: inputs, answers, turns, notes.

import { h } from '../../dom.js';
import { count, duration, money, moment, until } from '../../format.js';
import { visibleText } from '../../text/visible.js';
import { image } from './blob.js';
import { approvalCard, decided } from './approval.js';
import { isRunning, lastAttempt, openQuestion } from './fold.js';
import { line, pane, prose } from './pane.js';
import { toolCard, when } from './tool.js';

/** @typedef {import('./fold.js').Item} Item */
/** @typedef {import('./transcript.js').Desk} Desk */

/**
 * The element of an item.
 * @param {Item} item
 * @param {Desk} desk
 * @returns {HTMLElement}
 */
export function element(item, desk) {
  const make = { input, turn, end, model, tool: toolCard, question, note }[item.kind];
  const made = make(item, desk);
  made.classList.add('entry');
  made.dataset.seq = String(item.seq);
  if (item.past) made.classList.add('past');
  if (item.imported) made.classList.add('imported');
  return made;
}

/** @param {Item} item @param {Desk} desk */
function gutter(item, desk) {
  return h('a', { class: 'seq', href: desk.eventLink(item.seq), title: `Event ${item.seq}, ${moment(item.event.at)}` }, `#${item.seq}`);
}

/** Fork and rewind at an item. @param {Item} item @param {Desk} desk @param {number} at */
function here(item, desk, at) {
  if (!desk.ctx.can('steer') || item.imported || item.past) return null;
  return h('span', { class: 'here' },
    h('button', { type: 'button', class: 'quiet', title: `A new session with the log up to event ${at}`, on: { click: () => desk.fork(at) } }, 'Fork here'),
    h('button', { type: 'button', class: 'quiet', title: `The conversation goes back to event ${at}`, on: { click: () => desk.rewind(at) } }, 'Rewind here'));
}

/** @param {Item} item @param {Desk} desk */
function input(item, desk) {
  const { content = [], by, delivery, at } = item.event;
  const waits = !item.joined && !item.cancelled && !item.imported;
  return h('article', { class: 'said-by person' },
    h('header', null,
      h('span', { class: 'who' }, line(by, 80)),
      delivery !== 'start' && h('span', { class: 'tag' }, delivery),
      waits && h('span', { class: 'tag warn' }, 'waits to join'),
      item.cancelled && h('span', { class: 'tag' }, 'cancelled'),
      item.past && h('span', { class: 'tag' }, 'rewound'),
      item.imported && h('span', { class: 'tag' }, 'imported'),
      here(item, desk, item.seq - 1), when(at), gutter(item, desk)),
    content.map((/** @type {any} */ block) => {
      if (block.type === 'text') return prose(block.text);
      if (block.type === 'image') return image(desk.ctx, block);
      return h('p', { class: 'dim' }, `(${visibleText(String(block.type))})`);
    }));
}

/** @param {Item} item */
function turn(item) {
  return h('div', { class: 'turn-line' }, h('span', null, `Turn ${item.turn}`), when(item.event.at));
}

/** @param {Item} item @param {Desk} desk */
function end(item, desk) {
  const { reason, steps, tool_calls: calls, usage, cost_usd: cost, error, at } = item.event;
  const took = item.begin ? Date.parse(at) - Date.parse(item.begin.at) : NaN;
  const tokens = usage ? usage.input + usage.output + usage.cache_read + usage.cache_write : 0;
  const good = reason === 'completed';
  const facts = [`${steps} ${steps === 1 ? 'step' : 'steps'}`, `${calls} ${calls === 1 ? 'call' : 'calls'}`, `${count(tokens)} tokens`, cost ? money(cost) : '', Number.isNaN(took) ? '' : duration(took)];
  return h('div', { class: `end-line ${good ? 'good' : 'bad'}` },
    h('div', { class: 'row' },
      h('span', { class: 'mark', 'aria-hidden': 'true' }, good ? '✓' : reason === 'cancelled' ? '◌' : '✕'),
      h('strong', null, good ? 'Turn completed' : `Turn ended: ${visibleText(String(reason)).replaceAll('_', ' ')}`),
      h('span', { class: 'dim' }, facts.filter(Boolean).join(' · ')),
      here(item, desk, item.seq), when(at), gutter(item, desk)),
    error && h('p', { class: 'problem' }, h('code', null, line(error.class, 60)), ' ', line(error.message, 2000)));
}

/** @param {Item} item @param {Desk} desk */
function model(item, desk) {
  const last = lastAttempt(item);
  const started = last?.started ?? item.event;
  const done = last?.finished;
  const box = h('article', { class: 'said-by model' });
  /** @type {import('../../dom.js').Child[]} */
  const parts = [];
  for (const attempt of item.attempts ?? []) if (attempt.failed) parts.push(failed(attempt, attempt !== last));
  let says = false;
  if (done) {
    for (const [n, block] of (done.content ?? []).entries()) {
      if (block.type === 'thinking' && block.text) parts.push(thinking(`${item.key}-${n}`, block.text, desk));
      else if (block.type === 'text' && block.text.trim()) {
        says = true;
        parts.push(prose(block.text));
      }
    }
    if (!['end_turn', 'tool_use', 'stop_sequence'].includes(done.stop_reason)) parts.push(h('p', { class: 'problem' }, `The answer ended early: ${visibleText(String(done.stop_reason)).replaceAll('_', ' ')}.`));
  } else if (isRunning(item)) {
    says = true;
    parts.push(desk.liveOf(item).element);
  }
  const figures = done ? [
    `${count(done.usage.input + done.usage.cache_read + done.usage.cache_write)} in`, `${count(done.usage.output)} out`,
    done.usage.cache_read ? `${Math.round((100 * done.usage.cache_read) / Math.max(1, done.usage.input + done.usage.cache_read + done.usage.cache_write))}% cached` : '',
    done.cost_usd ? money(done.cost_usd) : '', done.latency?.total_ms ? duration(done.latency.total_ms) : ''] : [];
  box.append(
    h('header', { class: says ? '' : 'slim' },
      h('span', { class: 'who' }, line(started.configured ?? started.model ?? 'model', 60)),
      started.step && h('span', { class: 'dim' }, `step ${started.step}`),
      (last?.number ?? 1) > 1 && h('span', { class: 'tag' }, `attempt ${last?.number}`),
      isRunning(item) && h('span', { class: 'typing', role: 'img', 'aria-label': 'is answering' }, h('i'), h('i'), h('i')),
      item.past && h('span', { class: 'tag' }, 'rewound'),
      h('span', { class: 'figures' }, figures.filter(Boolean).join(' · ')), when(item.event.at), gutter(item, desk)));
  for (const part of parts) if (part) box.append(/** @type {Node} */ (part));
  return box;
}

/** @param {import('./fold.js').Attempt} attempt @param {boolean} over another attempt follows */
function failed(attempt, over) {
  const { class: kind, message, status, retry_at: retry, remedy, at } = /** @type {any} */ (attempt.failed);
  const wait = retry ? Date.parse(retry) - Date.parse(at) : 0;
  const soon = retry && !over ? until(retry) : '';
  return h('div', { class: `attempt ${retry ? 'again' : 'gone'}` },
    h('span', { class: 'mark', 'aria-hidden': 'true' }, retry ? '↻' : '✕'),
    h('span', { class: 'grow wrap' }, h('strong', null, `Attempt ${attempt.number}: ${visibleText(String(kind)).replaceAll('_', ' ')}${status ? ` (${status})` : ''}`), ' ', line(message ?? '', 600),
      remedy && h('span', { class: 'dim' }, ` · next: ${visibleText(Object.values(remedy).join(' ')).replaceAll('_', ' ')}`)),
    h('span', { class: 'dim', data: soon ? { until: retry } : {} }, retry ? (soon ? `tries again ${soon}` : `waited ${duration(wait)}`) : kind === 'cancelled' ? '' : 'gave up'));
}

/** @param {string} key @param {string} text @param {Desk} desk */
function thinking(key, text, desk) {
  const lines = text.split('\n').length;
  const box = h('details', { class: 'thinking' }, h('summary', null, 'Thinking', h('span', { class: 'faint' }, ` ${lines} ${lines === 1 ? 'line' : 'lines'}`)));
  const fill = () => box.childElementCount === 1 && box.append(prose(text));
  if (desk.opened.get(key)) {
    box.open = true;
    fill();
  }
  box.addEventListener('toggle', () => {
    if (box.open) fill();
    desk.opened.set(key, box.open);
  });
  return box;
}

/** @param {Item} item @param {Desk} desk */
function question(item, desk) {
  const open = openQuestion(item);
  if (open) return h('div', null, approvalCard(desk.ctx, open));
  const [asked] = item.questions ?? [];
  return h('div', { class: 'asked' },
    h('p', { class: 'wrap' }, h('span', { class: 'mark', 'aria-hidden': 'true' }, '◆ '), line(asked?.asked.title ?? '', 500)),
    asked && asked.asked.detail && asked.asked.detail !== asked.asked.title && (asked.asked.kind === 'plan' ? prose(asked.asked.detail) : pane(asked.asked.detail, { label: 'Question' })),
    asked && decided(asked), gutter(item, desk));
}

/** What a note says: its tone, its words, and text of others. @param {any} event @returns {[string, string, string]} */
export function words(event) {
  const tokens = () => ` ${count(event.tokens_before)} → ${count(event.tokens_after)} tokens`;
  switch (event.type) {
    case 'session.created': return ['', `Created in ${event.workdir}, model ${event.model}, mode ${event.mode}`, ''];
    case 'session.updated': {
      const set = ['title', 'model', 'mode', 'summary'].filter((name) => event[name]).map((name) => `${name}: ${event[name]}`);
      if (event.labels) set.push(`labels: ${Object.entries(event.labels).map((pair) => pair.join('=')).join(', ') || 'none'}`);
      if (event.budget) set.push('budget');
      return ['', `Changed ${set.join('; ')}`, ''];
    }
    case 'session.paused': return ['warn', 'Paused', event.reason];
    case 'session.resumed': return ['', 'Resumed', event.reason];
    case 'session.closed': return ['warn', 'Closed', event.reason];
    case 'session.recovered': return ['warn', `The daemon started again; ${(event.closed ?? []).map((/** @type {any} */ work) => `${work.what.replaceAll('_', ' ')} ${work.how.replaceAll('_', ' ')}`).join(', ') || 'nothing was in flight'}`, ''];
    case 'session.imported': return ['warn', `Imported ${event.events} events; they have no authority here`, event.source];
    case 'transfer.started': return ['', `Bringing the changes${event.branch ? ` as branch ${event.branch}` : ''} to ${event.to}`, ''];
    case 'transfer.finished': return [event.error ? 'bad' : '', event.error ? 'The changes could not be brought there' : `Brought ${event.files} changed ${event.files === 1 ? 'file' : 'files'} there`, event.error ?? ''];
    case 'session.forked': return ['', `Forked from ${event.from} at event ${event.at_seq}`, ''];
    case 'session.rewound': return ['warn', `Rewound to event ${event.to_seq}`, (event.stays ?? []).join('; ')];
    case 'history.started': return ['', event.rewind_to ? `Rewinding to event ${event.rewind_to}` : `Undoing ${(event.files ?? []).length} files`, ''];
    case 'history.failed': return ['bad', 'Nothing was put back', event.message];
    case 'undo.applied': return ['', `Undone: ${(event.changes ?? []).map((/** @type {any} */ change) => change.path).join(', ') || 'nothing to change'}`, ''];
    case 'note.injected': return ['note', `Note for the model (${String(event.kind).replaceAll('_', ' ')})`, event.text];
    case 'todo.updated': return ['todo', 'Things to do', ''];
    case 'plan.updated': return ['todo', event.reason ? `Plan changed: ${event.reason}` : 'Plan', ''];
    case 'mode.changed': return ['', `Mode ${event.from} → ${event.to}`, ''];
    case 'job.started': return ['', `Background job ${event.job} started`, event.command];
    case 'job.finished': return [event.exit_code ? 'bad' : '', `Background job ${event.job} ended${event.exit_code !== undefined ? `, exit ${event.exit_code}` : ''}${event.stopped ? `, stopped: ${event.stopped}` : ''}`, ''];
    case 'job.lost': return ['bad', `Background job ${event.job} is lost`, event.reason];
    case 'context.compacted': return ['', `Compacted (${event.cause}):${tokens()}`, event.summary];
    case 'context.truncated': return ['', `Long results cut: ${event.results},${tokens()}`, ''];
    case 'context.pruned': return ['', `Old results pruned: ${event.results},${tokens()}`, ''];
    case 'context.trimmed': return ['', `Old messages trimmed: ${event.messages},${tokens()}`, ''];
    case 'context.kept': return ['', 'Not compacted', event.reason];
    case 'compaction.asked': return ['', 'Compaction asked', ''];
    case 'side_call.finished': return [event.error ? 'warn' : '', `Side call: ${event.purpose} by ${event.model}${event.error ? ` failed: ${event.error}` : ''}`, ''];
    case 'limit.reached': return ['warn', `Limit reached: ${event.limit} ${event.value} → ${event.action}`, ''];
    case 'warning.raised': return ['warn', `Warning ${event.code}`, event.message];
    case 'rule.added': return ['', `Rule added: ${event.rule}`, ''];
    case 'rule.removed': return ['', `Rule removed: ${event.rule}`, ''];
    default: return ['', event.type, ''];
  }
}

/** @param {Item} item @param {Desk} desk */
function note(item, desk) {
  const [tone, head, text = ''] = words(item.event);
  const long = text.length > 240 || text.includes('\n');
  const list = item.event.items ?? item.event.steps;
  const body = h('span', { class: 'grow wrap' }, line(head, 600), text && !long && [' ', h('span', { class: 'dim' }, line(text, 300))]);
  const made = h('div', { class: `memo n-${tone || 'plain'}` },
    h('div', { class: 'row' }, h('span', { class: 'mark', 'aria-hidden': 'true' }, tone === 'bad' || tone === 'warn' ? '!' : '·'), body, when(item.event.at), gutter(item, desk)));
  if (tone === 'todo' && Array.isArray(list)) {
    made.append(h('ul', { class: 'todo' }, list.slice(0, 100).map((/** @type {any} */ one) => {
      const status = one.status === 'done' ? 'completed' : one.status;
      return h('li', { class: `todo-${status}` }, h('span', { 'aria-hidden': 'true' }, { completed: '☑ ', in_progress: '◐ ' }[/** @type {string} */ (status)] ?? '☐ '), line(one.content ?? one.title ?? '', 400));
    })));
  }
  if (long) made.append(h('details', { class: 'thinking' }, h('summary', null, line(text, 140)), prose(text)));
  return made;
}
