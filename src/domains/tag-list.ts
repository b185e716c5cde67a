/**
 * Parses tag lists (RFC 6376 section 3.2), the syntax of DKIM and DMARC records, in one pass. The functions are pure.
 */

/**
 * Null if the text is not a tag list or repeats a tag, which makes the whole list invalid. Names are case-sensitive.
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

export function listIncludes(value: string, acceptedValues: readonly string[]): boolean {
  return value.split(':').some((item) => acceptedValues.includes(item.trim().toLowerCase()));
}
