import * as vscode from 'vscode';

import type { Conversion } from '../answers';
import { Beside, closeDiffs, Opened } from '../beside';
import { compare } from '../compare/comparing';
import { explain } from '../explain';
import { typeInTerminal } from '../terminal';
import { goTo, nameOf, type Tools, uriOf } from '../tools';
import type { Asked } from '../webview/panel';
import { verify, verifyApplied } from '../verify/verifying';
import { editOf, type Manner } from './edit';
import { conversionReport, type Stage } from './render';

const open = new Opened<Converting>();

/** Work out the conversion of a script, and show it: the changes in a diff editor, the reasons in a report beside it. */
export async function convertScript(tools: Tools, given?: unknown): Promise<void> {
  const uri = uriOf(given);
  const document = uri && (await vscode.workspace.openTextDocument(uri));
  if (document?.languageId !== 'python' || document.isUntitled) {
    const said =
      document?.languageId === 'python'
        ? vscode.l10n.t('Save the script first: its config goes beside it.')
        : vscode.l10n.t('Open the training script to convert first.');
    void vscode.window.showInformationMessage(said);
    return;
  }
  const key = document.uri.toString();
  const shown = open.get(key);
  await (shown ? shown.again() : open.add(key, new Converting(tools, document)).start());
}

/** One conversion from its preview to its undoing. Nothing is written before it is applied. */
class Converting extends Beside {
  private conversion!: Conversion;
  /** The files that change together, the script first, with the version that the conversion was worked out for. */
  private files = new Map<vscode.TextDocument, number>();
  private stage: Stage = 'preview';

  constructor(
    tools: Tools,
    private readonly script: vscode.TextDocument,
  ) {
    super(tools, 'dsmigrate.conversion');
  }

  async start(): Promise<void> {
    try {
      await this.work();
    } catch (error) {
      this.stop();
      throw error;
    }
    this.parts.push(
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (this.files.has(document) && contentChanges.length && this.stage !== 'stale') {
          this.turn('stale');
        }
      }),
    );
    await this.open();
  }

  async again(): Promise<void> {
    if (!this.panel) {
      return; // it is on its way
    }
    if (this.stage !== 'preview') {
      await this.work();
      this.turn('preview');
    }
    await this.showText();
    this.panel.reveal();
  }

  private async work(): Promise<void> {
    const title = vscode.l10n.t('Converting {0} to DeepSpeed', nameOf(this.script.uri));
    const version = this.script.version;
    this.conversion = await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title }, () =>
      this.tools.session.execute<Conversion>('dsmigrate.convertScript', [this.script.uri.toString(), false]),
    );
    const uris = this.conversion.modules.filter(({ isNew }) => !isNew).map(({ uri }) => vscode.Uri.parse(uri));
    const modules = await Promise.all(uris.map((uri) => vscode.workspace.openTextDocument(uri)));
    this.files = new Map([[this.script, version], ...modules.map((module) => [module, module.version] as const)]);
  }

  protected show(): void {
    const name = nameOf(this.script.uri);
    this.panel?.show(vscode.l10n.t('{0}: Conversion', name), conversionReport(this.conversion, name, this.stage));
  }

  private turn(stage: Stage): void {
    this.stage = stage;
    this.show();
  }

  protected async act(asked: Asked): Promise<void> {
    const { script, tools } = this;
    switch (asked['do']) {
      case 'apply':
        return this.apply({});
      case 'choose':
        return this.apply({ choose: true });
      case 'replace':
        return this.apply({ replaceConfig: true });
      case 'preview':
        return this.showText();
      case 'diff':
        return this.showModule(asked['uri'] ?? '');
      case 'open':
        await vscode.window.showTextDocument(vscode.Uri.parse(asked['uri'] ?? ''), { viewColumn: this.column });
        return;
      case 'again':
        return this.again();
      case 'close':
        return this.panel?.close();
      case 'undo':
        await vscode.window.showTextDocument(script, { viewColumn: this.column });
        await vscode.commands.executeCommand('undo');
        return;
      case 'go':
        return this.goTo(asked);
      case 'explain':
        return explain(tools, asked['word'] ?? '');
      case 'copy':
        await vscode.env.clipboard.writeText(asked['text'] ?? '');
        vscode.window.setStatusBarMessage(vscode.l10n.t('$(check) The command is in the clipboard'), 3000);
        return;
      case 'terminal':
        return typeInTerminal(asked['text'] ?? '', vscode.Uri.joinPath(script.uri, '..')); // it names the script alone
      case 'verify':
        return this.verify();
      case 'compareConfig':
        return this.compareConfig();
    }
  }

  private async apply(manner: Manner): Promise<void> {
    const current = await Promise.all([...this.files.keys()].map(({ uri }) => vscode.workspace.openTextDocument(uri)));
    if (current.some((document) => this.files.get(document) !== document.version)) {
      this.turn('stale');
      return;
    }
    const before = new Map(current.map((document) => [document, document.getText()]));
    const edit = await editOf(this.conversion, this.script.uri, manner);
    const editor = await vscode.window.showTextDocument(this.script, { viewColumn: this.column, preview: false });
    this.stage = 'applied'; // what the edit changes does not make it stale
    const done = await vscode.workspace.applyEdit(edit);
    if (!done || isAsBefore(before)) {
      this.turn('preview');
      return;
    }
    for (const [{ uri }, text] of before) {
      this.tools.texts.put('before', uri, text);
      await closeDiffs(this.after(uri));
    }
    showFirst(editor, edit.get(this.script.uri));
    this.followUndo(before);
    this.turn('applied');
  }

  /** When every file is as it was again, the conversion can be applied again. */
  private followUndo(before: ReadonlyMap<vscode.TextDocument, string>): void {
    const following = vscode.workspace.onDidChangeTextDocument(({ document }) => {
      if (before.has(document) && isAsBefore(before)) {
        following.dispose();
        this.files = new Map([...before.keys()].map((file) => [file, file.version]));
        this.turn('preview');
      }
    });
    this.parts.push(following);
  }

  private before(uri: vscode.Uri): vscode.Uri {
    return this.tools.texts.uri('before', uri);
  }

  private after(uri: vscode.Uri): vscode.Uri {
    return this.tools.texts.uri('converted', uri);
  }

  /** Go to the lines that a decision is about, in the text before the conversion. */
  private goTo(asked: Asked): Promise<void> {
    const uri = asked['uri'] ? vscode.Uri.parse(asked['uri']) : this.script.uri;
    return goTo(this.stage === 'applied' ? this.before(uri) : uri, this.column, ...linesOf(asked));
  }

  /** Show the changes of a module in a diff editor. */
  private async showModule(address: string): Promise<void> {
    const module = this.conversion.modules.find(({ uri }) => uri === address);
    if (module) {
      await this.showChanges(vscode.Uri.parse(module.uri), module.after, module.isNew);
    }
  }

  private async showChanges(uri: vscode.Uri, after: string, isNew = false): Promise<void> {
    this.tools.texts.put('converted', uri, after);
    if (isNew) {
      this.tools.texts.put('before', uri, '');
    }
    const before = isNew ? this.before(uri) : uri;
    await this.showDiff(before, this.after(uri), vscode.l10n.t('{0} (script ↔ converted)', nameOf(uri)));
  }

  /** Show the changes in a diff editor; a script without any is shown itself. */
  protected async showText(): Promise<void> {
    const { uri } = this.script;
    if (this.conversion.after === null || this.stage === 'applied') {
      await vscode.window.showTextDocument(this.script, { viewColumn: this.textColumn });
      return;
    }
    await this.showChanges(uri, this.conversion.after);
  }

  protected get own(): vscode.Uri[] {
    return [...this.files.keys()].flatMap(({ uri }) => [this.after(uri), this.before(uri)]);
  }

  /** Have the conversion trained beside the script as it was, be it applied or not. */
  private verify(): Promise<void> {
    const { script, tools } = this;
    const before = tools.texts.provideTextDocumentContent(this.before(script.uri));
    return this.stage === 'applied' ? verifyApplied(tools, script.uri, before) : verify(tools, script.uri);
  }

  private async compareConfig(): Promise<void> {
    const { config } = this.conversion;
    if (config) {
      const text = config.text;
      await compare(this.tools, vscode.Uri.parse(config.uri), { kind: 'text', name: vscode.l10n.t('proposed'), text });
    }
  }
}

/** Put the cursor at the first of some changes that were made, and show it. */
function showFirst(editor: vscode.TextEditor, edits: readonly vscode.TextEdit[]): void {
  const [first] = edits.map(({ range }) => range.start).sort((one, other) => one.compareTo(other));
  if (first) {
    editor.selection = new vscode.Selection(first, first);
    editor.revealRange(new vscode.Range(first, first), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  }
}

function linesOf(asked: Asked): [number, number] {
  return [Number(asked['line']), Number(asked['end'])];
}

function isAsBefore(before: ReadonlyMap<vscode.TextDocument, string>): boolean {
  return [...before].every(([document, text]) => document.getText() === text);
}
