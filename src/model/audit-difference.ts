/** What a change has changed, member by member, out of how a thing was before and after. Pure. */

export interface Line {
  /** In words, such as `limits: volume expires`. */
  readonly member: string;
  /** Null where there was, or is, nothing. */
  readonly before: string | null;
  readonly after: string | null;
}

/** How whoever shows it writes times, in ms since the epoch, and spans, in ms. */
export interface Wording {
  readonly time: (ms: number) => string;
  readonly span: (ms: number) => string;
}

/** Only the members that differ; where there is nothing before or after, all there are. */
export function difference(before: unknown, after: unknown, wording: Wording): readonly Line[] {
  const [was, is] = [flat(before, wording), flat(after, wording)];
  return [...new Set([...was.keys(), ...is.keys()])]
    .map((member) => ({ member: words(member), before: was.get(member) ?? null, after: is.get(member) ?? null }))
    .filter((line) => line.before !== line.after);
}

/** `limits.volumeExpiresAt` as `limits: volume expires`; what is a time says so by its value. */
function words(member: string): string {
  return member
    .replace(/At$/, '')
    .replaceAll('.', ': ')
    .replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** Each member by its path. Those that are null are not there. */
function flat(value: unknown, wording: Wording): ReadonlyMap<string, string> {
  const members = new Map<string, string>();
  const walk = (path: string, one: unknown) => {
    if (one === null || one === undefined) return;
    if (Array.isArray(one)) members.set(path, one.map(String).join(', '));
    else if (typeof one === 'object' && !isRate(one)) {
      for (const [name, inner] of Object.entries(one)) walk(path === '' ? name : `${path}.${name}`, inner);
    } else members.set(path === '' ? 'value' : path, text(path, one, wording));
  };
  walk('', value);
  return members;
}

/** A rate or a throttle is one thing, although it has two numbers. */
function isRate(value: object): boolean {
  return 'periodMs' in value || 'perSecond' in value;
}

function text(path: string, value: unknown, wording: Wording): string {
  if (typeof value === 'object' && value !== null) return limitText(value, wording);
  // Milliseconds since the epoch, as the store keeps times.
  if (typeof value === 'number' && path.endsWith('At')) return wording.time(value);
  if (typeof value === 'number' && path.startsWith('thresholds.')) return `${Number((value * 100).toFixed(4))} %`;
  return String(value);
}

/** `1000 in 1 h`; `50 a second, 200 at once`. */
function limitText(value: object, { span }: Wording): string {
  if ('limit' in value && 'periodMs' in value) return `${value.limit} in ${span(Number(value.periodMs))}`;
  if ('perSecond' in value && 'burst' in value) return `${value.perSecond} a second, ${value.burst} at once`;
  return JSON.stringify(value);
}
