import { isAbsolute } from 'node:path';
import * as vscode from 'vscode';

import { trusted } from '../trust/settings';
import { bundled, type Bundled } from './bundled';
import { PrivateEnvironment, type Tools } from './environment';
import { expanded } from './expand';
import { probe } from './probe';
import { Problem } from './problem';
import { chosenInterpreter } from './pythonExtension';
import { serverOf, type Server } from './server';
import { compare, matches, OLDEST_PYTHON } from './versions';
import { which } from './which';

/** Finds the server: by the setting, for the chosen interpreter, in the private environment, in this order. */
export class Finder {
  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
    /** Makes the private environment and returns its interpreter. */
    private readonly make: (environment: PrivateEnvironment) => Promise<string>,
  ) {}

  /** Return the server; rejects with a Problem that says what is missing and what can be done. */
  async find(token: vscode.CancellationToken): Promise<Server> {
    const set = trusted('server.interpreter', this.resource);
    if (set !== undefined) {
      return this.bySetting(set);
    }
    if (trusted('server.source', this.resource) !== 'private') {
      const chosen = await this.chosen();
      if (chosen) {
        return chosen;
      }
    }
    if (token.isCancellationRequested) {
      throw new vscode.CancellationError();
    }
    return this.inPrivate();
  }

  /** Return the private environment that belongs to this release; undefined where no package is carried. */
  async environment(): Promise<PrivateEnvironment | undefined> {
    const carried = await this.carried();
    return carried && new PrivateEnvironment(this.context.globalStorageUri.fsPath, carried);
  }

  /** Return what an environment can be made with; interpreters that a folder names only count where it is trusted. */
  async tools(): Promise<Tools> {
    const set = trusted('server.interpreter', this.resource);
    const chosen = vscode.workspace.isTrusted ? await chosenInterpreter(this.resource) : undefined;
    const onPath = await Promise.all(['python3', 'python'].map((name) => which(name)));
    const candidates = [set && expanded(set, this.resource), chosen, ...onPath.flat()];
    const [uv] = await which('uv');
    for (const python of new Set(candidates)) {
      const told = python && isAbsolute(python) ? await probe(python, await this.cwd()) : undefined;
      if (told && compare(told.python, OLDEST_PYTHON) >= 0) {
        return { python, uv };
      }
    }
    return { python: undefined, uv };
  }

  /** Return a folder that processes run in: one of ours, which holds no modules. */
  async cwd(): Promise<string> {
    const folder = vscode.Uri.joinPath(this.context.globalStorageUri, 'run');
    await vscode.workspace.fs.createDirectory(folder);
    return folder.fsPath;
  }

  private async bySetting(setting: string): Promise<Server> {
    const path = expanded(setting, this.resource);
    const python = isAbsolute(path) ? path : (await which(path))[0];
    const told = python && (await probe(python, await this.cwd()));
    if (!python || !told) {
      throw new Problem(
        vscode.l10n.t('{0}, set as dsmigrate.server.interpreter, is no Python that can be started.', setting),
        ['choose', 'settings', 'log'],
      );
    }
    if (!told.dsmigrate) {
      throw new Problem(
        vscode.l10n.t('{0}, set as dsmigrate.server.interpreter, has no dsmigrate: pip install dsmigrate', setting),
        ['choose', 'settings', 'log'],
      );
    }
    if (!matches(told.dsmigrate, this.version)) {
      throw new Problem(
        vscode.l10n.t(
          '{0} has dsmigrate {1}, and this extension needs {2} or later of the same major release.',
          setting,
          told.dsmigrate,
          this.version,
        ),
        ['choose', 'settings', 'log'],
      );
    }
    return serverOf(python, told.dsmigrate, 'setting', this.logLevel);
  }

  private async chosen(): Promise<Server | undefined> {
    const python = vscode.workspace.isTrusted ? await chosenInterpreter(this.resource) : undefined;
    const told = python && (await probe(python, await this.cwd()));
    if (!python || !told) {
      return undefined;
    }
    if (!told.dsmigrate || !matches(told.dsmigrate, this.version)) {
      this.log.info(`${python} has ${told.dsmigrate ? `dsmigrate ${told.dsmigrate}` : 'no dsmigrate'}, so it is not used`);
      return undefined;
    }
    return serverOf(python, told.dsmigrate, 'python', this.logLevel);
  }

  private async inPrivate(): Promise<Server> {
    const [carried, environment] = [await this.carried(), await this.environment()];
    if (!carried || !environment) {
      throw new Problem(
        vscode.l10n.t('This build of the extension carries no server; choose a Python that has dsmigrate.'),
        ['choose', 'log'],
      );
    }
    const python =
      (await environment.interpreter()) ?? ((await environment.hasEarlier()) ? await this.make(environment) : undefined);
    if (!python) {
      throw new Problem(
        vscode.l10n.t(
          'DeepSpeed configs and scripts are checked by a language server written in Python. Create a private environment for it? It takes about 100 MB in the storage of this extension, and usually less than a minute; the packages come from your package index.',
        ),
        vscode.workspace.isTrusted ? ['create', 'choose'] : ['create', 'trust'],
        undefined,
        true,
      );
    }
    return serverOf(python, carried.version, 'private', this.logLevel);
  }

  /** Return the interpreters that one may choose from: that of the Python extension, and those on PATH. */
  async candidates(): Promise<string[]> {
    const chosen = await chosenInterpreter(this.resource);
    const onPath = await Promise.all(['python3', 'python'].map((name) => which(name)));
    return [...new Set([...(chosen ? [chosen] : []), ...onPath.flat()])];
  }

  private carried(): Promise<Bundled | undefined> {
    return bundled(this.context.extensionPath);
  }

  /** The folder whose settings decide about the server, of which there is one for a window. */
  private get resource(): vscode.Uri | undefined {
    return vscode.workspace.workspaceFolders?.[0]?.uri;
  }

  private get version(): string {
    return String((this.context.extension.packageJSON as { version: unknown }).version);
  }

  private get logLevel(): string {
    return vscode.workspace.getConfiguration('dsmigrate').get('server.logLevel', 'warning');
  }
}
