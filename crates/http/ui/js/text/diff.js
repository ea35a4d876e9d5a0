// Unified diffs: rows for people, side by side if wanted.

/** @typedef {{kind: ' ' | '+' | '-' | '\\', old: number, now: number, text: string}} Row */
/** @typedef {{head: string, rows: Row[]}} Hunk */
/** @typedef {{from: string, to: string, hunks: Hunk[]}} File */

/**
 * The files of a unified diff. Lines outside hunks that are not understood are dropped; text that is no diff has no files.
 * @param {string} text
 * @returns {File[]}
 */
export function parseDiff(text) {
  /** @type {File[]} */
  const files = [];
  /** @type {File | null} */
  let file = null;
  /** @type {Hunk | null} */
  let hunk = null;
  let [old, now, oldLeft, nowLeft] = [0, 0, 0, 0];
  let from = '';
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  for (const line of lines) {
    if (hunk && (oldLeft > 0 || nowLeft > 0 || line.startsWith('\\'))) {
      const kind = line[0];
      if (kind === '+' && nowLeft > 0) {
        hunk.rows.push({ kind, old: 0, now: now++, text: line.slice(1) });
        nowLeft -= 1;
        continue;
      }
      if (kind === '-' && oldLeft > 0) {
        hunk.rows.push({ kind, old: old++, now: 0, text: line.slice(1) });
        oldLeft -= 1;
        continue;
      }
      if (kind === '\\') {
        hunk.rows.push({ kind, old: 0, now: 0, text: line.slice(1).trim() });
        continue;
      }
      if (kind === ' ' || line === '') {
        hunk.rows.push({ kind: ' ', old: old++, now: now++, text: line.slice(1) });
        oldLeft -= 1;
        nowLeft -= 1;
        continue;
      }
    }
    if (line.startsWith('--- ')) {
      from = path(line);
      hunk = null;
    } else if (line.startsWith('+++ ')) {
      file = { from, to: path(line), hunks: [] };
      files.push(file);
      hunk = null;
    } else if (line.startsWith('@@ ')) {
      const place = /^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@/.exec(line);
      if (!place) continue;
      if (!file) {
        file = { from: '', to: '', hunks: [] };
        files.push(file);
      }
      [old, now] = [Number(place[1]), Number(place[3])];
      [oldLeft, nowLeft] = [Number(place[2] ?? 1), Number(place[4] ?? 1)];
      hunk = { head: line, rows: [] };
      file.hunks.push(hunk);
    }
  }
  return files;
}

/** @param {string} line */
function path(line) {
  const name = line.slice(4).split('\t')[0];
  return name === '/dev/null' ? '' : name.replace(/^[ab]\//, '');
}

/** Whether a text is a unified diff. @param {string} text */
export function isDiff(text) {
  return (text.startsWith('--- ') || text.includes('\n--- ')) && text.includes('\n+++ ') && text.includes('\n@@ ');
}

/**
 * Pairs removed with added lines.
 * @param {Row[]} rows
 * @returns {[Row | null, Row | null][]}
 */
export function sideBySide(rows) {
  /** @type {[Row | null, Row | null][]} */
  const pairs = [];
  for (let at = 0; at < rows.length; ) {
    const row = rows[at];
    if (row.kind === ' ') {
      pairs.push([row, row]);
      at += 1;
      continue;
    }
    /** @type {Row[]} */
    const left = [];
    /** @type {Row[]} */
    const right = [];
    while (at < rows.length && rows[at].kind !== ' ') {
      const next = rows[at++];
      if (next.kind === '-') left.push(next);
      else if (next.kind === '+') right.push(next);
    }
    for (let i = 0; i < Math.max(left.length, right.length); i += 1) pairs.push([left[i] ?? null, right[i] ?? null]);
  }
  return pairs;
}

/**
 * For each changed row the part that differs from its partner: `[start, end]` in its text.
 * @param {Row[]} rows
 * @returns {Map<Row, [number, number]>}
 */
export function changedParts(rows) {
  /** @type {Map<Row, [number, number]>} */
  const parts = new Map();
  for (const [left, right] of sideBySide(rows)) {
    if (!left || !right || left === right) continue;
    const most = Math.min(left.text.length, right.text.length);
    let head = 0;
    while (head < most && left.text[head] === right.text[head]) head += 1;
    let tail = 0;
    while (tail < most - head && left.text.at(-1 - tail) === right.text.at(-1 - tail)) tail += 1;
    // Lines with little in common are different lines.
    if (head + tail < most * 0.3) continue;
    parts.set(left, [head, left.text.length - tail]);
    parts.set(right, [head, right.text.length - tail]);
  }
  return parts;
}
