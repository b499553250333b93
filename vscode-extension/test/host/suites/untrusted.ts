import { strict as assert } from 'node:assert';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import * as vscode from 'vscode';

import { closeAll, problem, root, session, show, until } from '../support/editor';
import { diffTabs, panelTabs } from '../support/tabs';

const inRoot = (path: string): string => vscode.Uri.joinPath(root(), path).fsPath;
/** The interpreter that the settings of the folder name: it leaves a mark when somebody starts it. */
const PROGRAM = '#!/bin/sh\ntouch "$(dirname "$0")/started"\nexec "$DSMIGRATE_TEST_PYTHON" "$@"\n';
const started = (): boolean => existsSync(inRoot('.venv/bin/started'));

describe('a folder that is not trusted', () => {
  before(() => {
    mkdirSync(inRoot('.venv/bin'), { recursive: true });
    writeFileSync(inRoot('.venv/bin/python'), PROGRAM);
    chmodSync(inRoot('.venv/bin/python'), 0o755);
  });
  after(closeAll);

  it('does not choose the interpreter: that of the user settings is taken', async () => {
    assert.equal(vscode.workspace.isTrusted, false);
    const { document } = await show('first/ds_config.json', '{"train_batch_size": 8, "zero_optimizatoin": {"stage": 2}}\n');
    await problem(document.uri, 'DS101');
    const { server } = await session();
    assert.equal(server?.origin, 'setting');
    assert.equal(server?.command, process.env['DSMIGRATE_TEST_PYTHON']);
    assert.equal(started(), false);
  });

  it('has nothing imported from it', () => {
    assert.equal(existsSync(inRoot('json.py.imported')), false);
  });

  it('has its harmless settings', async () => {
    const answer = await (await session()).execute<{ worldSize: number }>('dsmigrate.status', [
      vscode.Uri.joinPath(root(), 'first/ds_config.json').toString(),
    ]);
    assert.equal(answer.worldSize, 3);
  });

  it('has no git run in it, which is said with a way out', async () => {
    const uri = vscode.Uri.joinPath(root(), 'first/ds_config.json');
    await vscode.commands.executeCommand('dsmigrate.compareWithHead', uri); // the window of the test presses the button
    assert.deepEqual([diffTabs(), panelTabs('dsmigrate.comparison')], [[], []]);
    assert.match(vscode.window.tabGroups.activeTabGroup.activeTab?.label ?? '', /Trust/);
  });

  it('is compared with a text, which runs nothing', async () => {
    await vscode.env.clipboard.writeText('{"train_batch_size": 4}');
    await vscode.commands.executeCommand('dsmigrate.compareWithClipboard', vscode.Uri.joinPath(root(), 'first/ds_config.json'));
    await until(() => panelTabs('dsmigrate.comparison').length > 0, 'the panel');
    await closeAll();
  });

  it('has none of its scripts trained', async () => {
    const { document } = await show('train.py', 'import torch\n');
    await vscode.commands.executeCommand('dsmigrate.verifyConversion', document.uri); // as above
    assert.deepEqual(vscode.window.terminals, []);
    await closeAll();
  });

  it('chooses the interpreter once it is trusted', async () => {
    const before = (await session()).server?.command;
    await vscode.commands.executeCommand('workbench.trust.manage'); // as above
    await until(() => vscode.workspace.isTrusted, 'trust');
    await until(async () => {
      const { state, server } = await session();
      return state === 'running' && server?.command !== before;
    }, 'another server');
    assert.equal((await session()).server?.command, inRoot('.venv/bin/python'));
    assert.equal(started(), true);
    assert.equal(existsSync(inRoot('json.py.imported')), false);
  });
});
