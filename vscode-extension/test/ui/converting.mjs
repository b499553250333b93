// @ts-check
import { strict as assert } from 'node:assert';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { accessible, closed, until } from './person.mjs';
import { REFUSED, SCRIPT, SEVERAL } from './workspace.mjs';

/** @param {import('./person.mjs').Person} person */
export async function convert(person) {
  const { page, profile } = person;
  const [script, config] = [join(profile.workspace, SCRIPT), join(profile.workspace, dirname(SCRIPT), 'ds_config.json')];
  const before = readFileSync(script, 'utf8');
  await person.open(SCRIPT);
  const wrap = before.slice(0, before.indexOf('DDP(')).split('\n').length;
  await page.keyboard.press('Control+G');
  await person.fill(`:${wrap}`);
  await page.keyboard.press('Enter');
  await page.locator('.codelens-decoration').getByText('Convert to DeepSpeed').click();
  const panel = await person.panel('Nothing is written yet');
  await closed(panel);
  await accessible(panel);
  assert.equal(readFileSync(script, 'utf8'), before);
  assert.ok(!existsSync(config));
  await person.picture('conversion');
  await panel.locator('#converted').scrollIntoViewIfNeeded();
  await person.picture('conversion-reasons');
  await person.inContrastLight(panel, 'conversion');
  await panel.getByRole('button', { name: 'Choose Changes…' }).click();
  const preview = page.locator('.bulk-edit-panel');
  await preview.locator('.monaco-list-row').first().waitFor();
  await person.picture('refactor-preview');
  await preview.locator('.monaco-button', { hasText: 'Discard' }).click();
  await preview.waitFor({ state: 'hidden' });
  assert.equal(readFileSync(script, 'utf8'), before);
  await panel.locator('.verdict', { hasText: 'Nothing is written yet' }).waitFor();
  await panel.getByRole('button', { name: 'Apply' }).click();
  await panel.locator('.verdict', { hasText: 'Applied' }).waitFor();
  assert.match(readFileSync(config, 'utf8'), /train_micro_batch_size_per_gpu/, 'the config is there at once');
  await until(page, () => readFileSync(script, 'utf8').includes('deepspeed.initialize('), 'the script is saved');
  const [old, now] = [before, readFileSync(script, 'utf8')].map((text) => text.split('\n'));
  const first = now.findIndex((line, number) => line !== old[number]) + 1;
  const cursor = (await page.locator('#status\\.editor\\.selection').textContent()) ?? '';
  assert.ok(Math.abs(Number(/Ln (\d+)/.exec(cursor)?.[1]) - first) <= 1, `${cursor} is the first change, line ${first}`);
  await person.picture('conversion-applied');
  await panel.getByRole('button', { name: 'Undo' }).click();
  await panel.locator('.verdict', { hasText: 'Nothing is written yet' }).waitFor();
  await until(page, () => !existsSync(config), 'one Undo takes the config back, too');
  await until(page, () => readFileSync(script, 'utf8') === before, 'and all of the script');
}

/** Modules change with their script, and with one Undo come back. @param {import('./person.mjs').Person} person */
export async function several(person) {
  const { page, profile } = person;
  const folder = join(profile.workspace, dirname(SEVERAL));
  const files = ['main_pretrain.py', 'engine_pretrain.py', join('util', 'misc.py')].map((name) => join(folder, name));
  const before = files.map((file) => readFileSync(file, 'utf8'));
  const now = () => files.map((file) => readFileSync(file, 'utf8'));
  await person.open(SEVERAL);
  await person.run('DeepSpeed: Convert This Script to DeepSpeed');
  const panel = await person.panel('Nothing is written yet');
  await accessible(panel);
  await person.picture('conversion-of-several');
  await panel.getByRole('button', { name: 'mae/engine_pretrain.py' }).click();
  await page.locator('.tab', { hasText: 'engine_pretrain.py (script ↔ converted)' }).waitFor();
  await person.picture('conversion-of-a-module');
  assert.deepEqual(now(), before);
  await panel.getByRole('button', { name: 'Apply' }).click();
  await panel.locator('.verdict', { hasText: 'Applied' }).waitFor();
  await until(page, () => now().every((text, index) => text !== before[index]), 'all three are saved');
  await panel.getByRole('button', { name: 'Undo' }).click();
  const asked = page.locator('.monaco-dialog-box').getByRole('button', { name: /Undo in \d+ Files/ });
  await Promise.race([
    asked.click().catch(() => undefined),
    panel.locator('.verdict', { hasText: 'Nothing is written yet' }).waitFor(),
  ]);
  await panel.locator('.verdict', { hasText: 'Nothing is written yet' }).waitFor();
  await until(page, () => now().every((text, index) => text === before[index]), 'and all three come back');
  await until(page, () => !existsSync(join(folder, 'ds_config.json')), 'without the config');
}

/** An applied conversion is trained beside the script as it was, once the person presses Enter. @param {import('./person.mjs').Person} person */
export async function verify(person) {
  const { page, profile } = person;
  const script = join(profile.workspace, SCRIPT);
  const [before, kept] = [readFileSync(script, 'utf8'), join(dirname(script), 'train_before.py')];
  const panel = await person.panel('Nothing is written yet');
  await panel.getByRole('button', { name: 'Apply' }).click();
  await panel.locator('.verdict', { hasText: 'Applied' }).waitFor();
  await panel.locator('#verify').scrollIntoViewIfNeeded();
  await panel.locator('button[data-do="verify"]').click();
  await person.row('Keep it as train_before.py').click();
  const rows = page.locator('.terminal-wrapper .xterm-rows').first();
  const typed = async () => (await rows.innerText()).replace(/\s+/g, ''); // a line ends anywhere
  for (const end = Date.now() + 60_000; Date.now() < end && !(await typed()).includes('verify'); ) {
    await page.waitForTimeout(200);
  }
  assert.match(await typed(), /-mdsmigrateverifytrain_before\.pytrain\.py$/);
  assert.equal(readFileSync(kept, 'utf8'), before);
  await person.picture('verification');
  await person.run('Terminal: Kill All Terminals');
  await page.locator('.terminal-wrapper').first().waitFor({ state: 'hidden' });
  rmSync(kept);
  await panel.getByRole('button', { name: 'Undo' }).click();
  await panel.locator('.verdict', { hasText: 'Nothing is written yet' }).waitFor();
  await until(page, () => readFileSync(script, 'utf8') === before, 'it is all taken back');
}

/** @param {import('./person.mjs').Person} person */
export async function refused(person) {
  const { page } = person;
  await person.open(REFUSED);
  await page.locator('.codelens-decoration').getByText('Convert to DeepSpeed').waitFor();
  await person.run('DeepSpeed: Convert This Script to DeepSpeed');
  const panel = await person.panel('The script stays as it is');
  await accessible(panel);
  assert.equal(await panel.getByRole('button', { name: 'Apply' }).count(), 0);
  await person.picture('refusal');
  await panel.locator('button.line').first().click();
  await page.locator('.monaco-editor.focused').first().waitFor();
}
