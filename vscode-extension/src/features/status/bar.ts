import * as vscode from 'vscode';

import type { Status } from '../answers';
import { isConverted } from '../verify/verifying';
import { debounced, type Tools } from '../tools';

const LANGUAGES = new Set(['json', 'jsonc', 'hjson', 'yaml']);

/** Shows what the config of the active editor comes to, and tells menus whether there is one. */
export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('dsmigrate.status', vscode.StatusBarAlignment.Right, 101);
  private readonly parts: vscode.Disposable[] = [this.item];
  private asked = 0;
  private last: vscode.TextDocument | undefined;

  constructor(private readonly tools: Tools) {
    this.item.name = vscode.l10n.t('DeepSpeed Config');
    this.item.command = 'dsmigrate.choose'; // without arguments: VS Code forgets them for a moment when they are set
    const later = debounced(150, () => this.update());
    this.parts.push(
      later,
      vscode.window.onDidChangeActiveTextEditor(() => this.update()),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (document === this.current()) {
          later.later();
        }
      }),
      vscode.languages.onDidChangeDiagnostics(({ uris }) => {
        const active = this.current()?.uri.toString();
        if (uris.some((uri) => uri.toString() === active)) {
          later.later();
        }
      }),
      tools.session.onDidChange(() => later.later()),
      tools.facts.event(() => later.later()),
    );
    void this.update();
  }

  async update(): Promise<void> {
    const number = ++this.asked;
    const document = (this.last = this.current());
    const status = document && (await this.ask(document));
    const script = document?.languageId === 'python' && (await this.hasWrap(document));
    if (number !== this.asked) {
      return; // another editor is active meanwhile
    }
    void vscode.commands.executeCommand('setContext', 'dsmigrate.configIsActive', Boolean(status));
    void vscode.commands.executeCommand('setContext', 'dsmigrate.scriptIsActive', script);
    void vscode.commands.executeCommand('setContext', 'dsmigrate.conversionIsActive', document && isConverted(document));
    this.tools.shown = status && document.uri;
    if (status) {
      this.show(status);
    } else {
      this.item.hide();
    }
  }

  /** The document that is worked on: that of the active editor, and not what the output or an input box holds. */
  private current(): vscode.TextDocument | undefined {
    const { activeTextEditor, visibleTextEditors } = vscode.window;
    const isAside = activeTextEditor?.viewColumn === undefined;
    const isInSight = visibleTextEditors.some(({ document }) => document === this.last);
    return isAside && isInSight ? this.last : activeTextEditor?.document;
  }

  private async ask(document: vscode.TextDocument): Promise<Status | undefined> {
    if (!this.tools.session.client || !LANGUAGES.has(document.languageId)) {
      return undefined;
    }
    try {
      const answer = await this.tools.session.execute<Status | null>('dsmigrate.status', [document.uri.toString()]);
      return answer ?? undefined;
    } catch (error) {
      this.tools.session.log.debug(`status: ${String(error)}`);
      return undefined;
    }
  }

  /** Whether the server offers to convert a script. */
  private async hasWrap(document: vscode.TextDocument): Promise<boolean> {
    if (!this.tools.session.client) {
      return false;
    }
    try {
      const textDocument = { uri: document.uri.toString() };
      const found = await this.tools.session.request<{ command?: { command: string } }[] | null>(
        'textDocument/codeLens',
        { textDocument },
      );
      return (found ?? []).some(({ command }) => command?.command === 'dsmigrate.convertScript');
    } catch (error) {
      this.tools.session.log.debug(`lenses: ${String(error)}`);
      return false;
    }
  }

  private show(status: Status): void {
    const { summary, deepspeedVersion } = status;
    const label = vscode.l10n.t('DeepSpeed config: {0}; for DeepSpeed {1}', summary, deepspeedVersion);
    this.item.text = `$(rocket) ${summary}`;
    this.item.tooltip = tooltip(status);
    this.item.accessibilityInformation = { label, role: 'button' };
    this.item.show();
  }

  dispose(): void {
    vscode.Disposable.from(...this.parts.splice(0)).dispose();
  }
}

function tooltip(status: Status): vscode.MarkdownString {
  const { findings } = status;
  const told = new vscode.MarkdownString('', true);
  const rows: [string, string, string][] = [
    ...status.details.map(([name, value]): [string, string, string] => [name, value, '']),
    ['DeepSpeed', status.deepspeedVersion, why(status.whyVersion, status, 'deepspeed-version')],
    [vscode.l10n.t('read by'), status.consumerTitle, why(status.whyConsumer, status, 'consumer')],
    [
      vscode.l10n.t('world size'),
      status.worldSize === null ? vscode.l10n.t('not set') : String(status.worldSize),
      why('', status, 'world-size'),
    ],
  ];
  told.appendMarkdown('| | | |\n|:--|:--|:--|\n');
  for (const [name, value, reason] of rows) {
    told.appendMarkdown(`| ${name} | **${value}** | ${reason && `*${reason}*`} |\n`);
  }
  const counts = [
    `$(error) ${findings.error ?? 0}`,
    `$(warning) ${findings.warning ?? 0}`,
    `$(info) ${(findings.info ?? 0) + (findings.hint ?? 0)}`,
  ];
  told.appendMarkdown(`\n${counts.join('  ')}\n\n${vscode.l10n.t('Click to change release, consumer or world size.')}`);
  return told;
}

function why(reason: string, { changed }: Status, setting: string): string {
  return setting in changed ? vscode.l10n.t('for this session') : reason;
}
