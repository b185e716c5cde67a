/**
 * Parses tag lists (RFC 6376 section 3.2), the syntax of DKIM and DMARC records, in one pass. The functions are pure.
 */

/**
 * Returns the values by tag name, without surrounding white space. Returns null if the text is not a tag list or
 * contains a tag twice. A repeated tag makes the whole list invalid. Tag names are case-sensitive.
 */
export function parseTags(text: string): ReadonlyMap<string, string> | null {
  const tags = new Map<string, string>();
  const tagSpecs = text.split(';');
  for (const [index, tagSpec] of tagSpecs.entries()) {
    const equalsIndex = tagSpec.indexOf('=');
    if (equalsIndex === -1) {
      if (tagSpec.trim() === '' && index === tagSpecs.length - 1) break;
      return null;
    }
    const name = tagSpec.slice(0, equalsIndex).trim();
    if (!isTagName(name) || tags.has(name)) return null;
    tags.set(name, tagSpec.slice(equalsIndex + 1).trim());
  }
  return tags;
}

function isTagName(name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    const charCode = name.charCodeAt(i);
    const isLetter = (charCode | 0x20) >= 0x61 && (charCode | 0x20) <= 0x7a;
    if (!isLetter && (i === 0 || !((charCode >= 0x30 && charCode <= 0x39) || charCode === 0x5f))) return false;
  }
  return name !== '';
}

/** Returns true if the colon-separated list contains one of `acceptedValues`, which are in lower case. */
export function listIncludes(value: string, acceptedValues: readonly string[]): boolean {
  return value.split(':').some((item) => acceptedValues.includes(item.trim().toLowerCase()));
}
