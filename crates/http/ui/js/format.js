// Numbers, times and states as short text. Pure.

/** @param {number} ms */
export function duration(ms) {
  if (!Number.isFinite(ms)) return '–';
  if (ms < 0) ms = 0;
  if (ms < 1000) return `${Math.round(ms)}ms`;
  const s = ms / 1000;
  if (s < 10) return `${s.toFixed(1)}s`;
  if (s < 60) return `${Math.floor(s)}s`;
  const m = Math.floor(s / 60);
  if (m < 60) return m < 10 && Math.floor(s % 60) ? `${m}m${Math.floor(s % 60)}s` : `${m}m`;
  const hours = Math.floor(m / 60);
  if (hours < 48) return hours < 10 && m % 60 ? `${hours}h${m % 60}m` : `${hours}h`;
  return `${Math.floor(hours / 24)}d`;
}

/**
 * How long ago, in whole seconds at least: `0s`, `42s`, `3m`, `2h10m`.
 * @param {string|number|null|undefined} at
 * @param {number} [now]
 */
export function age(at, now = Date.now()) {
  if (!at) return '–';
  const ms = now - (typeof at === 'number' ? at : Date.parse(at));
  if (Number.isNaN(ms)) return '–';
  return ms < 60_000 ? `${Math.max(0, Math.floor(ms / 1000))}s` : duration(ms);
}

/**
 * Until when, as `in 12s`; empty if it is over or unknown.
 * @param {string|null|undefined} at
 * @param {number} [now]
 */
export function until(at, now = Date.now()) {
  if (!at) return '';
  const ms = Date.parse(at) - now;
  return ms > 0 ? `in ${ms < 60_000 ? `${Math.ceil(ms / 1000)}s` : duration(ms)}` : '';
}

/** @param {number|null|undefined} n */
export function count(n) {
  if (n === null || n === undefined || !Number.isFinite(n)) return '–';
  if (n < 1000) return String(Math.round(n));
  if (n < 10_000) return `${(n / 1000).toFixed(1)}k`;
  if (n < 1_000_000) return `${Math.round(n / 1000)}k`;
  if (n < 10_000_000) return `${(n / 1_000_000).toFixed(1)}M`;
  if (n < 1_000_000_000) return `${Math.round(n / 1_000_000)}M`;
  return `${(n / 1_000_000_000).toFixed(1)}G`;
}

/**
 * Whole numbers with separators, for tooltips and tables of exact figures. Not by `toLocaleString`: its first call takes a
 * browser longer than to lay out the page.
 * @param {number} n
 */
export const exact = (n) => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ',');

/** @param {number|null|undefined} usd */
export function money(usd) {
  if (usd === null || usd === undefined || !Number.isFinite(usd)) return '–';
  if (usd === 0) return '$0';
  if (usd < 0.01) return '<$0.01';
  return usd < 1000 ? `$${usd.toFixed(2)}` : `$${exact(usd)}`;
}

/** @param {number} n */
export function bytes(n) {
  if (n < 1024) return `${n} B`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  let size = n;
  let unit = -1;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

/** All tokens of a session. @param {import('./types.js').Usage|undefined} usage */
export const tokens = (usage) => (usage ? usage.input + usage.output + usage.cache_read + usage.cache_write : 0);

/** The end of an id, as `agentctl` shows it. @param {string} id */
export const short = (id) => id.replaceAll('-', '').slice(-12);

const two = (/** @type {number} */ n) => String(n).padStart(2, '0');

/** `14:03:07`, in the reader's time zone. @param {string|number|undefined|null} at */
export function clock(at) {
  const date = new Date(at || NaN);
  return Number.isNaN(date.getTime()) ? '–' : `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** Date and time for tooltips. @param {string|number|undefined|null} at */
export function moment(at) {
  const date = new Date(at || NaN);
  return Number.isNaN(date.getTime()) ? '–' : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(at)}`;
}

/** Text of the daemon with its times in the reader's time zone. @param {string} text */
export const localTimes = (text) => text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (at) => clock(at));

/**
 * The group of a state, which decides its colour and its counter.
 * @param {string} state
 * @returns {'running'|'person'|'limited'|'failed'|'idle'|'paused'|'closed'}
 */
export function group(state) {
  switch (state) {
    case 'waiting(approval)':
    case 'waiting(question)':
    case 'waiting(limit)':
    case 'waiting(quota)':
    case 'waiting(credentials)':
      return 'person';
    case 'waiting(rate_limit)':
    case 'waiting(provider)':
    case 'backing_off':
      return 'limited';
    case 'failed':
    case 'faulted':
    case 'waiting(workspace)':
      return 'failed';
    case 'idle':
    case 'paused':
    case 'closed':
      return state;
    default:
      return 'running';
  }
}

/** @type {Record<string, string>} */
const WORDS = {
  'running(model)': 'model call',
  'running(tool)': 'tool call',
  'waiting(approval)': 'approval',
  'waiting(question)': 'question',
  'waiting(limit)': 'limit',
  'waiting(child)': 'sub-agent',
  'waiting(permit)': 'queued for a permit',
  'waiting(rate_limit)': 'rate limit',
  'waiting(provider)': 'provider down',
  'waiting(quota)': 'quota',
  'waiting(credentials)': 'credentials',
  'waiting(workspace)': 'workspace',
  backing_off: 'backing off',
};

/** A state in words. @param {string} state */
export const stateWord = (state) => WORDS[state] ?? state;

/** A state's mark: its shape tells the group apart without colour. @param {string} state */
export const stateMark = (state) =>
  ({ running: '●', person: '◆', limited: '◔', failed: '✖', idle: '○', paused: '❚❚', closed: '·' })[group(state)];

/** The name of a group, as the counters show it. @param {string} name */
export const groupWord = (name) =>
  /** @type {Record<string, string>} */ ({
    running: 'running',
    person: 'waiting for a person',
    limited: 'rate limited',
    failed: 'failed',
    idle: 'idle',
    paused: 'paused',
    closed: 'closed',
  })[name] ?? name;

/** The words of an argument for a shell. @param {string} word */
export const quote = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** `1 question`, `2 questions`. @param {number} n @param {string} word */
export const plural = (n, word) => `${exact(n)} ${word}${n === 1 ? '' : 's'}`;
