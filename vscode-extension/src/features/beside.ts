import * as vscode from 'vscode';

import type { Tools } from './tools';
import { type Asked, Panel } from './webview/panel';

/** A text in one column and a panel about it in the next, for as long as the panel is open. */
export abstract class Beside {
  /** The panel, once it is open. */
  protected panel: Panel | undefined;
  /** Where texts are shown. */
  protected column = vscode.ViewColumn.One;
  /** What ends with the panel. */
  protected readonly parts: vscode.Disposable[] = [];
  private readonly closed = new vscode.EventEmitter<void>();
  readonly onDidClose = this.closed.event;

  constructor(
    protected readonly tools: Tools,
    /** The type that VS Code knows the panel by. */
    private readonly type: string,
  ) {}

  /** Show the text, in the column of the panel's text or the active one. */
  protected abstract showText(): Promise<unknown>;
  /** Put the content of the moment into the panel. */
  protected abstract show(): void;
  /** Do what a button of the panel asks for. */
  protected abstract act(asked: Asked): Promise<unknown>;
  /** The texts of ours that are shown for it, and are of no use without it. */
  protected abstract get own(): readonly vscode.Uri[];

  /** Show the text where the person is, and the panel beside it. */
  protected async open(): Promise<void> {
    await this.showText();
    this.column = vscode.window.activeTextEditor?.viewColumn ?? vscode.ViewColumn.One;
    this.panel = await Panel.open(this.tools.context, this.type, vscode.ViewColumn.Beside, (asked) => this.act(asked));
    this.panel.onDidClose(() => this.stop());
    this.show();
  }

  protected get textColumn(): vscode.ViewColumn {
    return this.panel ? this.column : vscode.ViewColumn.Active;
  }

  /** Show how a file on the disk differs from a text of ours, or the other way round. */
  protected async showDiff(
    old: vscode.Uri,
    now: vscode.Uri,
    title: string,
    options: vscode.TextDocumentShowOptions = {},
  ): Promise<void> {
    const where = { viewColumn: this.textColumn, preview: true, ...options };
    await vscode.commands.executeCommand('vscode.diff', old, now, title, where);
  }

  /** End everything that was there for the panel. */
  protected stop(): void {
    vscode.Disposable.from(...this.parts.splice(0)).dispose();
    for (const uri of this.own) {
      void closeDiffs(uri);
      this.tools.texts.drop(uri);
    }
    this.closed.fire();
    this.closed.dispose();
  }
}

/** Those that are open, one for each key. */
export class Opened<Shown extends Beside> {
  private readonly shown = new Map<string, Shown>();

  get(key: string): Shown | undefined {
    return this.shown.get(key);
  }

  add(key: string, made: Shown): Shown {
    this.shown.set(key, made);
    made.onDidClose(() => this.shown.delete(key));
    return made;
  }
}

/** Close the diff editors whose new side is a text of ours. */
export async function closeDiffs(modified: vscode.Uri): Promise<void> {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  const shown = tabs.filter(
    ({ input }) => input instanceof vscode.TabInputTextDiff && input.modified.toString() === modified.toString(),
  );
  await vscode.window.tabGroups.close(shown, true);
}
