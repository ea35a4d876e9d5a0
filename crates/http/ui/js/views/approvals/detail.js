// What the page itself says about a question: where it comes from. The question is in the lines of the daemon.

import { h } from '../../dom.js';
import { localTimes, short } from '../../format.js';
import { oneLine } from '../../text/visible.js';
import { ageOf } from '../../ui.js';

/** @typedef {import('../../types.js').Approval} Approval */

/** The line of the list, without the tool's name, which stands before it. @param {Approval} open */
export const titleOf = ({ title, tool }) => oneLine(tool && title.startsWith(`${tool} `) ? title.slice(tool.length + 1) : title, 200);

/**
 * @param {Approval} open
 * @param {import('../../types.js').Row|undefined} row its session
 */
export function origin(open, row) {
  return h('p', { class: 'origin dim' },
    'Session ', h('a', { href: `#/session/${open.session}` }, oneLine(row?.name ?? '', 100) || short(open.session)), row && ` · ${oneLine(row.model, 40)}, ${row.mode}`,
    ' · asked ', ageOf(open.asked_at), ' ago', open.level ? `, unanswered ${open.level} times` : '', open.expires_at ? `; expires at ${localTimes(open.expires_at)}` : '');
}
