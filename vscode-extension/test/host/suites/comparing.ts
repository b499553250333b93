import { strict as assert } from 'node:assert';
import { execFileSync } from 'node:child_process';
import * as vscode from 'vscode';

import type { Compared } from '../../../src/features/answers';
import { size } from '../../../src/features/compare/memory';
import { comparison } from '../../../src/features/compare/render';
import { closeAll, replace, root, session, show, until, write } from '../support/editor';
import { diffTabs, panelTabs } from '../support/tabs';

const OLD = '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}\n';
const NEW = '{"train_batch_size": 8, "zero_optimization": {"stage": 3}}\n';

const git = (...args: string[]): string =>
  execFileSync('git', ['-C', root().fsPath, '-c', 'user.name=Test', '-c', 'user.email=test@example.org', ...args], {
    encoding: 'utf8',
  });

const compared = async (old: object | string, now: vscode.Uri): Promise<Compared> =>
  (await session()).execute<Compared>('dsmigrate.diff', [old, now.toString()]);

describe('comparing', () => {
  before(async () => {
    await (await session()).start();
    git('init', '-q');
    await write('compare/ds_config.json', OLD);
    git('add', '.');
    git('commit', '-q', '-m', 'one');
  });
  afterEach(closeAll);

  it('with HEAD shows the texts, and what the change means beside them', async () => {
    const { document } = await show('compare/ds_config.json', NEW);
    await vscode.commands.executeCommand('dsmigrate.compareWithHead');
    const [tab] = await until(() => diffTabs().length > 0 && diffTabs(), 'the text diff');
    assert.equal(tab?.modified.toString(), document.uri.toString());
    assert.equal((await vscode.workspace.openTextDocument(tab.original)).getText(), OLD);
    const [panel] = await until(() => panelTabs('dsmigrate.comparison').length > 0 && panelTabs('dsmigrate.comparison'));
    assert.equal(panel?.label, 'ds_config.json: What Changes');
    await vscode.commands.executeCommand('dsmigrate.compareWithHead', document.uri);
    assert.equal(panelTabs('dsmigrate.comparison').length, 1, 'it is shown once');
  });

  it('takes a change of source control, and a lens of the server', async () => {
    const { document } = await show('compare/ds_config.json', NEW);
    await vscode.commands.executeCommand('dsmigrate.compareWithHead', { resourceUri: document.uri });
    await until(() => panelTabs('dsmigrate.comparison').length > 0, 'the panel');
    await closeAll();
    await vscode.commands.executeCommand('dsmigrate.diffWithHead', document.uri.toString());
    await until(() => panelTabs('dsmigrate.comparison').length > 0, 'the panel of the lens');
  });

  it('with another file takes the first of two that are selected for the old one', async () => {
    const old = await write('compare/old.json', OLD);
    const now = await write('compare/new.json', NEW);
    await vscode.commands.executeCommand('dsmigrate.compareWithFile', now, [old, now]);
    const [tab] = await until(() => diffTabs().length > 0 && diffTabs(), 'the text diff');
    assert.deepEqual([tab?.original.toString(), tab?.modified.toString()], [old.toString(), now.toString()]);
  });

  it('says what the edited text does, not what the disk has', async () => {
    const { document } = await show('compare/edited.json', OLD);
    await replace(document, '"stage": 2', '"stage": 3');
    const { report } = await compared({ name: 'before', text: OLD }, document.uri);
    assert(report.changes.some(({ code }) => code === 'DF403'));
  });

  it('escapes whatever a config holds', async () => {
    const evil = '{"<img src=x onerror=alert(1)>": "</main><script>alert(1)</script>", "train_batch_size": 8}\n';
    const uri = await write('compare/evil.json', evil);
    const answer = await compared({ name: '<b>clipboard</b>', text: OLD }, uri);
    const { text } = comparison(answer, '<i>evil</i>', '<b>clipboard</b>', 'working copy');
    assert.doesNotMatch(text, /<(img|script|b|i)[ >](?!class="swatch)/);
    assert.match(text, /&lt;img src=x onerror=alert\(1\)&gt;/);
  });

  it('has every change in its page, each with its place, and no more than the server says', async () => {
    const uri = await write('compare/ds_config.json', NEW);
    const answer = await compared({ name: 'HEAD', text: OLD }, uri);
    const { text } = comparison(answer, 'ds_config.json', 'HEAD', 'working copy');
    const codes = [...text.matchAll(/data-word="(\w+)"/g)].map(([, code]) => code);
    assert.deepEqual(codes.toSorted(), answer.report.changes.map(({ code }) => code).toSorted());
    assert.match(text, /data-do="go" data-side="new" data-line="1"/);
    assert.doesNotMatch(text, /<section class="memory" /, 'no picture without figures');
    assert.match(text, /plain DeepSpeed/);
  });

  it('gives sizes in the units of the server', () => {
    assert.deepEqual([0, 1023, 1024, 1.5 * 2 ** 30, 3 * 2 ** 40].map(size), ['0 B', '1023 B', '1.0 KiB', '1.5 GiB', '3.0 TiB']);
  });
});
