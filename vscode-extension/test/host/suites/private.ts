import { strict as assert } from 'node:assert';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import * as vscode from 'vscode';

import { isOffline } from '../../../src/server/environment';
import { closeAll, extension, pause, problem, session, show, until } from '../support/editor';

const TEXT = '{"train_batch_size": 8, "zero_optimizatoin": {"stage": 2}}\n';

describe('without an interpreter that has dsmigrate', () => {
  const settings = (): vscode.WorkspaceConfiguration => vscode.workspace.getConfiguration('dsmigrate');
  const choose = (python: string | undefined): Thenable<void> =>
    settings().update('server.interpreter', python, vscode.ConfigurationTarget.Global);

  before(() => rmSync(process.env['UV_CALLS'] ?? '', { force: true }));
  after(closeAll);

  it('a private environment is offered, and made from the package in the extension', async function () {
    this.timeout(150_000);
    const { document } = await show('ds_config.json', TEXT);
    const running = await session();
    await until(() => running.problem?.isQuestion, 'the question');
    await until(() => running.state === 'running', () => `the server (${running.state}: ${running.problem?.message})`, 145_000); // the window presses the button
    await problem(document.uri, 'DS101');
    assert.equal(running.server?.origin, 'private');
    assert.equal(running.server?.version, (extension().packageJSON as { version: string }).version);
    assert(running.server?.args.includes('-I'));
    assert.match(running.server?.command ?? '', /globalStorage.*dsmigrate\.dsmigrate.*server-/);
  });

  it('its packages are complete and fit together', async () => {
    const python = (await session()).server?.command ?? '';
    execFileSync(python, ['-I', '-c', 'import dsmigrate, libcst, deepdiff, rich, pygls, hjson']);
    assert.match(readFileSync(process.env['UV_CALLS'] ?? '', 'utf8'), /^\["venv".*\]\n$/, 'uv was tried first, and pip helped out');
    const folder = join(python, '..', '..', '..');
    assert.deepEqual(readdirSync(folder).filter((name) => name.endsWith('.lock')), []);
  });

  it('the next start takes it without a question', async () => {
    const running = await session();
    await running.restart();
    assert.equal(running.state, 'running');
    assert.equal(running.server?.origin, 'private');
  });

  it('a setting that names no Python is said, with what can be done', async () => {
    await choose('/nowhere/python');
    const running = await session();
    await until(() => running.state === 'failed', 'the problem');
    assert.match(running.problem?.message ?? '', /\/nowhere\/python.*no Python/);
    assert.deepEqual(running.problem?.remedies, ['choose', 'settings', 'log']);
  });

  it('a Python without dsmigrate is said', async () => {
    const bare = execFileSync('python3', ['-c', 'import sys; print(sys._base_executable)'], { encoding: 'utf8' }).trim();
    await choose(bare);
    const running = await session();
    await until(() => running.problem?.message.includes('has no dsmigrate'), () => `the problem (${running.problem?.message})`);
    await choose(undefined);
    await until(() => running.state === 'running', 'the server');
  });

  it('verifying asks for a Python that has torch, which the environment has not', async () => {
    const { document } = await show('train.py', 'import torch\n');
    const done = vscode.commands.executeCommand('dsmigrate.verifyConversion', document.uri);
    await pause(1500);
    assert.equal(vscode.window.terminals.length, 0, 'nothing is typed before');
    await vscode.commands.executeCommand('workbench.action.acceptSelectedQuickOpenItem');
    await done;
    await until(() => vscode.window.terminals.some(({ name }) => name === 'DeepSpeed'), 'the terminal');
    vscode.window.terminals.forEach((terminal) => terminal.dispose());
  });

  it('a machine without a connection is told from other failures', () => {
    const pip = "Retrying after connection broken by 'NewConnectionError(…: Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')'\nERROR: Could not find a version that satisfies the requirement attrs==26.1.0 (from versions: none)";
    const uv = 'error: Failed to fetch: `https://pypi.org/simple/attrs/`\n  Caused by: dns error: failed to lookup address information: Temporary failure in name resolution';
    assert.deepEqual([pip, uv].map(isOffline), [true, true]);
    assert.equal(isOffline('ERROR: No matching distribution found for libcst==1.9.0'), false);
  });

  it('it is removed on demand, and the question comes again', async () => {
    const running = await session();
    const python = running.server?.command ?? '';
    await vscode.commands.executeCommand('dsmigrate.server.removeEnvironment');
    assert.equal(existsSync(python), false);
    await running.restart();
    assert(running.problem?.isQuestion);
    assert.deepEqual(running.problem.remedies, ['create', 'choose']);
  });
});
