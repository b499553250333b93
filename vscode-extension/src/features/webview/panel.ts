import { randomBytes } from 'node:crypto';
import * as vscode from 'vscode';

import { html, type Html } from './html';

/** What a button of a panel asks for: the `data-` attributes it has, `do` among them. */
export type Asked = Record<string, string>;

/**
 * A panel whose whole content is made here. Its style and its one script are part of the page, let in by a nonce, so
 * that nothing is loaded from anywhere; new content replaces the old without a flicker and keeps place and focus.
 */
export class Panel implements vscode.Disposable {
  private readonly panel: vscode.WebviewPanel;
  private body: Html = html``;
  private shown = false;
  private readonly listening: vscode.Disposable[] = [];
  private readonly closed = new vscode.EventEmitter<void>();
  readonly onDidClose = this.closed.event;

  private constructor(
    private readonly frame: Frame,
    type: string,
    column: vscode.ViewColumn,
    icon: vscode.Uri | undefined,
    answer: (asked: Asked) => unknown,
  ) {
    this.panel = vscode.window.createWebviewPanel(
      type,
      '',
      { viewColumn: column, preserveFocus: true },
      { enableScripts: true, enableFindWidget: true, localResourceRoots: [] },
    );
    if (icon) {
      this.panel.iconPath = icon;
    }
    this.listening.push(
      this.panel.webview.onDidReceiveMessage((message: Asked) => {
        if (message['do'] === 'ready') {
          this.shown = true;
          void this.panel.webview.postMessage({ body: this.body.text });
        } else {
          void answer(message);
        }
      }),
      this.panel.onDidChangeViewState(() => {
        if (!this.panel.visible) {
          this.shown = false;
        }
      }),
      this.panel.onDidDispose(() => {
        this.closed.fire();
        this.dispose();
      }),
    );
  }

  static async open(
    context: vscode.ExtensionContext,
    type: string,
    column: vscode.ViewColumn,
    answer: (asked: Asked) => unknown,
  ): Promise<Panel> {
    const frame = await loadFrame(context.extensionUri);
    return new Panel(frame, type, column, vscode.Uri.joinPath(context.extensionUri, 'media', 'icon.png'), answer);
  }

  /** Show another content; the first one makes the page, later ones only its body. */
  show(title: string, body: Html): void {
    const isFirst = this.panel.webview.html === '';
    this.panel.title = title;
    this.body = body;
    if (isFirst) {
      this.panel.webview.html = page(this.frame, title);
    } else if (this.shown) {
      void this.panel.webview.postMessage({ body: body.text });
    }
  }

  reveal(): void {
    this.panel.reveal(undefined, true);
  }

  close(): void {
    this.panel.dispose();
  }

  dispose(): void {
    vscode.Disposable.from(...this.listening.splice(0)).dispose();
    this.panel.dispose();
    this.closed.dispose();
  }
}

interface Frame {
  style: string;
  script: string;
}

let frame: Promise<Frame> | undefined;

function loadFrame(root: vscode.Uri): Promise<Frame> {
  const read = async (...path: string[]) =>
    new TextDecoder().decode(await vscode.workspace.fs.readFile(vscode.Uri.joinPath(root, ...path)));
  frame ??= Promise.all([read('media', 'panel.css'), read('dist', 'webview.js')]).then(([style, script]) => ({
    style,
    script,
  }));
  return frame;
}

function page({ style, script }: Frame, title: string): string {
  const nonce = randomBytes(18).toString('base64');
  const policy = `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'`;
  const head = html`<!doctype html>
    <html lang="${vscode.env.language}">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="${policy}" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title}</title>`;
  return `${head.text}
<style nonce="${nonce}">${style}</style>
</head><body><main></main><p class="unseen" role="status" aria-live="polite"></p>
<script nonce="${nonce}">${script}</script></body></html>`;
}
