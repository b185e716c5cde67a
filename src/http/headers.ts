/** Questions to a request's headers that node:http does not answer. All linear. */

/** How often the header `name` (lower case) was sent; `rawHeaders` alternates names and values. */
export function occurrences(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const candidate = rawHeaders[i];
    if (candidate !== undefined && candidate.length === name.length && candidate.toLowerCase() === name) count += 1;
  }
  return count;
}

/** True where the header `name` (lower case) was sent more than once. */
export function repeats(rawHeaders: readonly string[], name: string): boolean {
  return occurrences(rawHeaders, name) > 1;
}

const JSON_TYPE = 'application/json';

/** True for `application/json`, any case, with or without parameters (RFC 9110 section 8.3.1). */
export function isJsonType(value: string | undefined): boolean {
  if (value === undefined) return false;
  if (value === JSON_TYPE) return true;
  const end = value.indexOf(';');
  const type = end < 0 ? value : value.slice(0, end);
  // Longer than the name and generous white space: not worth lowering.
  return type.length < 64 && type.trim().toLowerCase() === JSON_TYPE;
}

/** The path of a request target in origin or absolute form (RFC 9112 section 3.2), the query left out. */
export function pathOf(target: string): string {
  const origin = originForm(target);
  const query = origin.indexOf('?');
  return query < 0 ? origin : origin.slice(0, query);
}

/** The origin form of a target; `http://host/path` becomes `/path`, as a server must accept it (section 3.2.2). */
export function originForm(target: string): string {
  if (target.charCodeAt(0) === 0x2f) return target;
  const scheme = target.indexOf('://');
  if (scheme < 0) return target;
  const slash = target.indexOf('/', scheme + 3);
  return slash < 0 ? '/' : target.slice(slash);
}
