import * as vscode from 'vscode';

import type { Choices, Status, Upgrade } from '../answers';
import { goTo, nameOf, type Tools, uriOf } from '../tools';
import { type Asked, Panel } from '../webview/panel';
import { upgradeReport } from './render';

const open = new Map<string, Upgrading>();

/** Take a config to the newest DeepSpeed: what changes in a diff editor, what it means and what is left beside it. */
export async function upgradeConfig(tools: Tools, given?: unknown): Promise<void> {
  const uri = uriOf(given);
  const document = uri && (await vscode.workspace.openTextDocument(uri));
  const status = document && (await tools.session.execute<Status | null>('dsmigrate.status', [document.uri.toString()]));
  if (!document || !status) {
    void vscode.window.showInformationMessage(vscode.l10n.t('Open the DeepSpeed config to upgrade first.'));
    return;
  }
  const { releases } = await tools.session.execute<Choices>('dsmigrate.choices', []);
  const from = status.deepspeedVersion === releases[0] ? await chooseRelease(releases) : status.deepspeedVersion;
  if (!from) {
    return;
  }
  const key = document.uri.toString();
  const shown = open.get(key) ?? new Upgrading(tools, document, releases);
  open.set(key, shown);
  shown.onDidClose(() => open.delete(key));
  await shown.start(from);
}

function chooseRelease(releases: readonly string[]): Thenable<string | undefined> {
  return vscode.window.showQuickPick(releases.slice(1), {
    title: vscode.l10n.t('Upgrade to DeepSpeed {0}', releases[0] ?? ''),
    placeHolder: vscode.l10n.t('The release that the config was written for'),
  });
}

/** One upgrade that is shown. */
class Upgrading {
  private upgrade!: Upgrade;
  private version = 0;
  private done = false;
  private panel: Panel | undefined;
  private column = vscode.ViewColumn.One;
  private readonly closed = new vscode.EventEmitter<void>();
  readonly onDidClose = this.closed.event;
  private readonly parts: vscode.Disposable[] = [];

  constructor(
    private readonly tools: Tools,
    private readonly config: vscode.TextDocument,
    private readonly releases: readonly string[],
  ) {}

  async start(from: string): Promise<void> {
    await this.work(from);
    await this.showText();
    if (this.panel) {
      this.panel.reveal();
      this.show();
      return;
    }
    this.column = vscode.window.activeTextEditor?.viewColumn ?? vscode.ViewColumn.One;
    this.panel = await Panel.open(this.tools.context, 'dsmigrate.upgrade', vscode.ViewColumn.Beside, (asked) =>
      this.act(asked),
    );
    this.panel.onDidClose(() => this.stop());
    this.parts.push(
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (document === this.config && contentChanges.length) {
          void this.follow();
        }
      }),
    );
    this.show();
  }

  private async work(from: string): Promise<void> {
    const version = this.config.version;
    const target = this.config.uri.toString();
    this.upgrade = await this.tools.session.execute<Upgrade>('dsmigrate.upgrade', [target, from]);
    this.version = version;
    this.tools.texts.put('upgraded', this.config.uri, this.upgrade.after);
  }

  /** After an edit: the upgrade of the text as it is now; after our own edit nothing is left to change. */
  private async follow(): Promise<void> {
    if (!this.done) {
      await this.work(this.upgrade.from);
    } else if (this.config.getText() !== this.upgrade.after) {
      this.done = false;
      await this.work(this.upgrade.from);
    }
    this.show();
  }

  private show(): void {
    const name = nameOf(this.config.uri);
    this.panel?.show(vscode.l10n.t('{0}: Upgrade', name), upgradeReport(this.upgrade, name, this.done));
  }

  private async act(asked: Asked): Promise<void> {
    switch (asked['do']) {
      case 'apply':
        return this.apply();
      case 'preview':
        return this.showText();
      case 'undo':
        await goTo(this.config.uri, this.column, 1);
        await vscode.commands.executeCommand('undo');
        return;
      case 'from': {
        const from = await chooseRelease(this.releases);
        if (from) {
          this.done = false;
          await this.start(from);
        }
      }
    }
  }

  private async apply(): Promise<void> {
    if (this.config.version !== this.version) {
      await this.follow();
      return;
    }
    const edit = new vscode.WorkspaceEdit();
    for (const { range, newText } of this.upgrade.edits) {
      const { start, end } = range;
      edit.replace(this.config.uri, new vscode.Range(start.line, start.character, end.line, end.character), newText);
    }
    await vscode.window.showTextDocument(this.config, { viewColumn: this.column, preview: false });
    this.done = true;
    this.done = await vscode.workspace.applyEdit(edit);
    await this.closePreview();
    this.show();
  }

  private get after(): vscode.Uri {
    return this.tools.texts.uri('upgraded', this.config.uri);
  }

  private async showText(): Promise<void> {
    const viewColumn = this.panel ? this.column : vscode.ViewColumn.Active;
    if (!this.upgrade.edits.length) {
      await vscode.window.showTextDocument(this.config, { viewColumn });
      return;
    }
    const title = vscode.l10n.t('{0} (as it is ↔ DeepSpeed {1})', nameOf(this.config.uri), this.upgrade.to);
    await vscode.commands.executeCommand('vscode.diff', this.config.uri, this.after, title, { viewColumn });
  }

  private async closePreview(): Promise<void> {
    const after = this.after.toString();
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    const shown = tabs.filter(
      ({ input }) => input instanceof vscode.TabInputTextDiff && input.modified.toString() === after,
    );
    await vscode.window.tabGroups.close(shown, true);
  }

  private stop(): void {
    vscode.Disposable.from(...this.parts.splice(0)).dispose();
    void this.closePreview();
    this.tools.texts.drop(this.after);
    this.closed.fire();
    this.closed.dispose();
  }
}
