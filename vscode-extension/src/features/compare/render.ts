import { l10n } from 'vscode';

import type { Compared, Edited, Explained, Range, Severity } from '../answers';
import { type Html, html, join, nothing, prose } from '../webview/html';
import { isKnown, memoryHint, memorySection } from './memory';

const LONGEST = 60;
const SHORT = 24;
const LOUD: readonly Severity[] = ['breaking', 'warning', 'info'];

/** A comparison as the content of a panel; `from` and `to` are how its sides are called. */
export function comparison(compared: Compared, name: string, from: string, to: string): Html {
  const { report, memory } = compared;
  const edits = new Map(report.edits.map((edit) => [edit.path, edit]));
  const said = (severity: Severity) => report.changes.filter((change) => change.severity === severity);
  const quiet = said('none');
  return html`<header>
      <p class="kicker">${from} → ${to}</p>
      <h1>${name}</h1>
      <p class="verdict ${report.summary.worst}" data-spoken>
        <strong>${label(report.summary.worst, report.summary.same)}</strong> ${prose(report.summary.verdict)}.
      </p>
      <div class="toolbar" role="group" aria-label="${l10n.t('Actions')}">
        <button data-do="text">${l10n.t('Text Diff')}</button>
        <button class="secondary" data-do="copy">${l10n.t('Copy as Markdown')}</button>
        <button class="secondary" data-do="facts">${l10n.t('Release, Consumer, World Size…')}</button>
      </div>
    </header>
    ${isKnown(memory) ? memorySection(memory) : nothing}
    ${LOUD.map((severity) => group(severity, said(severity), edits))}
    ${quiet.length ? folded(quiet, edits) : nothing} ${isKnown(memory) || report.summary.same ? nothing : memoryHint()}
    <footer>${readAs(compared)}</footer>`;
}

function label(severity: Severity, same: boolean): string {
  if (same) {
    return l10n.t('The same');
  }
  return {
    breaking: l10n.t('Breaking'),
    warning: l10n.t('Needs review'),
    info: l10n.t('Needs no look'),
    none: l10n.t('No effect'),
  }[severity];
}

function group(severity: Severity, changes: Explained[], edits: Map<string, Edited>): Html {
  if (!changes.length) {
    return nothing;
  }
  const title = { breaking: l10n.t('Breaking'), warning: l10n.t('Needs review'), info: l10n.t('Other effects'), none: '' };
  return html`<section class="group ${severity}" aria-labelledby="${severity}">
    <h2 id="${severity}">${title[severity]} <span class="count">${changes.length}</span></h2>
    ${changes.map((change) => card(change, edits))}
  </section>`;
}

function folded(changes: Explained[], edits: Map<string, Edited>): Html {
  return html`<details id="quiet" class="group none">
    <summary>${l10n.t('Without effect')} <span class="count">${changes.length}</span></summary>
    ${changes.map((change) => card(change, edits))}
  </details>`;
}

function card(said: Explained, edits: Map<string, Edited>): Html {
  const rows = said.paths.map((path) => edits.get(path)).filter((edit) => edit !== undefined);
  const effects = said.effects.filter((effect) => effect !== 'none');
  return html`<article class="card">
    <p class="message">${prose(said.message)}</p>
    ${rows.length ? values(rows) : nothing}
    ${said.advice ? html`<p class="advice"><span aria-hidden="true">→ </span>${prose(said.advice)}</p>` : nothing}
    <p class="facts">
      <button class="link" data-do="explain" data-word="${said.code}">${said.code}</button>
      ${effects.map((effect) => html`<span class="chip">${effect}</span> `)}
      ${rows.length ? nothing : join([place('old', said.old_range), place('new', said.new_range)])}
    </p>
  </article>`;
}

function values(rows: Edited[]): Html {
  return html`<table class="values">
    <tbody>
      ${rows.map(
        (row) => html`<tr>
          <th scope="row"><code>${row.path}</code></th>
          <td class="old ${width(row.old)}">${value(row.old, row.old_effective, 'old', row.old_range)}</td>
          <td class="arrow"><span aria-hidden="true">→</span><span class="unseen">${l10n.t('becomes')}</span></td>
          <td class="new ${width(row.new)}">${value(row.new, row.new_effective, 'new', row.new_range)}</td>
        </tr>`,
      )}
    </tbody>
  </table>`;
}

function value(written: unknown, effective: unknown, side: 'old' | 'new', range: Range | null): Html {
  if (range) {
    const line = range.start.line + 1;
    const where =
      side === 'old' ? l10n.t('line {0} of the old side', line) : l10n.t('line {0} of the new side', line);
    return html`<button class="link value" data-do="go" data-side="${side}" data-line="${line}" title="${where}">
      ${text(written)}
    </button>`;
  }
  const counts = effective === null ? '' : ` (${effective === 'auto' ? l10n.t('decided at the start') : text(effective)})`;
  return html`<span class="absent">${l10n.t('absent')}${counts}</span>`;
}

function width(written: unknown): string {
  return text(written).length > SHORT ? '' : 'short';
}

function place(side: 'old' | 'new', range: Range | null): Html {
  if (!range) {
    return nothing;
  }
  const line = range.start.line + 1;
  const said = side === 'old' ? l10n.t('old line {0}', line) : l10n.t('new line {0}', line);
  return html`<button class="link" data-do="go" data-side="${side}" data-line="${line}">${said}</button> `;
}

function text(held: unknown): string {
  const written = JSON.stringify(held);
  return written.length > LONGEST ? `${written.slice(0, LONGEST - 1)}…` : written;
}

function readAs({ report, consumer }: Compared): Html {
  const [before, after] = [report.old.deepspeed_version, report.new.deepspeed_version];
  const release = before === after ? after : `${before} → ${after}`;
  const { deepspeed_version_from: whyRelease, consumer_from: whyConsumer } = report.summary;
  return html`${l10n.t('DeepSpeed {0}', release)}${whyRelease ? ` (${whyRelease})` : ''},
  ${l10n.t('read by {0}', consumer)}${whyConsumer ? ` (${whyConsumer})` : ''}`;
}
