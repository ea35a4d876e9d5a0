// Chromium, and pages that remember what must not happen.

import { createRequire } from 'node:module';
import { join } from 'node:path';

/** Milliseconds that a slow machine may take for anything. */
const PATIENCE = 300_000;

export class Browser {
  /** @param {{modules: string, chromium: string}} options */
  static async start({ modules, chromium: executablePath }) {
    const browser = new Browser();
    browser.require = createRequire(join(modules, 'here.js'));
    const { chromium } = browser.require('playwright-core');
    browser.chromium = await chromium.launch({
      executablePath,
      timeout: PATIENCE,
      args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
    });
    /** @type {Tab[]} */
    browser.tabs = [];
    return browser;
  }

  /**
   * A window of its own, without anything stored.
   * @param {{width?: number, height?: number, scheme?: 'light'|'dark'}} [look]
   */
  async window({ width = 1440, height = 900, scheme = 'light' } = {}) {
    return this.chromium.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: 'reduce' });
  }

  /**
   * A tab that is signed in.
   * @param {import('./daemon.mjs').Daemon} daemon
   * @param {{window?: any, hash?: string, scopes?: string, link?: string, offline?: boolean, width?: number, height?: number, scheme?: 'light'|'dark'}} [options]
   */
  async open(daemon, { window, hash = '#/fleet', scopes, link, offline = false, ...look } = {}) {
    const context = window ?? await this.window(look);
    const page = await context.newPage();
    /** @type {Tab} */
    const tab = { page, faults: [], expected: null };
    this.tabs.push(tab);
    page.setDefaultTimeout(PATIENCE);
    page.on('console', (message) => {
      if (!['error', 'warning'].includes(message.type())) return;
      if (offline && message.text().includes('net::ERR')) return;
      if (tab.expected?.test(message.text())) return;
      tab.faults.push(`console ${message.type()}: ${message.text()} ${message.location().url}`);
    });
    page.on('pageerror', (error) => tab.faults.push(`page error: ${error.stack}`));
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(`${daemon.url}/`) && !url.startsWith(`blob:${daemon.url}/`)) tab.faults.push(`a request to elsewhere: ${url}`);
      if (/[?&#](token|code)=/.test(url.replace(/#.*/, ''))) tab.faults.push(`a secret in a URL: ${url}`);
    });
    page.on('response', (response) => {
      if (response.status() === 403) tab.faults.push(`refused: ${response.request().method()} ${response.url()}`);
    });
    await page.goto(link ?? await daemon.link(scopes));
    await page.waitForSelector('.connection[data-kind="live"]');
    if (hash !== '#/fleet') await go(page, hash);
    return page;
  }

  /** What happened in the tabs that must not, since the last call. */
  faults() {
    return this.tabs.splice(0).flatMap(({ faults }) => faults);
  }
}

/** @param {any} page @param {string} hash */
export async function go(page, hash) {
  await page.evaluate((to) => {
    location.hash = to;
  }, hash);
  await page.waitForFunction((to) => document.querySelector('main')?.className === `view-${to}`, hash.replace(/^#\//, '').split(/[/?]/)[0]);
}

/** Waits until the question on display was read to its end and may be answered. @param {any} page */
export const readable = (page) => page.locator('button[data-accepts]:not([disabled])').first().waitFor();

/** The row of a session in the fleet's table. @param {any} page @param {string} session */
export const row = (page, session) => page.locator(`#row-${session}:not([hidden])`);
