/** HTML that cannot be built from text by accident: whatever is put into a template is escaped, unless it is HTML. */

export class Html {
  constructor(readonly text: string) {}
}

export const nothing = new Html('');

type Piece = Html | readonly Html[] | string | number;

export function html(strings: TemplateStringsArray, ...pieces: Piece[]): Html {
  const parts = pieces.map((piece, index) => written(piece) + (strings[index + 1] ?? ''));
  return new Html((strings[0] ?? '') + parts.join(''));
}

/** Prose of the server: what stands in backticks is code. */
export function prose(text: string): Html {
  const pieces = text.split('`');
  if (pieces.length % 2 === 0) {
    return html`${text}`;
  }
  return join(pieces.map((piece, index) => (index % 2 ? html`<code>${piece}</code>` : html`${piece}`)));
}

export function join(parts: readonly Html[]): Html {
  return new Html(parts.map((part) => part.text).join(''));
}

function written(piece: Piece): string {
  if (piece instanceof Html) {
    return piece.text;
  }
  return typeof piece === 'object' ? join(piece).text : escape(String(piece));
}

const ESCAPED: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (found) => ESCAPED[found] ?? found);
}
