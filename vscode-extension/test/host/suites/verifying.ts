import { strict as assert } from 'node:assert';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as vscode from 'vscode';

import { commandLine, type Family, familyOf, isTypable } from '../../../src/features/quote';
import { wordsFor } from '../../../src/features/verify/verifying';
import { serverOf } from '../../../src/server/server';
import { closeAll, pause, root, session, show, until } from '../support/editor';

const ODD = ['a b', "it's", '$(touch x)', '`id`', '"q"', 'a\\', '\\', '', '!1', '*', '~', '%PATH%', 'a;b', 'ü', '’;id', '-a,b', '=', '#'];

describe('verifying', () => {
  after(async () => {
    vscode.window.terminals.forEach((terminal) => terminal.dispose());
    await vscode.workspace.getConfiguration('dsmigrate').update('interpreter', undefined, vscode.ConfigurationTarget.Workspace);
    await closeAll();
  });

  for (const shell of ['sh', 'bash', 'dash', 'zsh', 'fish']) {
    it(`writes words as ${shell} takes them`, function () {
      try {
        execFileSync(shell, ['-c', 'true']);
      } catch {
        this.skip();
      }
      const line = commandLine([process.execPath, '-p', 'JSON.stringify(process.argv.slice(1))', '--', ...ODD], familyOf(shell) ?? 'posix');
      assert.deepEqual(JSON.parse(execFileSync(shell, ['-c', line], { encoding: 'utf8' })), ODD);
    });
  }

  it('writes words as shells of Windows take them', () => {
    const written = (family: Family, ...words: string[]): string => commandLine(words, family);
    assert.equal(written('powershell', 'C:\\a b\\python.exe', '-m', 'it’s', "'", '0,1', '-a.b'), "& 'C:\\a b\\python.exe' -m 'it’’s' '''' '0,1' '-a.b'");
    assert.equal(written('powershell', 'python', '--steps', '20', 'train.py'), 'python --steps 20 train.py');
    assert.equal(written('cmd', 'C:\\a b\\', '%PATH%', 'a&b', '^'), '"C:\\a b\\\\" ""^%"PATH"^%"" "a&b" "^"');
  });

  it('knows shells by their programs', () => {
    const named = ['/usr/bin/bash', '/bin/zsh', 'C:\\Windows\\System32\\cmd.exe', 'C:\\Program Files\\PowerShell\\7\\pwsh.exe', 'fish', '/usr/bin/nu'];
    assert.deepEqual(named.map(familyOf), ['posix', 'posix', 'cmd', 'powershell', 'fish', undefined]);
  });

  it('types nothing that a terminal takes for keys', () => {
    assert.deepEqual(['train.py', 'a\u0003.py', 'a\n.py', 'a\u009b.py'].map(isTypable), [true, false, false, false]);
    assert.throws(() => commandLine(['a\rb'], 'posix'), /control characters/);
  });

  it('names scripts from the folder of the original, and the Python that has torch', () => {
    const own = serverOf('/py', '0.1.0', 'private', 'info');
    assert.deepEqual(wordsFor(own, ['/w/a/train.py']), ['/py', '-I', '-m', 'dsmigrate', 'verify', 'train.py']);
    const set = serverOf('/py', '0.1.0', 'setting', 'info');
    const words = ['/py', '-m', 'dsmigrate', 'verify', '--python', '/torch/py', './-x.py', '../out/-x.py'];
    assert.deepEqual(wordsFor(set, ['/w/a/-x.py', '/w/out/-x.py'], '/torch/py'), words);
    assert.equal(wordsFor(set, ['/w/a/train.py'], '/py').includes('--python'), false);
  });

  it('types the command into a terminal, saves the script, and starts nothing before Enter', async () => {
    const folder = join(root().fsPath, "it's $(touch gone)");
    const python = join(folder, 'python');
    mkdirSync(folder, { recursive: true });
    writeFileSync(python, '#!/bin/sh\necho "$1" > "$(dirname "$0")/asked"\necho "[null, null]"\n');
    chmodSync(python, 0o755);
    await vscode.workspace.getConfiguration('dsmigrate').update('interpreter', "${workspaceFolder}/it's $(touch gone)/python", vscode.ConfigurationTarget.Workspace);
    const { document } = await show("it's a script.py", 'import torch\n');
    const edit = new vscode.WorkspaceEdit();
    edit.insert(document.uri, new vscode.Position(1, 0), 'x = 1\n');
    assert(await vscode.workspace.applyEdit(edit));
    await vscode.commands.executeCommand('dsmigrate.verifyConversion');
    assert.equal(document.isDirty, false);
    assert.match(readFileSync(document.uri.fsPath, 'utf8'), /x = 1/);
    const terminal = await until(() => vscode.window.terminals.find(({ name }) => name === 'DeepSpeed'), 'the terminal');
    await terminal.processId;
    await pause(1000);
    assert.equal(existsSync(join(folder, 'asked')), false);
    terminal.sendText('');
    await until(() => existsSync(join(folder, 'asked')), 'the Python that is set');
    assert.equal(readFileSync(join(folder, 'asked'), 'utf8'), '-c\n');
    assert.equal(existsSync(join(root().fsPath, 'gone')), false);
  });

  it('tells what is no script', async () => {
    await closeAll();
    const count = vscode.window.terminals.length;
    await show('verify/package.json', '{"name": "x"}\n');
    await vscode.commands.executeCommand('dsmigrate.verifyConversion');
    assert.equal(vscode.window.terminals.length, count);
    assert((await session()).state === 'running');
  });
});
