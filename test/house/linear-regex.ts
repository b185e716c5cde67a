/**
 * Checks that a regular expression runs in linear time, so that a remote peer cannot block the service with a text.
 * The check knows only simple shapes. Replace any other expression with a scanner, or add it to `REVIEWED_REGEXES`.
 */

/** Layers that process input from clients, relays or remote servers. */
export const EXPOSED_LAYERS: readonly string[] = [
  'classify',
  'doctor',
  'domains',
  'feedback',
  'http',
  'message',
  'model',
  'operator',
  'printing',
  'providers',
  'store',
  'queue',
  'transports',
  'webhooks',
];

/** Expressions of another shape. In each, no text matches two repetitions, or the text is short. */
export const REVIEWED_REGEXES: readonly string[] = [
  String.raw`/(?:-c\s+)?(?:\\.|[^\\\s])+/gs`,
  String.raw`/^(?:-c\s*|--)([^=]+)=(.*)$/s`,
  String.raw`/::[a-z0-9]+(\[\])?/g`,
  String.raw`/\$(\d+)/g`,
  String.raw`/ FOR (NO KEY )?UPDATE( OF \w+)?( SKIP LOCKED)?/g`,
  String.raw`/= ANY\((\?\d+)\)/g`,
  String.raw`/\bjson_array_elements\((\?\d+)\) AS (\w+)\(value\)/g`,
  String.raw`/^-?\d+(?:\.\d+)?$/`,
  '/^[!-~]+(?: [!-~]+)*$/',
  // The classes of the two repetitions have no common character.
  String.raw`/^[!-9;-~]+[ \t]*:/`,
  // Each attempt ends at the next line end.
  String.raw`/\r\n[ \t]+(?:\r\n|$)/`,
  '/(^|`)( *)postrider (?=[a-z-])/gm',
  String.raw`/[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]\p{M}*|[[\p{L}\p{N}\p{M}]--[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]]+|\p{So}/gv`,
];

/**
 * Returns true if the expression (a literal with its flags) has no unbounded repetition, or exactly one that is outside
 * of groups and alternatives, and that starts only at the beginning of the text or ends the expression.
 */
export function isLinear(regex: string): boolean {
  const end = regex.lastIndexOf('/');
  const [pattern, flags] = [regex.slice(1, end), regex.slice(end + 1)];
  // The content of escapes and classes is replaced, so that only operators of the expression remain.
  const skeleton = replaceClasses(pattern.replaceAll(/\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|.)/g, 'x'));
  const repetitions = [...skeleton.matchAll(/[*+]|\{\d+,\}/g)];
  const [repetition] = repetitions;
  if (repetition === undefined) return true;
  if (repetitions.length > 1 || /[()|]/.test(skeleton)) return false;
  const isAnchored = skeleton.startsWith('^') && !flags.includes('m');
  return isAnchored || repetition.index + repetition[0].length === skeleton.length;
}

function replaceClasses(pattern: string): string {
  let [result, depth] = ['', 0];
  for (const character of pattern) {
    if (character === '[') depth += 1;
    if (depth === 0) result += character;
    if (character === ']' && depth > 0) {
      depth -= 1;
      if (depth === 0) result += 'x';
    }
  }
  return result;
}
