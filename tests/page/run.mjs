// The tests of the page, in a real browser against a real daemon.
//
//   AGENTD=target/debug/agentd AGENTCTL=target/debug/agentctl node tests/page/run.mjs [WORDS]
//
// WORDS choose scenarios by name. Screenshots are in target/page/shots. The exit code is 77 if something is not installed.

import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Browser } from './lib/browser.mjs';
import { Daemon } from './lib/daemon.mjs';
import * as live from './scenarios/live.mjs';
import * as looks from './scenarios/looks.mjs';
import * as many from './scenarios/many.mjs';
import * as rights from './scenarios/rights.mjs';
import * as session from './scenarios/session.mjs';
import * as steering from './scenarios/steering.mjs';
import * as tricks from './scenarios/tricks.mjs';
import * as views from './scenarios/views.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../..');
const modules = process.env.AGENTD_PAGE_MODULES ?? join(root, 'target/page/node_modules');
const chromium = process.env.CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find(existsSync) ?? '/usr/bin/chromium';
const shots = process.env.AGENTD_PAGE_SHOTS ?? join(root, 'target/page/shots');
const programs = {
  agentd: resolve(process.env.AGENTD ?? join(root, 'target/debug/agentd')),
  agentctl: resolve(process.env.AGENTCTL ?? join(root, 'target/debug/agentctl')),
};

for (const [what, path, how] of [
  ['playwright-core', join(modules, 'playwright-core'), 'mkdir -p target/page && cp tests/page/package*.json target/page/ && npm ci --prefix target/page --ignore-scripts'],
  ['chromium', chromium, 'apt-get install chromium, or set CHROMIUM'],
  ['agentd', programs.agentd, 'cargo build -p agentd, or set AGENTD'],
  ['agentctl', programs.agentctl, 'cargo build -p agentctl, or set AGENTCTL'],
]) {
  if (!existsSync(path)) {
    console.log(`MISSING ${what} is not at ${path}: ${how}`);
    process.exit(77);
  }
}

const words = process.argv.slice(2);
const scenarios = [live, session, steering, tricks, views, rights, looks, many].flatMap((module) => Object.entries(module))
  .map(([name, run]) => ({ name: name.replace(/([A-Z])/g, ' $1').toLowerCase(), run }))
  .filter(({ name }) => words.every((word) => name.includes(word)));

await mkdir(shots, { recursive: true });
const browser = await Browser.start({ modules, chromium });
let failed = 0;
for (const { name, run } of scenarios) {
  const started = performance.now();
  const daemon = await Daemon.start(programs);
  let trouble = [];
  try {
    await run({ daemon, browser, shots, note: (/** @type {string} */ text) => console.log(`     ${text}`) });
  } catch (error) {
    trouble = [error.stack];
    for (const { page } of browser.tabs) await page.screenshot({ path: join(shots, `failed-${name.replaceAll(' ', '-')}.png`) }).catch(() => {});
  }
  trouble.push(...browser.faults());
  for (const context of browser.chromium.contexts()) await context.close();
  await daemon.end();
  failed += trouble.length ? 1 : 0;
  console.log(`${trouble.length ? 'FAIL' : 'ok  '} ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
  for (const line of trouble) console.log(`     ${line}`);
}
await browser.chromium.close();
console.log(failed ? `${failed} of ${scenarios.length} scenarios failed` : `${scenarios.length} scenarios passed`);
process.exit(failed || !scenarios.length ? 1 : 0);
