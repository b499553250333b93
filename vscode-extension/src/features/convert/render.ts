import { l10n } from 'vscode';

import type { Change, ChangedModule, Conversion, Decision, FileReport, Outcome } from '../answers';
import { type Html, html, nothing, prose } from '../webview/html';

const ORDER: readonly Decision[] = ['refused', 'todo', 'converted', 'kept'];

/** Where a conversion stands: looked at, in the files, or overtaken by a change of the script. */
export type Stage = 'preview' | 'applied' | 'stale';

/** A decision, with the module it is about where that is not the script itself. */
type Decided = Change & { module?: ChangedModule };

/** The report of a conversion as the content of a panel. */
export function conversionReport(conversion: Conversion, name: string, stage: Stage): Html {
  const { decisions, notes } = decided(conversion);
  return html`<header>
      <p class="kicker">${l10n.t('Convert to DeepSpeed')}</p>
      <h1>${name}</h1>
      ${verdict(conversion, stage)} ${toolbar(conversion, stage)}
    </header>
    ${filesSection(conversion, stage)}
    ${conversion.report ? nothing : html`<ul>${conversion.reasons.map((reason) => html`<li>${prose(reason)}</li>`)}</ul>`}
    ${ORDER.slice(0, 2).map((kind) => group(kind, decisions.filter((change) => change.kind === kind)))}
    ${notesSection(notes)} ${configSection(conversion, stage)} ${launchSection(conversion)} ${verifySection(conversion, stage)}
    ${ORDER.slice(2).map((kind) => group(kind, decisions.filter((change) => change.kind === kind)))}
    ${decisions.length && conversion.edit ? html`<footer>${l10n.t('Lines are those before the conversion.')}</footer>` : nothing}`;
}

/** The decisions about every file, the script first, apart from the notes about what behaves differently. */
function decided({ report, modules }: Conversion): { decisions: Decided[]; notes: Decided[] } {
  const decisions: Decided[] = [];
  const notes: Decided[] = [];
  const add = ({ changes, notes: own }: FileReport, module?: ChangedModule): void => {
    const told = new Set(own.map((note) => JSON.stringify(note)));
    const of = (change: Change): Decided => (module ? { ...change, module } : change);
    decisions.push(...inOrder(changes.filter((change) => !told.has(JSON.stringify(change)))).map(of));
    notes.push(...inOrder(own).map(of));
  };
  if (report) {
    add(report);
  }
  for (const module of modules) {
    add(module.report, module);
  }
  return { decisions, notes };
}

function inOrder(changes: readonly Change[]): Change[] {
  return [...changes].sort((one, other) => one.line - other.line);
}

/** The modules that change with the script. */
function filesSection({ modules }: Conversion, stage: Stage): Html {
  if (!modules.length) {
    return nothing;
  }
  const does = stage === 'applied' ? 'open' : 'diff';
  return html`<section aria-labelledby="files">
    <h2 id="files">${l10n.t('Changed with the script')} <span class="count">${modules.length}</span></h2>
    <p class="aside">${l10n.t('The script trains with these modules: all are changed, or none.')}</p>
    <ul class="files">
      ${modules.map(
        ({ name, uri }) => html`<li><button class="link" data-do="${does}" data-uri="${uri}">${name}</button></li>`,
      )}
    </ul>
  </section>`;
}

function verdict({ status, edit }: Conversion, stage: Stage): Html {
  if (stage !== 'preview') {
    const said =
      stage === 'applied'
        ? html`<strong>${l10n.t('Applied')}</strong> ${l10n.t('One Undo in the script takes all of it back.')}`
        : html`<strong>${l10n.t('Out of date')}</strong> ${l10n.t('A file was changed since this was worked out.')}`;
    return html`<p class="verdict ${stage === 'applied' ? 'done' : 'warning'}" data-spoken>${said}</p>`;
  }
  const said: Record<Outcome, [string, string, string]> = {
    converted: ['done', l10n.t('Converted'), l10n.t('Nothing is left for you.')],
    converted_with_todos: ['warning', l10n.t('Converted'), l10n.t('Some work is left for you; it is marked in the text.')],
    unchanged: ['none', l10n.t('Unchanged'), l10n.t('There is nothing of DistributedDataParallel to convert in it.')],
    refused: ['breaking', l10n.t('Refused'), l10n.t('The script stays as it is: it would not train as it did.')],
    error: ['breaking', l10n.t('Not converted'), l10n.t('It could not be read as a training script.')],
  };
  const [mood, title, text] = said[status];
  const hint = edit ? l10n.t('Nothing is written yet.') : '';
  return html`<p class="verdict ${mood}" data-spoken><strong>${title}</strong> ${text} ${hint}</p>`;
}

function toolbar({ edit }: Conversion, stage: Stage): Html {
  const buttons =
    stage === 'applied'
      ? html`<button data-do="undo">${l10n.t('Undo')}</button>`
      : stage === 'stale'
        ? html`<button data-do="again">${l10n.t('Convert Again')}</button>`
        : edit
          ? html`<button data-do="apply">${l10n.t('Apply')}</button>
              <button class="secondary" data-do="preview">${l10n.t('Show Diff')}</button>
              <button class="secondary" data-do="choose">${l10n.t('Choose Changes…')}</button>
              <button class="secondary" data-do="close">${l10n.t('Discard')}</button>`
          : html`<button class="secondary" data-do="again">${l10n.t('Try Again')}</button>`;
  return html`<div class="toolbar" role="group" aria-label="${l10n.t('Actions')}">${buttons}</div>`;
}

function group(kind: Decision, changes: Decided[]): Html {
  if (!changes.length) {
    return nothing;
  }
  const titles: Record<Decision, string> = {
    refused: l10n.t('Refused'),
    todo: l10n.t('Left for you'),
    converted: l10n.t('Converted'),
    kept: l10n.t('Kept as it is'),
  };
  const hints: Partial<Record<Decision, string>> = {
    todo: l10n.t('Each place is marked with a TODO(dsmigrate) comment.'),
    refused: l10n.t('What stands in the way, and where.'),
  };
  const hint = hints[kind];
  return html`<section class="group ${kind}" aria-labelledby="${kind}">
    <h2 id="${kind}">${titles[kind]} <span class="count">${changes.length}</span></h2>
    ${hint ? html`<p class="aside">${hint}</p>` : nothing} ${decisions(changes)}
  </section>`;
}

function decisions(changes: readonly Decided[]): Html {
  return html`<ul class="decisions">
    ${changes.map(
      (change) => html`<li>
        ${place(change)}
        <div>
          <p class="message">${prose(change.message)}</p>
          ${change.reason ? html`<p class="reason">${prose(change.reason)}</p>` : nothing}
        </div>
        <button class="link code" data-do="explain" data-word="${change.code}">${change.code}</button>
      </li>`,
    )}
  </ul>`;
}

function place({ line, end_line: end, module }: Decided): Html {
  const said = end > line ? l10n.t('lines {0}–{1}', line, end) : l10n.t('line {0}', line);
  const file = module ? html`${module.name.slice(module.name.lastIndexOf('/') + 1)}<br>` : nothing;
  return html`<button class="link line" data-do="go" data-line="${line}" data-end="${end}" data-uri="${module?.uri ?? ''}">${file}${said}</button>`;
}

function notesSection(notes: readonly Decided[]): Html {
  if (!notes.length) {
    return nothing;
  }
  return html`<section class="group note" aria-labelledby="notes">
    <h2 id="notes">${l10n.t('Different under DeepSpeed')} <span class="count">${notes.length}</span></h2>
    ${decisions(notes)}
  </section>`;
}

function configSection({ config }: Conversion, stage: Stage): Html {
  if (!config) {
    return nothing;
  }
  const name = config.uri.slice(config.uri.lastIndexOf('/') + 1);
  const kept = html`<div class="verdict warning">
    <p>${l10n.t('Another file of this name is there, and it is left as it is. The converted script reads that one.')}</p>
    <div class="toolbar">
      <button class="secondary" data-do="compareConfig">${l10n.t('Compare Them')}</button>
      ${stage === 'preview' ? html`<button class="secondary" data-do="replace">${l10n.t('Apply and Replace It')}</button>` : nothing}
    </div>
  </div>`;
  return html`<section aria-labelledby="config">
    <h2 id="config">${name}</h2>
    ${config.isThere ? kept : html`<p class="aside">${l10n.t('Made beside the script, with the same Apply.')}</p>`}
    <pre tabindex="0" aria-labelledby="config"><code>${config.text.trimEnd()}</code></pre>
  </section>`;
}

function launchSection({ launch }: Conversion): Html {
  if (!launch.length) {
    return nothing;
  }
  return html`<section aria-labelledby="launch">
    <h2 id="launch">${l10n.t('Then train')}</h2>
    <ul class="launch">
      ${launch.map(
        (command) => html`<li>
          <code>${command}</code>
          <button class="secondary" data-do="copy" data-text="${command}">${l10n.t('Copy')}</button>
          <button class="secondary" data-do="terminal" data-text="${command}">${l10n.t('Put in Terminal')}</button>
        </li>`,
      )}
    </ul>
  </section>`;
}

function verifySection({ edit, modules }: Conversion, stage: Stage): Html {
  if (!edit || stage === 'stale') {
    return nothing;
  }
  // the script as it was needs its modules as they were
  const isTooLate = stage === 'applied' && modules.some(({ isNew }) => !isNew);
  if (isTooLate) {
    return html`<section aria-labelledby="verify">
      <h2 id="verify">${l10n.t('Verify by training')}</h2>
      <p class="aside">${l10n.t('Undo first: the script as it was can be trained only with its modules as they were.')}</p>
    </section>`;
  }
  return html`<section aria-labelledby="verify">
    <h2 id="verify">${l10n.t('Verify by training')}</h2>
    <p class="aside">${l10n.t('Trains the script as it was and its conversion for a few steps, in copies of the folder, and compares every step. This runs your code; it needs torch and DeepSpeed, and no GPU.')}</p>
    <div class="toolbar"><button class="secondary" data-do="verify">${l10n.t('Put in Terminal')}</button></div>
  </section>`;
}
