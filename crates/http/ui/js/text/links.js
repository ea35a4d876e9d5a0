// Addresses in untrusted text: what may become a link, and how it is shown.

/** @typedef {import('./visible.js').Piece} Piece */

const LONGEST = 2000;

/**
 * The parsed address if it may become a link: http or https, a host, and no user name that looks like a host.
 * @param {string} text
 * @returns {URL | null}
 */
export function safeUrl(text) {
  if (text.length > LONGEST || !/^https?:\/\//i.test(text)) return null;
  try {
    const url = new URL(text);
    const web = url.protocol === 'http:' || url.protocol === 'https:';
    return web && url.username === '' && url.password === '' && url.hostname !== '' ? url : null;
  } catch {
    return null;
  }
}

/**
 * A marked link that says which host it leads to; nothing is loaded before a click.
 * @param {URL} url
 * @returns {Piece}
 */
export function link(url) {
  const shown = url.host.length > 60 ? url.host.slice(0, 59) + '\u2026' : url.host;
  return {
    tag: 'a',
    props: {
      class: 'out',
      href: url.href,
      target: '_blank',
      rel: 'noopener noreferrer nofollow',
      title: `Opens ${url.href}`,
    },
    children: [`\u2197 ${shown}`],
  };
}
