// What each request took from the provider's cache, from the log. Pure.

/** @typedef {import('../../types.js').LogEvent} LogEvent */
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
