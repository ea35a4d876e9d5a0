// The HTTP API: requests with the token, errors as `ApiError`, event streams that reconnect by themselves.

import { Frames } from './frames.js';

/** A stream without a byte for this long is dead: the daemon sends a comment every 15 seconds. */
const SILENCE = 40_000;
const BACKOFF = { first: 400, most: 10_000 };
/** No request takes longer; the daemon itself answers within 30 seconds. */
const DEADLINE = 45_000;

/** A refused request: the daemon's problem, or a connection that failed (status 0). */
export class ApiError extends Error {
  /** @param {{status: number, code: string, message: string, hint?: string, field?: string}} problem */
  constructor({ status, code, message, hint, field }) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.field = field;
  }
}

/**
 * @typedef {object} StreamOptions
 * @property {number|string|null} [after] events after this position; absent: what the path gives by itself
 * @property {(message: import('./types.js').Message) => void} onEvent events of the log have the name `''`
 * @property {(connection: import('./types.js').Connection) => void} [onState]
 * @property {(error: ApiError) => void} [onEnd] the stream is over for good, such as of a deleted session
 * @property {AbortSignal} [signal]
 */

export class Client {
  /** @param {{token: string, base?: string, onSignedOut?: (error: ApiError) => void}} options */
  constructor({ token, base = '', onSignedOut }) {
    this.token = token;
    this.base = base;
    this.onSignedOut = onSignedOut;
  }

  /**
   * @param {string} verb
   * @param {string} path below `/v1`, such as `/sessions`
   * @param {{query?: Record<string, any>, body?: any, key?: string, signal?: AbortSignal}} [options]
   * @returns {Promise<any>}
   */
  async call(verb, path, { query, body, key, signal } = {}) {
    const headers = this.headers();
    if (body !== undefined) headers.set('Content-Type', 'application/json');
    if (key) headers.set('Idempotency-Key', key);
    const limit = AbortSignal.timeout(DEADLINE);
    /** @type {RequestInit} */
    const init = { method: verb, headers, cache: 'no-store', credentials: 'omit', signal: signal ? AbortSignal.any([signal, limit]) : limit };
    if (body !== undefined) init.body = JSON.stringify(body);
    const response = await this.fetch(`${this.base}/v1${path}${search(query)}`, init);
    const text = await response.text();
    return text ? JSON.parse(text) : {};
  }

  /** @param {string} path @param {Record<string, any>} [query] @param {AbortSignal} [signal] @returns {Promise<any>} */
  get(path, query, signal) {
    return this.call('GET', path, signal ? { query: query ?? {}, signal } : { query: query ?? {} });
  }

  /** @param {string} path @param {any} [body] @param {string} [key] @returns {Promise<any>} */
  post(path, body = {}, key = '') {
    return this.call('POST', path, { body, key });
  }

  /** @param {string} path @param {any} body @returns {Promise<any>} */
  patch(path, body) {
    return this.call('PATCH', path, { body });
  }

  /** @param {string} path @param {Record<string, any>} [query] @returns {Promise<any>} */
  remove(path, query = {}) {
    return this.call('DELETE', path, { query });
  }

  headers() {
    const headers = new Headers();
    if (this.token) headers.set('Authorization', `Bearer ${this.token}`);
    return headers;
  }

  /**
   * @param {string} url
   * @param {RequestInit} init
   */
  async fetch(url, init) {
    let response;
    try {
      response = await fetch(url, init);
    } catch (error) {
      if (init.signal?.aborted && /** @type {Error} */ (error).name === 'AbortError') throw error;
      throw new ApiError({
        status: 0,
        code: 'unreachable',
        message: 'agentd does not answer.',
        hint: 'Is it running? `agentctl daemon status` says so on its machine; `agentctl daemon start` starts it.',
      });
    }
    if (response.ok) return response;
    const error = await problem(response);
    if (response.status === 401) this.onSignedOut?.(error);
    throw error;
  }

  /**
   * Follows a stream until `signal` aborts it. It reconnects with a growing pause and the id of the last event, so that
   * no event is missed or comes twice.
   * @param {string} path below `/v1`
   * @param {StreamOptions & {query?: Record<string, any>}} options
   */
  async stream(path, { after, query, onEvent, onState, onEnd, signal }) {
    let last = after === null || after === undefined ? null : String(after);
    let attempts = 0;
    while (!signal?.aborted) {
      onState?.({ state: 'connecting', attempts });
      let why = 'The connection to agentd broke.';
      try {
        await this.once(path, { query, last, signal }, (message) => {
          attempts = 0;
          if (message.id !== null) last = message.id;
          if (message.event === 'synced' && message.data?.cursor !== undefined) last = String(message.data.cursor);
          if (message.event === 'ended') {
            why = message.data?.message ?? why;
            if (['deleted', 'failed'].includes(message.data?.code)) throw new Ended(message.data);
          }
          onEvent(message);
        }, () => onState?.({ state: 'live' }));
      } catch (error) {
        if (signal?.aborted) return;
        if (error instanceof Ended) {
          onEnd?.(new ApiError({ status: 410, code: error.code, message: error.message }));
          return;
        }
        if (error instanceof ApiError) {
          why = error.message;
          if (error.status === 401) {
            onState?.({ state: 'signed-out', why });
            return;
          }
          if ([400, 403, 404].includes(error.status)) {
            onEnd?.(error);
            return;
          }
        }
      }
      if (signal?.aborted) return;
      attempts += 1;
      const pause = Math.min(BACKOFF.most, BACKOFF.first * 2 ** Math.min(attempts - 1, 6)) * (0.75 + Math.random() / 2);
      onState?.({ state: 'waiting', retryAt: Date.now() + pause, attempts, why });
      await sleep(pause, signal);
    }
  }

  /**
   * One connection of a stream.
   * @param {string} path
   * @param {{query: Record<string, any>|undefined, last: string|null, signal: AbortSignal|undefined}} from
   * @param {(message: import('./types.js').Message) => void} onMessage
   * @param {() => void} onOpen
   */
  async once(path, { query, last, signal }, onMessage, onOpen) {
    const stop = new AbortController();
    const outside = () => stop.abort();
    signal?.addEventListener('abort', outside, { once: true });
    let dog = setTimeout(() => stop.abort(), SILENCE);
    try {
      const headers = this.headers();
      headers.set('Accept', 'text/event-stream');
      if (last !== null) headers.set('Last-Event-ID', last);
      const url = `${this.base}/v1${path}${search(query)}`;
      const response = await this.fetch(url, { headers, signal: stop.signal, cache: 'no-store', credentials: 'omit' });
      onOpen();
      const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
      const frames = new Frames();
      for (;;) {
        const { done, value } = await reader.read();
        clearTimeout(dog);
        if (done) return;
        dog = setTimeout(() => stop.abort(), SILENCE);
        for (const message of frames.push(value)) onMessage(message);
      }
    } finally {
      clearTimeout(dog);
      signal?.removeEventListener('abort', outside);
      stop.abort();
    }
  }
}

class Ended extends Error {
  /** @param {{code: string, message: string}} data */
  constructor({ code, message }) {
    super(message);
    this.code = code;
  }
}

/** @param {Record<string, any>} [query] */
function search(query) {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query ?? {})) {
    if (value === null || value === undefined || value === '' || value === false) continue;
    params.set(key, Array.isArray(value) ? value.join(',') : String(value));
  }
  const text = params.toString();
  return text ? `?${text}` : '';
}

/** @param {Response} response */
export async function problem(response) {
  const text = await response.text().catch(() => '');
  try {
    const { detail, code, hint, field } = JSON.parse(text);
    return new ApiError({ status: response.status, code, message: detail, hint, field });
  } catch {
    const message = text.slice(0, 200) || `${response.status} ${response.statusText}`;
    return new ApiError({ status: response.status, code: `http_${response.status}`, message });
  }
}

/**
 * @param {number} ms
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
function sleep(ms, signal) {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      removeEventListener('online', wake);
      removeEventListener('agentd:retry', wake);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    signal?.addEventListener('abort', wake, { once: true });
    // The person asks for it, or the network is back.
    addEventListener('online', wake, { once: true });
    addEventListener('agentd:retry', wake, { once: true });
  });
}
