import { strict as assert } from 'node:assert';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import * as vscode from 'vscode';

import { closeAll, problem, root, session, show, until } from '../support/editor';

interface PythonForTests {
  choose(path: string): void;
}

const PYTHON = process.env['DSMIGRATE_TEST_PYTHON'] ?? '';

describe('the interpreter chosen in the Python extension', () => {
  after(closeAll);

  it('runs the server when it has dsmigrate', async () => {
    const { document } = await show('ds_config.json', '{"train_batch_size": 8, "zero_optimizatoin": {"stage": 2}}\n');
    await problem(document.uri, 'DS101');
    const { server } = await session();
    assert.equal(server?.origin, 'python');
    assert.equal(server?.command, PYTHON);
  });

  it('says which DeepSpeed configs are for, and another choice another one, without being started', async () => {
    await vscode.workspace.getConfiguration('dsmigrate').update('server.interpreter', PYTHON, vscode.ConfigurationTarget.Global);
    const running = await session();
    await until(() => running.state === 'running' && running.server?.origin === 'setting', 'the server of the setting');
    const chosen = environment('0.14.5');
    await choose(chosen.python);
    await until(async () => (await version()) === '0.14.5', 'the release of the chosen interpreter');
    await choose(environment('0.16.2').python);
    await until(async () => (await version()) === '0.16.2', 'the release of the other interpreter');
  });

  it('is passed over when it has no dsmigrate', async () => {
    await choose(PYTHON);
    await vscode.workspace.getConfiguration('dsmigrate').update('server.interpreter', undefined, vscode.ConfigurationTarget.Global);
    const running = await session();
    await until(() => running.state === 'running' && running.server?.origin === 'python', 'the server of the choice');
    await choose(environment('0.15.0', '#!/bin/sh\necho \'{"python": [3, 11, 2], "dsmigrate": null}\'\n').python);
    await until(() => running.problem?.isQuestion, 'the offer of a private environment');
    await choose(PYTHON);
    await until(() => running.state === 'running' && running.server?.origin === 'python', 'the server of the choice');
  });

  async function choose(path: string): Promise<void> {
    const api = await vscode.extensions.getExtension<PythonForTests>('ms-python.python')?.activate();
    api?.choose(path);
  }

  async function version(): Promise<string | undefined> {
    const uri = vscode.Uri.joinPath(root(), 'ds_config.json').toString();
    const status = await (await session()).execute<{ deepspeedVersion: string } | null>('dsmigrate.status', [uri]);
    return status?.deepspeedVersion;
  }
});

/** Make what looks like a virtual environment with a release of DeepSpeed; its interpreter is `script`. */
function environment(release: string, script = '#!/bin/sh\nexit 3\n'): { python: string } {
  const folder = vscode.Uri.joinPath(root(), `env-${release}`).fsPath;
  const info = `${folder}/lib/python3.11/site-packages/deepspeed-${release}.dist-info`;
  mkdirSync(info, { recursive: true });
  mkdirSync(`${folder}/bin`, { recursive: true });
  writeFileSync(`${info}/METADATA`, `Metadata-Version: 2.1\nName: deepspeed\nVersion: ${release}\n`);
  writeFileSync(`${folder}/pyvenv.cfg`, 'home = /usr/bin\n');
  const python = `${folder}/bin/python`;
  writeFileSync(python, script);
  chmodSync(python, 0o755);
  return { python };
}
