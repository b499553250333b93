import * as vscode from 'vscode';

import type { Compared, Failed } from '../answers';
import { Beside, Opened } from '../beside';
import { explain } from '../explain';
import { chooseFacts } from '../status/menu';
import { debounced, goTo, nameOf, type Tools } from '../tools';
import type { Asked } from '../webview/panel';
import { comparison } from './render';

/** The old side of a comparison: a committed state, a file, or a text. */
export type Before =
  | { kind: 'revision'; revision: string }
  | { kind: 'file'; uri: vscode.Uri }
  | { kind: 'text'; name: string; text: string };

const open = new Opened<Comparing>();

/** Show what a change of a config does: the text diff in the active column, what it means beside it. */
export async function compare(tools: Tools, uri: vscode.Uri, before: Before): Promise<void> {
  const key = `${uri.toString()} ${JSON.stringify(before)}`;
  const shown = open.get(key);
  if (shown) {
    await shown.again();
    return;
  }
  const answer = await ask(tools, uri, before);
  if (answer.error !== undefined) {
    void vscode.window.showErrorMessage(
      vscode.l10n.t('{0} cannot be compared: {1}', nameOf(uri), answer.error),
    );
    return;
  }
  await open.add(key, new Comparing(tools, uri, before, answer)).start();
}

function ask(tools: Tools, uri: vscode.Uri, before: Before): Promise<Compared | Failed> {
  const target = uri.toString();
  switch (before.kind) {
    case 'revision':
      return tools.session.execute('dsmigrate.diffWithHead', [target, before.revision]);
    case 'file':
      return tools.session.execute('dsmigrate.diff', [before.uri.toString(), target]);
    case 'text':
      return tools.session.execute('dsmigrate.diff', [{ name: before.name, text: before.text }, target]);
  }
}

/** One comparison that is shown; it follows the texts while they are edited, and the settings. */
class Comparing extends Beside {
  constructor(
    tools: Tools,
    private readonly uri: vscode.Uri,
    private readonly before: Before,
    private answer: Compared,
  ) {
    super(tools, 'dsmigrate.comparison');
  }

  async start(): Promise<void> {
    const refresh = debounced(200, () => this.refresh());
    const sides = new Set([this.uri.toString(), this.oldUri.toString()]);
    this.parts.push(
      refresh,
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (contentChanges.length && sides.has(document.uri.toString())) {
          refresh.later();
        }
      }),
      this.tools.facts.event(() => refresh.later()),
    );
    await this.open();
  }

  async again(): Promise<void> {
    await this.refresh();
    await this.showText();
    this.panel?.reveal();
  }

  private get names(): [string, string] {
    const { before } = this;
    const old =
      before.kind === 'revision' ? before.revision : before.kind === 'file' ? nameOf(before.uri) : before.name;
    return [old, before.kind === 'file' ? nameOf(this.uri) : vscode.l10n.t('working copy')];
  }

  private get oldUri(): vscode.Uri {
    const { before } = this;
    return before.kind === 'file' ? before.uri : this.tools.texts.put(this.names[0], this.uri, this.answer.texts.old);
  }

  protected show(): void {
    const title = vscode.l10n.t('{0}: What Changes', nameOf(this.uri));
    this.panel?.show(title, comparison(this.answer, nameOf(this.uri), ...this.names));
  }

  private async refresh(): Promise<void> {
    const answer = await ask(this.tools, this.uri, this.before);
    if (answer.error === undefined) {
      this.answer = answer;
      this.show();
    } // else the text is half-typed: what was said last stays until it can be read again
  }

  protected async act(asked: Asked): Promise<void> {
    switch (asked['do']) {
      case 'text':
        await this.showText();
        break;
      case 'copy':
        await vscode.env.clipboard.writeText(this.answer.markdown);
        vscode.window.setStatusBarMessage(vscode.l10n.t('$(check) The comparison is in the clipboard'), 3000);
        break;
      case 'facts':
        await chooseFacts(this.tools, this.uri);
        await this.refresh();
        break;
      case 'explain':
        await explain(this.tools, asked['word'] ?? '', this.uri);
        break;
      case 'go':
        await this.go(asked['side'] === 'old', Number(asked['line']));
        break;
    }
  }

  /** Lead to a line, from 1: of the new side in the text diff, of the old one by itself. */
  private async go(isOld: boolean, line: number): Promise<void> {
    if (isOld) {
      await goTo(this.oldUri, this.column, line);
      return;
    }
    const document = await vscode.workspace.openTextDocument(this.uri);
    const { range, firstNonWhitespaceCharacterIndex: start } = document.lineAt(Math.min(line, document.lineCount) - 1);
    await this.showText(range.with(range.start.translate(0, start)));
  }

  protected async showText(selection?: vscode.Range): Promise<void> {
    const title = vscode.l10n.t('{0} ({1} ↔ {2})', nameOf(this.uri), ...this.names);
    await this.showDiff(this.oldUri, this.uri, title, selection && { selection });
  }

  protected get own(): vscode.Uri[] {
    return this.before.kind === 'file' ? [] : [this.oldUri];
  }
}
