import * as vscode from 'vscode';

import type { Choices, Status, Upgrade } from '../answers';
import { Beside, closeDiffs, Opened } from '../beside';
import { goTo, nameOf, type Tools, uriOf } from '../tools';
import type { Asked } from '../webview/panel';
import { upgradeReport } from './render';

const open = new Opened<Upgrading>();

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
  const shown = open.get(key) ?? open.add(key, new Upgrading(tools, document, releases));
  await shown.start(from);
}

function chooseRelease(releases: readonly string[]): Thenable<string | undefined> {
  return vscode.window.showQuickPick(releases.slice(1), {
    title: vscode.l10n.t('Upgrade to DeepSpeed {0}', releases[0] ?? ''),
    placeHolder: vscode.l10n.t('The release that the config was written for'),
  });
}

/** One upgrade that is shown. */
class Upgrading extends Beside {
  private upgrade!: Upgrade;
  private version = 0;
  private done = false;

  constructor(
    tools: Tools,
    private readonly config: vscode.TextDocument,
    private readonly releases: readonly string[],
  ) {
    super(tools, 'dsmigrate.upgrade');
  }

  async start(from: string): Promise<void> {
    this.done = false;
    await this.work(from);
    if (this.panel) {
      await this.showText();
      this.panel.reveal();
      this.show();
      return;
    }
    this.parts.push(
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (document === this.config && contentChanges.length) {
          void this.follow();
        }
      }),
    );
    await this.open();
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

  protected show(): void {
    const name = nameOf(this.config.uri);
    this.panel?.show(vscode.l10n.t('{0}: Upgrade', name), upgradeReport(this.upgrade, name, this.done));
  }

  protected async act(asked: Asked): Promise<void> {
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
    await closeDiffs(this.after);
    this.show();
  }

  private get after(): vscode.Uri {
    return this.tools.texts.uri('upgraded', this.config.uri);
  }

  protected async showText(): Promise<void> {
    if (!this.upgrade.edits.length) {
      await vscode.window.showTextDocument(this.config, { viewColumn: this.textColumn });
      return;
    }
    const title = vscode.l10n.t('{0} (as it is ↔ DeepSpeed {1})', nameOf(this.config.uri), this.upgrade.to);
    await this.showDiff(this.config.uri, this.after, title);
  }

  protected get own(): vscode.Uri[] {
    return [this.after];
  }
}
