// Contents of the store: whole outputs and images. Images are made in the page from bytes of four known kinds.

import { h } from '../../dom.js';
import { bytes } from '../../format.js';
import { fail } from '../../ui.js';
import { pane } from './pane.js';

/** The most that the page loads of one content. */
const MOST = 8 << 20;
const KINDS = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

/** @param {string} data Base64 */
function decode(data) {
  const text = atob(data);
  const out = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) out[at] = text.charCodeAt(at);
  return out;
}

/**
 * @param {import('../../types.js').Context} ctx
 * @param {string} name
 * @returns {Promise<Uint8Array<ArrayBuffer>[]>}
 */
async function load(ctx, name) {
  /** @type {Uint8Array<ArrayBuffer>[]} */
  const parts = [];
  for (let offset = 0; offset < MOST; ) {
    const part = await ctx.client.get(`/blobs/${encodeURIComponent(name)}`, { offset });
    const data = decode(part.data);
    parts.push(data);
    offset += data.length;
    if (data.length === 0 || offset >= part.of) break;
  }
  return parts;
}

/**
 * A button that becomes the whole output.
 * @param {import('../../types.js').Context} ctx
 * @param {string} name
 * @param {number} size
 */
export function wholeOutput(ctx, name, size) {
  const button = h('button', { type: 'button', class: 'quiet', on: { click: async () => {
    button.disabled = true;
    try {
      const parts = await load(ctx, name);
      button.replaceWith(pane(await new Blob(parts).text(), { label: 'Whole output' }));
    } catch (error) {
      button.disabled = false;
      fail(error, 'The output could not be loaded');
    }
  } } }, `Load the whole output (${bytes(size)})`);
  return button;
}

/**
 * An image of an input or of a result.
 * @param {import('../../types.js').Context} ctx
 * @param {any} block `{media_type, data}` or `{media_type, blob}`
 */
export function image(ctx, block) {
  const type = String(block.media_type ?? '');
  const box = h('figure', { class: 'image' });
  if (!KINDS.has(type)) {
    box.append(h('span', { class: 'dim' }, 'A medium that the page does not show.'));
    return box;
  }
  const show = async () => {
    try {
      const parts = block.data ? [decode(block.data)] : await load(ctx, String(block.blob));
      const url = URL.createObjectURL(new Blob(parts, { type }));
      const img = h('img', { alt: `Image (${type})`, on: { load: () => URL.revokeObjectURL(url), error: () => box.replaceChildren('This image cannot be shown.') } });
      img.src = url;
      box.replaceChildren(img);
    } catch (error) {
      fail(error, 'The image could not be loaded');
    }
  };
  if (block.data) void show();
  else box.append(h('button', { type: 'button', class: 'quiet', on: { click: show } }, `Show the image (${type})`));
  return box;
}
