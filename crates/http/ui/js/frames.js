// Reads server-sent events from bytes that arrive in arbitrary parts. Pure.

export class Frames {
  constructor() {
    this.decoder = new TextDecoder();
    /** @type {string[]} parts of the last, unfinished message; joined only once, as a message can have megabytes */
    this.parts = [];
  }

  /**
   * @param {Uint8Array} bytes
   * @returns {import('./types.js').Message[]} the messages that are complete now
   */
  push(bytes) {
    const text = this.decoder.decode(bytes, { stream: true });
    const before = this.parts.at(-1) ?? '';
    const closes = before.endsWith('\n') && text.startsWith('\n');
    if (!closes && !text.includes('\n\n')) {
      if (text) this.parts.push(text);
      return [];
    }
    this.parts.push(text);
    const all = this.parts.join('').split('\n\n');
    const rest = all.pop() ?? '';
    this.parts = rest ? [rest] : [];
    return all.map(message).filter((found) => found !== null);
  }
}

/**
 * @param {string} block
 * @returns {import('./types.js').Message|null} `null` for comments
 */
function message(block) {
  let id = null;
  let event = '';
  const data = [];
  for (const line of block.split('\n')) {
    if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5));
    else if (line.startsWith('id:')) id = line.slice(3).trim();
    else if (line.startsWith('event:')) event = line.slice(6).trim();
  }
  if (!data.length) return null;
  try {
    return { id, event, data: JSON.parse(data.join('\n')) };
  } catch {
    return { id, event, data: null };
  }
}
