import * as vscode from 'vscode';

import type { Choices, Status } from '../answers';
import { nameOf, type Tools, uriOf } from '../tools';

/** The settings that the menu changes. */
type Setting = 'deepspeedVersion' | 'consumer' | 'worldSize' | 'parameters' | 'gpuMemory';

interface Row extends vscode.QuickPickItem {
  run?: () => Promise<unknown>;
}

/** The menu behind the status bar item. */
export async function choose(tools: Tools, given?: unknown): Promise<void> {
  const uri = given === undefined ? (tools.shown ?? uriOf(given)) : uriOf(given);
  const status = uri && (await tools.session.execute<Status | null>('dsmigrate.status', [uri.toString()]));
  if (!uri || !status) {
    void vscode.window.showInformationMessage(vscode.l10n.t('Open a DeepSpeed config first.'));
    return;
  }
  const command = (label: string, name: string): Row => ({
    label,
    run: async () => vscode.commands.executeCommand(name, uri),
  });
  const rows: Row[] = [
    ...settings(tools, uri, status),
    { label: '', kind: vscode.QuickPickItemKind.Separator },
    command(vscode.l10n.t('$(git-compare) Compare with HEAD'), 'dsmigrate.compareWithHead'),
    command(vscode.l10n.t('$(arrow-up) Upgrade to the Newest DeepSpeed'), 'dsmigrate.upgradeConfig'),
    command(vscode.l10n.t('$(question) Explain a Key, Type or Rule…'), 'dsmigrate.explainWord'),
    command(vscode.l10n.t('$(output) Show the Log'), 'dsmigrate.server.showLog'),
  ];
  await pick(rows, status.summary);
}

/** Only what decides how a comparison is read: release, consumer, and the figures behind its memory. */
export async function chooseFacts(tools: Tools, uri: vscode.Uri): Promise<void> {
  await vscode.workspace.openTextDocument(uri);
  const status = await tools.session.execute<Status | null>('dsmigrate.status', [uri.toString()]);
  if (status) {
    await pick(settings(tools, uri, status), nameOf(uri));
  }
}

async function pick(rows: Row[], title: string): Promise<void> {
  const chosen = await vscode.window.showQuickPick(rows, { title, placeHolder: vscode.l10n.t('What to change, or to do') });
  await chosen?.run?.();
}

function settings(tools: Tools, uri: vscode.Uri, status: Status): Row[] {
  const configured = vscode.workspace.getConfiguration('dsmigrate', uri);
  const value = (setting: Setting, name: string) => status.changed[name] ?? orNone(configured.get(setting));
  const told = (setting: Setting, name: string) =>
    String(value(setting, name) ?? vscode.l10n.t('not set'));
  const edit = (setting: Setting, found: () => Promise<unknown>) => async () => keep(tools, uri, setting, await found());
  return [
    {
      label: vscode.l10n.t('$(versions) DeepSpeed release'),
      description: status.deepspeedVersion,
      detail: status.whyVersion,
      run: edit('deepspeedVersion', () => chooseRelease(tools, status)),
    },
    {
      label: vscode.l10n.t('$(person) Read by'),
      description: status.consumerTitle,
      detail: status.whyConsumer,
      run: edit('consumer', () => chooseConsumer(tools, status)),
    },
    {
      label: vscode.l10n.t('$(server) World size'),
      description: told('worldSize', 'world-size'),
      run: edit('worldSize', () =>
        number(vscode.l10n.t('Number of GPUs'), vscode.l10n.t('A whole number such as 8; nothing for not known'), true),
      ),
    },
    {
      label: vscode.l10n.t('$(symbol-numeric) Parameters of the model'),
      description: told('parameters', 'parameters'),
      run: edit('parameters', () => size()),
    },
    {
      label: vscode.l10n.t('$(chip) Memory of a GPU'),
      description: told('gpuMemory', 'gpu-memory'),
      run: edit('gpuMemory', () =>
        number(vscode.l10n.t('GiB of Memory of a GPU'), vscode.l10n.t('A number such as 80; nothing for not known'), false),
      ),
    },
  ];
}

/** What is not set is empty in the settings. */
function orNone(value: unknown): unknown {
  return value === '' || value === null ? undefined : value;
}

async function chooseRelease(tools: Tools, status: Status): Promise<string | null | undefined> {
  const { releases } = await tools.session.execute<Choices>('dsmigrate.choices', []);
  const own = { label: vscode.l10n.t('$(discard) Found by itself'), value: null as string | null };
  const rows = releases.map((release) => ({
    label: release,
    description: release === status.deepspeedVersion ? vscode.l10n.t('in use') : '',
    value: release,
  }));
  const title = vscode.l10n.t('DeepSpeed Release');
  return (await vscode.window.showQuickPick([own, ...rows], { title }))?.value;
}

async function chooseConsumer(tools: Tools, status: Status): Promise<string | null | undefined> {
  const { consumers } = await tools.session.execute<Choices>('dsmigrate.choices', []);
  const own = { label: vscode.l10n.t('$(discard) Found by itself'), value: null as string | null };
  const rows = consumers.map(({ name, title }) => ({
    label: title,
    description: name === status.consumer ? vscode.l10n.t('in use') : '',
    value: name,
  }));
  const title = vscode.l10n.t('What Reads the Config');
  return (await vscode.window.showQuickPick([own, ...rows], { title }))?.value;
}

async function number(title: string, prompt: string, whole: boolean): Promise<number | null | undefined> {
  const isFine = (text: string) => (whole ? /^[1-9]\d*$/ : /^\d*\.?\d+$/).test(text) && Number(text) > 0;
  const text = await vscode.window.showInputBox({
    title,
    prompt,
    validateInput: (typed) => (typed.trim() === '' || isFine(typed.trim()) ? undefined : prompt),
  });
  return text === undefined ? undefined : text.trim() === '' ? null : Number(text);
}

async function size(): Promise<string | null | undefined> {
  const prompt = vscode.l10n.t('A number such as 7b or 350m; nothing for not known');
  const text = await vscode.window.showInputBox({
    title: vscode.l10n.t('Parameters of the Model'),
    prompt,
    validateInput: (typed) => (/^\s*(\d+(\.\d+)?\s*[kmgtb]?)?\s*$/i.test(typed) ? undefined : prompt),
  });
  return text === undefined ? undefined : text.trim() || null;
}

/** Use a value for this session (null: none), and offer to keep it in the settings of the workspace. */
async function keep(tools: Tools, uri: vscode.Uri, setting: Setting, value: unknown): Promise<void> {
  if (value === undefined) {
    return;
  }
  await tools.session.execute('dsmigrate.set', [setting, value]);
  tools.facts.fire();
  if (!vscode.workspace.getWorkspaceFolder(uri)) {
    return;
  }
  const save = vscode.l10n.t('Keep in the Workspace');
  const said =
    value === null
      ? vscode.l10n.t('dsmigrate.{0} is found by itself again, for this session.', setting)
      : vscode.l10n.t('dsmigrate.{0} is {1} for this session.', setting, String(value));
  void vscode.window.showInformationMessage(said, save).then(async (answer) => {
    if (answer === save) {
      await store(tools, uri, setting, value);
    }
  });
}

async function store(tools: Tools, uri: vscode.Uri, setting: Setting, value: unknown): Promise<void> {
  const configured = vscode.workspace.getConfiguration('dsmigrate', uri);
  const several = (vscode.workspace.workspaceFolders?.length ?? 0) > 1;
  const where = several ? vscode.ConfigurationTarget.WorkspaceFolder : vscode.ConfigurationTarget.Workspace;
  await configured.update(setting, value ?? undefined, where);
  await tools.session.execute('dsmigrate.set', [setting, null]); // or the session would hide the setting for ever
  tools.facts.fire();
}
