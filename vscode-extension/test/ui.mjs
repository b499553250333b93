// @ts-check
// Plays what people do in windows of the real VS Code, with the .vsix installed in an empty profile, in a dark, a light
// and a high-contrast theme: everything in the first, in the others what has colours, unless themes are named. Pictures
// go to out/screenshots; `--pictures` puts those of the README into media/screenshots.
// `node test/ui.mjs [THEME…] [-g PATTERN]`; DSMIGRATE_TEST_PYTHON names a Python that has dsmigrate.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { python, root, start } from './support/profile.mjs';
import { browser } from './support/window.mjs';
import * as beginning from './ui/beginning.mjs';
import * as comparing from './ui/comparing.mjs';
import * as converting from './ui/converting.mjs';
import * as editing from './ui/editing.mjs';
import { Person } from './ui/person.mjs';
import * as upgrading from './ui/upgrading.mjs';
import { prepare } from './ui/workspace.mjs';

/** @type {Record<string, string>} */
const THEMES = { dark: 'Default Dark Modern', light: 'Default Light Modern', contrast: 'Default High Contrast' };
/** The pictures of the README and the walkthrough, which are those of the first theme. */
const SHOWN = ['problems', 'hover', 'comparison', 'conversion'];
const LARGEST = 1.5 * 1024 * 1024;
const SIZE = { width: 1360, height: 860 };

/** In the order in which one person does them. @type {Record<string, (person: Person) => Promise<void>>} */
const SCENES = {
  'a wrong key is underlined and listed once': editing.problems,
  'a key has one hover': editing.hover,
  'a key is completed once': editing.completion,
  'the light bulb mends a key': editing.quickFix,
  'the status bar changes the world size': editing.menu,
  'source control explains a change': comparing.fromSourceControl,
  'a comparison follows the text': comparing.follow,
  'a code of a comparison is explained': comparing.explained,
  'a config is compared with the clipboard': comparing.withClipboard,
  'a script is converted, applied and undone': converting.convert,
  'a conversion is verified in a terminal': converting.verify,
  'a script is converted with its modules': converting.several,
  'a refusal says why': converting.refused,
  'the explorer upgrades a config, which is undone': upgrading.fromExplorer,
  'two configs selected in the explorer are compared': upgrading.twoSelected,
  'the walkthrough is there': beginning.walkthrough,
  'a config begins from a starter': beginning.newConfig,
};
/** What shows colours of its own, and what that needs. */
const COLOURED = new Set([
  ...[editing.problems, editing.hover, editing.menu, comparing.fromSourceControl],
  ...[converting.convert, converting.refused, upgrading.fromExplorer, beginning.walkthrough],
]);

const given = process.argv.slice(2);
const at = given.indexOf('-g');
const wanted = new RegExp(at >= 0 ? (given.splice(at, 2)[1] ?? '') : '', 'i');
const takesPictures = given.includes('--pictures');
const themes = given.filter((name) => !name.startsWith('--'));
const unknown = themes.find((name) => !(name in THEMES));
if (unknown) {
  throw new Error(`no theme ${unknown}; there are ${Object.keys(THEMES).join(', ')}`);
}

if (!existsSync(join(root, 'dsmigrate.vsix'))) {
  spawnSync('npm', ['run', 'package'], { cwd: root, stdio: 'inherit' });
}
/** @type {{ theme: string, scene: string, ms: number, error?: string }[]} */
const results = [];
const chromium = await browser();
try {
  for (const theme of themes.length > 0 ? themes : Object.keys(THEMES)) {
    await play(theme);
  }
} finally {
  await chromium.close();
}
writeFileSync(join(root, 'out', 'ui.json'), JSON.stringify(results, null, 2));
const failed = results.filter(({ error }) => error);
console.log(`\n${results.length - failed.length} of ${results.length} passed`);
if (takesPictures && failed.length === 0) {
  keepPictures();
}
process.exit(failed.length > 0 || results.length === 0 ? 1 : 0);

/** @param {string} theme */
async function play(theme) {
  rmSync(join(root, 'out', 'screenshots', theme), { recursive: true, force: true });
  const profile = await start({
    fixture: 'ui',
    settings: {
      'dsmigrate.server.interpreter': python,
      'workbench.colorTheme': THEMES[theme],
      'workbench.secondarySideBar.defaultVisibility': 'hidden',
      'window.autoDetectColorScheme': false,
      'window.commandCenter': false,
      'files.autoSave': 'afterDelay',
      'files.autoSaveDelay': 100, // or VS Code asks before it closes an editor
      'editor.minimap.enabled': false,
      'remote.autoForwardPorts': false, // how many there are is another matter each time
      'terminal.integrated.gpuAcceleration': 'off', // its text is in the page
      'editor.lightbulb.enabled': 'on',
    },
  });
  const context = await chromium.newContext({ viewport: SIZE, reducedMotion: 'reduce', permissions: ['clipboard-read', 'clipboard-write'] });
  try {
    prepare(profile.workspace);
    const person = new Person(await context.newPage(), profile, theme);
    console.log(`\n${theme}`);
    const whole = themes.length > 0 || theme === Object.keys(THEMES)[0];
    const scenes = Object.entries(SCENES).filter(([name, act]) => wanted.test(name) && (whole || COLOURED.has(act)));
    for (const [scene, act] of scenes) {
      const began = performance.now();
      /** @type {string | undefined} */
      let error;
      try {
        await act(person);
      } catch (reason) {
        error = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
        const picture = join(root, 'out', 'failures', `${theme}-${Date.now()}.png`); // a second try leaves it there
        await person.page.screenshot({ path: picture });
      }
      const ms = Math.round(performance.now() - began);
      results.push({ theme, scene, ms, ...(error ? { error } : {}) });
      console.log(`  ${error ? '✗' : '✓'} ${scene} (${ms} ms)${error ? `\n${error.replace(/^/gm, '      ')}` : ''}`);
      if (error) {
        break; // the next scene begins where this one should have ended
      }
    }
  } finally {
    await context.close();
    await profile.close();
  }
}

function keepPictures() {
  const folder = join(root, 'media', 'screenshots');
  mkdirSync(folder, { recursive: true });
  let size = 0;
  for (const name of SHOWN) {
    const picture = join(folder, `${name}.png`);
    copyFileSync(join(root, 'out', 'screenshots', 'dark', `${name}.png`), picture);
    size += statSync(picture).size;
  }
  if (size > LARGEST) {
    throw new Error(`the pictures have ${(size / 1024).toFixed(0)} KB together, more than ${LARGEST / 1024}`);
  }
  console.log(`media/screenshots: ${SHOWN.length} pictures, ${(size / 1024).toFixed(0)} KB`);
}
