/**
 * Reads a TypeScript file for the house rules: its code with comments and strings blanked, its regular expressions and
 * its imports. The module is a scanner, not a parser; source.test.ts covers the supported syntax. Line numbers are
 * preserved.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Import {
  readonly line: number;
  readonly specifier: string;
  /** True if the import does not exist at run time. */
  readonly typeOnly: boolean;
  /** Names as exported by the imported module, including `default` and `*`; empty for an import without names. */
  readonly names: readonly string[];
}

export interface SourceFile {
  /** Relative to the root of the project, with `/`. */
  readonly path: string;
  readonly text: string;
  /** The text with the content of comments, strings and regular expressions replaced by spaces. */
  readonly code: string;
  readonly regexes: readonly { readonly line: number; readonly regex: string }[];
  readonly imports: readonly Import[];
}

export const ROOT = join(import.meta.dirname, '..', '..');

/**
 * Returns all files of a folder of the project and of its subfolders whose names end with `ending`. Returns no file if
 * the folder does not exist.
 */
export function listFiles(folder: string, ending: string): readonly string[] {
  try {
    return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
      .map((entry) =>
        join(entry.parentPath, entry.name)
          .slice(ROOT.length + 1)
          .replaceAll('\\', '/'),
      )
      .filter((path) => !path.includes('node_modules/'))
      .sort();
  } catch {
    return [];
  }
}

export function readSource(path: string): SourceFile {
  return parseSource(path, readFileSync(join(ROOT, path), 'utf8'));
}

export function parseSource(path: string, text: string): SourceFile {
  const { code, regexes } = blankLiterals(text);
  return { path, text, code, regexes, imports: findImports(text, code) };
}

/** A slash after one of these characters or keywords starts a regular expression. Any other slash is a division. */
const CHARACTERS_BEFORE_REGEX = new Set('([{,;=:?&|!~^<>+-*%}'.split(''));
const KEYWORDS_BEFORE_REGEX = new Set([
  'return',
  'typeof',
  'case',
  'in',
  'of',
  'void',
  'delete',
  'throw',
  'yield',
  'await',
]);

function blankLiterals(text: string): Pick<SourceFile, 'code' | 'regexes'> {
  const characters = text.split('');
  const regexes: { line: number; regex: string }[] = [];
  const blankOut = (from: number, to: number): void => {
    for (let index = from; index < to; index += 1) if (characters[index] !== '\n') characters[index] = ' ';
  };
  /** For each open template: the number of open braces inside its `${`. */
  const templates: number[] = [];
  let position = 0;
  const skipTemplate = (from: number): number => {
    let index = from;
    while (index < text.length) {
      if (text[index] === '\\') index += 2;
      else if (text[index] === '`') {
        blankOut(from, index);
        return index + 1;
      } else if (text.startsWith('${', index)) {
        blankOut(from, index);
        templates.push(0);
        return index + 2;
      } else index += 1;
    }
    return index;
  };
  while (position < text.length) {
    const character = text[position] ?? '';
    if (text.startsWith('//', position)) {
      const end = indexOrDefault(text.indexOf('\n', position), text.length);
      blankOut(position, end);
      position = end;
    } else if (text.startsWith('/*', position)) {
      const end = indexOrDefault(text.indexOf('*/', position + 2), text.length - 2) + 2;
      blankOut(position, end);
      position = end;
    } else if (character === "'" || character === '"') {
      const end = findClosingQuote(text, position + 1, character);
      blankOut(position + 1, end);
      position = end + 1;
    } else if (character === '`') position = skipTemplate(position + 1);
    else if (character === '}' && templates.at(-1) === 0) {
      templates.pop();
      position = skipTemplate(position + 1);
    } else if (character === '/' && isRegexPossible(characters, position)) {
      const end = findRegexEnd(text, position);
      regexes.push({ line: getLine(text, position), regex: text.slice(position, end) });
      blankOut(position + 1, end);
      position = end;
    } else {
      const templateIndex = templates.length - 1;
      if (character === '{' && templateIndex >= 0) templates[templateIndex] = (templates[templateIndex] ?? 0) + 1;
      if (character === '}' && templateIndex >= 0) templates[templateIndex] = (templates[templateIndex] ?? 0) - 1;
      position += 1;
    }
  }
  return { code: characters.join(''), regexes };
}

function indexOrDefault(index: number, fallback: number): number {
  return index === -1 ? fallback : index;
}

function findClosingQuote(text: string, from: number, quote: string): number {
  let index = from;
  while (index < text.length && text[index] !== quote && text[index] !== '\n') index += text[index] === '\\' ? 2 : 1;
  return index;
}

function isRegexPossible(characters: readonly string[], position: number): boolean {
  let characterIndex = position - 1;
  while (characterIndex >= 0 && /\s/.test(characters[characterIndex] ?? '')) characterIndex -= 1;
  if (characterIndex < 0 || CHARACTERS_BEFORE_REGEX.has(characters[characterIndex] ?? '')) return true;
  let start = characterIndex;
  while (start >= 0 && /[A-Za-z0-9_$]/.test(characters[start] ?? '')) start -= 1;
  return KEYWORDS_BEFORE_REGEX.has(characters.slice(start + 1, characterIndex + 1).join(''));
}

/** Returns the position after the flags of the regular expression that begins at `position`. */
function findRegexEnd(text: string, position: number): number {
  let index = position + 1;
  let isInClass = false;
  while (index < text.length && text[index] !== '\n' && (isInClass || text[index] !== '/')) {
    if (text[index] === '[') isInClass = true;
    if (text[index] === ']') isInClass = false;
    index += text[index] === '\\' ? 2 : 1;
  }
  index += 1;
  while (/[a-z]/.test(text[index] ?? '')) index += 1;
  return index;
}

export function getLine(text: string, position: number): number {
  return text.slice(0, position).split('\n').length;
}

/** Finds the import statements in `code`. Reads the specifiers from `text`, because they are blanked in `code`. */
function findImports(text: string, code: string): readonly Import[] {
  const imports: Import[] = [];
  for (const match of code.matchAll(/(?<![\w$.])(import|export)\b([^'"`;()=]*?)(['"])( *)\3/g)) {
    const clause = match[2] ?? '';
    const isExport = match[1] === 'export';
    if (isExport && !/\bfrom\s*$/.test(clause)) continue;
    const start = match.index + match[0].length - (match[4] ?? '').length - 1;
    const specifier = text.slice(start, start + (match[4] ?? '').length);
    imports.push({ line: getLine(text, match.index), specifier, ...readClause(clause) });
  }
  for (const match of code.matchAll(/(?<![\w$.])(?:import|require)\s*\(\s*(['"])( *)\1/g)) {
    const start = match.index + match[0].length - (match[2] ?? '').length - 1;
    const specifier = text.slice(start, start + (match[2] ?? '').length);
    imports.push({ line: getLine(text, match.index), specifier, typeOnly: false, names: ['*'] });
  }
  return imports;
}

function readClause(clause: string): { typeOnly: boolean; names: readonly string[] } {
  const isTypeClause = /^\s*type\b(?!\s*(,|from))/.test(clause);
  const body = clause.replace(/\bfrom\s*$/, '').replace(/^\s*type\b/, isTypeClause ? '' : 'type');
  const braces = /\{([^}]*)\}/.exec(body)?.[1] ?? null;
  const unbracedNames = body
    .replace(/\{[^}]*\}/, '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
  const bracedNames = (braces ?? '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
  const names = [
    ...unbracedNames.map((part) => (part.startsWith('*') ? '*' : 'default')),
    ...bracedNames.map((part) => part.replace(/^type\s+/, '').split(/\s+as\s+/)[0] ?? part),
  ];
  const areAllTypes =
    unbracedNames.length === 0 && bracedNames.length > 0 && bracedNames.every((part) => /^type\s/.test(part));
  return { typeOnly: isTypeClause || areAllTypes, names };
}
