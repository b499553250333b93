/** The script of every panel: shows the content it is sent, and tells which button was pressed. */

declare function acquireVsCodeApi(): { postMessage(message: unknown): void };

const host = acquireVsCodeApi();
const main = document.querySelector('main')!;
const spoken = document.querySelector('[role=status]')!;

document.addEventListener('click', (event) => {
  const pressed = event.target instanceof Element ? event.target.closest<HTMLElement>('[data-do]') : null;
  if (pressed) {
    event.preventDefault();
    host.postMessage(Object.fromEntries(Object.entries(pressed.dataset)));
  }
});

window.addEventListener('message', (event: MessageEvent<{ body?: string }>) => {
  if (event.data.body !== undefined && event.data.body !== shown) {
    replace(event.data.body);
  }
});

let shown: string | undefined;

/** Replace the content; what was open stays open, and the focus goes to the same button of the new content. */
function replace(body: string): void {
  const isFirst = shown === undefined;
  const open = new Set([...main.querySelectorAll('details[open]')].map((element) => element.id));
  const key = document.activeElement instanceof HTMLElement ? keyOf(document.activeElement) : '';
  const [left, top] = [window.scrollX, window.scrollY];
  main.innerHTML = body;
  shown = body;
  if (isFirst) {
    return;
  }
  for (const element of main.querySelectorAll('details')) {
    element.open ||= open.has(element.id);
  }
  if (key) {
    [...main.querySelectorAll<HTMLElement>('[data-do]')].find((element) => keyOf(element) === key)?.focus();
  }
  window.scrollTo(left, top);
  spoken.textContent = main.querySelector('[data-spoken]')?.textContent ?? '';
}

function keyOf(element: HTMLElement): string {
  return element.dataset['do'] ? JSON.stringify(Object.entries(element.dataset)) : '';
}

host.postMessage({ do: 'ready' });
