import { strict as assert } from 'node:assert';
import * as vscode from 'vscode';

import type { Choices, Starter, Upgrade } from '../../../src/features/answers';
import { upgradeReport } from '../../../src/features/upgrade/render';
import { closeAll, extension, session, show, until } from '../support/editor';
import { diffTabs, panelTabs } from '../support/tabs';

interface Manifest {
  contributes: { commands: { command: string; title: string }[]; menus: Record<string, { command?: string }[]> };
}

const CONFIG = '{\n  "train_batch_size": 8,\n  "zero_optimization": {"«stage": 3}\n}\n';

describe('features', () => {
  before(async () => {
    await (await session()).start();
  });
  afterEach(closeAll);

  it('are all there under the names of the manifest', async () => {
    const { contributes } = extension().packageJSON as Manifest;
    const registered = new Set(await vscode.commands.getCommands(true));
    const named = contributes.commands.map(({ command }) => command);
    assert.deepEqual(named.filter((command) => !registered.has(command)), []);
    const inMenus = Object.values(contributes.menus).flatMap((items) => items.flatMap(({ command }) => command ?? []));
    assert.deepEqual(inMenus.filter((command) => !named.includes(command)), []);
  });

  it('explain the key at the cursor on a page', async () => {
    await show('explain/ds_config.json', CONFIG);
    await vscode.commands.executeCommand('dsmigrate.explainHere');
    const [tab] = await until(() => panelTabs('markdown.preview').length > 0 && panelTabs('markdown.preview'), 'the page');
    assert.match(tab?.label ?? '', /zero_optimization\.stage/);
  });

  it('lead from a hover to the page of its key', async () => {
    const { document, selection } = await show('hover/ds_config.json', CONFIG);
    const [hover] = await vscode.commands.executeCommand<vscode.Hover[]>('vscode.executeHoverProvider', document.uri, selection.active);
    const [content] = hover?.contents ?? [];
    assert(content instanceof vscode.MarkdownString);
    assert.deepEqual(content.isTrusted, { enabledCommands: ['dsmigrate.explain'] });
    const link = /\[More\]\(command:dsmigrate\.explain\?([^)]+)\)/.exec(content.value)?.[1] ?? '';
    const given = JSON.parse(decodeURIComponent(link)) as string[];
    assert.deepEqual(given, ['zero_optimization.stage', document.uri.toString()]);
    await vscode.commands.executeCommand('dsmigrate.explain', ...given);
    const [tab] = await until(() => panelTabs('markdown.preview').length > 0 && panelTabs('markdown.preview'), 'the page');
    assert.match(tab?.label ?? '', /zero_optimization\.stage/);
  });

  it('take a config to the newest release', async () => {
    const { document } = await show('upgrade/ds_config.json', CONFIG);
    const { releases } = await (await session()).execute<Choices>('dsmigrate.choices');
    await (await session()).execute('dsmigrate.set', ['deepspeedVersion', '0.16.4']);
    try {
      await vscode.commands.executeCommand('dsmigrate.upgradeConfig');
    } finally {
      await (await session()).execute('dsmigrate.set', ['deepspeedVersion', null]);
    }
    const [tab] = await until(() => diffTabs().length > 0 && diffTabs(), 'the text diff');
    assert.equal(tab?.original.toString(), document.uri.toString());
    assert.match((await vscode.workspace.openTextDocument(tab.modified)).getText(), /"gradient_clipping": 0/);
    await until(() => panelTabs('dsmigrate.upgrade').length > 0, 'the panel');
    const upgrade = await (await session()).execute<Upgrade>('dsmigrate.upgrade', [document.uri.toString(), '0.16.4']);
    const { text } = upgradeReport(upgrade, 'ds_config.json', false);
    assert(text.includes(`DeepSpeed 0.16.4 → ${releases[0]}`));
    assert.equal([...text.matchAll(/<li>/g)].length, upgrade.done.length + upgrade.left.length);
  });

  it('begin a config from each starter without a problem of our own', async () => {
    const starters = await (await session()).execute<Starter[]>('dsmigrate.starters', ['']);
    assert(starters.length > 3);
    for (const { snippet, label } of starters) {
      const document = await vscode.workspace.openTextDocument({ language: 'json' });
      const editor = await vscode.window.showTextDocument(document);
      await editor.insertSnippet(new vscode.SnippetString(snippet));
      assert.doesNotThrow(() => JSON.parse(document.getText()) as unknown, label);
      await vscode.commands.executeCommand('workbench.action.revertAndCloseActiveEditor');
    }
  });
});
