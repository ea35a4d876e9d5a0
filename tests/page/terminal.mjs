// The pictures of the terminal in README.md and docs/terminal.md: `just pictures-terminal`. The real programs with the
// scripted fleet of the page's tests, in tmux; what the terminal shows becomes an SVG file.

import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Daemon, fleet } from './lib/daemon.mjs';
import { svg } from './lib/svg.mjs';

const run = promisify(execFile);
const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const into = resolve(process.argv[2] ?? join(root, 'docs/pictures'));
const size = { columns: 118, rows: 36 };
const programs = {
  agentd: resolve(process.env.AGENTD ?? join(root, 'target/debug/agentd')),
  agentctl: resolve(process.env.AGENTCTL ?? join(root, 'target/debug/agentctl')),
};

/** @param {...string} args */
const tmux = async (...args) => (await run('tmux', ['-L', 'agentd-pictures', '-f', '/dev/null', ...args])).stdout;

/** Directories of this machine become ones of nobody, with the same number of columns. @param {string} screen @param {string} dir */
function withoutPaths(screen, dir) {
  const path = new RegExp(`${dir}/work/\\d+`, 'g');
  return screen.replace(path, (found) => '/home/ana/project'.padEnd(found.length));
}

await mkdir(into, { recursive: true });
const daemon = await Daemon.start(programs);
try {
  await fleet(daemon);
  const mend = await daemon.session('Mend the greeting', 'mend the greeting', { mode: 'accept-edits', labels: { team: 'web' } });
  await daemon.until('the retries and the sub-agents are there', async () => (await daemon.ctl('ps')).includes('backing_off'));
  for (const [name, ground, words, shows] of /** @type {const} */ ([
    ['terminal-top', 'dark', 'top', 'Deploy production'],
    ['terminal-session', 'dark', `attach ${mend.session}`, 'y allow'],
  ])) {
    const command = `exec env -u NO_COLOR HOME=${daemon.dir} AGENTCTL_THEME=${ground} TERM=tmux-256color ${programs.agentctl} --socket ${daemon.socket} ${words}`;
    await tmux('new-session', '-d', '-s', name, '-x', String(size.columns), '-y', String(size.rows), command);
    const show = async () => {
      const screen = await tmux('capture-pane', '-p', '-e', '-N', '-t', name);
      return screen.includes(shows) && screen;
    };
    await daemon.until(`${name} shows ${shows}`, show);
    // Rates need a few seconds, and keys are accepted a moment after a question appears.
    await new Promise((next) => setTimeout(next, name === 'terminal-top' ? 6_000 : 2_000));
    const screen = withoutPaths(await show(), daemon.dir);
    const picture = svg(screen, { ...size, ground, title: `agentctl ${words.split(' ')[0]}` });
    await writeFile(join(into, `${name}.svg`), picture);
  }
} finally {
  await tmux('kill-server').catch(() => {});
  await daemon.end();
}
console.log(`the pictures are in ${into}`);
