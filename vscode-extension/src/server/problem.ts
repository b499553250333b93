import * as vscode from 'vscode';

/** What a person can do about a problem; each is a button. */
export type Remedy = 'create' | 'choose' | 'log' | 'restart' | 'report' | 'trust' | 'settings' | 'help' | 'never';

/** Why there is no language server, in a sentence for the person, with what can be done about it. */
export class Problem extends Error {
  override readonly name = 'Problem';

  constructor(
    message: string,
    readonly remedies: readonly Remedy[],
    /** What the log says in addition. */
    readonly detail?: string,
    /** Whether it is no fault, but a question: whether something may be done. */
    readonly isQuestion = false,
  ) {
    super(message);
  }

  /** Return an error of any kind as a problem. */
  static of(error: unknown): Problem {
    if (error instanceof Problem) {
      return error;
    }
    if (error instanceof vscode.CancellationError) {
      return new Problem(vscode.l10n.t('The private environment was not made.'), ['create', 'choose'], undefined, true);
    }
    const text = error instanceof Error ? error.message : String(error);
    return new Problem(
      vscode.l10n.t('The DeepSpeed language server does not start: {0}', text),
      ['restart', 'log', 'report'],
      error instanceof Error ? error.stack : undefined,
    );
  }
}
