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
  type StaticFeature,
} from 'vscode-languageclient/node';

import type { Server } from '../server/server';
import { middleware } from './middleware';
import { EXPLAIN } from './names';
import { onDidChangeProblemsOfOthers } from './others';
import { ServerProcess } from './process';
import type { Session } from './session';
import { settingsFor } from './settings';

const ID = 'dsmigrate';
/** Milliseconds that a server has for its goodbye. */
const LEAVING = 2000;
const LOCAL = ['file', 'untitled'];

/** What the server gets to see: JSON in every spelling, scripts, and YAML; nothing of settings, of source control, of others. */
const SELECTOR = LOCAL.flatMap((scheme) => [
  ...['json', 'jsonc', 'python', 'yaml'].map((language) => ({ scheme, language })),
  { scheme, pattern: '**/*.{json5,hjson}' },
]);

/** A client with the process it speaks with; each serves once, and another server gets another connection. */
export interface Connection {
  readonly client: LanguageClient;
  /** Say goodbye to the server, and see to it that it goes; never rejects. */
  end(): Promise<void>;
}

/** Start a server in a folder and return the connection; after a failure, or when it is cancelled, nothing is left. */
export async function connect(
  server: Server,
  session: Session,
  cwd: string,
  token: vscode.CancellationToken,
): Promise<Connection> {
  const serving = new ServerProcess(server, cwd);
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const options: LanguageClientOptions = {
    documentSelector: SELECTOR,
    outputChannel: session.log,
    initializationOptions: {
      dsmigrate: await settingsFor(folder),
      explainCommand: EXPLAIN,
      showsStatus: true,
      mayRunGit: vscode.workspace.isTrusted, // trust that comes later starts the server again
    },
    markdown: { isTrusted: { enabledCommands: [EXPLAIN] } },
    synchronize: { configurationSection: ID },
    initializationFailedHandler: () => false,
    errorHandler: {
      error: () => ({ action: ErrorAction.Continue, handled: true }),
      // the session starts another one: the client forgets processes when its server dies while it comes up
      closed: () => ({
        action: CloseAction.DoNotRestart,
        handled: true,
        message: 'The connection with the server is closed.',
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
  const client = new Client(ID, 'DeepSpeed (dsmigrate)', () => serving.start(), options);
  const end = async (): Promise<void> => {
    await client.dispose(LEAVING).catch((error: unknown) => session.log.debug(`leaving: ${String(error)}`));
    await serving.end();
  };
  client.onDidChangeState(() => session.moved(client));
  const cancelling = token.onCancellationRequested(() => serving.kill());
  try {
    await client.start();
    return { client, end };
  } catch (error) {
    serving.kill();
    await end();
    throw error;
  } finally {
    cancelling.dispose();
  }
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
