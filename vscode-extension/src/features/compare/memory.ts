import { l10n } from 'vscode';

import type { Memory } from '../answers';
import { type Html, html, join, nothing } from '../webview/html';

const UNITS: readonly [number, string][] = [
  [2 ** 40, 'TiB'],
  [2 ** 30, 'GiB'],
  [2 ** 20, 'MiB'],
  [2 ** 10, 'KiB'],
];
const WIDTH = 1000;
const HEIGHT = 26;

/** Whether the memory of both sides is known. */
export function isKnown({ old, new: now }: { old: Memory; new: Memory }): boolean {
  return Object.keys(old).length > 0 && Object.keys(now).length > 0;
}

/** What to do for a picture of the memory. */
export function memoryHint(): Html {
  return html`<section class="memory missing" aria-labelledby="memory">
      <h2 id="memory">${l10n.t('Memory per GPU')}</h2>
      <p>
        ${l10n.t('With the size of the model and the number of GPUs, memory before and after is shown here.')}
        <button class="secondary" data-do="facts">${l10n.t('Say Them…')}</button>
      </p>
    </section>`;
}

/** Memory per GPU before and after: two bars in one scale, and a table with the same figures. */
export function memorySection({ old, new: now }: { old: Memory; new: Memory }): Html {
  const names = [...new Set([...Object.keys(old), ...Object.keys(now)])];
  const totals = [total(old), total(now)] as const;
  const largest = Math.max(...totals, 1);
  return html`<section class="memory" aria-labelledby="memory">
    <h2 id="memory">${l10n.t('Memory per GPU')}</h2>
    <p class="aside">${l10n.t('At the peak of a step, without activations.')}</p>
    <div class="bars" aria-hidden="true">
      ${bar(l10n.t('before'), old, names, largest)} ${bar(l10n.t('after'), now, names, largest)}
    </div>
    <ul class="legend" aria-hidden="true">
      ${names.map((name, index) => html`<li><i class="swatch part${index % 8}"></i>${name}</li>`)}
    </ul>
    <details id="figures">
    <summary>${l10n.t('Figures')}</summary>
    <table>
      <thead>
        <tr>
          <th scope="col">${l10n.t('held by')}</th>
          <th scope="col" class="number">${l10n.t('before')}</th>
          <th scope="col" class="number">${l10n.t('after')}</th>
          <th scope="col" class="number">${l10n.t('change')}</th>
        </tr>
      </thead>
      <tbody>
        ${names.map((name, index) => row(html`<i class="swatch part${index % 8}"></i>${name}`, old[name], now[name]))}
      </tbody>
      <tfoot>
        ${row(html`${l10n.t('together')}`, ...totals)}
      </tfoot>
    </table>
    </details>
  </section>`;
}

function bar(side: string, parts: Memory, names: readonly string[], largest: number): Html {
  let left = 0;
  const pieces = names.map((name, index) => {
    const wide = ((parts[name] ?? 0) / largest) * WIDTH;
    const piece = wide
      ? html`<rect class="part${index % 8}" x="${left.toFixed(1)}" width="${wide.toFixed(1)}" height="${HEIGHT}">
          <title>${name}: ${size(parts[name] ?? 0)}</title>
        </rect>`
      : nothing;
    left += wide;
    return piece;
  });
  return html`<span class="side">${side}</span
    ><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" height="${HEIGHT}">${join(pieces)}</svg
    ><span class="sum">${size(total(parts))}</span>`;
}

function row(name: Html, before = 0, after = 0): Html {
  const change = after - before;
  const sign = change > 0 ? '+' : '−';
  return html`<tr>
    <th scope="row">${name}</th>
    <td class="number">${size(before)}</td>
    <td class="number">${size(after)}</td>
    <td class="number">${change ? `${sign}${size(Math.abs(change))}` : '–'}</td>
  </tr>`;
}

function total(parts: Memory): number {
  return Object.values(parts).reduce((sum, count) => sum + count, 0);
}

/** Bytes as text: "14.9 GiB". */
export function size(count: number): string {
  const [unit, name] = UNITS.find(([bytes]) => count >= bytes) ?? [1, 'B'];
  return unit === 1 ? `${count} B` : `${(count / unit).toFixed(1)} ${name}`;
}
