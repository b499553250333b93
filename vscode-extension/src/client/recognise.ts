import type * as vscode from 'vscode';

import signs from './signs.json';

const NAME = new RegExp(signs.name, 'i');
const WORDS = new RegExp(signs.words);
const SCRIPT = new RegExp(signs.script, 'i');
const YAML = new RegExp(signs.yaml, 'm');
const JSON_LANGUAGES = new Set(['json', 'jsonc', 'json5', 'hjson']);
const SCHEMES = new Set(['file', 'untitled']);

/** Return whether a document may be a config by its language or its ending; its content is not looked at. */
export function isJson(document: vscode.TextDocument): boolean {
  const name = document.uri.path.toLowerCase();
  return (
    SCHEMES.has(document.uri.scheme) &&
    (JSON_LANGUAGES.has(document.languageId) || signs.endings.some((ending) => name.endsWith(ending)))
  );
}

/**
 * Return whether the server may have something to say to a document: a config by its name or its words, a script
 * that names DDP or DeepSpeed, or the YAML of `accelerate launch`. The server itself decides with more care; this decides whether one is needed at all.
 */
export function mayConcern(document: vscode.TextDocument): boolean {
  if (document.languageId === 'python') {
    return SCHEMES.has(document.uri.scheme) && SCRIPT.test(document.getText());
  }
  if (document.languageId === 'yaml') {
    return SCHEMES.has(document.uri.scheme) && YAML.test(document.getText());
  }
  if (!isJson(document)) {
    return false;
  }
  const name = document.uri.path.slice(document.uri.path.lastIndexOf('/') + 1);
  return NAME.test(name.replace(/\.[^.]*$/, '')) || WORDS.test(document.getText());
}
