import * as vscode from 'vscode';

import type { Failed, Subject } from './answers';
import { type Tools } from './tools';

type Explained = { markdown: string; word: string; error?: undefined } | Failed;

const ICONS: Record<Subject['kind'], string> = { key: 'symbol-property', type: 'symbol-class', code: 'info' };

/** Show the page of a key, type or code, for the release of the config `about`. */
export async function explain(tools: Tools, word: string, about?: vscode.Uri): Promise<void> {
  await show(tools, await tools.session.execute('dsmigrate.explain', about ? [word, about.toString()] : [word]));
}

/** Show the page that a link in a hover leads to. */
export async function explainLinked(tools: Tools, word?: unknown, about?: unknown): Promise<void> {
  if (typeof word === 'string') {
    await explain(tools, word, typeof about === 'string' ? vscode.Uri.parse(about, true) : undefined);
  }
}

/** Explain what stands at the cursor: the rule of a problem there, else the key; without either, ask. */
export async function explainHere(tools: Tools): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (!editor) {
    await chooseSubject(tools);
    return;
  }
  const { document, selection } = editor;
  const { line, character } = selection.active;
  const problem = vscode.languages
    .getDiagnostics(document.uri)
    .find(({ source, range, code }) => source === 'dsmigrate' && code && range.contains(selection.active));
  if (problem) {
    const code = typeof problem.code === 'object' ? problem.code.value : problem.code;
    await explain(tools, String(code), document.uri);
    return;
  }
  const found: Explained = await tools.session.execute('dsmigrate.explain', [
    '',
    document.uri.toString(),
    { line, character },
  ]);
  await (found.error === undefined ? show(tools, found) : chooseSubject(tools));
}

/** Ask for a key, type or code out of all there are, and explain it. */
export async function chooseSubject(tools: Tools): Promise<void> {
  const active = vscode.window.activeTextEditor?.document;
  const about = active?.uri;
  const subjects = tools.session.execute<Subject[]>('dsmigrate.subjects', [about?.toString() ?? '']);
  const chosen = await vscode.window.showQuickPick<Row>(
    subjects.then((found) => found.map(row)),
    {
      title: vscode.l10n.t('Explain a Key, Type or Rule'),
      placeHolder: vscode.l10n.t('A key such as zero_optimization.stage, a type such as AdamW, a rule such as DS401'),
      matchOnDetail: true,
    },
  );
  if (chosen) {
    await explain(tools, chosen.word, about);
  }
}

interface Row extends vscode.QuickPickItem {
  word: string;
}

function row({ word, kind, summary }: Subject): Row {
  return { label: word, iconPath: new vscode.ThemeIcon(ICONS[kind]), detail: summary, word }; // VS Code ranks by the label
}

async function show(tools: Tools, found: Explained): Promise<void> {
  if (found.error !== undefined) {
    void vscode.window.showInformationMessage(vscode.l10n.t('Nothing to explain: {0}', found.error));
    return;
  }
  const name = `${found.word.replace(/[^\w.*-]/g, '_') || 'DeepSpeed'}.md`;
  const uri = tools.texts.put('explained', vscode.Uri.from({ scheme: 'dsmigrate', path: `/${name}` }), found.markdown);
  if (vscode.window.activeTextEditor) {
    await vscode.commands.executeCommand('markdown.showPreviewToSide', uri);
  } else {
    await vscode.commands.executeCommand('workbench.action.focusFirstEditorGroup'); // the panel stays in sight
    await vscode.commands.executeCommand('markdown.showPreview', uri);
  }
}
