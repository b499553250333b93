import { strict as assert } from 'node:assert';
import * as vscode from 'vscode';

import { closeAll, codeOf, extension, pause, problem, problems, session, show, until } from '../support/editor';

interface Property {
  scope?: string;
  type?: string | string[];
  description?: string;
  markdownDescription?: string;
  default?: unknown;
}

interface Status {
  deepspeedVersion: string;
  consumer: string;
  worldSize: number | null;
}

describe('settings', () => {
  const changed = new Set<string>();
  const set = async (name: string, value: unknown): Promise<void> => {
    changed.add(name);
    await vscode.workspace.getConfiguration('dsmigrate').update(name, value, vscode.ConfigurationTarget.Workspace);
  };

  before(async () => {
    await (await session()).start();
  });
  afterEach(async () => {
    for (const name of changed) {
      await set(name, undefined);
    }
    changed.clear();
    await closeAll();
  });

  it('each has a scope, a description and a default', () => {
    const { configuration } = (extension().packageJSON as { contributes: { configuration: { properties: Record<string, Property> }[] } }).contributes;
    const all = configuration.flatMap(({ properties }) => Object.entries(properties));
    assert(all.length > 20);
    for (const [name, property] of all) {
      assert(property.scope, `${name} has a scope`);
      assert((property.markdownDescription ?? property.description ?? '').length > 10, `${name} has a description`);
      assert(!(property.markdownDescription ?? '').startsWith('%'), `${name} has a text for its description`);
      assert('default' in property, `${name} has a default`);
      const isShown = typeof property.type === 'string' || (property.type?.length === 2 && !property.type.includes('string'));
      assert(isShown, `${name} can be edited on the page of settings`);
    }
  });

  it('release, reader and number of processes reach the server, and go back when they are taken away', async () => {
    const { document } = await show('set/ds_config.json', '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}\n');
    const before = await until(() => status(document), 'a status');
    await set('deepspeedVersion', '0.14.0');
    await set('consumer', 'accelerate');
    await set('worldSize', 4);
    await until(async () => {
      const now = await status(document);
      return now?.deepspeedVersion === '0.14.0' && now.consumer === 'accelerate' && now.worldSize === 4;
    }, 'the settings');
    await (await session()).restart(); // a new server is told at its start
    await set('deepspeedVersion', undefined);
    await set('consumer', undefined);
    await set('worldSize', undefined);
    await until(async () => {
      const now = await status(document);
      return now?.deepspeedVersion === before.deepspeedVersion && now.worldSize === before.worldSize;
    }, 'the former state');
  });

  it('a rule that is ignored is silent, at once', async () => {
    const { document } = await show('ignore/ds_config.json', '{"train_batch_size": 8, "zero_optimizatoin": {"stage": 2}}\n');
    await problem(document.uri, 'DS101');
    await set('ignore', ['DS1']);
    await until(() => problems(document.uri).every((item) => codeOf(item) !== 'DS101'), 'silence');
    await set('ignore', undefined);
    await problem(document.uri, 'DS101');
  });

  it('a file that is named as a config is one, whatever it is called and holds', async () => {
    const { document } = await show('include/engine.json', '{"gradient_cliping": 1.0}\n');
    await pause(300);
    assert.deepEqual(problems(document.uri), []);
    await set('include', ['engine.json']);
    await problem(document.uri, 'DS101');
  });

  it('turning everything off leaves nothing behind', async () => {
    const { document } = await show('off/ds_config.json', '{"train_batch_size": 8, "zero_optimizatoin": {"stage": 2}}\n');
    await problem(document.uri, 'DS101');
    await set('enable', false);
    await until(() => problems(document.uri).length === 0, 'silence');
    const hovers = await vscode.commands.executeCommand<vscode.Hover[]>('vscode.executeHoverProvider', document.uri, new vscode.Position(0, 4));
    assert.deepEqual(hovers, []);
  });

  it('another level of the log starts the server again', async () => {
    const running = await session();
    await running.start();
    await set('server.logLevel', 'info');
    await until(() => running.state === 'running' && running.server?.args.includes('info'), 'another server');
  });

  async function status(document: vscode.TextDocument): Promise<Status | null> {
    return (await session()).execute<Status | null>('dsmigrate.status', [document.uri.toString()]);
  }
});
