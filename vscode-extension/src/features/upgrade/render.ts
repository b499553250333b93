import { l10n } from 'vscode';

import type { Upgrade } from '../answers';
import { type Html, html, nothing, prose } from '../webview/html';

/** An upgrade as the content of a panel; `done` says that its edits are in the file. */
export function upgradeReport(upgrade: Upgrade, name: string, done: boolean): Html {
  const { edits, from, to } = upgrade;
  return html`<header>
      <p class="kicker">${l10n.t('DeepSpeed {0} → {1}', from, to)}</p>
      <h1>${name}</h1>
      ${verdict(upgrade, done)}
      <div class="toolbar" role="group" aria-label="${l10n.t('Actions')}">
        ${done ? html`<button data-do="undo">${l10n.t('Undo')}</button>` : nothing}
        ${edits.length && !done ? html`<button data-do="apply">${l10n.t('Apply')}</button>
          <button class="secondary" data-do="preview">${l10n.t('Show Diff')}</button>` : nothing}
        <button class="secondary" data-do="from">${l10n.t('Another Release…')}</button>
      </div>
    </header>
    ${list('todo', l10n.t('Left for you'), upgrade.left)} ${list('converted', l10n.t('What it changes'), upgrade.done)}`;
}

function verdict({ edits, left, to }: Upgrade, done: boolean): Html {
  const [mood, title, text] = done
    ? ['done', l10n.t('Applied'), l10n.t('Undo in the file takes it back.')]
    : edits.length
      ? ['warning', l10n.t('To do'), l10n.t('With these changes it trains under DeepSpeed {0} as it did.', to)]
      : left.length
        ? ['warning', l10n.t('Yours to decide'), l10n.t('Nothing can be changed safely; look at what is below.')]
        : ['done', l10n.t('Ready'), l10n.t('It means the same under DeepSpeed {0}: nothing to change.', to)];
  return html`<p class="verdict ${mood}" data-spoken><strong>${title}</strong> ${text}</p>`;
}

function list(kind: string, title: string, sentences: readonly string[]): Html {
  if (!sentences.length) {
    return nothing;
  }
  return html`<section class="group ${kind}" aria-labelledby="${kind}">
    <h2 id="${kind}">${title} <span class="count">${sentences.length}</span></h2>
    <ul class="sentences">
      ${sentences.map((sentence) => html`<li>${prose(sentence)}</li>`)}
    </ul>
  </section>`;
}
