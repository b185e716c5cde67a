/** Parses tag lists (RFC 6376 section 3.2), the syntax of DKIM and DMARC records, in one pass. The functions are pure. */

/**
 * Returns the values by tag, without surrounding white space. Returns null if the text is not a tag list or has a tag
 * twice, which makes the whole list invalid. Names are case-sensitive.
 */
export function parseTags(text: string): ReadonlyMap<string, string> | null {
  const tags = new Map<string, string>();
  const specs = text.split(';');
  for (const [index, spec] of specs.entries()) {
    const equals = spec.indexOf('=');
    if (equals === -1) {
      if (spec.trim() === '' && index === specs.length - 1) break;
      return null;
    }
    const name = spec.slice(0, equals).trim();
    if (!isTagName(name) || tags.has(name)) return null;
    tags.set(name, spec.slice(equals + 1).trim());
  }
  return tags;
}

function isTagName(name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    const c = name.charCodeAt(i);
    const letter = (c | 0x20) >= 0x61 && (c | 0x20) <= 0x7a;
    if (!letter && (i === 0 || !((c >= 0x30 && c <= 0x39) || c === 0x5f))) return false;
  }
  return name !== '';
}

/** Returns true if the colon-separated list contains one of the `accepted` values. */
export function listIncludes(value: string, accepted: readonly string[]): boolean {
  return value.split(':').some((item) => accepted.includes(item.trim().toLowerCase()));
}
