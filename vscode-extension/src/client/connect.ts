import * as vscode from 'vscode';
import {
  type ClientCapabilities,
  CloseAction,
  DidChangeConfigurationNotification,
  DocumentDiagnosticRequest,
  type DynamicFeature,
  ErrorAction,
  ExecuteCommandRequest,
  type InitializeParams,
  LanguageClient,
  type LanguageClientOptions,
  type ServerOptions,
  type StaticFeature,
  TransportKind,
} from 'vscode-languageclient/node';

import type { Server } from '../server/server';
import { middleware } from './middleware';
import { onDidChangeProblemsOfOthers } from './others';
import type { Session } from './session';
import { settingsFor } from './settings';

const ID = 'dsmigrate';
const LOCAL = ['file', 'untitled'];

/** What the server gets to see: JSON in every spelling, and scripts; nothing of settings, of source control, of others. */
const SELECTOR = LOCAL.flatMap((scheme) => [
  ...['json', 'jsonc', 'python'].map((language) => ({ scheme, language })),
  { scheme, pattern: '**/*.{json5,hjson}' },
]);

/** Start a server in a folder and return the client that speaks with it. */
export async function connect(server: Server, session: Session, cwd: string): Promise<LanguageClient> {
  const executable: ServerOptions = {
    command: server.command,
    args: [...server.args],
    options: { cwd, env: { ...process.env, PYTHONSAFEPATH: '1' } },
    transport: TransportKind.stdio,
  };
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const options: LanguageClientOptions = {
    documentSelector: SELECTOR,
    outputChannel: session.log,
    initializationOptions: { dsmigrate: await settingsFor(folder) },
    synchronize: { configurationSection: ID },
    initializationFailedHandler: () => false,
    errorHandler: {
      error: () => ({ action: ErrorAction.Continue, handled: true }),
      closed: () => ({
        action: session.crashed() ? CloseAction.Restart : CloseAction.DoNotRestart,
        handled: true,
      }),
    },
    middleware: {
      ...middleware,
      workspace: {
        configuration: ({ items }) =>
          Promise.all(items.map(({ scopeUri }) => settingsFor(scopeUri ? vscode.Uri.parse(scopeUri) : undefined))),
        didChangeConfiguration: () => tellChange(client),
      },
    },
  };
  const client = new Client(ID, 'DeepSpeed (dsmigrate)', executable, options);
  client.onDidChangeState(() => session.moved());
  try {
    await client.start();
  } catch (error) {
    await client.dispose(1000).catch(() => undefined);
    throw error;
  }
  return client;
}

/** Have the server ask for its settings again; one that is about to end or to begin asks anyway, or not at all. */
async function tellChange(client: LanguageClient): Promise<void> {
  if (client.isRunning()) {
    await client.sendNotification(DidChangeConfigurationNotification.type, { settings: null });
  }
}

/** Have VS Code ask for the diagnostics of what is open. */
function pullAgain(client: LanguageClient): void {
  const feature = client.getFeature(DocumentDiagnosticRequest.method);
  const providers = vscode.workspace.textDocuments.map((document) => feature.getProvider(document));
  new Set(providers).forEach((provider) => provider?.onDidChangeDiagnosticsEmitter.fire());
}

/** A client that registers none of the server's commands, and says that it is a VS Code by whatever name. */
class Client extends LanguageClient {
  private readonly listening = onDidChangeProblemsOfOthers(() => {
    if (this.isRunning()) {
      pullAgain(this);
    }
  });

  override dispose(timeout?: number): Promise<void> {
    this.listening.dispose();
    return super.dispose(timeout);
  }

  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    const isCommands = 'registrationType' in feature && feature.registrationType.method === ExecuteCommandRequest.method;
    if (!isCommands) {
      super.registerFeature(feature);
    }
  }

  protected override fillInitializeParams(params: InitializeParams): void {
    super.fillInitializeParams(params);
    const name = `${vscode.env.appName} (Visual Studio Code)`;
    params.clientInfo = { name, version: vscode.version };
    const capabilities: ClientCapabilities = params.capabilities;
    capabilities.workspace = { ...capabilities.workspace, executeCommand: {} };
  }
}
