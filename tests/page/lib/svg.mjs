// A terminal's screen, as `tmux capture-pane -e` prints it, as an SVG picture.

const CELL = { width: 8.4, height: 18 };
const MARGIN = 12;
const THEMES = {
  dark: { ground: '#16181d', text: '#d7dae0', palette: ['#16181d', '#e0626b', '#8cc265', '#d6a24b', '#5b9ee6', '#c678dd', '#4fb3c4', '#c8ccd4', '#6b7280', '#ff7b85', '#a5e075', '#f0c15f', '#79b8ff', '#de98f0', '#6fd0e0', '#ffffff'] },
  light: { ground: '#ffffff', text: '#24292f', palette: ['#24292f', '#b4232c', '#116329', '#8a5a00', '#0550ae', '#8250df', '#0b6a75', '#6e7781', '#57606a', '#cf222e', '#1a7f37', '#9a6700', '#0969da', '#8250df', '#1b7c83', '#24292f'] },
};

/** @typedef {{fg?: string, bg?: string, bold?: boolean, dim?: boolean, italic?: boolean, underlined?: boolean, reversed?: boolean}} Style */
/** @typedef {{palette: string[], ground: string, text: string}} Theme */

/** A colour of the palette of 256. @param {number} index @param {Theme} theme */
function indexed(index, theme) {
  if (index < 16) return theme.palette[index];
  const hex = (/** @type {number[]} */ rgb) => `#${rgb.map((one) => one.toString(16).padStart(2, '0')).join('')}`;
  if (index >= 232) return hex(Array(3).fill(8 + (index - 232) * 10));
  const level = (/** @type {number} */ one) => (one === 0 ? 0 : 55 + one * 40);
  const cube = index - 16;
  return hex([Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map(level));
}

/** The style after an SGR sequence. @param {Style} before @param {string} sequence @param {Theme} theme @returns {Style} */
function restyled(before, sequence, theme) {
  let style = { ...before };
  const codes = sequence.split(';').map(Number);
  while (codes.length > 0) {
    const code = codes.shift() ?? 0;
    if (code === 0) style = {};
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 3) style.italic = true;
    else if (code === 4) style.underlined = true;
    else if (code === 7) style.reversed = true;
    else if (code === 38 || code === 48) {
      const wide = codes.shift() === 5;
      const colour = wide ? indexed(codes.shift() ?? 0, theme) : `rgb(${codes.splice(0, 3).join(',')})`;
      if (code === 38) style.fg = colour;
      else style.bg = colour;
    } else if (code >= 30 && code <= 37) style.fg = theme.palette[code - 30];
    else if (code >= 90 && code <= 97) style.fg = theme.palette[code - 82];
    else if (code === 39) delete style.fg;
    else if (code === 49) delete style.bg;
  }
  return style;
}

/** A line as pieces with one style each. @param {string} line @param {Style} style @param {Theme} theme */
function pieces(line, style, theme) {
  const found = [];
  for (const part of line.split(/(\u001b\[[0-9;]*m)/)) {
    if (part.startsWith('\u001b[')) style = restyled(style, part.slice(2, -1), theme);
    else if (part !== '') found.push({ text: part, style });
  }
  return { found, style };
}

/** @param {string} text */
const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
/** @param {number} number */
const short = (number) => String(Math.round(number * 10) / 10);

/**
 * @param {string} screen
 * @param {{columns: number, rows: number, ground: 'dark' | 'light', title: string}} how
 */
export function svg(screen, { columns, rows, ground, title }) {
  const theme = THEMES[ground];
  const [width, height] = [columns * CELL.width + 2 * MARGIN, rows * CELL.height + 2 * MARGIN];
  const out = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${short(width)} ${short(height)}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="100%" height="100%" rx="8" fill="${theme.ground}"/>`,
  ];
  /** @type {Style} */
  let style = {};
  for (const [row, line] of screen.split('\n').slice(0, rows).entries()) {
    const read = pieces(line, style, theme);
    style = read.style;
    const top = MARGIN + row * CELL.height;
    let column = 0;
    const spans = [];
    for (const { text, style: one } of read.found) {
      const length = [...text].length;
      let [fg, bg] = [one.fg ?? theme.text, one.bg];
      if (one.reversed) [fg, bg] = [one.bg ?? theme.ground, one.fg ?? theme.text];
      const x = MARGIN + column * CELL.width;
      if (bg) out.push(`<rect x="${short(x)}" y="${top}" width="${short(length * CELL.width)}" height="${CELL.height}" fill="${bg}"/>`);
      column += length;
      if (text.trim() === '' && !one.underlined) continue;
      const more = [
        one.bold && ' font-weight="bold"',
        one.dim && ' opacity="0.6"',
        one.italic && ' font-style="italic"',
        one.underlined && ' text-decoration="underline"',
      ];
      const end = ` textLength="${short(length * CELL.width)}" lengthAdjust="spacingAndGlyphs"`;
      spans.push(`<tspan x="${short(x)}" fill="${fg}"${more.filter(Boolean).join('')}${length > 1 ? end : ''}>${escaped(text)}</tspan>`);
    }
    if (spans.length > 0) out.push(`<text y="${top + 14}" xml:space="preserve">${spans.join('')}</text>`);
  }
  out.push('</svg>', '');
  return out.join('\n');
}
