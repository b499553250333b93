// @ts-check
// What a person does in a window of VS Code, and what they see.
import { strict as assert } from 'node:assert';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';

import { root } from '../support/profile.mjs';
import { address } from '../support/window.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PATIENCE = 60_000;

/** One window. */
export class Person {
  /**
   * @param {import('playwright-core').Page} page
   * @param {import('../support/profile.mjs').Profile} profile
   * @param {string} theme name of the folder that pictures go to
   */
  constructor(page, profile, theme) {
    this.page = page;
    this.profile = profile;
    this.theme = theme;
    this.pictures = join(root, 'out', 'screenshots', theme);
    mkdirSync(this.pictures, { recursive: true });
    page.setDefaultTimeout(PATIENCE);
  }

  /**
   * Open a file, alone; the first one with the window.
   * @param {string} file
   */
  async open(file) {
    if (this.page.url() === 'about:blank') {
      await this.page.goto(address(this.profile, { openFile: join(this.profile.workspace, file) }));
    } else {
      await this.run('View: Close All Editors');
      await this.page.locator('.tab').first().waitFor({ state: 'detached' });
      await this.run('Go to File...');
      await this.fill(file);
      await this.row(basename(file)).waitFor();
      await this.page.keyboard.press('Enter');
    }
    await this.page.locator('.tab.active').getByText(basename(file)).first().waitFor();
    await this.page.locator('.monaco-editor .view-line').first().waitFor();
  }

  /**
   * Run a command from the palette.
   * @param {string} title
   */
  async run(title) {
    await this.page.keyboard.press('F1');
    const input = this.page.locator('.quick-input-widget input').first();
    await input.waitFor();
    await input.fill(`>${title}`);
    await this.row(title).waitFor();
    await this.page.keyboard.press('Enter');
  }

  /**
   * Type into the input that is open, and accept it.
   * @param {string} title what stands above it
   * @param {string} text
   */
  async answer(title, text) {
    const above = this.page.locator('.quick-input-title', { hasText: title });
    await above.waitFor();
    await this.fill(text);
    await this.page.keyboard.press('Enter');
    await above.waitFor({ state: 'hidden' }); // what was typed is looked at first
  }

  /** Type into the quick input that is open. @param {string} text */
  async fill(text) {
    await this.page.locator('.quick-input-widget input').first().fill(text);
  }

  /** @param {string} text */
  row(text) {
    return this.page.locator('.quick-input-list .monaco-list-row').filter({ hasText: text }).first();
  }

  /** @param {string} text */
  status(text) {
    return this.page.locator('.statusbar-item').filter({ hasText: text }).first();
  }

  /** @param {string} text */
  line(text) {
    return this.page.locator('.view-line').filter({ hasText: text }).first();
  }

  /**
   * Choose an entry of a menu. A submenu takes no click in the moment after it has opened: then the menu is still there.
   * @param {import('playwright-core').Locator} entry
   */
  async choose(entry) {
    await entry.waitFor();
    for (let tries = 0; (await entry.count()) > 0 && tries < 20; tries++) {
      await entry.click({ timeout: 1000 }).catch(() => undefined);
      await this.page.waitForTimeout(250);
    }
    assert.equal(await entry.count(), 0, 'the menu closes');
  }

  /**
   * Return the content of a panel of ours that shows a text.
   * @param {string} text
   * @returns {Promise<import('playwright-core').Frame>}
   */
  async panel(text) {
    const end = Date.now() + PATIENCE;
    while (Date.now() < end) {
      for (const frame of this.page.frames()) {
        const found = await frame.locator('main', { hasText: text }).count().catch(() => 0);
        if (found > 0) {
          return frame;
        }
      }
      await this.page.waitForTimeout(50);
    }
    throw new Error(`no panel shows ${text}`);
  }

  /**
   * Look at everything that changed once it stands still, and keep a picture of it.
   * @param {string} name
   * @param {boolean} [leaves] whether the pointer leaves what is looked at
   */
  async picture(name, leaves = true) {
    const path = join(this.pictures, `${name}.png`);
    mkdirSync(dirname(path), { recursive: true });
    if (leaves) {
      await this.page.mouse.move(700, 895);
    }
    let before = Buffer.alloc(0);
    for (let tries = 0; tries < 12; tries++) {
      const now = await this.page.screenshot({ path, animations: 'disabled', caret: 'hide' });
      if (now.equals(before)) {
        return;
      }
      before = now;
      await this.page.waitForTimeout(150);
    }
  }

  /**
   * Look at a panel in High Contrast Light as well, where the dark theme of high contrast is on: contrast is computed.
   * @param {import('playwright-core').Frame} panel
   * @param {string} name of the picture
   */
  async inContrastLight(panel, name) {
    if (this.theme !== 'contrast') {
      return;
    }
    this.wear('Default High Contrast Light');
    await panel.locator('body.vscode-high-contrast-light').waitFor();
    await accessible(panel);
    await this.picture(`${name}-light`);
    this.wear('Default High Contrast');
    await panel.locator('body.vscode-high-contrast:not(.vscode-high-contrast-light)').waitFor();
  }

  /** @param {string} theme */
  wear(theme) {
    const path = join(this.profile.state, 'data', 'Machine', 'settings.json');
    const settings = { ...JSON.parse(readFileSync(path, 'utf8')), 'workbench.colorTheme': theme };
    writeFileSync(path, JSON.stringify(settings, null, 2));
  }

  /** Take notifications and hovers away. */
  async tidy() {
    await this.run('Notifications: Clear All Notifications');
    await this.page.locator('.notification-toast').first().waitFor({ state: 'detached' });
  }
}

/**
 * Have axe look for what people with other senses or means cannot use.
 * @param {import('playwright-core').Frame} frame
 */
export async function accessible(frame) {
  await frame.evaluate(AXE);
  const found = await frame.evaluate(async () => {
    const axe = /** @type {any} */ (globalThis).axe;
    const { violations } = await axe.run('main', { resultTypes: ['violations'], rules: { region: { enabled: false } } });
    return violations.map((/** @type {any} */ { id, nodes }) => [
      id,
      ...nodes.map((/** @type {any} */ node) => `${node.html} ${node.failureSummary}`),
    ]);
  });
  assert.deepEqual(found, [], 'axe has nothing to say');
}

/**
 * A panel loads nothing, and runs and paints what came with it alone.
 * @param {import('playwright-core').Frame} frame
 */
export async function closed(frame) {
  const policy = await frame.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute('content');
  const nonce = /script-src 'nonce-([\w+/=]{24})'/.exec(policy ?? '')?.[1];
  assert.ok(nonce, policy ?? 'there is a policy');
  assert.equal(policy, `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'`);
  assert.equal(await frame.locator('main :is(script, style, link, img, iframe, [style], [onclick])').count(), 0);
}

/**
 * Wait until something is so.
 * @param {import('playwright-core').Page} page
 * @param {() => boolean} is
 * @param {string} what
 */
export async function until(page, is, what) {
  for (let tries = 0; !is() && tries < 100; tries++) {
    await page.waitForTimeout(100);
  }
  assert.ok(is(), what);
}
